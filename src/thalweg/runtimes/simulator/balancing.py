"""Which task of a stage gets which tuple: in turn, by value, or by estimated work."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from thalweg.groupings import Fields, Grouping, LoadAware
from thalweg.hashing import Hashes, hash_columns
from thalweg.routing.load_aware import OsgSettings, Scheduler, TaskCosts
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.simulator.fifo import Flags, Floats, Ints


class Balancer(Protocol):
    """The sender's choice."""

    def assign(self, values: Ints) -> Ints:
        """Give the task of each tuple, in the order in which they are sent."""

    def resize(self, tasks: int, waiting_tasks: Ints, waiting: Ints) -> None:
        """Have another number of tasks; the tuples that wait are going to be assigned or kept."""

    def keep(self, tasks: Ints, waiting: Ints) -> Flags:
        """Say which of the tuples that wait may stay at their tasks, and take note of those."""

    def executed(self, tasks: Ints, values: Ints, seconds: Floats) -> None:
        """Hear what tuples took, in the order of tasks, then of execution."""


def make_balancer(grouping: Grouping, tasks: int, values: int, osg: OsgSettings) -> Balancer:
    """Find the balancer for a grouping."""
    hashes = hash_columns([pa.array(np.arange(values))])
    if isinstance(grouping, LoadAware):
        return LeastWork(tasks, hashes, osg)
    return ByValue(tasks, hashes) if isinstance(grouping, Fields) else InTurn(tasks)


class InTurn:
    """Round robin."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._next = 0

    def assign(self, values: Ints) -> Ints:
        """Go on where the last call ended."""
        first, self._next = self._next, (self._next + len(values)) % self._tasks
        return (first + np.arange(len(values))) % self._tasks

    def resize(self, tasks: int, waiting_tasks: Ints, waiting: Ints) -> None:
        """Begin again with the first."""
        self._tasks, self._next = tasks, 0

    def keep(self, tasks: Ints, waiting: Ints) -> Flags:
        """Leave tuples at the tasks that are still there."""
        return tasks < self._tasks

    def executed(self, tasks: Ints, values: Ints, seconds: Floats) -> None:
        """Learn nothing."""


class ByValue:
    """Fields grouping: equal values go to the same task."""

    def __init__(self, tasks: int, hashes: Hashes) -> None:
        self._hashes = hashes
        self._owners = RoutingTable.even(tasks).places_of(hashes)

    def assign(self, values: Ints) -> Ints:
        """Look up the owner of each value."""
        return self._owners[values]

    def resize(self, tasks: int, waiting_tasks: Ints, waiting: Ints) -> None:
        """Make another table."""
        self._owners = RoutingTable.even(tasks).places_of(self._hashes)

    def keep(self, tasks: Ints, waiting: Ints) -> Flags:
        """Leave those whose owner is the same."""
        return self._owners[waiting] == tasks

    def executed(self, tasks: Ints, values: Ints, seconds: Floats) -> None:
        """Learn nothing."""


class LeastWork:
    """OSG: both of its state machines, and what they say to each other once a period."""

    def __init__(self, tasks: int, hashes: Hashes, settings: OsgSettings) -> None:
        self._hashes = hashes
        self._settings = settings
        self.scheduler = Scheduler(tasks, settings)
        self._costs = [TaskCosts(task, settings) for task in range(tasks)]

    def assign(self, values: Ints) -> Ints:
        """Ask the scheduler; its markers reach the tasks at once."""
        assigned = self.scheduler.assign(self._hashes[values])
        for marker in assigned.markers:
            self._costs[marker.task].mark(marker)
        return assigned.tasks

    def resize(self, tasks: int, waiting_tasks: Ints, waiting: Ints) -> None:
        """Let new tasks join with the least work, and forget what waits.

        So are markers forgotten that have not been reached: they are behind tuples that were taken
        back, and until as many others are done, those behind them would be answered too late.
        """
        self.scheduler.take_back(waiting_tasks, self._hashes[waiting])
        self.scheduler.resize(tasks)
        for costs in self._costs:
            costs.forget_markers()
        least = min(costs.seconds for costs in self._costs)
        fresh = range(len(self._costs), tasks)
        self._costs = self._costs[:tasks]
        self._costs += [TaskCosts(task, self._settings, least) for task in fresh]

    def keep(self, tasks: Ints, waiting: Ints) -> Flags:
        """Leave tuples at the tasks that are still there; new ones get what comes first."""
        stays = tasks < self.scheduler.tasks
        self.scheduler.put(tasks[stays], self._hashes[waiting[stays]])
        return stays

    def executed(self, tasks: Ints, values: Ints, seconds: Floats) -> None:
        """Let each task learn, and the scheduler hear its answers."""
        bounds = np.searchsorted(tasks, np.arange(len(self._costs) + 1))
        hashes = self._hashes[values]
        for costs, start, stop in zip(self._costs, bounds, bounds[1:], strict=False):
            for answer in costs.executed(hashes[start:stop], seconds[start:stop]):
                self.scheduler.hear(answer)
