"""The tables: their fields, their sizes at a scale, and the side tables ``item`` and ``web_page``.

The names are those of the public benchmark. A ``date_sk`` is the number of days since 1970-01-01
and a ``time_sk`` the second of the day, so that no table of dates is needed; prices are in cents,
so that sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa

from thalweg.errors import UsageError, explain
from thalweg.workloads.tpcxbb.drawing import Numbers, below, scatter

DAY = 86_400
#: The year of Q15, with its last day, which the streams fill when no rate is given.
BEGIN, DAYS = date(2001, 9, 2), 366
BEGIN_DAY = (BEGIN - date(1970, 1, 1)).days
CATEGORIES, PAGES = 10, 60
#: Types of web pages; a cart is "dynamic", a check-out is "order".
CART, ORDER = "dynamic", "order"
TYPES = (CART, ORDER, "review", "general", "welcome", "protected", "feedback", "ad")

SALES_SCHEMA = pa.schema(
    {
        "ss_sold_date_sk": pa.int32(),
        "ss_sold_time_sk": pa.int32(),
        "ss_item_sk": pa.int32(),
        "ss_store_sk": pa.int32(),
        "ss_ticket_number": pa.int64(),
        "ss_net_paid": pa.int64(),
    }
)
CLICKS_SCHEMA = pa.schema(
    {
        "wcs_click_date_sk": pa.int32(),
        "wcs_click_time_sk": pa.int32(),
        "wcs_user_sk": pa.int32(),
        "wcs_item_sk": pa.int32(),
        "wcs_web_page_sk": pa.int32(),
        "wcs_sales_sk": pa.int64(),
    }
)
ITEM_SCHEMA = pa.schema({"i_item_sk": pa.int32(), "i_category_id": pa.int32()})
PAGE_SCHEMA = pa.schema({"wp_web_page_sk": pa.int32(), "wp_type": pa.string()})


def grown(least: int, scale: float) -> int:
    """Give the size of what grows with the root of the scale, and is never below scale 1.

    >>> grown(11, 0.01), grown(11, 100)
    (11, 110)
    """
    return round(least * max(1.0, scale) ** 0.5)


@dataclass(frozen=True)
class Stream:
    """What the rows of a generated stream depend on."""

    #: 1 is about 90,000 tickets in 820,000 lines, or 6,700,000 clicks.
    scale: float = 1.0
    seed: int = 1
    #: Rows, where the scale shall not say so.
    rows: int | None = None
    #: Rows per second of event time; left out, the rows fill the year of Q15.
    rate: float | None = None
    #: Exponent of Zipf's law of items; 0 is even. The ten best items have 3.6 % with 0.6, as in
    #: the retail data that we looked at.
    skew: float = 0.6
    #: Seconds by which a row may come behind later ones; 0 keeps the order of event time.
    late: int = 0

    def __post_init__(self) -> None:
        _check("scale", self.scale, self.scale > 0, "above 0")
        _check("seed", self.seed, self.seed >= 0, "at least 0")
        _check("rows", self.rows, self.rows is None or self.rows >= 0, "at least 0")
        _check("rate", self.rate, self.rate is None or self.rate > 0, "above 0")
        _check("skew", self.skew, self.skew >= 0, "at least 0")
        _check("late", self.late, self.late >= 0, "at least 0")

    @property
    def items(self) -> int:
        """How many items there are; 10001, which the public queries ask for, is one of them."""
        return grown(18_000, self.scale)

    @property
    def stores(self) -> int:
        """How many stores there are."""
        return grown(11, self.scale)

    def total(self, at_scale_1: int) -> int:
        """Give the number of rows."""
        return round(at_scale_1 * self.scale) if self.rows is None else self.rows

    def pace(self, total: int) -> float:
        """Give the rows per second of event time."""
        return self.rate if self.rate is not None else max(1, total) / (DAYS * DAY)


def _check(name: str, value: float | None, good: bool, expected: str) -> None:
    if not good:
        raise UsageError(explain(f"setting {name!r} of tpcxbb", "", expected, repr(value)))


def categories(items: int, seed: int) -> Numbers:
    """Give the category, 1 to 10, of the items 1, 2, 3 ..."""
    return below(scatter(np.arange(1, items + 1), seed * 100 + 1), CATEGORIES) + 1


def item(scale: float = 1.0, seed: int = 1) -> pa.RecordBatch:
    """Make the side table of items, for streams of the same scale and seed.

    >>> item().num_rows, item().schema.names
    (18000, ['i_item_sk', 'i_category_id'])
    """
    count = Stream(scale, seed).items
    columns = [np.arange(1, count + 1, dtype=np.int32), categories(count, seed).astype(np.int32)]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=ITEM_SCHEMA)


def web_page() -> pa.RecordBatch:
    """Make the side table of web pages.

    >>> web_page()["wp_type"].to_pylist().count("dynamic")
    8
    """
    types = [TYPES[number % len(TYPES)] for number in range(PAGES)]
    numbers = np.arange(1, PAGES + 1, dtype=np.int32)
    return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(types)], schema=PAGE_SCHEMA)
