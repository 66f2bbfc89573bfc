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

import json
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pyarrow as pa

from thalweg.blocks import Rows
from thalweg.components import Kind
from thalweg.control.rerouting import Ends
from thalweg.groupings import Fields
from thalweg.hashing import Hashes
from thalweg.routing.table import is_in
from thalweg.sketches.pairs import PairCounts, merged
from thalweg.topology import Component, Input, Topology

#: Pairs of one link that are reported at once; beyond that the rarest are left out.
MAX_PAIRS = 1 << 16
#: Characters of a key that people are shown.
LONGEST_NAME = 200


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


class Naming:
    """Learns what keys look like of which only the hash is known, from tuples that come by.

    >>> naming = Naming([7])
    >>> naming.look(np.array([5, 7], np.uint64), [pa.array(["a", "b"])])
    >>> naming.take(), naming.take()
    ({7: 'b'}, {})
    """

    def __init__(self, wanted: Iterable[int] = ()) -> None:
        self._names: dict[int, str] = {}
        self.want(wanted)

    def want(self, hashes: Iterable[int]) -> None:
        """Look for these from now on."""
        self._wanted = np.array(sorted(hashes), np.uint64)

    @property
    def seeks(self) -> bool:
        """Whether any name is still wanted."""
        return len(self._wanted) > 0

    def look(self, hashes: Hashes, columns: Sequence[pa.Array]) -> None:
        """Look at the keys of some tuples."""
        wanted = self._wanted
        if not len(wanted):
            return
        rows = np.flatnonzero(is_in(hashes, wanted))
        found, first = np.unique(hashes[rows], return_index=True)
        for hash_, row in zip(found.tolist(), rows[first].tolist(), strict=True):
            self._names[hash_] = key_text([column[row].as_py() for column in columns])
        if len(found):
            self._wanted = wanted[~is_in(wanted, found)]

    def take(self) -> dict[int, str]:
        """Give the names that were found since the last call."""
        found, self._names = self._names, {}
        return found


def key_text(values: Sequence[object]) -> str:
    """Write the values of a key for people; texts that would mislead are quoted.

    >>> key_text(["to be"]), key_text([1, "1"]), key_text([""]), key_text([" a"])
    ('to be', '1, "1"', '""', '" a"')
    """
    text = ", ".join(map(_value_text, values))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _value_text(value: object) -> str:
    misleads = isinstance(value, str) and (
        value != value.strip() or value[:1] in ("", '"') or _looks_otherwise(value)
    )
    return json.dumps(value, ensure_ascii=False) if misleads else str(value)


def _looks_otherwise(text: str) -> bool:
    """Say whether a text looks like a value that is none."""
    try:
        float(text)
    except ValueError:
        return text in ("None", "True", "False")
    return True
