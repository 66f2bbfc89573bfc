"""Q1 with state: the pairs of items in the baskets of an hour, and the pairs sold most often."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from thalweg.eventtime import SECOND
from thalweg.workloads.tpcxbb import kernels
from thalweg.workloads.tpcxbb.counting import pair_parts
from thalweg.workloads.tpcxbb.drawing import Numbers
from thalweg.workloads.tpcxbb.parts import PART, Collecting, Kept, as_batch, columns
from thalweg.workloads.tpcxbb.queries import Q1

_HOUR_PAIRS = pa.schema({"hour": pa.int64(), "item_a": pa.int32(), "item_b": pa.int32()})
SOLD = _HOUR_PAIRS.append(pa.field("sold", pa.int64()))


class Baskets(Collecting):
    """Takes ticket, time and item; gives the pairs of each basket when its hour is over."""

    outputs = _HOUR_PAIRS.append(pa.field(PART, pa.int32()))

    def __init__(self, query: Q1, parts: int) -> None:
        self.window, self.parts = query.window, parts
        self.watermark_step = query.window * SECOND

    def settle(self, kept: Kept, now: int) -> pa.RecordBatch | None:
        """Put the lines of hours that are over into baskets."""
        tickets, times, items = columns(kept)
        hours = times // self.window * self.window
        over = (hours + self.window) * SECOND <= now
        if over.any():
            self._tell(hours[over], tickets[over], items[over])
        rest = [column[~over] for column in (tickets, times, items)]
        return as_batch(rest, kept[0].schema)

    def _tell(self, hours: Numbers, tickets: Numbers, items: Numbers) -> None:
        hours, tickets, items = kernels.sort_rows(hours, tickets, items)
        once = kernels.starts(hours, tickets, items)
        hours, tickets, items = hours[once], tickets[once], items[once]
        baskets: Numbers = np.cumsum(kernels.starts(hours, tickets), dtype=np.int64)
        first, second = kernels.pairs(baskets, np.arange(len(items)))
        a, b = items[first], items[second]
        self.emit(as_batch([hours[first], a, b, pair_parts(a, b, self.parts)], self.outputs))


class HourTops(Collecting):
    """Takes the pairs of hours that are over; gives those of this part sold most often."""

    outputs = SOLD

    def __init__(self, query: Q1) -> None:
        self.query = query
        self.watermark_step = query.window * SECOND

    def settle(self, kept: Kept, now: int) -> None:
        """Count the pairs of each hour: all that came are of hours that are over."""
        del now
        hours, a, b = columns(kept)
        order = np.argsort(hours, kind="stable")
        cuts = np.flatnonzero(kernels.starts(hours[order]))
        for rows in np.split(order, cuts[1:]):
            self._tell(int(hours[rows[0]]), a[rows], b[rows])

    def _tell(self, hour: int, a: Numbers, b: Numbers) -> None:
        a, b, counts = kernels.counted_pairs(a, b)
        best = kernels.top(counts, self.query.top)
        best = best[counts[best] >= self.query.least]
        found = [np.full(len(best), hour), a[best], b[best], counts[best]]
        self.emit(as_batch(found, SOLD))
