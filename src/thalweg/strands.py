"""How far time has come in what one task reads side by side: partitions of a topic, files.

Each of these strands is in the order of time by itself, as far as the delay goes; which of them is
read first is chance. So a task has come as far as the slowest strand in which something waits to be
read; where nothing waits, as far as the newest tuple of all.

>>> strands = Strands()
>>> strands.opens("a"); strands.opens("b", 5)
>>> strands.gave("a", 70)
>>> strands.reached
5
>>> strands.ends("b"); strands.reached
70
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from thalweg.contexts import TaskContext
from thalweg.eventtime import NEVER, EventTime, moments

S = TypeVar("S", bound=Hashable)

# Times that strands have left behind are cleared away when there are so many for each strand.
_OLD = 4


class Strands(Generic[S]):
    """The strands of a task, and how far time has come in each."""

    def __init__(self) -> None:
        #: The time of each strand that is known, and those in which something waits to be read.
        self._came: dict[S, int] = {}
        self._open: set[S] = set()
        #: The times of open strands, the oldest first, among others that they had before; no two
        #: have the same number.
        self._order: list[tuple[int, int, S]] = []
        self._number = count()
        self._newest = NEVER

    @property
    def reached(self) -> int:
        """How far time has come."""
        order = self._order
        while order and not self._holds(order[0]):
            heappop(order)
        return order[0][0] if order else self._newest

    def knows(self, strand: S) -> bool:
        """Say whether a strand was there before."""
        return strand in self._came

    def opens(self, strand: S, first: int = NEVER) -> None:
        """Note that something waits in a strand, and the first time in it, if that is known."""
        if strand not in self._open:
            self._open.add(strand)
            self._came.setdefault(strand, first)
            self._line_up(strand)

    def gave(self, strand: S, newest: int | None) -> None:
        """Note the newest time of what a strand gave, if it has any."""
        if newest is None:
            return
        self._newest = max(self._newest, newest)
        if newest > self._came.get(strand, NEVER):
            self._came[strand] = newest
            if strand in self._open:
                self._line_up(strand)

    def ends(self, strand: S) -> None:
        """Note that nothing waits in a strand now."""
        self._open.discard(strand)

    def forget(self, strand: S) -> None:
        """Note that nothing will come in a strand any more."""
        self.ends(strand)
        self._came.pop(strand, None)

    def _holds(self, entry: tuple[int, int, S]) -> bool:
        at, _, strand = entry
        return strand in self._open and self._came[strand] == at

    def _line_up(self, strand: S) -> None:
        heappush(self._order, (self._came[strand], next(self._number), strand))
        if len(self._order) > _OLD * (len(self._open) + _OLD):
            self._order = [(self._came[s], next(self._number), s) for s in self._open]
            heapify(self._order)


def time_wanted(context: TaskContext) -> EventTime | None:
    """Say which field of a source is its time, where it has one."""
    graph = context.graph
    return None if graph is None else graph.component(context.component).options.time


def newest_by(strands: Sequence[S], batch: pa.RecordBatch, time: EventTime) -> dict[S, int]:
    """Give the newest time of each strand in a batch; of each row it is known whose it is.

    >>> batch = pa.record_batch({"at": [3, 1, 2]})
    >>> newest_by(["a", "b", "a"], batch, EventTime("at", unit="us"))
    {'a': 3, 'b': 1}
    """
    numbers: dict[S, int] = {}
    rows: Any = np.fromiter((numbers.setdefault(x, len(numbers)) for x in strands), np.int64)
    found = moments(batch.column(time.field), time.unit)
    times = np.full(len(numbers), NEVER)
    np.maximum.at(times, rows[found.known], found.micros[found.known])
    return {
        strand: int(times[number]) for strand, number in numbers.items() if times[number] > NEVER
    }
