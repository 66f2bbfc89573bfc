"""What values cost: two count-min matrices, how often a value came and how long it took.

Cormode and Muthukrishnan, An improved data stream summary, 2005; as Rivetti et al. use it (Online
scheduling for shuffle grouping, Middleware 2016). Where values share a cell in every row, their
costs are mixed; the row with the fewest tuples in the cell is mixed least.

>>> hashes = np.array([11, 11, 999], np.uint64)
>>> sketch = CostSketch.empty().plus(hashes, np.array([0.1, 0.3, 5.0]))
>>> sketch.estimates(np.array([11, 999], np.uint64)).round(3).tolist()
[0.2, 5.0]
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.errors import UsageError, explain
from thalweg.hashing import Hashes

Floats = npt.NDArray[np.float64]
Cells = npt.NDArray[np.int64]

_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class CostSketch:
    """An immutable pair of matrices of one shape."""

    #: Tuples by row and column, and seconds that they took.
    counts: Floats
    seconds: Floats

    @classmethod
    def empty(cls, epsilon: float = 0.05, delta: float = 0.1) -> CostSketch:
        """Begin with nothing; ``epsilon`` sets the columns and ``delta`` the rows.

        With probability 1 - delta, a cell holds at most epsilon of all tuples beside a value's own.
        """
        if not (0 < epsilon < 1 and 0 < delta < 1):
            got = f"epsilon {epsilon}, delta {delta}"
            raise UsageError(explain("cost sketch", expected="shares between 0 and 1", got=got))
        zeros = np.zeros((math.ceil(math.log(1 / delta)), math.ceil(math.e / epsilon)))
        return cls(zeros, zeros)

    def plus(self, hashes: Hashes, seconds: Floats) -> CostSketch:
        """Take in tuples: the hash of each value, and the seconds that it took."""
        rows, columns = self.counts.shape
        flat = (self._cells(hashes) + np.arange(rows)[:, None] * columns).ravel()
        size, shape = rows * columns, self.counts.shape
        counts = np.bincount(flat, minlength=size).reshape(shape)
        spent = np.bincount(flat, np.tile(seconds, rows), size).reshape(shape)
        return CostSketch(self.counts + counts, self.seconds + spent)

    @classmethod
    def total(cls, sketches: Iterable[CostSketch]) -> CostSketch:
        """Add sketches of one shape: the sketch of all their tuples."""
        several = list(sketches)
        counts = np.sum([sketch.counts for sketch in several], axis=0)
        return cls(counts, np.sum([sketch.seconds for sketch in several], axis=0))

    def estimates(self, hashes: Hashes, others: Floats | None = None) -> Floats:
        """Estimate the seconds of each value.

        One that never came is thought to cost what ``others`` says, or the mean of all.
        """
        cells = self._cells(hashes)
        rows = np.arange(len(cells))[:, None]
        counts, spent = self.counts[rows, cells], self.seconds[rows, cells]
        best = counts.argmin(axis=0), np.arange(len(hashes))
        known = counts[best] > 0
        unknown = self.mean if others is None else others
        return np.where(known, spent[best] / np.where(known, counts[best], 1.0), unknown)

    @property
    def mean(self) -> float:
        """Seconds of a tuple; 0 before the first."""
        tuples = float(self.counts[0].sum())
        return float(self.seconds[0].sum()) / tuples if tuples else 0.0

    @property
    def ratios(self) -> Floats:
        """Seconds per tuple of each cell; 0 where none came."""
        return np.divide(
            self.seconds, self.counts, out=np.zeros_like(self.counts), where=self.counts > 0
        )

    def _cells(self, hashes: Hashes) -> Cells:
        """Give the column of each hash in each row (multiply and shift)."""
        rows, columns = self.counts.shape
        factors = np.array([_GOLDEN * (2 * row + 1) % 2**64 for row in range(rows)], np.uint64)
        mixed = (hashes[None, :] ^ factors[:, None] >> np.uint64(7)) * factors[:, None]
        return ((mixed >> np.uint64(32)) % np.uint64(columns)).astype(np.int64)
