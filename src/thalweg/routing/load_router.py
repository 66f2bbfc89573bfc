"""The router of load-aware grouping; whoever runs the tasks tells it what tuples took."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from thalweg.blocks import Block
from thalweg.hashing import Hashes, hash_columns
from thalweg.keys import refusal
from thalweg.routing.load_aware import OsgSettings, Scheduler, TaskCosts
from thalweg.sketches.costs import Floats


class LoadRouter:
    """Each tuple to the task with the least estimated work; in turn while costs are not known.

    The value that costs are known by is the whole tuple, but for fields without a stable hash.
    """

    def __init__(self, tasks: int, settings: OsgSettings | None = None) -> None:
        used = settings or OsgSettings()
        self.scheduler = Scheduler(tasks, used)
        self._costs = [TaskCosts(task, used) for task in range(tasks)]

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Split by the scheduler's choice; its markers follow."""
        assigned = self.scheduler.assign(values_of(block))
        for marker in assigned.markers:
            self._costs[marker.task].mark(marker)
        parts = enumerate(block.split(assigned.tasks, len(self._costs)))
        return ((task, part) for task, part in parts if len(part))

    def executed(self, task: int, part: Block, seconds: Floats) -> None:
        """Learn what each tuple of a part took at its task."""
        for answer in self._costs[task].executed(values_of(part), seconds):
            self.scheduler.hear(answer)


def values_of(block: Block) -> Hashes:
    """Hash what costs may depend on: all fields that have a stable hash."""
    columns = [column for column in block.batch.columns if not refusal(column.type)]
    return hash_columns(columns) if columns else np.zeros(len(block), np.uint64)
