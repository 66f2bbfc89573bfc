"""Asking the sources: most of them when there is room, those that cannot be slowed all the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thalweg.metrics import Counter
from thalweg.runtimes.local.overflow import WaitingRows
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.spout_tasks import AnySpoutTask

# Bytes of a block beyond which it gains nothing by being larger: it would only leave the caches.
_LARGE = 1 << 20
#: Called with tuples that were dropped: their spout and their ids.
Refused = Callable[[AnySpoutTask, list[Any]], None]


class Asking:
    """Knows how much each source is asked for, and what waits of those that cannot be slowed."""

    def __init__(
        self,
        spouts: Sequence[AnySpoutTask],
        settings: Settings,
        counters: Mapping[str, Sequence[Counter]],
        refused: Refused,
    ) -> None:
        self._settings, self._refused = settings, refused
        self._counters = {task: counters[task.component.name][0] for task in spouts}
        #: Rows that each source is asked for, and whether the last one had them.
        self._limits = dict.fromkeys(spouts, settings.block_rows)
        self.full = False
        self._closed = False
        self._queues = {
            task: WaitingRows(task.component.name, policy, settings.queue_rows)
            for task in spouts
            if (policy := task.component.options.overflow) not in (None, "block")
        }

    @property
    def always(self) -> bool:
        """Whether there is a source that has to be asked all the time."""
        return bool(self._queues)

    def limit(self, task: AnySpoutTask) -> int:
        """Give the number of rows that a source is asked for."""
        return self._limits[task]

    def has(self, task: AnySpoutTask) -> bool:
        """Say whether it makes sense to :meth:`take` something of a source."""
        queue = self._queues.get(task)
        if queue is None:
            return not task.finished and not self._closed
        return queue.rows > 0

    def ended(self, task: AnySpoutTask) -> bool:
        """Say whether nothing will come of a source any more."""
        return task.finished and not self.has(task)

    def take(self, task: AnySpoutTask) -> list[Emission]:
        """Give what waits of a source, or else ask it."""
        queue = self._queues.get(task)
        return self._ask(task) if queue is None else [queue.take(self._limits[task])]

    def receive(self) -> bool:
        """Ask the sources that cannot be slowed; True if something came."""
        came = False
        for task in () if self._closed else self._queues:
            for emission in () if task.finished else self._ask(task):
                came = self.line_up(task, emission)
        return came

    def line_up(self, task: AnySpoutTask, emission: Emission) -> bool:
        """Let rows wait, where their source cannot be slowed; False where it can."""
        queue = self._queues.get(task)
        if queue is None:
            return False
        dropped = queue.add(emission)
        self._counters[task].dropped += dropped.rows
        if dropped.ids:
            self._refused(task, dropped.ids)
        return True

    def close(self) -> None:
        """Ask nobody any more."""
        self._closed = True

    def _ask(self, task: AnySpoutTask) -> list[Emission]:
        """Ask a source; it is asked for more at once as long as it has that much."""
        limit, settings = self._limits[task], self._settings
        begin = time.perf_counter()
        emissions = task.pull(limit)
        self._counters[task].busy += time.perf_counter() - begin
        self.full = sum(emission.batch.num_rows for emission in emissions) >= limit
        most = max(settings.most_block_rows, settings.block_rows)
        small = sum(emission.batch.nbytes for emission in emissions) <= _LARGE / 2
        if not self.full:
            self._limits[task] = settings.block_rows
        elif small:
            self._limits[task] = min(2 * limit, most)
        return emissions
