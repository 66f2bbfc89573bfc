"""The manager's side of a reconfiguration, as a state machine without I/O.

It collects statistics, has a configuration computed, has it saved, tells every task what will
change, and when all have acknowledged lets the first tasks switch. The rest happens among the
tasks; the manager waits until each has reported. It measures no time: whoever runs it decides how
long a phase may take.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from thalweg.errors import StateError, UsageError, explain
from thalweg.migration.lists import reconfigurations
from thalweg.migration.messages import (
    AckReconf,
    Configuration,
    Done,
    Finish,
    GetMetrics,
    Message,
    Propagate,
    Restarted,
    Resume,
    Save,
    Saved,
    SendMetrics,
    SendReconf,
    Sent,
)
from thalweg.migration.wiring import Address, Office, TaskId, Wiring

#: From the statistics of all tasks to a new configuration, or None for no change.
Compute = Callable[[Mapping[TaskId, Any]], Configuration | None]


class Phase(enum.Enum):
    """Where a manager is in its round."""

    IDLE = "idle"
    METRICS = "collecting statistics"
    SAVING = "saving the configuration"
    ACKS = "collecting acknowledgements"
    PROPAGATING = "waiting for the tasks to be done"


class Manager:
    """Leads one reconfiguration after the other."""

    def __init__(self, wiring: Wiring, compute: Compute, epoch: int = 0) -> None:
        self.phase = Phase.IDLE
        #: Epoch of the last configuration that all tasks have taken over.
        self.epoch = epoch
        self._wiring = wiring
        self._compute = compute
        self._round = 0
        self._metrics: dict[TaskId, Any] = {}
        #: What is being saved or applied, and what each task is told of it.
        self._configuration: Configuration | None = None
        self._reconfs: Mapping[TaskId, SendReconf] = {}
        self._acked: set[Address] = set()
        self._done: set[Address] = set()

    def start(self) -> list[Sent]:
        """Begin a round: ask all tasks for their statistics."""
        self._expect_idle()
        self.phase = Phase.METRICS
        self._round += 1
        self._metrics = {}
        return [(task, GetMetrics(self._round)) for task in self._wiring.tasks]

    def begin(self, configuration: Configuration) -> list[Sent]:
        """Begin a round with a configuration that is known already; it is saved first."""
        self._expect_idle()
        return self._save(configuration)

    def replay(self, saved: Configuration | None) -> list[Sent]:
        """Take over after a manager that is gone: apply what it saved last, if anything.

        Applying a configuration again that has been applied already does no harm.
        """
        self._expect_idle()
        if saved is None:
            return [(task, Resume(self.epoch)) for task in self._wiring.tasks]
        self.epoch = saved.epoch - 1
        self._prepare(saved)
        return self._send_reconfs()

    def receive(self, message: Message, sender: Address) -> list[Sent]:
        """Take in a message and give those that follow from it."""
        match message:
            case SendMetrics():
                return self._collect(message, sender)
            case Saved(epoch=epoch):
                return self._send_reconfs() if self._is_in(Phase.SAVING, epoch) else []
            case AckReconf(epoch=epoch):
                return self._acknowledge(epoch, sender)
            case Done(epoch=epoch):
                return self._report(epoch, sender)
            case Restarted() if isinstance(sender, TaskId):
                return self._bring_back(sender)
        raise UsageError(explain("message to the manager", str(sender), got=repr(message)))

    def validate(self) -> None:
        """Check what must always hold."""
        applying = self.phase in (Phase.ACKS, Phase.PROPAGATING)
        tasks = set(self._wiring.tasks)
        broken = {
            "a configuration exactly while one is saved or applied": (
                (self._configuration is None) == (applying or self.phase is Phase.SAVING)
            ),
            "a configuration one epoch ahead or more": (
                self._configuration is not None and self._configuration.epoch <= self.epoch
            ),
            "acknowledgements from tasks only": not self._acked <= tasks,
            "reports from tasks only": not self._done <= tasks,
            "acknowledgements only of what has been sent": bool(self._acked) and not applying,
            "all acknowledgements before anything is propagated": (
                self.phase is Phase.PROPAGATING and self._acked != tasks
            ),
        }
        for rule in (rule for rule, is_broken in broken.items() if is_broken):
            raise StateError(explain("manager", self.phase.value, rule, repr(vars(self))))

    def _expect_idle(self) -> None:
        if self.phase is not Phase.IDLE:
            hint = "one reconfiguration at a time"
            text = explain("manager", "", "no reconfiguration under way", self.phase.value, hint)
            raise UsageError(text)

    def _is_in(self, phase: Phase, epoch: int) -> bool:
        known = self._configuration
        return self.phase is phase and known is not None and known.epoch == epoch

    def _collect(self, message: SendMetrics, sender: Address) -> list[Sent]:
        if self.phase is not Phase.METRICS or message.round != self._round:
            return []
        if isinstance(sender, TaskId):
            self._metrics[sender] = message.metrics
        if len(self._metrics) < len(self._wiring.tasks):
            return []
        computed = self._compute(self._metrics)
        self.phase = Phase.IDLE
        return [] if computed is None else self._save(computed)

    def _save(self, configuration: Configuration) -> list[Sent]:
        if configuration.epoch <= self.epoch:
            expected = f"an epoch after {self.epoch}"
            raise UsageError(explain("configuration", "", expected, str(configuration.epoch)))
        self._prepare(configuration)
        self.phase = Phase.SAVING
        return [(Office.STORE, Save(configuration))]

    def _prepare(self, configuration: Configuration) -> None:
        self._reconfs = reconfigurations(configuration, self._wiring)
        self._configuration = configuration

    def _send_reconfs(self) -> list[Sent]:
        self.phase = Phase.ACKS
        return list(self._reconfs.items())

    def _acknowledge(self, epoch: int, sender: Address) -> list[Sent]:
        if not self._is_in(Phase.ACKS, epoch):
            return []
        self._acked.add(sender)
        if len(self._acked) < len(self._reconfs):
            return []
        self.phase = Phase.PROPAGATING
        propagate = [out for task in self._wiring.first for out in self._propagate(task)]
        return propagate + self._finish(epoch)

    def _propagate(self, task: TaskId) -> list[Sent]:
        known = self._configuration
        if known is None or self.phase is not Phase.PROPAGATING or task not in self._wiring.first:
            return []
        return [(task, Propagate(known.epoch))]

    def _report(self, epoch: int, sender: Address) -> list[Sent]:
        if not (self._is_in(Phase.ACKS, epoch) or self._is_in(Phase.PROPAGATING, epoch)):
            return []
        self._done.add(sender)
        return self._finish(epoch)

    def _finish(self, epoch: int) -> list[Sent]:
        if self.phase is Phase.ACKS or len(self._done) < len(self._reconfs):
            return []
        self.phase, self.epoch = Phase.IDLE, epoch
        self._configuration, self._reconfs = None, {}
        self._acked, self._done = set(), set()
        return [(task, Finish(epoch)) for task in self._wiring.tasks]

    def _bring_back(self, task: TaskId) -> list[Sent]:
        if self.phase in (Phase.ACKS, Phase.PROPAGATING):
            return [(task, self._reconfs[task]), *self._propagate(task)]
        resume: list[Sent] = [(task, Resume(self.epoch))]
        if self.phase is Phase.METRICS:
            resume.append((task, GetMetrics(self._round)))
        return resume
