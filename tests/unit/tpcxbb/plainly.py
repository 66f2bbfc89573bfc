"""The queries in plain Python, word for word as they are defined: slow, and easy to believe."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import pyarrow as pa

from thalweg.workloads.tpcxbb.queries import Q1, Q2, Q3, Q4, Q15
from thalweg.workloads.tpcxbb.tables import CLICKS_SCHEMA, SALES_SCHEMA


class Line(NamedTuple):
    """A row of store_sales."""

    day: int
    second: int
    item: int | None
    store: int | None
    ticket: int | None
    paid: int | None

    @property
    def time(self) -> int:
        return self.day * 86_400 + self.second


class Click(NamedTuple):
    """A row of web_clickstreams."""

    day: int
    second: int
    user: int | None
    item: int | None
    page: int | None
    sale: int | None

    @property
    def time(self) -> int:
        return self.day * 86_400 + self.second


def as_table(rows: Iterable[Line | Click], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def lines_of(table: pa.Table) -> list[Line]:
    assert table.schema == SALES_SCHEMA
    return [Line(*row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def clicks_of(table: pa.Table) -> list[Click]:
    assert table.schema == CLICKS_SCHEMA
    return [Click(*row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def chosen(value: Any, wanted: tuple[int, ...] | None) -> bool:
    return wanted is None or value in wanted


def best(counts: Counter[Any], size: int) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:size]


def q1(lines: list[Line], category: dict[int, int], query: Q1) -> list[tuple[int, ...]]:
    baskets: dict[tuple[int, int], set[int]] = defaultdict(set)
    for line in lines:
        known = line.ticket is not None and line.item is not None
        here = chosen(line.store, query.stores)
        if known and here and chosen(category.get(line.item), query.categories):
            hour = line.time // query.window * query.window
            baskets[hour, line.ticket].add(line.item)
    counts: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for (hour, _), items in baskets.items():
        counts[hour].update(combinations(sorted(items), 2))
    return [
        (hour, *pair, count)
        for hour in sorted(counts)
        for pair, count in best(counts[hour], query.top)
        if count >= query.least
    ]


def sessions(clicks: list[Click], timeout: int) -> Iterator[list[Click]]:
    by_user: dict[int, list[Click]] = defaultdict(list)
    for click in clicks:
        by_user[click.user].append(click)
    for mine in by_user.values():
        mine.sort(key=lambda click: click.time)
        session = mine[:1]
        for click in mine[1:]:
            if click.time - session[-1].time > timeout:
                yield session
                session = []
            session.append(click)
        yield session


def q2(clicks: list[Click], query: Q2) -> list[tuple[int, ...]]:
    seen = [click for click in clicks if click.user is not None and click.item is not None]
    counts: Counter[tuple[int, int]] = Counter()
    for session in sessions(seen, query.timeout):
        counts.update(combinations(sorted({click.item for click in session}), 2))
    if query.item is not None:
        counts = Counter({pair: count for pair, count in counts.items() if query.item in pair})
    return [(*pair, count) for pair, count in best(counts, query.top)]


def q3(clicks: list[Click], category: dict[int, int], query: Q3) -> list[tuple[int, ...]]:
    seen = [click for click in clicks if click.user is not None and click.item is not None]
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for sale in seen:
        if sale.sale is None or not chosen(sale.item, query.bought):
            continue
        before = [
            (view.time, view.item)
            for view in seen
            if view.user == sale.user
            and view.sale is None
            and chosen(category.get(view.item), query.categories)
            and 0 <= sale.time - view.time <= query.within
        ]
        counts[sale.item].update(item for _, item in sorted(before)[-query.last :])
    return [
        (bought, viewed, count)
        for bought in sorted(counts)
        for viewed, count in best(counts[bought], query.top)
    ]


def q4(clicks: list[Click], types: dict[int, str], query: Q4) -> tuple[int, int, float | None]:
    seen = [c for c in clicks if c.user is not None and c.page in types and c.sale is None]
    pages = []
    for session in sessions(seen, query.timeout):
        kinds = {types[click.page] for click in session}
        if "dynamic" in kinds and "order" not in kinds:
            pages.append(len(session))
    return len(pages), sum(pages), sum(pages) / len(pages) if pages else None


def q15(lines: list[Line], category: dict[int, int], query: Q15) -> list[tuple[int, float]]:
    first, last = query.days
    points: dict[int, Counter[int]] = defaultdict(Counter)
    for line in lines:
        known = line.paid is not None and line.item in category
        if known and first <= line.day <= last and query.store in (None, line.store):
            points[category[line.item]][line.day] += line.paid
    found = []
    for each in sorted(points):
        slope = fitted(points[each])
        if slope is not None and slope <= 0:
            found.append((each, float(slope)))
    return found


def fitted(points: dict[int, int]) -> Fraction | None:
    """Give the slope as the covariance of days and sums over the variance of days."""
    count = len(points)
    day, paid = Fraction(sum(points), max(1, count)), Fraction(sum(points.values()), max(1, count))
    variance = sum((x - day) ** 2 for x in points)
    return sum((x - day) * (y - paid) for x, y in points.items()) / variance if variance else None
