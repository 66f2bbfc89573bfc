"""The application of the experiments: two keyed counts, one behind the other, and padded tuples.

A tuple has two keys; each first key has a second one that goes with it, with the given probability
(``locality``). They are different numbers, so that by hash they are where chance puts them. The
padding is random: what can be compressed would hardly travel.

>>> batch = TwoKeys(keys=6, locality=1.0, padding=3).make(np.arange(4))
>>> batch.schema.names, set(pc.subtract(batch.column("second"), batch.column("first")).to_pylist())
(['first', 'second', 'padding'], {6})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.components import BlockBolt, Kind, Shared

Numbers = npt.NDArray[np.int64]

FIELDS: Mapping[str, type] = MappingProxyType({"first": int, "second": int, "padding": bytes})
# Large odd numbers, which scatter what they multiply (splitmix64).
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_AGAIN = np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True)
class TwoKeys:
    """Makes tuples of numbers, the same ones each time."""

    keys: int
    locality: float
    padding: int
    #: Partitions of the source; where given, partition i has first keys that are i modulo it.
    partitions: int | None = None

    def make(self, numbers: Numbers) -> pa.RecordBatch:
        """Make the tuples of some numbers."""
        first = _scattered(numbers, 1) % self.keys
        if self.partitions is not None:
            first += (numbers - first) % self.partitions
            first %= self.keys
        same = _scattered(numbers, 2) % 1_000_000 < self.locality * 1_000_000
        # Another one than its own, all with the same probability.
        other = (first + 1 + _scattered(numbers, 3) % max(1, self.keys - 1)) % self.keys
        second = np.where(same, first, other) + self.keys
        columns = [pa.array(first), pa.array(second), self._pad(numbers)]
        return pa.RecordBatch.from_arrays(columns, names=list(FIELDS))

    def _pad(self, numbers: Numbers) -> pa.Array:
        rows, size = len(numbers), self.padding
        seed = int(numbers[0]) if rows else 0
        data = np.random.default_rng(seed).bytes(rows * size)
        ends = np.arange(0, (rows + 1) * size, max(1, size), dtype=np.int32)[: rows + 1]
        ends = ends if size else np.zeros(rows + 1, dtype=np.int32)
        return pa.Array.from_buffers(
            pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(data)]
        )


def _scattered(numbers: Numbers, salt: int) -> Numbers:
    mixed = (numbers.astype(np.uint64) + np.uint64(salt << 48)) * _MIX
    mixed = (mixed ^ (mixed >> np.uint64(31))) * _MIX_AGAIN
    return ((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(1)).astype(np.int64)


class Pad(Shared, BlockBolt):
    """Makes tuples of the numbers of a source."""

    outputs = FIELDS

    def __init__(self, made: TwoKeys) -> None:
        self.made = made

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Make the tuples of a block."""
        return self.made.make(batch.column(0).to_numpy())


class CountAndPass(Shared, BlockBolt):
    """Counts a key, and passes the tuple on; it does not say which fields it reads."""

    kind = Kind.KEYED
    commutative = True
    outputs = FIELDS

    def __init__(self, table: str) -> None:
        self.table = table

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Add a block to the table."""
        counted = pc.value_counts(batch.column(self.key[0]))
        keys = counted.field("values").to_pylist()
        numbers = counted.field("counts").to_pylist()

        def add(before: list[Any]) -> list[int]:
            return [(old or 0) + new for old, new in zip(before, numbers, strict=True)]

        self.state.update(keys, add)
        return batch if self.context.read_streams else None
