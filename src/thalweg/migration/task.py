"""A task's side of a reconfiguration, as a state machine without I/O.

Channels are FIFO, and tuples and messages share them. A task waits for the state of what it is
to receive from its acknowledgement on, not from its own switch, because a task before it may
switch first. When all tasks before it have propagated, it switches its router, sends state to
the new owners and propagates at once: what it promises is that its later output follows the new
tables, and for that it need not have received anything itself (Algorithm 1 waits for it).

**Restarts.** A restarted task still has its state and its :class:`Kept`, which is to be saved
together with the state; tuples that it had taken in and not processed come again before later
ones of the same channel. It forgets everything else, and messages to it may be lost. It processes
nothing until the manager has told it what is under way, and then asks for what it may have
missed. Whatever comes twice is known by its epoch and number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from thalweg.errors import StateError, UsageError, explain
from thalweg.hashing import Hashes
from thalweg.migration.messages import (
    AckReconf,
    Again,
    Done,
    Finish,
    GetMetrics,
    Message,
    Migrate,
    Piece,
    Propagate,
    Restarted,
    Resume,
    Router,
    SendMetrics,
    SendReconf,
    Sent,
    States,
    Tuple,
)
from thalweg.migration.units import Units
from thalweg.migration.wiring import Address, Office, TaskId, Wiring


class Host(Protocol):
    """What a task does and holds besides the protocol; the runtime's side."""

    def process(self, tuple_: Tuple, router: Router) -> list[Sent]:
        """Process a tuple, and route what it emits."""
        ...

    def take(self, units: Units, wanted: frozenset[int]) -> list[Piece]:
        """Remove the state of some units and give it in pieces.

        Each wanted unit is ended once, with the last of its state; also one without state.
        """
        ...

    def put(self, states: States) -> None:
        """Add state that has come from another task."""
        ...

    def metrics(self) -> Any:
        """Give the statistics since the last epoch."""
        ...


@dataclass
class Kept:
    """What a task has to know after a restart, besides the state of its keys."""

    router: Router
    #: The last reconfiguration it heard of, the last it switched to, the last that is over.
    epoch: int = 0
    switched: int = 0
    settled: int = 0
    #: Of the reconfiguration under way: the pieces taken in from each old owner, the units that
    #: are complete, and what was sent, until everybody is done.
    taken: dict[Address, int] = field(default_factory=dict)
    arrived: set[int] = field(default_factory=set)
    sent: list[tuple[TaskId, Migrate]] = field(default_factory=list)

    def begin(self, epoch: int) -> None:
        """Note that a reconfiguration begins, so that those before it are over."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.settle(epoch - 1)

    def settle(self, epoch: int) -> None:
        """Note that a reconfiguration is over: nobody will ask for it again."""
        self.settled = epoch
        self.taken, self.arrived, self.sent = {}, set(), []


class Task:
    """Takes part in one reconfiguration after the other while tuples flow."""

    def __init__(self, me: TaskId, wiring: Wiring, kept: Kept, host: Host) -> None:
        self._me = me
        self._kept = kept
        self._host = host
        self._successors = wiring.successors(me)
        self._before: tuple[Address, ...] = wiring.predecessors(me) or (Office.MANAGER,)
        self._reconf: SendReconf | None = None
        #: The last epoch that each task before this one has propagated.
        self._propagated: dict[Address, int] = {}
        #: Which units are still to come, how many, and the tuples that wait for them.
        self._awaited: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._missing = 0
        self._buffer: dict[int, list[Tuple]] = defaultdict(list)
        #: Whether it waits for the manager after a restart, and the tuples that came since.
        self._rejoining = False
        self._held: list[Tuple] = []

    def rejoin(self) -> list[Sent]:
        """Begin again after a restart; to be called before anything is received."""
        self._rejoining = True
        return [(Office.MANAGER, Restarted())]

    @property
    def calm(self) -> bool:
        """Whether every tuple may be processed as it comes."""
        return not (self._rejoining or self._missing)

    def waits(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Tell which keys may not be processed yet."""
        if self.calm or self._reconf is None:
            return np.full(len(hashes), self._rejoining)
        return self._awaited[self._reconf.units.of(hashes)]

    def receive(self, message: Message, sender: Address) -> list[Sent]:
        """Take in a tuple or a message and give those that follow from it."""
        match message:
            case Tuple():
                return self._work(message)
            case GetMetrics(round=number):
                return [(Office.MANAGER, SendMetrics(number, self._host.metrics()))]
            case SendReconf():
                return self._prepare(message)
            case Propagate(epoch=epoch):
                self._propagated[sender] = max(epoch, self._propagated.get(sender, 0))
                return self._switch_if_ready() + self._report()
            case Migrate():
                return self._take_in(message, sender)
            case Again(epoch=epoch):
                return self._send_again(epoch, sender)
            case Finish(epoch=epoch) | Resume(epoch=epoch):
                return self._settle(epoch)
        raise UsageError(explain(f"message to {self._me}", str(sender), got=repr(message)))

    def validate(self) -> None:
        """Check what must always hold."""
        kept = self._kept
        broken = {
            "tuples that wait only for units to come": not all(map(self._is_awaited, self._buffer)),
            "as many units to come as counted": self._missing != np.count_nonzero(self._awaited),
            "nothing held but after a restart": bool(self._held) and not self._rejoining,
            "settled <= switched <= epoch": not kept.settled <= kept.switched <= kept.epoch,
            "no unit to come that has arrived": any(map(self._is_awaited, kept.arrived)),
            "nothing kept of a reconfiguration that is over": (
                kept.settled == kept.epoch and bool(kept.taken or kept.arrived or kept.sent)
            ),
            "nothing sent before the switch": bool(kept.sent) and kept.switched < kept.epoch,
        }
        for rule in (rule for rule, is_broken in broken.items() if is_broken):
            raise StateError(explain(f"task {self._me}", "", rule, repr(vars(self))))

    def _work(self, tuple_: Tuple) -> list[Sent]:
        if self._rejoining:
            self._held.append(tuple_)
            return []
        if self.calm or self._reconf is None:
            return self._host.process(tuple_, self._kept.router)
        hashes = np.array([tuple_.hash], dtype=np.uint64)
        if not self.waits(hashes)[0]:
            return self._host.process(tuple_, self._kept.router)
        self._buffer[int(self._reconf.units.of(hashes)[0])].append(tuple_)
        return []

    def _prepare(self, reconf: SendReconf) -> list[Sent]:
        """Put the receive list into force, and say so."""
        kept, out = self._kept, list[Sent]()
        if reconf.epoch < kept.epoch:
            return out
        kept.begin(reconf.epoch)
        out.append((Office.MANAGER, AckReconf(reconf.epoch)))
        if kept.settled < reconf.epoch:
            self._await(reconf)
        if self._rejoining:
            out += self._catch_up(reconf)
        return out + self._resume() + self._switch_if_ready() + self._report()

    def _await(self, reconf: SendReconf | None) -> None:
        self._reconf = reconf
        units: set[int] = set()
        if reconf is not None:
            units = units.union(*reconf.receive.values()) - self._kept.arrived
        self._awaited = np.zeros(0 if reconf is None else len(reconf.units), dtype=np.bool_)
        self._awaited[sorted(units)] = True
        self._missing = len(units)

    def _catch_up(self, reconf: SendReconf) -> list[Sent]:
        """Ask for what may have been lost to it, and send again what may not have left."""
        asked = [*reconf.receive, *(task for task in self._before if isinstance(task, TaskId))]
        again: list[Sent] = [(task, Again(reconf.epoch)) for task in asked]
        for task in sorted({*self._successors, *reconf.send}):
            again += self._send_again(reconf.epoch, task)
        return again

    def _resume(self) -> list[Sent]:
        held, self._held, self._rejoining = self._held, [], False
        return [out for tuple_ in held for out in self._work(tuple_)]

    def _switch_if_ready(self) -> list[Sent]:
        reconf, kept = self._reconf, self._kept
        if reconf is None or self._rejoining or kept.switched >= reconf.epoch:
            return []
        if not all(self._propagated.get(task, 0) >= reconf.epoch for task in self._before):
            return []
        kept.router, kept.switched = reconf.router, reconf.epoch
        kept.sent = [out for to in reconf.send for out in self._migrate(reconf, to)]
        propagate: list[Sent] = [(to, Propagate(reconf.epoch)) for to in self._successors]
        return [*kept.sent, *propagate]

    def _migrate(self, reconf: SendReconf, to: TaskId) -> Iterable[tuple[TaskId, Migrate]]:
        pieces = self._host.take(reconf.units, reconf.send[to])
        ended = sorted(unit for piece in pieces for unit in piece.ended)
        if ended != sorted(reconf.send[to]):
            expected = f"an end for each unit to {to}: {sorted(reconf.send[to])}"
            raise StateError(explain(f"pieces of {self._me}", "", expected, str(ended)))
        return [(to, Migrate(reconf.epoch, number, piece)) for number, piece in enumerate(pieces)]

    def _take_in(self, message: Migrate, sender: Address) -> list[Sent]:
        kept = self._kept
        if message.epoch > kept.epoch:
            expected = f"no state of a later epoch than {kept.epoch}, the last it was told of"
            raise StateError(explain(f"task {self._me}", str(sender), expected, repr(message)))
        if message.epoch <= kept.settled or message.number != kept.taken.get(sender, 0):
            # It has come before, or one before it was lost and will be sent again.
            return []
        kept.taken[sender] = message.number + 1
        self._host.put(message.piece.states)
        out = list[Sent]()
        for unit in sorted(self._ended(message.piece)):
            out += self._release(unit)
        return out + self._report()

    def _ended(self, piece: Piece) -> Iterable[int]:
        return piece.ended

    def _release(self, unit: int) -> list[Sent]:
        """Process the tuples that waited for a unit."""
        self._kept.arrived.add(unit)
        if self._is_awaited(unit):
            self._awaited[unit] = False
            self._missing -= 1
        waiting = self._buffer.pop(unit, [])
        return [out for tuple_ in waiting for out in self._work(tuple_)]

    def _is_awaited(self, unit: int) -> bool:
        return unit < len(self._awaited) and bool(self._awaited[unit])

    def _report(self) -> list[Sent]:
        kept = self._kept
        if self._rejoining or kept.switched < kept.epoch or self._missing:
            return []
        return [(Office.MANAGER, Done(kept.epoch))]

    def _send_again(self, epoch: int, asker: Address) -> list[Sent]:
        kept = self._kept
        if kept.switched != epoch:
            return []
        again: list[Sent] = [(to, message) for to, message in kept.sent if to == asker]
        if asker in self._successors:
            again.append((asker, Propagate(epoch)))
        return again

    def _settle(self, epoch: int) -> list[Sent]:
        if epoch < self._kept.epoch:
            return []
        self._kept.settle(epoch)
        self._await(None)
        return self._resume()
