"""The router of load-aware grouping; whoever runs the tasks tells it what tuples took."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from thalweg.anyvalues import bare
from thalweg.blocks import Block
from thalweg.groupings import Grouping, LoadAware
from thalweg.hashing import Hashes, hash_columns
from thalweg.keys import refusal
from thalweg.routing.load_aware import OsgSettings, Scheduler, TaskCosts
from thalweg.routing.routers import Router, make_router
from thalweg.routing.table import RoutingTable
from thalweg.sketches.costs import Floats


class LoadRouter:
    """Each tuple to the task with the least estimated work; in turn while costs are not known.

    The value that costs are known by is the whole tuple, but for fields without a stable hash.
    Tasks may tell what tuples took from threads of their own.
    """

    def __init__(self, tasks: int, settings: OsgSettings | None = None) -> None:
        self._settings = settings or OsgSettings()
        self.scheduler = Scheduler(tasks, self._settings)
        self._costs = [TaskCosts(task, self._settings) for task in range(tasks)]
        self._lock = threading.Lock()

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Split by the scheduler's choice; its markers follow."""
        values = values_of(block)
        with self._lock:
            assigned = self.scheduler.assign(values)
            for marker in assigned.markers:
                self._costs[marker.task].mark(marker)
        parts = enumerate(block.split(assigned.tasks, len(self._costs)))
        return ((task, part) for task, part in parts if len(part))

    def executed(self, task: int, part: Block, seconds: Floats) -> None:
        """Learn what each tuple of a part took at its task; one that is to go says nothing."""
        values = values_of(part)
        with self._lock:
            for costs in self._costs[task : task + 1]:
                for answer in costs.executed(values, seconds):
                    self.scheduler.hear(answer)

    def take_back(self, task: int, part: Block) -> None:
        """Forget tuples that a task will not execute: they are routed again."""
        with self._lock:
            self.scheduler.take_back(np.full(len(part), task), values_of(part))

    def resize(self, tasks: int) -> None:
        """Have another number of tasks; what is known of the others stays.

        Markers on their way are of no use: nobody waits for the answer, and those behind them
        would have to wait for as many tuples as they say.
        """
        with self._lock:
            self.scheduler.resize(tasks)
            for costs in self._costs:
                costs.forget_markers()
            least = min(costs.seconds for costs in self._costs)
            new = range(len(self._costs), tasks)
            self._costs = self._costs[:tasks]
            self._costs += [TaskCosts(task, self._settings, least) for task in new]


def balanced_router(
    grouping: Grouping,
    table: RoutingTable,
    settings: OsgSettings | None = None,
    before: Router | None = None,
) -> Router:
    """Find the router for a grouping where somebody tells what tuples took.

    ``before`` is the one that it takes the place of, and that may know something.
    """
    if not isinstance(grouping, LoadAware) or table.places == 1:
        return make_router(grouping, table)
    if isinstance(before, LoadRouter):
        before.resize(table.places)
        return before
    return LoadRouter(table.places, settings)


def values_of(block: Block) -> Hashes:
    """Hash what costs may depend on: all fields that have a stable hash."""
    columns = [column for column in bare(block.batch).columns if not refusal(column.type)]
    return hash_columns(columns) if columns else np.zeros(len(block), np.uint64)
