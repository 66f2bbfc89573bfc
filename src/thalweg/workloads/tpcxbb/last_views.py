"""Q3 with state: what users viewed last before they bought something."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from thalweg.eventtime import SECOND
from thalweg.workloads.tpcxbb import kernels
from thalweg.workloads.tpcxbb.drawing import Numbers
from thalweg.workloads.tpcxbb.kernels import Mask
from thalweg.workloads.tpcxbb.parts import PART, Amortised, Kept, as_batch, columns, part_names
from thalweg.workloads.tpcxbb.queries import Q3
from thalweg.workloads.tpcxbb.sessions import STEP


class LastViews(Amortised):
    """Takes user, time, item and whether it is a sale; gives (bought, viewed) for each sale."""

    outputs = pa.schema({"bought": pa.int32(), "viewed": pa.int32(), PART: pa.int32()})
    watermark_step = STEP

    def __init__(self, query: Q3, parts: int) -> None:
        self.query, self.names = query, part_names(parts)

    def settle(self, kept: Kept, now: int) -> pa.RecordBatch | None:
        """Look back from the sales before which nothing can come any more."""
        users, times, items, sold = columns(kept)
        users, times, sold, items = kernels.sort_rows(users, times, sold, items)
        done = times * SECOND < now
        settled = kernels.Clicks(users[done], times[done], items[done], sold[done] == 1)
        bought, viewed = kernels.last_viewed(settled, self.query.last, self.query.within)
        if len(bought):
            parts = self.names[bought % len(self.names)].astype(np.int64)
            self.emit(as_batch([bought, viewed, parts], self.outputs))
        needed = ~done
        needed[np.flatnonzero(done)[self._may_count(settled, now)]] = True
        rest = [column[needed] for column in (users, times, items, sold)]
        return as_batch(rest, kept[0].schema)

    def _may_count(self, clicks: kernels.Clicks, now: int) -> Numbers:
        """Find the views that may be among the last ones of a sale to come."""
        views = np.flatnonzero(~clicks.sold)
        recent = (clicks.times[views] + self.query.within) * SECOND >= now
        return views[last_of(clicks.users[views], self.query.last) & recent]


def last_of(groups: Numbers, count: int) -> Mask:
    """Mark the last rows of each group; groups stand together.

    >>> last_of(np.array([1, 1, 1, 2]), 2).tolist()
    [False, True, True, True]
    """
    firsts = np.flatnonzero(kernels.starts(groups))
    lengths = np.diff(firsts, append=len(groups))
    found: Mask = np.repeat(firsts + lengths, lengths) - np.arange(len(groups)) <= count
    return found
