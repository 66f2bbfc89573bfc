"""The five queries as topologies: steps without state, then vectorised bolts with it.

| query | steps |
|---|---|
| Q1 | lines; baskets by ticket; counts by pair of items; the best of each hour |
| Q2 | views; sessions by user; pairs; counts by pair; the best |
| Q3 | clicks; last views by user; counts by the item bought |
| Q4 | pages; sessions by user; those abandoned; their mean |
| Q15 | lines with their category; sums of days; trends by category |

>>> from thalweg.workloads import tpcxbb
>>> source = tpcxbb.web_clickstreams(rows=30_000, rate=1.0).timed()
>>> flow, kept = topology("q4", source, Tables(tpcxbb.item(), tpcxbb.web_page()))
>>> result = flow.run(on="inline")
>>> kept.table().select(["sessions", "pages"]).to_pylist()
[{'sessions': 1009, 'pages': 7934}]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from thalweg.errors import UsageError, explain
from thalweg.eventtime import event_time
from thalweg.expressions import col
from thalweg.flow import Flow, Stream
from thalweg.groupings import Global
from thalweg.workloads.tpcxbb import first_steps
from thalweg.workloads.tpcxbb.baskets import SOLD, Baskets, HourTops
from thalweg.workloads.tpcxbb.counting import VIEWED_PAIRS, Best, PairCounts, pairs_of_lists
from thalweg.workloads.tpcxbb.ends import DAY_SUMS, Answers, MeanPages, Trends, day_sums
from thalweg.workloads.tpcxbb.last_views import LastViews
from thalweg.workloads.tpcxbb.parts import PART
from thalweg.workloads.tpcxbb.queries import Q1, Q2, Q3, Q4, Q15
from thalweg.workloads.tpcxbb.sessions import ItemsViewed, PagesSeen
from thalweg.workloads.tpcxbb.sources import TIME

#: Tasks of each keyed bolt: some more than workers, so that none of them runs out of work.
DEGREE = 4


@dataclass(frozen=True)
class Tables:
    """The side tables."""

    item: pa.RecordBatch
    web_page: pa.RecordBatch


def q1(sales: Stream, tables: Tables, query: Q1 | None = None, degree: int = DEGREE) -> Stream:
    """Answer Q1, hour by hour."""
    query = query or Q1()
    lines = first_steps.q1_lines(sales, tables.item, query, degree)
    pairs = lines.key_by(PART).through("q1-baskets", Baskets(query, degree), degree=degree)
    tops = pairs.key_by(PART).through("q1-tops", HourTops(query), degree=degree)
    return tops.grouped(Global()).through("q1-best", Best(SOLD, query.top, query.window))


def q2(clicks: Stream, _tables: Tables, query: Q2 | None = None, degree: int = DEGREE) -> Stream:
    """Answer Q2, at the end."""
    query = query or Q2()
    views = first_steps.q2_views(clicks, degree)
    sessions = views.key_by(PART).through("q2-sessions", ItemsViewed(query.timeout), degree=degree)
    pair_up = pairs_of_lists(degree, query.item)
    pairs = sessions.map_block(pair_up, fields=VIEWED_PAIRS, name="q2-pairs")
    counts = PairCounts(("item_a", "item_b", "viewed"), query.top)
    tops = pairs.key_by(PART).through("q2-counts", counts, degree=degree)
    return tops.grouped(Global()).through("q2-best", Best(counts.outputs, query.top))


def q3(clicks: Stream, tables: Tables, query: Q3 | None = None, degree: int = DEGREE) -> Stream:
    """Answer Q3, at the end."""
    query = query or Q3()
    seen = first_steps.q3_clicks(clicks, tables.item, query, degree)
    pairs = seen.key_by(PART).through("q3-views", LastViews(query, degree), degree=degree)
    counts = PairCounts(("bought", "viewed", "views"), query.top, for_each=True)
    return pairs.key_by(PART).through("q3-tops", counts, degree=degree)


def q4(clicks: Stream, tables: Tables, query: Q4 | None = None, degree: int = DEGREE) -> Stream:
    """Answer Q4, at the end."""
    query = query or Q4()
    pages = first_steps.q4_pages(clicks, tables.web_page, degree)
    sessions = pages.key_by(PART).through("q4-sessions", PagesSeen(query.timeout), degree=degree)
    abandoned = sessions.filter(col("cart") & ~col("order"), name="q4-abandoned")
    return abandoned.grouped(Global()).through("q4-mean", MeanPages())


def q15(sales: Stream, tables: Tables, query: Q15 | None = None, degree: int = DEGREE) -> Stream:
    """Answer Q15, at the end."""
    lines = first_steps.q15_sales(sales, tables.item, query or Q15())
    sums = lines.map_block(day_sums, fields=DAY_SUMS, name="q15-days")
    return sums.key_by("category").through("q15-trends", Trends(), degree=degree)


#: By name: how it is built, and the field by which an answer of several tasks is put in order.
QUERIES: dict[str, tuple[Callable[..., Stream], str | None]] = {
    "q1": (q1, None),
    "q2": (q2, None),
    "q3": (q3, "bought"),
    "q4": (q4, None),
    "q15": (q15, "category"),
}


def topology(
    name: str,
    source: Any,
    tables: Tables,
    query: Any = None,
    *,
    late: int = 0,
    degree: int = DEGREE,
) -> tuple[Flow, Answers]:
    """Put a query behind a source that has the field ``time``; give a flow, and who keeps answers.

    Rows may come ``late`` seconds behind later ones.
    """
    if name not in QUERIES:
        raise UsageError(explain(f"query {name!r}", expected=f"one of {list(QUERIES)}"))
    build, by = QUERIES[name]
    flow = Flow(name, order="total")
    rows = flow.source("rows", source, time=event_time(TIME, delay=late))
    answer = build(rows, tables, query, degree)
    kept = Answers(list(zip(answer.fields.names, answer.fields.types, strict=True)), by)
    answer.sink("answers", kept)
    return flow, kept
