"""Counting which keys occur together, in one stage at one place, on a share of the tuples."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import numpy as np

from thalweg.blocks import Block, Rows
from thalweg.hashing import Hashes, hash_columns
from thalweg.runtimes.spark.links import Behind, Links, ends_at
from thalweg.runtimes.spark.planning import Edge
from thalweg.sketches.pairs import PairCounts, merged

#: Pairs of one link that a task reports; beyond that the rarest are left out.
MAX_PAIRS = 1 << 16


class Pairing:
    """Takes every so-many-th tuple; begins anywhere, so that no tuple is always left out."""

    def __init__(self, links: Links, rate: float, seed: str) -> None:
        self.links = links
        self._every = max(1, round(1 / rate))
        self._skip = random.Random(seed).randrange(self._every)  # noqa: S311 (to be repeatable)
        self._found: dict[tuple[str, str], list[tuple[Hashes, Hashes]]] = {}
        #: Seconds that counting took.
        self.seconds = 0.0

    def watch(self, block: Block, edges: Sequence[Edge], behind: Behind | None) -> None:
        """Count the pairs that a block brings to its readers."""
        begin = time.perf_counter()
        ends = [edge for edge in edges if ends_at(edge, self.links.movable)]
        beside = self.links.beside[block.origin.component, block.origin.stream]
        rows = self._rows(len(block))
        if len(rows) and ends and (behind or beside):
            columns = block.batch.take(rows) if self._every > 1 else block.batch
            hashes = {
                edge.reader: hash_columns([columns.column(name) for name in edge.input.key])
                for edge in ends
            }
            if behind is not None:
                left = behind.hashes(rows)
                for reader, right in hashes.items():
                    self._add(behind.component, reader, left, right)
            for one, other in beside:
                self._add(one.reader, other.reader, hashes[one.reader], hashes[other.reader])
        self.seconds += time.perf_counter() - begin

    def counts(self) -> dict[str, dict[str, bytes]]:
        """Give what was counted, by both ends of each link."""
        begin = time.perf_counter()
        counts: dict[str, dict[str, bytes]] = {}
        for (sender, reader), found in self._found.items():
            left, right = (np.concatenate(sides) for sides in zip(*found, strict=True))
            made = merged([PairCounts.of(left, right)], MAX_PAIRS)
            counts.setdefault(sender, {})[reader] = made.to_bytes()
        self.seconds += time.perf_counter() - begin
        return counts

    def _rows(self, count: int) -> Rows:
        rows = np.arange(self._skip, count, self._every, dtype=np.int64)
        self._skip = (self._skip - count) % self._every
        return rows

    def _add(self, sender: str, reader: str, left: Hashes, right: Hashes) -> None:
        self._found.setdefault((sender, reader), []).append((left, right))
