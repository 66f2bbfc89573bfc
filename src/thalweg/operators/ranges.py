"""Rows of a table by the range that they stand for: sorted, and found by binary search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.blocks import Rows
from thalweg.operators.conditions import Band, Bound
from thalweg.operators.lookups import key_type, normal


class RangeIndex:
    """Rows in the order of where their ranges begin.

    A value's rows begin before it, so they are among the first ones. Of those, some have ended: all
    up to the first whose end, or that of one before it, lies behind the value. Where ranges do not
    overlap, what is left is one row.
    """

    def __init__(self, table: pa.RecordBatch, band: Band) -> None:
        self._band = band
        low, high = (_ends(table, bound) for bound in (band.low, band.high))
        known = [each for _, each in (low, high) if each is not None]
        #: Rows of the table that can be found, in that order.
        self.rows: Rows = np.flatnonzero(np.logical_and.reduce(known))
        first = high[0] if low[0] is None else low[0]
        self.rows = self.rows[np.argsort(first[self.rows], kind="stable")]
        self._low = None if low[0] is None else low[0][self.rows]
        ends = None if high[0] is None else high[0][self.rows]
        self._high = None if ends is None else np.maximum.accumulate(ends)
        #: Whether all candidates are in the range: no range ends before one that begins earlier.
        self.exact = band.whole and (ends is None or bool((ends == self._high).all()))
        #: Whether they are in the order of the table.
        self.ordered = bool((self.rows[1:] > self.rows[:-1]).all())

    def candidates(self, batch: pa.RecordBatch) -> tuple[Rows, Rows]:
        """Give for each row of a block where its candidates begin, and how many there may be."""
        values, known = _numbers(batch.column(self._band.field))
        starts, ends = np.zeros(len(values), np.int64), np.full(len(values), len(self.rows))
        low, high = self._band.low, self._band.high
        if low is not None:
            ends = _up_to(self._low, values, low.inclusive)
        if high is not None:
            starts = _up_to(self._high, values, not high.inclusive)
        return starts, np.where(known, np.maximum(0, ends - starts), 0)


def _up_to(ends: Any, values: Any, equal: bool) -> Rows:
    """Count the ends that are less than each value, or equal to it."""
    return np.searchsorted(ends, values, "right") if equal else np.searchsorted(ends, values)


def _ends(table: pa.RecordBatch, bound: Bound | None) -> tuple[Any, Any]:
    return (None, None) if bound is None else _numbers(table.column(bound.row))


def _numbers(column: pa.Array) -> tuple[Any, Any]:
    """Give a column as numbers that are in its order, and which of them there are."""
    form = key_type(column.type)
    plain = normal(column, form)
    known = plain.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_temporal(form):
        plain = plain.cast(pa.int32() if pa.types.is_date(form) else pa.int64())
    return plain.fill_null(0).to_numpy(zero_copy_only=False), known
