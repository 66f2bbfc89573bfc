"""Which task takes which row of a key that several tasks may take: the least loaded ones.

A key has two tasks to choose from (Nasir et al., The power of both choices, ICDE 2015). That is
too few for a key with more than 2/n of the tuples. So *heavy* keys, those with more than 1/(5n) of
what was seen, may have more (Nasir et al., When two choices are not enough, ICDE 2016): the least
number of tasks with which no set of heavy keys is expected to fill the tasks it has.

>>> needed_choices(np.array([0.5]), tasks=10), needed_choices(np.array([0.11]), tasks=10)
(8, 2)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.hashing import Hashes
from thalweg.routing.table import Places, positions

Counts = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]

#: A key is heavy from this share of the tuples on, divided by the number of tasks.
_HEAVY = 0.2
#: Keys seen less often are not called heavy: a handful of tuples has no skew.
_SURE = 10
#: Keys to keep count of, for each task; counts are too low by a quarter of _HEAVY at most.
_KEPT = 20
#: Rows of a block to share before loads are compared again.
_AT_ONCE = 1000
#: How much more than the mean the tasks of heavy keys may get.
_SLACK = 0.05


@dataclass(frozen=True, eq=False)
class Frequent:
    """The keys seen most, in bounded memory; merged as in :mod:`thalweg.sketches.pairs`.

    No count is too high, and none is too low by more than ``total / (capacity + 1)``.

    >>> seen = Frequent.none(capacity=1).plus(np.array([7, 8, 7, 7], np.uint64))
    >>> seen.hashes.tolist(), seen.counts.tolist(), seen.total
    ([7], [2], 4)
    """

    #: Ascending.
    hashes: Hashes
    counts: Counts
    total: int
    capacity: int

    @classmethod
    def none(cls, capacity: int) -> Frequent:
        """Give the value of nothing seen."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), 0, capacity)

    def plus(self, hashes: Hashes) -> Frequent:
        """See one key for each of these hashes."""
        ascending = np.sort(hashes)
        starts = _starts(ascending)
        found, counts = self._cut(ascending[starts], np.diff(starts, append=len(hashes)))
        both = np.concatenate((self.hashes, found))
        order = np.argsort(both, kind="stable")
        starts = _starts(both[order])
        sums = np.add.reduceat(np.concatenate((self.counts, counts))[order], starts)
        merged = self._cut(both[order][starts], sums)
        return Frequent(*merged, self.total + len(hashes), self.capacity)

    def _cut(self, hashes: Hashes, counts: Counts) -> tuple[Hashes, Counts]:
        if len(counts) <= self.capacity:
            return hashes, counts
        counts = counts - np.partition(counts, -self.capacity - 1)[-self.capacity - 1]
        return hashes[counts > 0], counts[counts > 0]


def _starts(ascending: Hashes) -> Places:
    """Give the rows at which another hash begins."""
    if not len(ascending):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))


class TwoChoices:
    """Two candidates for each key; the one that got fewer tuples so far takes a row."""

    def __init__(self, tasks: int) -> None:
        self.sent = [0] * tasks

    def choose(self, hashes: Hashes) -> Places:
        """Give the task of each row."""
        sent, chosen = self.sent, []
        first, second = _two(hashes, len(sent))
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            task = a if sent[a] <= sent[b] else b
            sent[task] += 1
            chosen.append(task)
        return np.array(chosen, dtype=np.int64)


class HeavyChoices(TwoChoices):
    """Two candidates for most keys, as many as needed for heavy ones."""

    def __init__(self, tasks: int) -> None:
        super().__init__(tasks)
        self.seen = Frequent.none(_KEPT * tasks)
        self._heavy: Hashes = np.empty(0, np.uint64)
        self._candidates = _candidates(self._heavy, tasks)

    def choose(self, hashes: Hashes) -> Places:
        """Give the task of each row; heavy keys are shared a few rows at a time."""
        if len(self.sent) <= 2:
            return super().choose(hashes)
        self.seen = self.seen.plus(hashes)
        choices = self._find_heavy()
        at, heavy = positions(self._heavy, hashes)
        if not heavy.any():
            return super().choose(hashes)
        chosen = np.empty(len(hashes), np.int64)
        for start in range(0, len(hashes), _AT_ONCE):
            now = slice(start, start + _AT_ONCE)
            # First the keys with little choice: others can make up for what they do.
            chosen[now][~heavy[now]] = super().choose(hashes[now][~heavy[now]])
            rows = start + np.flatnonzero(heavy[now])
            for key, part in _by_key(rows, at[rows]):
                chosen[part] = self._share(self._candidates[key, :choices], len(part))
        return chosen

    def _find_heavy(self) -> int:
        """Note which keys are heavy by now; give the number of tasks that they may have."""
        seen, tasks = self.seen, len(self.sent)
        is_heavy = seen.counts >= max(_HEAVY / tasks * seen.total, _SURE)
        heavy = seen.hashes[is_heavy]
        if not np.array_equal(heavy, self._heavy):
            self._heavy, self._candidates = heavy, _candidates(heavy, tasks)
        return needed_choices(seen.counts[is_heavy] / max(seen.total, 1), tasks)

    def _share(self, tasks: Places, rows: int) -> Places:
        """Share rows among tasks so that the least loaded come as near to each other as can be."""
        numbers = tasks.tolist()
        shares = filled([self.sent[task] for task in numbers], rows)
        for task, share in zip(numbers, shares, strict=True):
            self.sent[task] += share
        return np.repeat(tasks, shares)


def _by_key(rows: Places, keys: Places) -> Iterator[tuple[int, Places]]:
    """Give the rows of each key, those of the keys with the fewest first."""
    ordered = rows[np.argsort(keys, kind="stable")]
    numbers = np.bincount(keys)
    ends = np.cumsum(numbers)
    for key in np.argsort(numbers, kind="stable").tolist():
        if numbers[key]:
            yield key, ordered[ends[key] - numbers[key] : ends[key]]


def filled(loads: Iterable[int], rows: int) -> list[int]:
    """Say how many of the rows each one gets, if the next goes to the least loaded, always.

    >>> filled([5, 0, 2], 6)
    [0, 4, 2]
    """
    before = list(loads)
    shares = [0] * len(before)
    order = sorted(range(len(before)), key=before.__getitem__)
    # As many get something as can be brought to the load of the highest among them.
    among, total = 1, before[order[0]] + rows
    while among < len(order) and before[order[among]] * among < total:
        total += before[order[among]]
        among += 1
    level, left = divmod(total, among)
    for rank, i in enumerate(order[:among]):
        shares[i] = level + (rank < left) - before[i]
    return shares


def needed_choices(heavy: Shares, tasks: int) -> int:
    """Give the least number of tasks for each heavy key with which all fit; all tasks at most.

    The heaviest h keys have some of the tasks between them. To these go their tuples, and those of
    other keys that have no other choice: together no more than these tasks' share.
    """
    shares = np.sort(heavy)[::-1]
    if not len(shares):
        return min(2, tasks)
    sums, keys = np.cumsum(shares), np.arange(1, len(shares) + 1)
    others, light = sums[-1] - sums, max(1.0 - float(sums[-1]), 0.0)
    for choices in range(max(2, math.floor(shares[0] * tasks)), tasks):
        covered = 1.0 - (1.0 - choices / tasks) ** keys
        load = sums + covered**choices * others + covered**2 * light
        if (load <= covered * (1.0 + _SLACK)).all():
            return choices
    return tasks


def _two(hashes: Hashes, tasks: int) -> tuple[Hashes, Hashes]:
    n = np.uint64(tasks)
    first = hashes % n
    # The second candidate is another task, wherever there is another.
    steps = (hashes >> np.uint64(32)) % np.uint64(max(tasks - 1, 1)) + np.uint64(1)
    return first, (first + steps) % n


def _candidates(hashes: Hashes, tasks: int) -> Places:
    """Give all tasks for each hash, in the order in which it may have them; the two come first."""
    numbers = np.arange(tasks, dtype=np.uint64)
    rank = (hashes[:, None] ^ (numbers * np.uint64(0x9E3779B97F4A7C15))) * _MIX
    rank = (rank ^ (rank >> np.uint64(29))) * _MIX >> np.uint64(2)
    first, second = _two(hashes, tasks)
    rows = np.arange(len(hashes))
    rank[rows, second.astype(np.int64)] = 1
    rank[rows, first.astype(np.int64)] = 0
    return np.argsort(rank, axis=1, kind="stable")


_MIX = np.uint64(0xBF58476D1CE4E5B9)
