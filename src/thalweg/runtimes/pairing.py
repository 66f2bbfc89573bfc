"""Counting which keys occur together, on a share of the tuples; for all runtimes.

>>> sample = PairSample(rate=0.5, seed="a seed")
>>> len(sample.rows(10)), len(sample.rows(10))
(5, 5)
>>> keys = np.array([7, 7, 8], np.uint64)
>>> sample.add("by_region", "by_tag", keys, keys)
>>> sample.take()["by_region", "by_tag"].total, len(sample.take())
(3.0, 0)
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from thalweg.blocks import Rows
from thalweg.components import Kind
from thalweg.control.rerouting import Ends
from thalweg.groupings import Fields
from thalweg.hashing import Hashes
from thalweg.sketches.pairs import PairCounts, merged
from thalweg.topology import Component, Input, Topology

#: Pairs of one link that are reported at once; beyond that the rarest are left out.
MAX_PAIRS = 1 << 16


def has_movable_keys(component: Component) -> bool:
    """Say whether a key's hash alone tells its task: then each key may have a task of its own."""
    return component.kind is Kind.KEYED and all(
        isinstance(i.grouping, Fields) and not i.grouping.bounds for i in component.inputs
    )


def leading(topology: Topology, movable: frozenset[str]) -> frozenset[str]:
    """Find bolts whose outputs reach movable keys, if need be through stateless bolts."""
    found: set[str] = set()
    for component in reversed(topology.components):
        readers = [
            r for stream in component.outputs for r, _ in topology.readers(component.name, stream)
        ]
        if any(
            r.name in movable or (r.kind is Kind.STATELESS and r.name in found) for r in readers
        ):
            found.add(component.name)
    return frozenset(found)


def siblings(
    topology: Topology, movable: frozenset[str]
) -> dict[tuple[str, str, str], tuple[str, Input]]:
    """Find the movable components that one stream feeds side by side.

    Gives by (sender, stream, reader) the next reader of that stream, and its input.
    """
    found: dict[tuple[str, str, str], tuple[str, Input]] = {}
    for producer in topology:
        for stream in producer.outputs:
            readers = topology.readers(producer.name, stream)
            ends = {r.name: input_ for r, input_ in readers if r.name in movable}
            for (one, _), other in pairwise(ends.items()):
                found[producer.name, stream, one] = other
    return found


class PairSample:
    """Takes every so-many-th tuple; begins anywhere, so that no tuple is always left out."""

    def __init__(self, rate: float, seed: str) -> None:
        self.every = max(1, round(1 / rate))
        self._skip = random.Random(seed).randrange(self.every)  # noqa: S311 (to be repeatable)
        self._found: dict[Ends, list[tuple[Hashes, Hashes]]] = {}
        #: Seconds that counting took, as far as :meth:`timed` was told.
        self.seconds = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time that something takes."""
        begin = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - begin

    def rows(self, count: int) -> Rows:
        """Choose among the next rows, of which there are so many."""
        rows = np.arange(self._skip, count, self.every, dtype=np.int64)
        self._skip = (self._skip - count) % self.every
        return rows

    def add(self, sender: str, reader: str, left: Hashes, right: Hashes) -> None:
        """Note pairs of keys, by their hashes."""
        self._found.setdefault((sender, reader), []).append((left, right))

    def take(self) -> dict[Ends, PairCounts]:
        """Give what was counted since the last call, by both ends of each link."""
        counts = {}
        with self.timed():
            for ends, found in self._found.items():
                left, right = (np.concatenate(sides) for sides in zip(*found, strict=True))
                counts[ends] = merged([PairCounts.of(left, right)], MAX_PAIRS)
            self._found = {}
        return counts
