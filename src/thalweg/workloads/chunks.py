"""Sources that are made chunk by chunk: rows depend on their number alone, not on who asks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.components import BlockSpout, Shared
from thalweg.contexts import TaskContext

Numbers = npt.NDArray[np.int64]

#: Rows that are made at once, each such chunk from a seed of its own.
CHUNK = 16_384
# Large odd numbers (splitmix64), which scatter what they multiply.
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MIX = np.uint64(0x94D049BB133111EB)


class Chunked(Shared, BlockSpout):
    """A source of chunks, which its tasks take in turn."""

    def prepare(self, context: TaskContext) -> None:
        """Begin with this task's first chunk."""
        self._next, self._step = context.task, context.degree
        self._ready: pa.RecordBatch | None = None

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give the next rows of the chunk at hand."""
        if self._ready is None or not self._ready.num_rows:
            self._ready = self.chunk(self._next)
            self._next += self._step
        if not self._ready.num_rows:
            self.finish()
            return None
        given, self._ready = self._ready[:limit], self._ready[limit:]
        return given

    def chunk(self, number: int) -> pa.RecordBatch:
        """Make one chunk of rows; an empty one behind the last."""
        raise NotImplementedError


def rows_of(number: int, total: int) -> Numbers:
    """Give the numbers of the rows in a chunk, of so many in all.

    >>> len(rows_of(0, CHUNK + 1)), rows_of(1, CHUNK + 1).tolist(), rows_of(2, CHUNK + 1).tolist()
    (16384, [16384], [])
    """
    first = number * CHUNK
    return np.arange(first, max(first, min(first + CHUNK, total)))


def scatter(values: Numbers, seed: int) -> Numbers:
    """Turn numbers into others, evenly spread and never negative (the end of splitmix64).

    >>> first, second, again = scatter(np.array([1, 2, 1]), seed=1).tolist()
    >>> first == again, first == second
    (True, False)
    """
    mixed = values.astype(np.uint64) + np.uint64((seed + 1) * _GOLDEN % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST_MIX
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND_MIX
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)
