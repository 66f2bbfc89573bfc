"""Waking tasks whose timers are due."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from thalweg.anchored import AnchoredBolt
from thalweg.components import has_timers
from thalweg.eventtime import ALWAYS, SECOND
from thalweg.topology import Topology


class Wakes(Protocol):
    """A task, as far as it wants to be woken."""

    @property
    def alarm(self) -> int:
        """When it wants that, in microseconds of the clock."""


def _may_wake(kind: type) -> bool:
    return has_timers(kind) or issubclass(kind, AnchoredBolt)


def _always(_component: str, _task: int) -> bool:
    return True


class Alarms:
    """Watches the tasks of components with timers, and of those that may speak by themselves.

    ``wake`` lets one of them hear of timers that are due; ``ready`` says whether it can be woken
    now, and is not being woken already.
    """

    def __init__(
        self,
        topology: Topology,
        tasks: Mapping[str, Sequence[Wakes]],
        wake: Callable[[str, int], None],
        ready: Callable[[str, int], bool] = _always,
    ) -> None:
        self._names = [c.name for c in topology if _may_wake(type(c.body))]
        self._tasks, self._wake, self._ready = tasks, wake, ready

    def look(self, now: float) -> None:
        """Wake those for which it is time."""
        moment = round(now * SECOND)
        for name in self._names:
            for number, task in enumerate(self._tasks[name]):
                if task.alarm <= moment and self._ready(name, number):
                    self._wake(name, number)

    def wait(self, now: float) -> float:
        """Give the seconds until somebody has to be woken who can be."""
        soonest = min(
            (
                task.alarm
                for name in self._names
                for number, task in enumerate(self._tasks[name])
                if self._ready(name, number)
            ),
            default=ALWAYS,
        )
        return math.inf if soonest == ALWAYS else soonest / SECOND - now
