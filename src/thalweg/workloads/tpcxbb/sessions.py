"""Q2 and Q4 with state: sessions of users, told when they are over."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from thalweg.eventtime import SECOND
from thalweg.workloads.tpcxbb import kernels
from thalweg.workloads.tpcxbb.drawing import Numbers
from thalweg.workloads.tpcxbb.kernels import Mask
from thalweg.workloads.tpcxbb.parts import Amortised, Kept, as_batch, columns

#: Microseconds of event time after which it is asked whether rows should be worked on.
STEP = 60 * SECOND


class Sessions(Amortised):
    """Takes user, time and more; a session is over when no click can belong to it any more."""

    watermark_step = STEP

    def __init__(self, timeout: int) -> None:
        self.timeout = timeout

    def settle(self, kept: Kept, now: int) -> pa.RecordBatch | None:
        """Cut sessions, and tell those that are over."""
        users, times, *more = kernels.sort_rows(*columns(kept))
        begins = kernels.cut_sessions(users, times, self.timeout)
        firsts = np.flatnonzero(begins)
        lengths = np.diff(firsts, append=len(users))
        over = (times[firsts + lengths - 1] + self.timeout) * SECOND < now
        rows = np.repeat(over, lengths)
        if over.any():
            self.tell(begins[rows], [column[rows] for column in more])
        rest = [column[~rows] for column in (users, times, *more)]
        return as_batch(rest, kept[0].schema)

    def tell(self, begins: Mask, more: list[Numbers]) -> None:
        """Send sessions, given which rows begin one."""
        raise NotImplementedError


class ItemsViewed(Sessions):
    """Q2: gives the items of each session, as a list."""

    outputs = pa.schema({"items": pa.list_(pa.int32())})

    def tell(self, begins: Mask, more: list[Numbers]) -> None:
        """Send lists."""
        [items] = more
        offsets = np.append(np.flatnonzero(begins), len(items)).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(items.astype(np.int32)))
        self.emit(pa.RecordBatch.from_arrays([lists], schema=self.outputs))


class PagesSeen(Sessions):
    """Q4: gives how many pages each session has, and whether there are a cart and a check-out."""

    outputs = pa.schema({"pages": pa.int64(), "cart": pa.bool_(), "order": pa.bool_()})

    def tell(self, begins: Mask, more: list[Numbers]) -> None:
        """Send sums."""
        cart, order = more
        found = kernels.visits(begins, cart == 1, order == 1)
        arrays = [pa.array(found.pages), pa.array(found.cart), pa.array(found.order)]
        self.emit(pa.RecordBatch.from_arrays(arrays, schema=self.outputs))
