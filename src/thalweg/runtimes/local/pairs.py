"""Counting which keys occur together, in the tasks of bolts, on a share of the tuples.

A tuple that was chosen at a keyed component takes the hash of its key along, also through stateless
bolts, to the next keyed component. Hashes travel as the path of a block, which this runtime needs
for nothing else: for each row the number of the component (0 for none), and the hash.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from thalweg.blocks import Block, Rows
from thalweg.components import Kind
from thalweg.control.rerouting import Ends
from thalweg.hashing import Hashes, hash_columns
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.pairing import Naming, PairSample, has_movable_keys, leading, siblings
from thalweg.sketches.pairs import PairCounts
from thalweg.topology import Component, Input, Topology

#: Levels of a block's path.
Trail = tuple[Rows, ...]
# Neighbours that are chosen at once, where few rows are.
_BURST = 64


class Pairs:
    """Looks at what tasks get; any thread may call it."""

    def __init__(self, topology: Topology, seed: int) -> None:
        movable = [c.name for c in topology if has_movable_keys(c)]
        self._numbers = {name: number for number, name in enumerate(movable, start=1)}
        self._names = movable
        self._leading = leading(topology, frozenset(movable))
        self._beside = siblings(topology, frozenset(movable))
        self._seed, self._rate = f"{seed}/pairs", 0.0
        self._sample: PairSample | None = None
        self._lock = threading.Lock()
        self._seconds = 0.0
        #: Learns what frequent keys look like.
        self.naming = Naming()

    def count(self, rate: float) -> None:
        """Count on this share of the tuples from now on; 0 for none."""
        with self._lock:
            if rate != self._rate:
                self._rate = rate
                self._sample = PairSample(rate / self.burst, self._seed) if rate else None

    def arrived(self, component: Component, input_: Input, part: Block) -> Trail:
        """Count the pairs that a part brings; give what its rows take along."""
        sample, name = self._sample, component.name
        if sample is None:
            return ()
        if name not in self._numbers:
            passes = component.kind is Kind.STATELESS and name in self._leading
            return part.path if passes else ()
        beside = self._beside.get((input_.component, input_.stream, name))
        with self._lock, self._timed():
            if part.path:
                self._followed(sample, name, input_, part)
            if beside is None and name not in self._leading:
                return ()
            rows = self._chosen(sample, len(part))
            if not len(rows):
                return ()
            hashes = self._hashes(part, input_, rows)
            if beside is not None:
                sample.add(name, beside[0], hashes, self._hashes(part, beside[1], rows))
            return self._trail(name, rows, hashes, len(part)) if name in self._leading else ()

    @property
    def burst(self) -> int:
        """Give the number of neighbours that are chosen at once; a few rows cost as much as one."""
        return _BURST if self._rate * _BURST < 1 else 1

    def _chosen(self, sample: PairSample, count: int) -> Rows:
        first = sample.rows(count)
        if self.burst == 1 or not len(first):
            return first
        rows: Rows = np.add.outer(first, np.arange(self.burst)).ravel()
        return rows[rows < count]

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Add the processor time of something; waiting for other threads is no cost."""
        begin = time.thread_time()
        yield
        self._seconds += time.thread_time() - begin

    def _trail(self, name: str, rows: Rows, hashes: Hashes, count: int) -> Trail:
        number, known = np.zeros(count, np.int64), np.zeros(count, np.int64)
        number[rows], known[rows] = self._numbers[name], hashes.view(np.int64)
        return number, known

    def _followed(self, sample: PairSample, reader: str, input_: Input, part: Block) -> None:
        """Count pairs of the key that a row had, where that is known, and the one that it has."""
        rows = np.flatnonzero(part.path[0])
        if not len(rows):
            return
        numbers, left = part.path[0][rows], part.path[1][rows].view(np.uint64)
        right = self._hashes(part, input_, rows)
        for number in np.unique(numbers).tolist():
            mine = numbers == number
            sample.add(self._names[number - 1], reader, left[mine], right[mine])

    def _hashes(self, block: Block, input_: Input, rows: Rows) -> Hashes:
        taken = block.batch.select(list(input_.key)).take(rows)
        hashes = hash_columns(taken.columns)
        self.naming.look(hashes, taken.columns)
        return hashes

    def take(self) -> tuple[dict[Ends, PairCounts], float]:
        """Give what was counted since the last call, and the seconds that it took."""
        with self._lock:
            if self._sample is None:
                return {}, 0.0
            with self._timed():
                counts = self._sample.take()
            seconds, self._seconds = self._seconds, 0.0
            return counts, seconds


def marked(blocks: Sequence[Block], emissions: Sequence[Emission], trail: Trail) -> list[Block]:
    """Let the rows that a part has become take along what its rows had with them."""
    return [
        block
        if emission.whole or emission.parents is None
        else replace(block, path=tuple(level[emission.parents] for level in trail))
        for block, emission in zip(blocks, emissions, strict=True)
    ]


def pairs_of(settings: Settings, topology: Topology) -> Pairs | None:
    """Make what counts pairs, if somebody wants to know them."""
    wanted = settings.rerouter is not None or settings.locality is not None
    return Pairs(topology, settings.seed) if wanted else None
