"""Counts of pairs over a whole stream, and the best of them: Q1, Q2 and Q3.

Counts are kept in *runs*: sorted columns of pairs and numbers. A new run is put together with those
before it that are not much longer, so that a pair is looked at a few times only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.components import BlockBolt, Kind, Shared
from thalweg.eventtime import SECOND
from thalweg.workloads.tpcxbb import kernels
from thalweg.workloads.tpcxbb.drawing import Numbers, scatter
from thalweg.workloads.tpcxbb.parts import (
    PART,
    BatchesCodec,
    Collecting,
    Kept,
    as_batch,
    by_part,
    columns,
    part_names,
)

_RUN = pa.schema({"pair": pa.int64(), "count": pa.int64()})
#: Bits of the second item of a pair.
_BITS = 32
_MASK = (1 << _BITS) - 1
#: A run is put together with one that is less than so many times as long.
_LONGER = 2


def pair_parts(a: Numbers, b: Numbers, count: int) -> Numbers:
    """Give the parts of pairs."""
    codes = scatter((a << _BITS) | b, salt=0) % np.uint64(count)
    return part_names(count)[codes.astype(np.int64)].astype(np.int64)


def pairs_of_lists(
    parts: int, item: int | None
) -> Callable[[pa.RecordBatch], pa.RecordBatch | None]:
    """Make a function that gives the pairs of different items in each list."""

    def pair_up(batch: pa.RecordBatch) -> pa.RecordBatch:
        lists = batch.column("items")
        lengths = np.diff(lists.offsets.to_numpy())
        groups = np.repeat(np.arange(len(lengths)), lengths)
        items = lists.flatten().to_numpy().astype(np.int64)
        a, b = kernels.pairs(*kernels.baskets(groups, items))
        if item is not None:
            wanted = (a == item) | (b == item)
            a, b = a[wanted], b[wanted]
        return as_batch([a, b, pair_parts(a, b, parts)], VIEWED_PAIRS)

    return pair_up


VIEWED_PAIRS = pa.schema({"item_a": pa.int32(), "item_b": pa.int32(), PART: pa.int32()})


def merged(runs: Kept) -> pa.RecordBatch:
    """Make one run of several.

    >>> one, other = (as_batch([np.array(p), np.array([1, 2])], _RUN) for p in ([3, 5], [5, 9]))
    >>> merged((one, other)).to_pydict()
    {'pair': [3, 5, 9], 'count': [1, 3, 2]}
    """
    if len(runs) == 1:
        return runs[0]
    pairs, counts = columns(runs)
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    firsts = np.flatnonzero(kernels.starts(pairs))
    return as_batch([pairs[firsts], np.add.reduceat(counts[order], firsts)], _RUN)


def with_run(runs: Kept, added: pa.RecordBatch) -> Kept:
    """Add a run to others, of which each is longer than the next."""
    while runs and runs[-1].num_rows < _LONGER * added.num_rows:
        runs, added = runs[:-1], merged((runs[-1], added))
    return (*runs, added)


class PairCounts(Shared, BlockBolt):
    """Counts pairs; gives at the end the best of its part: of all, or for each first item."""

    kind = Kind.KEYED
    state_codec = BatchesCodec()

    def __init__(self, fields: tuple[str, str, str], top: int, for_each: bool = False) -> None:
        types = (pa.int32(), pa.int32(), pa.int64())
        self.outputs = pa.schema(list(zip(fields, types, strict=True)))
        self.top, self.for_each = top, for_each

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Count."""
        for part, rows in by_part(batch):
            a, b = columns([rows])
            a, b, counts = kernels.counted_pairs(a, b)
            added = as_batch([(a << _BITS) | b, counts], _RUN)
            self.state.put(part, with_run(self.state.get(part, ()), added))

    def process_end(self) -> None:
        """Tell the best."""
        for _, runs in list(self.state.items()):
            pairs, counts = columns([merged(runs)])
            a, b = pairs >> _BITS, pairs & _MASK
            top = self.top
            rows = best_of(a, counts, top) if self.for_each else kernels.top(counts, top)
            self.emit(as_batch([a[rows], b[rows], counts[rows]], self.outputs))


def best_of(groups: Numbers, counts: Numbers, size: int) -> Numbers:
    """Give the rows with the highest counts of each group, groups in order, of equals the first.

    >>> best_of(np.array([1, 1, 1, 2]), np.array([3, 5, 5, 1]), 2).tolist()
    [1, 2, 3]
    """
    order = np.lexsort((-counts, groups))
    firsts = np.flatnonzero(kernels.starts(groups[order]))
    lengths = np.diff(firsts, append=len(order))
    ranks = np.arange(len(order)) - np.repeat(firsts, lengths)
    return order[ranks < size]


class Best(Collecting):
    """Puts the best of all parts together; with a window, as soon as that is over."""

    kind = Kind.GLOBAL

    def __init__(self, outputs: pa.Schema, top: int, window: int | None = None) -> None:
        self.outputs, self.top = outputs, top
        self.timed = window is not None  # type: ignore[misc]  # of this one
        self.watermark_step = (window or 1) * SECOND

    def settle(self, kept: Kept, now: int) -> Any:
        """Send the best, with the window first where there is one."""
        del now
        *windows, a, b, counts = columns(kept)
        groups = windows[0] if windows else np.zeros_like(a)
        order = np.lexsort((b, a))
        rows = order[best_of(groups[order], counts[order], self.top)]
        self.emit(as_batch([c[rows] for c in (*windows, a, b, counts)], self.outputs))
