"""What one core can do: seconds of CPU for each generator and for the dear step of each query.

    python -m thalweg.workloads.tpcxbb.profile 1000000

A step begins with the rows that the first steps of its query let through, as they come, so that
sorting is part of it; the stores are all stores. Rates are rows of the source per second. Time that
other processes take on the same core does not count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.workloads.tpcxbb import kernels
from thalweg.workloads.tpcxbb.drawing import Numbers
from thalweg.workloads.tpcxbb.queries import Q1, Q2, Q3, Q4
from thalweg.workloads.tpcxbb.sources import batches, store_sales, table, web_clickstreams
from thalweg.workloads.tpcxbb.tables import CATEGORIES, DAY, TYPES, categories

#: Times that each step is done; the quickest counts.
_REPEATS = 5
#: Rows per second of event time: an hour has 3.6 million.
_RATE = 1000.0
_LATE = 600


@dataclass(frozen=True)
class Measured:
    """How long a step took for so many rows of its source."""

    step: str
    rows: int
    seconds: float

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds


def measure(rows: int, clock: Callable[[], float] = time.process_time) -> Iterator[Measured]:
    """Measure everything with so many rows of each stream."""
    for step, work in _steps(rows):
        best = min(_took(work, clock) for _ in range(_REPEATS))
        yield Measured(step, rows, best)


def _took(work: Callable[[], object], clock: Callable[[], float]) -> float:
    begin = clock()
    work()
    return clock() - begin


def _steps(rows: int) -> Iterator[tuple[str, Callable[[], object]]]:
    sales, clicks = store_sales(rows=rows, rate=_RATE), web_clickstreams(rows=rows, rate=_RATE)
    late = web_clickstreams(rows=rows, rate=_RATE, late=_LATE)
    yield "generate store_sales", lambda: sum(1 for _ in batches(sales))
    yield "generate web_clickstreams", lambda: sum(1 for _ in batches(clicks))
    yield "generate web_clickstreams, out of order", lambda: sum(1 for _ in batches(late))
    yield from _of_sales(table(sales))
    yield from _of_clicks(table(late))


def _of_sales(sales: pa.Table) -> Iterator[tuple[str, Callable[[], object]]]:
    tickets, items = _column(sales, "ss_ticket_number"), _column(sales, "ss_item_sk")
    category = categories(int(items.max()), 1)[items - 1]
    kept = np.isin(category, Q1().categories or range(1, CATEGORIES + 1))
    days, paid = _column(sales, "ss_sold_date_sk"), _column(sales, "ss_net_paid")
    yield "Q1: top pairs, categories 1 to 3", lambda: _top_pairs(tickets[kept], items[kept])
    yield "Q1: top pairs, all categories", lambda: _top_pairs(tickets, items)
    yield "Q15: sums per day", lambda: kernels.day_sums(category, days, paid)


def _of_clicks(clicks: pa.Table) -> Iterator[tuple[str, Callable[[], object]]]:
    clicks = clicks.filter(pc.is_valid(clicks["wcs_user_sk"]))
    shown = pc.is_valid(clicks["wcs_item_sk"]).to_numpy()
    sold = pc.is_valid(clicks["wcs_sales_sk"]).to_numpy()
    users, pages = _column(clicks, "wcs_user_sk"), _column(clicks, "wcs_web_page_sk")
    items = pc.fill_null(clicks["wcs_item_sk"], 1).to_numpy().astype(np.int64)
    times = _column(clicks, "wcs_click_date_sk") * DAY + _column(clicks, "wcs_click_time_sk")
    wanted = np.isin(categories(int(items.max()), 1)[items - 1], Q3().categories or ())
    views = [column[shown] for column in (users, times, items)]
    kept = shown & (sold | wanted)
    before = [column[kept] for column in (users, times, sold.astype(np.int64), items)]
    paged = [column[~sold] for column in (users, times, pages % len(TYPES))]
    yield "Q2: top pairs viewed in sessions", lambda: _viewed_together(*views)
    yield "Q3: last five views", lambda: _before_sales(*before)
    yield "Q4: abandoned sessions", lambda: _abandoned(*paged)


def _top_pairs(groups: Numbers, items: Numbers) -> Numbers:
    counts = kernels.counted_pairs(*kernels.pairs(*kernels.baskets(groups, items)))[2]
    return kernels.top(counts, Q1().top)


def _viewed_together(users: Numbers, times: Numbers, items: Numbers) -> Numbers:
    users, times, items = kernels.sort_rows(users, times, items)
    return _top_pairs(np.cumsum(kernels.cut_sessions(users, times, Q2().timeout)), items)


def _before_sales(users: Numbers, times: Numbers, sold: Numbers, items: Numbers) -> object:
    users, times, sold, items = kernels.sort_rows(users, times, sold, items)
    clicks = kernels.Clicks(users, times, items, sold == 1)
    return kernels.counted_pairs(*kernels.last_viewed(clicks, Q3().last, Q3().within))


def _abandoned(users: Numbers, times: Numbers, kinds: Numbers) -> int:
    """Count the pages of abandoned sessions; of each 8 pages, 1 is a cart and 2 a check-out."""
    users, times, kinds = kernels.sort_rows(users, times, kinds)
    begins = kernels.cut_sessions(users, times, Q4().timeout)
    visits = kernels.visits(begins, kinds == 1, kinds == 2)
    return int(visits.pages[visits.abandoned].sum())


def _column(given: pa.Table, name: str) -> Numbers:
    return given[name].to_numpy().astype(np.int64)


if __name__ == "__main__":
    for found in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000):
        sys.stdout.write(f"{found.step:<42} {found.rate / 1e6:8.2f} M rows/s\n")
