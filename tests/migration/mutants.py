"""Protocols with one mistake each, and how to look for a run that shows it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from migration.scenarios import make_scenario
from migration.world import Violation, World
from thalweg.errors import StateError
from thalweg.hashing import Hashes
from thalweg.migration.protocol import (
    Address,
    Configuration,
    Manager,
    Migrate,
    Phase,
    Piece,
    Sent,
    Task,
    TaskId,
    Tuple,
)


class WaitsFromItsOwnSwitch(Task):
    """The receive list is in force from the task's own switch only."""

    def waits(self, hashes: Hashes) -> Any:
        return super().waits(hashes) & (self._kept.switched >= self._kept.epoch)


class NeverWaits(Task):
    def waits(self, hashes: Hashes) -> Any:
        return np.zeros(len(hashes), dtype=np.bool_)


class NeedsNoEnd(Task):
    """A key group counts as complete with its first piece."""

    def _ended(self, piece: Piece) -> set[int]:
        hashes = np.fromiter(piece.states, dtype=np.uint64)
        units = [] if self._reconf is None else self._reconf.units.of(hashes).tolist()
        return {*units, *piece.ended}


class SwitchesWithTheFirst(Task):
    """One task before it is enough to switch."""

    def _switch_if_ready(self) -> list[Sent]:
        latest = max(self._propagated.values(), default=0)
        self._propagated = dict.fromkeys(self._before, latest)
        return super()._switch_if_ready()


class KeepsItsRouter(Task):
    def _switch_if_ready(self) -> list[Sent]:
        router = self._kept.router
        out = super()._switch_if_ready()
        self._kept.router = router
        return out


class ReleasesBackwards(Task):
    def _release(self, unit: int) -> list[Sent]:
        self._buffer.get(unit, []).reverse()
        return super()._release(unit)


class DropsWhatWaits(Task):
    def _release(self, unit: int) -> list[Sent]:
        self._buffer.pop(unit, None)
        return super()._release(unit)


class TakesTwice(Task):
    """State that comes a second time replaces what is there."""

    def _take_in(self, message: Migrate, sender: Address) -> list[Sent]:
        if self._kept.settled < message.epoch:
            self._kept.taken[sender] = message.number
        return super()._take_in(message, sender)


class IgnoresGaps(Task):
    """A piece before this one may be missing."""

    def _take_in(self, message: Migrate, sender: Address) -> list[Sent]:
        if self._kept.settled < message.epoch and message.number > self._kept.taken.get(sender, 0):
            self._kept.taken[sender] = message.number
        return super()._take_in(message, sender)


class IgnoresTheEpoch(Task):
    def _take_in(self, message: Migrate, sender: Address) -> list[Sent]:
        return super()._take_in(replace(message, epoch=self._kept.epoch), sender)


class AsksForNothing(Task):
    def _catch_up(self, reconf: Any) -> list[Sent]:
        return []


class WorksBeforeItKnows(Task):
    """A restarted task does not wait for the manager."""

    def _work(self, tuple_: Tuple) -> list[Sent]:
        rejoining, self._rejoining = self._rejoining, False
        out = super()._work(tuple_)
        self._rejoining = rejoining
        return out


class SendsBeforeSaving(Manager):
    def _save(self, configuration: Configuration) -> list[Sent]:
        return [*super()._save(configuration), *self._send_reconfs()]


class NeedsOneAcknowledgement(Manager):
    def _acknowledge(self, epoch: int, sender: Address) -> list[Sent]:
        if self._is_in(Phase.ACKS, epoch):
            self._acked = set(self._wiring.tasks)
        return super()._acknowledge(epoch, sender)


class ForgetsTheRestarted(Manager):
    def _bring_back(self, task: TaskId) -> list[Sent]:
        return []


TASKS: list[type[Task]] = [
    WaitsFromItsOwnSwitch,
    NeverWaits,
    NeedsNoEnd,
    SwitchesWithTheFirst,
    KeepsItsRouter,
    ReleasesBackwards,
    DropsWhatWaits,
    TakesTwice,
    IgnoresGaps,
    IgnoresTheEpoch,
    AsksForNothing,
    WorksBeforeItKnows,
]
MANAGERS: list[type[Manager]] = [SendsBeforeSaving, NeedsOneAcknowledgement, ForgetsTheRestarted]


def find_violation(task: type[Task] = Task, manager: type[Manager] = Manager) -> str:
    """Run worlds with these machines until one breaks a promise; say which, or nothing."""
    for seed in range(600):
        random = Random(seed)
        scenario, trouble = make_scenario(random), seed % 6
        try:
            World(scenario, random, trouble, trouble, task, manager).run()
        except (Violation, StateError) as found:
            return str(found)
    return ""
