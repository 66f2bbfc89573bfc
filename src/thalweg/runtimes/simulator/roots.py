"""The tuples of the source, and how far each has come: done in time, late, or under way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.runtimes.simulator.fifo import Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class Judged:
    """Tuples of the source that have reached the time limit: which of them were not done then."""

    #: Those that are to be emitted again: when they were born, their values, and which try follows.
    born: Floats
    values: Ints
    tries: Ints
    in_time: int
    late: int


class Roots:
    """Counts what is open of each tuple of the source; numbers are given in the order of birth."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self.count = 0
        self.born: Floats = np.empty(1024)
        self.done: Floats = np.empty(1024)
        self.open: npt.NDArray[np.int32] = np.empty(1024, np.int32)
        self.values: Ints = np.empty(1024, np.int64)
        self.tries: Ints = np.empty(1024, np.int64)
        self.failed: Flags = np.empty(1024, np.bool_)
        #: Numbers below this one are judged.
        self._judged = 0

    def add(self, born: Floats, values: Ints, tries: Ints) -> Ints:
        """Begin with tuples, in the order of birth; each has one open piece, itself."""
        first, self.count = self.count, self.count + len(born)
        while self.count > len(self.born):
            self._grow()
        now = slice(first, self.count)
        self.born[now] = self.done[now] = born
        self.values[now], self.tries[now] = values, tries
        self.open[now], self.failed[now] = 1, False
        return np.arange(first, self.count)

    def step(self, roots: Ints, times: Floats, made: Ints) -> Floats:
        """Take note of pieces that ended at these times and made others.

        Gives the seconds that those took of which nothing is open any more.
        """
        np.add.at(self.open, roots, (made - 1).astype(np.int32))
        np.maximum.at(self.done, roots, times)
        ended = np.unique(roots[self.open[roots] == 0])
        return (self.done[ended] - self.born[ended])[~self.failed[ended]]

    def drop(self, roots: Ints) -> None:
        """Take note of pieces that nobody will process."""
        self.failed[roots] = True
        np.add.at(self.open, roots, np.int32(-1))

    def judge(self, now: float) -> Judged:
        """Say what became of the tuples that have reached the time limit since the last call."""
        end = int(np.searchsorted(self.born[: self.count], now - self._timeout, "right"))
        part = slice(self._judged, max(end, self._judged))
        self._judged = part.stop
        late = ~self._is_in_time(part)
        born, values, tries = self.born[part][late], self.values[part][late], self.tries[part][late]
        return Judged(born, values, tries, int((~late).sum()), int(late.sum()))

    def left(self) -> tuple[int, int]:
        """Count those that are not judged: done in time, and under way."""
        good = int(self._is_in_time(slice(self._judged, self.count)).sum())
        return good, self.count - self._judged - good

    def _is_in_time(self, part: slice) -> Flags:
        took = self.done[part] - self.born[part]
        return (self.open[part] == 0) & ~self.failed[part] & (took <= self._timeout)

    def _grow(self) -> None:
        for name in ("born", "done", "open", "values", "tries", "failed"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate((old, np.empty_like(old))))
