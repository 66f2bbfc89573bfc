"""The rows of ``store_sales``: lines of tickets.

>>> lines = SalesRows(Stream(rows=1000))
>>> lines.make(10, 20).equals(lines.make(0, 1000)[10:20])
True
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.workloads.tpcxbb.drawing import Bits, Numbers, Pieces, Small, below, bits, scatter
from thalweg.workloads.tpcxbb.rows import Rows, small
from thalweg.workloads.tpcxbb.tables import CATEGORIES, SALES_SCHEMA, Stream, categories

Floats = npt.NDArray[np.float64]

#: Runs of so many lines have so many tickets: 9.1 lines per ticket in the mean.
_RUN_BITS, _TICKETS = 6, 7
#: Prices in cents, from .. to, and how far a category's sales rise or fall until the end.
_CHEAPEST, _DEAREST, _STEEPEST = 50, 20_000, 0.6


class SalesRows(Rows):
    """Lines of tickets: those of one ticket come together and have one time and one store."""

    schema = SALES_SCHEMA
    at_scale_1 = 820_000
    tied = 1 << _RUN_BITS

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._tickets = Pieces(1 << _RUN_BITS, _TICKETS, stream.seed)
        self._prices, self._slopes = (
            prices(stream),
            trends(stream.seed)[categories(stream.items, stream.seed) - 1],
        )
        partners = np.random.default_rng(stream.seed + 1).permutation(stream.items) + 1
        self._partners = partners.astype(np.int32)

    def _columns(self, numbers: Numbers) -> Sequence[pa.Array]:
        runs = numbers >> _RUN_BITS
        entries = self._tickets.entries(runs, numbers & (self.tied - 1), self._salt + 2)
        tickets = runs * _TICKETS + self._tickets.piece(entries)
        firsts = (runs << _RUN_BITS) + self._tickets.begin(entries)
        chance = self._chance(numbers, 3)
        items = self._sold(numbers, firsts, chance)
        stores = below(self._chance(tickets, 4), self.stream.stores) + 1
        return [
            *self._moments(firsts),
            pa.array(items),
            small(stores),
            pa.array(tickets + 1),
            pa.array(self._paid(items, firsts, chance)),
        ]

    def _sold(self, numbers: Numbers, firsts: Numbers, chance: Bits) -> Small:
        """Draw items; one line in eight has what goes with the item drawn for the line before."""
        items = self._items.draw(chance)
        follows = np.flatnonzero((bits(chance, 2, 3) == 0) & (numbers > firsts))
        before = self._items.draw(self._chance(numbers[follows] - 1, 3))
        items[follows] = self._partners[before - 1]
        return items

    def _paid(self, items: Small, firsts: Numbers, chance: Bits) -> Numbers:
        """Give price times quantity, 1 to 4, as it is after the share of time that has passed."""
        at = items - 1
        elapsed = firsts * (1 / max(1, self.total))
        change = self._slopes[at] * elapsed + 1.0
        return (self._prices[at] * (1 + bits(chance, 0, 2)) * change).astype(np.int64)


def prices(stream: Stream) -> Floats:
    """Give the price of each item in cents: as many from 1 to 2 as from 10 to 20."""
    share = bits(scatter(np.arange(1, stream.items + 1), stream.seed * 100 + 9), 11, 53) / 2**53
    return np.floor(_CHEAPEST * (_DEAREST / _CHEAPEST) ** share)


def trends(seed: int) -> Floats:
    """Give by what share the sales of each category have changed at the end: half of them fall."""
    steps = np.linspace(-_STEEPEST, _STEEPEST, CATEGORIES)
    return np.random.default_rng(seed).permutation(steps)
