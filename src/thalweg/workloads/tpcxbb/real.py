"""Real sales and clicks, brought into the form of the streams.

They are the UCI data sets "online retail" and "e-shop clothing 2008", read from a folder that has
them; they are not part of Thalweg. What they lack has a stand-in, so that the queries meet real
keys, which is named below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from thalweg.workloads.tpcxbb.tables import (
    CART,
    CLICKS_SCHEMA,
    DAY,
    ITEM_SCHEMA,
    ORDER,
    PAGE_SCHEMA,
    SALES_SCHEMA,
)

RETAIL = "online_retail/online_retail.csv.gz"
CLICKS = "eshop_clickstream/eshop_clothing_2008.csv.gz"
#: Types of the clicks' pages 1 to 5; those of cart and check-out are stand-ins.
_TYPES = ("general", "general", "review", CART, ORDER)


@dataclass(frozen=True)
class Sales:
    """Lines of invoices, and items; items and stores are numbers that stand for names."""

    sales: pa.Table
    item: pa.Table
    #: Name of item n at n - 1.
    names: list[str]


@dataclass(frozen=True)
class Clicks:
    """Clicks, items, and pages."""

    clicks: pa.Table
    item: pa.Table
    web_page: pa.Table


def retail(folder: Path) -> Sales:
    """Read the retail data: invoices are tickets, countries are stores.

    Cancelled invoices are left out. The category of an item, which the data does not have, is
    the third figure of its number; items with other numbers have none.
    """
    texts = csv.ConvertOptions(
        column_types={"InvoiceNo": pa.string(), "StockCode": pa.string()},
        timestamp_parsers=["%Y-%m-%d %H:%M:%S"],
    )
    read = csv.read_csv(folder / RETAIL, convert_options=texts)
    read = read.filter(pc.invert(pc.starts_with(read["InvoiceNo"], "C")))
    tickets, _ = _numbered(read["InvoiceNo"])
    items, names = _numbered(read["StockCode"])
    stores, _ = _numbered(read["Country"])
    seconds = read["InvoiceDate"].cast(pa.timestamp("s")).cast(pa.int64()).to_numpy()
    paid = np.rint(read["Quantity"].to_numpy() * read["UnitPrice"].to_numpy() * 100)
    columns = [seconds // DAY, seconds % DAY, items, stores, tickets, paid.astype(np.int64)]
    figures = [int(name[2]) + 1 if name[2:3].isdecimal() else None for name in names]
    return Sales(_table(columns, SALES_SCHEMA), _side(figures, ITEM_SCHEMA), names)


def eshop(folder: Path) -> Clicks:
    """Read the clicks: a session's number is the user, a model is an item with its category.

    The data has days and the order of clicks, but no times, carts or sales. Stand-ins: the n-th
    click of a session is at second n of its day; pages 4 and 5 are cart and check-out; the last
    click of every fourth session is a sale.
    """
    read = csv.read_csv(folder / CLICKS, parse_options=csv.ParseOptions(delimiter=";"))
    items, names = _numbered(read["page 2 (clothing model)"])
    users, order = read["session ID"].to_numpy(), read["order"].to_numpy()
    dates = [read[name].to_numpy() for name in ("year", "month", "day")]
    months = ((dates[0] - 1970) * 12 + dates[1] - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + dates[2] - 1
    last = np.zeros(users.max() + 1, dtype=np.int64)
    np.maximum.at(last, users, order)
    sold = (order == last[users]) & (users % 4 == 0)
    sales = pa.array(users, mask=~sold)
    columns = [days, order, users, items, read["page"].to_numpy(), sales]
    categories = np.zeros(len(names), dtype=np.int64)
    categories[items - 1] = read["page 1 (main category)"].to_numpy()
    item = _side(categories.tolist(), ITEM_SCHEMA)
    return Clicks(_table(columns, CLICKS_SCHEMA), item, _side(_TYPES, PAGE_SCHEMA))


def _numbered(
    texts: pa.ChunkedArray,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], list[str]]:
    """Give a number for each text, from 1, in the order of the alphabet; and the texts."""
    names = sorted(pc.unique(texts).to_pylist())
    return pc.index_in(texts, pa.array(names)).to_numpy().astype(np.int64) + 1, names


def _table(columns: list[object], schema: pa.Schema) -> pa.Table:
    arrays = [pa.array(c).cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _side(values: Sequence[int | str | None], schema: pa.Schema) -> pa.Table:
    """Make a side table of what belongs to the numbers 1, 2, 3 ..."""
    return _table([list(range(1, len(values) + 1)), values], schema)
