"""The queries by the first steps and the kernels alone, all rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import thalweg as tw
from thalweg.components import BlockBolt, BlockSpout, Shared
from thalweg.flow import Stream
from thalweg.workloads.tpcxbb import first_steps, kernels
from thalweg.workloads.tpcxbb.queries import Q1, Q2, Q3, Q4, Q15

Columns = dict[str, np.ndarray[Any, np.dtype[np.int64]]]


class Given(Shared, BlockSpout):
    """The rows of a table."""

    def __init__(self, table: pa.Table) -> None:
        self.outputs, self.batches = table.schema, table.to_batches()

    def next_block(self, _limit: int) -> pa.RecordBatch | None:
        if self.batches:
            first, *self.batches = self.batches
            return first
        self.finish()
        return None


class Kept(Shared, BlockBolt):
    """Keeps the blocks that it gets."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []

    def process_block(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)


def passed(table: pa.Table, steps: Callable[[Stream], Stream]) -> Columns:
    """Let a table go through the first steps; booleans are 0 and 1."""
    flow, kept = tw.Flow("steps"), Kept()
    stream = steps(flow.source("rows", Given(table)))
    stream.sink("kept", kept)
    flow.run(on="inline")
    found = {}
    for at, name in enumerate(stream.fields.names):
        parts = [b.column(at).to_numpy(zero_copy_only=False) for b in kept.batches]
        found[name] = np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
    return found


def q1(sales: pa.Table, item: pa.RecordBatch, query: Q1) -> list[tuple[int, ...]]:
    got = passed(sales, lambda stream: first_steps.q1_lines(stream, item, query))
    hours, tickets, items = kernels.sort_rows(
        got["time"] // query.window * query.window, got["ticket"], got["item"]
    )
    found = []
    cuts = np.flatnonzero(kernels.starts(hours))
    for first, stop in zip(cuts.tolist(), [*cuts[1:].tolist(), len(hours)], strict=False):
        pairs = kernels.pairs(*kernels.baskets(tickets[first:stop], items[first:stop]))
        best = [row for row in _best(*pairs, query.top) if row[2] >= query.least]
        found += [(int(hours[first]), *row) for row in best]
    return found


def q2(clicks: pa.Table, query: Q2) -> list[tuple[int, ...]]:
    got = passed(clicks, first_steps.q2_views)
    users, times, items = kernels.sort_rows(got["user"], got["time"], got["item"])
    sessions = np.cumsum(kernels.cut_sessions(users, times, query.timeout))
    a, b = kernels.pairs(*kernels.baskets(sessions, items))
    if query.item is not None:
        wanted = (a == query.item) | (b == query.item)
        a, b = a[wanted], b[wanted]
    return _best(a, b, query.top)


def q3(clicks: pa.Table, item: pa.RecordBatch, query: Q3) -> list[tuple[int, ...]]:
    got = passed(clicks, lambda stream: first_steps.q3_clicks(stream, item, query))
    users, times, sold, items = kernels.sort_rows(
        got["user"], got["time"], got["sold"], got["item"]
    )
    sorted_clicks = kernels.Clicks(users, times, items, sold == 1)
    bought, viewed = kernels.last_viewed(sorted_clicks, query.last, query.within)
    found: list[tuple[int, ...]] = []
    for each in np.unique(bought).tolist():
        found += _best(bought[bought == each], viewed[bought == each], query.top)
    return found


def q4(clicks: pa.Table, web_page: pa.RecordBatch, query: Q4) -> tuple[int, int, float | None]:
    got = passed(clicks, lambda stream: first_steps.q4_pages(stream, web_page))
    users, times, cart, order = kernels.sort_rows(
        got["user"], got["time"], got["cart"], got["order"]
    )
    begins = kernels.cut_sessions(users, times, query.timeout)
    visits = kernels.visits(begins, cart == 1, order == 1)
    pages = visits.pages[visits.abandoned]
    return len(pages), int(pages.sum()), float(pages.mean()) if len(pages) else None


def q15(sales: pa.Table, item: pa.RecordBatch, query: Q15) -> list[tuple[int, float]]:
    got = passed(sales, lambda stream: first_steps.q15_sales(stream, item, query))
    categories, days, sums = kernels.day_sums(got["category"], got["day"], got["paid"])
    found = []
    for each in np.unique(categories).tolist():
        slope = kernels.slope(days[categories == each], sums[categories == each])
        if slope is not None and slope <= 0:
            found.append((each, slope))
    return found


def _best(a: Any, b: Any, size: int) -> list[tuple[int, ...]]:
    a, b, counts = kernels.counted_pairs(a, b)
    rows = kernels.top(counts, size)
    return list(zip(a[rows].tolist(), b[rows].tolist(), counts[rows].tolist(), strict=True))
