"""Asking the sources: most of them when there is room, those that cannot be slowed all the time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.overflow import WaitingRows
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.local.shedding import Shedder
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.spout_tasks import AnySpoutTask, SpoutTask

# Bytes of a block beyond which it gains nothing by being larger: it would only leave the caches.
_LARGE = 1 << 20
# The same where all readers are in processes: crossing takes time, and they cut blocks themselves.
_AWAY = 8 << 20
# Bytes that a tuple takes in Python: objects, entries in lists, what is made of them.
_PYTHON_TUPLE = 160
# Rows that a source is always asked for, however many tuples become of each.
_LEAST = 64
# Shares of the time-out of tuples with an id: one block takes no more, as its tuples end together;
# and what waits takes no more, unless somebody has said how many may be open.
_BLOCK, _WAITING = 0.1, 0.5
#: Called with tuples that were dropped: their spout and their ids.
Refused = Callable[[AnySpoutTask, list[Any]], None]


class Asking:
    """Knows how much each source is asked for, and what waits of those that cannot be slowed."""

    def __init__(
        self,
        spouts: Sequence[AnySpoutTask],
        settings: Settings,
        built: Built,
        refused: Refused,
    ) -> None:
        self._settings, self._built, self._refused = settings, built, refused
        self._counters = {task: built.counters[task.component.name][0] for task in spouts}
        #: Rows that each source is asked for, whether the last one had them, and whether it will
        #: be asked for no more than that.
        self._limits = dict.fromkeys(spouts, settings.block_rows)
        self.full = self.largest = False
        self.shedder = Shedder(settings.seed, built.topology.quality, settings.clock.now)
        self._closed = False
        #: How many tuples with an id a source may have open beside those that it has, and has.
        self.pending: Callable[[AnySpoutTask], int] = lambda _task: sys.maxsize
        self.opened: Callable[[AnySpoutTask], int] = lambda _task: 0
        #: Whether tuples with an id have to end in time, and the sources of such tuples: those
        #: that have given none so far may have some.
        self._follows = settings.acking and settings.ack_timeout < inf
        self._followed: set[AnySpoutTask] = set()
        if self._follows:
            self._followed.update(task for task in spouts if isinstance(task, SpoutTask))
        self._intakes = {task: built.intake(task.component.name) for task in self._followed}
        #: While it is set nobody is asked; what waits already may be taken.
        self.paused = False
        self._queues = built.overflows
        for task in spouts:
            if (policy := task.component.options.overflow) not in (None, "block"):
                name, bound = task.component.name, settings.queue_rows
                self._queues[task] = WaitingRows(name, policy, bound)

    @property
    def always(self) -> bool:
        """Whether there is a source that has to be asked all the time."""
        return bool(self._queues)

    def limit(self, task: AnySpoutTask) -> int:
        """Give the number of rows that a source is asked for."""
        return max(1, min(self._limits[task], self._within(task), self.room(task)))

    def room(self, task: AnySpoutTask) -> int:
        """Give the number of tuples that a source may have open beside those that it has."""
        if self._closed:
            return sys.maxsize
        if task not in self._followed or task.component.options.max_pending is not None:
            return self.pending(task)
        intake = self._intakes[task]
        left = _WAITING * self._settings.ack_timeout - intake.seconds_waiting
        room = intake.rows_in_time(left) if left > 0 else 0
        # One that has nothing open is asked, whatever others have sent.
        return room or (0 if self.opened(task) else self._in_block(task))

    def has(self, task: AnySpoutTask) -> bool:
        """Say whether it makes sense to :meth:`take` something of a source."""
        queue = self._queues.get(task)
        if queue is None:
            return not (task.finished or self._closed or self.paused)
        return queue.rows > 0

    def ended(self, task: AnySpoutTask) -> bool:
        """Say whether nothing will come of a source any more."""
        return task.finished and not self.has(task)

    def reached(self, task: AnySpoutTask) -> int | None:
        """Say how far event time has come with what was taken of a source that knows it."""
        queue = self._queues.get(task)
        return queue.reached if queue is not None and queue.rows else task.reached

    def take(self, task: AnySpoutTask) -> list[Emission]:
        """Give what waits of a source, or else ask it."""
        queue = self._queues.get(task)
        given = self._ask(task) if queue is None else [queue.take(self.limit(task))]
        return [self._shed(task, each) for each in given] if self.shedder.sheds() else given

    def _shed(self, task: AnySpoutTask, emission: Emission) -> Emission:
        """Let some rows go."""
        stays, gone, ids = self.shedder.split(emission)
        self._counters[task].dropped += gone
        if ids:
            self._refused(task, ids)
        return stays

    def receive(self) -> bool:
        """Ask the sources that cannot be slowed; True if something came."""
        came = False
        for task in () if self._closed or self.paused else self._queues:
            for emission in () if task.finished else self._ask(task):
                came = self.line_up(task, emission)
        return came

    def line_up(self, task: AnySpoutTask, emission: Emission) -> bool:
        """Let rows wait, where their source cannot be slowed; False where it can."""
        queue = self._queues.get(task)
        if queue is None:
            return False
        dropped = queue.add(emission, task.reached)
        self._counters[task].dropped += dropped.rows
        if dropped.ids:
            self._refused(task, dropped.ids)
        return True

    def close(self) -> None:
        """Ask nobody any more."""
        self._closed = True

    def _ask(self, task: AnySpoutTask) -> list[Emission]:
        """Ask a source; it is asked for more at once as long as it has that much."""
        settings = self._settings
        # What cannot be slowed waits here, however much that is.
        limit = self._limits[task] if task in self._queues else self.limit(task)
        begin = time.perf_counter()
        emissions = task.pull(limit)
        self._counters[task].busy += time.perf_counter() - begin
        if emissions:
            self._note(task, any(emission.ids for emission in emissions))
        self.full = sum(emission.batch.num_rows for emission in emissions) >= limit
        if not self.full:
            self._limits[task] = settings.block_rows
        elif sum(emission.batch.nbytes for emission in emissions) <= self._large(task) / 2:
            self._limits[task] = min(2 * limit, self._most())
        self.largest = self.full and self._limits[task] <= limit
        return emissions

    def _note(self, task: AnySpoutTask, ids: bool) -> None:
        """Take note of whether what a source gave has ids."""
        if ids and self._follows:
            self._followed.add(task)
        else:
            self._followed.discard(task)

    def _within(self, task: AnySpoutTask) -> int:
        """Give the rows that all can do soon, where somebody decides by what was done, or waits.

        A block that a task is working on is not shared with others, and its tuples end together.
        """
        longest, most = self._settings.longest, sys.maxsize
        if longest < inf:
            most = self._built.rows_within(longest)
        if task in self._followed:
            most = min(most, self._in_block(task))
        return most

    def _in_block(self, task: AnySpoutTask) -> int:
        return self._intakes[task].rows_in_block(_BLOCK * self._settings.ack_timeout)

    def _large(self, task: AnySpoutTask) -> int:
        """Give the bytes of a source's blocks beyond which they gain nothing by being larger."""
        links = [
            link for each in self._built.sources[task.component.name].values() for link in each
        ]
        return _AWAY if all(link.reader.away for link in links) else _LARGE

    def _most(self) -> int:
        """Give the rows to ask for at most: what Python makes of them should stay in the caches."""
        most = max(self._settings.most_block_rows, self._settings.block_rows)
        if self._settings.longest < inf and not self._built.measured:
            most = self._settings.block_rows  # nobody knows how long they take
        wide = self._built.wide()
        return min(most, max(_LEAST, int(_LARGE / _PYTHON_TUPLE / wide))) if wide else most
