"""Counting which keys occur together, in one stage at one place, on a share of the tuples."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from thalweg.blocks import Block
from thalweg.hashing import hash_columns
from thalweg.runtimes.pairing import Naming, PairSample
from thalweg.runtimes.spark.links import Behind, Links, ends_at
from thalweg.runtimes.spark.planning import Edge


class Pairing:
    """Looks at the blocks of a stage on their way to their readers."""

    def __init__(
        self, links: Links, rate: float, seed: str, unnamed: frozenset[int] = frozenset()
    ) -> None:
        self.links = links
        self._sample = PairSample(rate, seed)
        self.naming = Naming(unnamed)

    @property
    def seconds(self) -> float:
        """Seconds that counting took."""
        return self._sample.seconds

    def watch(self, block: Block, edges: Sequence[Edge], behind: Behind | None) -> None:
        """Count the pairs that a block brings to its readers."""
        with self._sample.timed():
            self._watch(block, edges, behind)

    def _watch(self, block: Block, edges: Sequence[Edge], behind: Behind | None) -> None:
        ends = [edge for edge in edges if ends_at(edge, self.links.movable)]
        beside = self.links.beside[block.origin.component, block.origin.stream]
        rows = self._sample.rows(len(block))
        if not len(rows) or not ends or not (behind or beside):
            return
        taken = pa.array(rows)
        hashes = {}
        for edge in ends:
            keys = [block.batch.column(name).take(taken) for name in edge.input.key]
            hashes[edge.reader] = hash_columns(keys)
            self.naming.look(hashes[edge.reader], keys)
        if behind is not None:
            left = behind.hashes(rows)
            if behind.hash is None and self.naming.seeks:
                self.naming.look(left, behind.keys(rows))
            for reader, right in hashes.items():
                self._sample.add(behind.component, reader, left, right)
        for one, other in beside:
            self._sample.add(one.reader, other.reader, hashes[one.reader], hashes[other.reader])

    def counts(self) -> dict[str, dict[str, bytes]]:
        """Give what was counted, by both ends of each link."""
        counts: dict[str, dict[str, bytes]] = {}
        taken = self._sample.take()
        with self._sample.timed():
            for (sender, reader), found in taken.items():
                counts.setdefault(sender, {})[reader] = found.to_bytes()
        return counts
