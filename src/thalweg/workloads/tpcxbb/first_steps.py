"""The steps without state that each query begins with: filters, look-ups, and the fields it needs.

Each takes the stream of a source and gives that which the keyed step of the query reads; that is
keyed by :mod:`.parts` where their number is given.

>>> import thalweg as tw
>>> from thalweg.workloads import tpcxbb
>>> flow = tw.Flow("q1")
>>> sales = flow.source("sales", tpcxbb.store_sales(scale=0.01))
>>> q1_lines(sales, tpcxbb.item()).fields
Fields(ticket: int64, time: int64, item: int32)
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.expressions import Expression, col, lit
from thalweg.flow import Stream
from thalweg.workloads.tpcxbb.parts import PART, parted
from thalweg.workloads.tpcxbb.queries import Q1, Q3, Q15
from thalweg.workloads.tpcxbb.tables import CART, DAY, ORDER

#: New names of fields, with the old ones.
_Names = Mapping[str, str | tuple[str, str]]

_SALE = ("ss_sold_date_sk", "ss_sold_time_sk")
_CLICK = ("wcs_click_date_sk", "wcs_click_time_sk")
_WIDE = {"ticket": pa.int64(), "time": pa.int64(), "paid": pa.int64()}
_FLAGS = {"sold": pa.bool_(), "cart": pa.bool_(), "order": pa.bool_()}
_IDS = {name: pa.int32() for name in ("item", "user", "category", "day")}
_TYPES = {**_WIDE, **_FLAGS, **_IDS}


def q1_lines(
    sales: Stream, item: pa.RecordBatch, query: Q1 | None = None, parts: int = 0
) -> Stream:
    """Give ticket, time and item of the lines that can be in baskets."""
    query = query or Q1()
    known = _there("ss_ticket_number", "ss_item_sk", *_SALE)
    if query.stores is not None:
        known &= col("ss_store_sk").isin(query.stores)
    lines = sales.filter(known, name="q1-known")
    if query.categories is not None:
        wanted = _of(item, query.categories).select(["i_item_sk"])
        lines = lines.join(wanted, {"ss_item_sk": "i_item_sk"}, name="q1-items")
    names: _Names = {"ticket": "ss_ticket_number", "time": _SALE, "item": "ss_item_sk"}
    return _renamed(lines, "q1-lines", names, parts)


def q2_views(clicks: Stream, parts: int = 0) -> Stream:
    """Give user, time and item of the clicks that show an item to a known user."""
    known = _there("wcs_user_sk", "wcs_item_sk", *_CLICK)
    views = clicks.filter(known, name="q2-known")
    names: _Names = {"user": "wcs_user_sk", "time": _CLICK, "item": "wcs_item_sk"}
    return _renamed(views, "q2-views", names, parts)


def q3_clicks(
    clicks: Stream, item: pa.RecordBatch, query: Q3 | None = None, parts: int = 0
) -> Stream:
    """Give user, time, item and whether it is a sale, of the sales and the views that count."""
    query = query or Q3()
    known = _there("wcs_user_sk", "wcs_item_sk", *_CLICK)
    seen = clicks.filter(known, name="q3-known")
    sale = ~col("wcs_sales_sk").is_null()
    view = ~sale
    if query.bought is not None:
        sale &= col("wcs_item_sk").isin(query.bought)
    if query.categories is not None:
        wanted = _of(item, query.categories)
        seen = seen.join(wanted, {"wcs_item_sk": "i_item_sk"}, how="left", name="q3-items")
        view &= ~col("i_category_id").is_null()
    seen = seen.filter(sale | view, name="q3-counts")
    names = {"item": "wcs_item_sk", "sold": "wcs_sales_sk"}
    return _renamed(seen, "q3-clicks", {"user": "wcs_user_sk", "time": _CLICK, **names}, parts)


def q4_pages(clicks: Stream, web_page: pa.RecordBatch, parts: int = 0) -> Stream:
    """Give user, time, and whether it is a cart or a check-out, of the clicks without a sale."""
    known = _there("wcs_user_sk", "wcs_web_page_sk", *_CLICK)
    pages = pa.record_batch(
        {
            "page": web_page["wp_web_page_sk"],
            "cart": pc.equal(web_page["wp_type"], CART),
            "order": pc.equal(web_page["wp_type"], ORDER),
        }
    )
    seen = clicks.filter(known & col("wcs_sales_sk").is_null(), name="q4-known")
    seen = seen.join(pages, {"wcs_web_page_sk": "page"}, name="q4-types")
    names = {"cart": "cart", "order": "order"}
    return _renamed(seen, "q4-pages", {"user": "wcs_user_sk", "time": _CLICK, **names}, parts)


def q15_sales(sales: Stream, item: pa.RecordBatch, query: Q15 | None = None) -> Stream:
    """Give category, day and what was paid, of the lines of the store in the year."""
    query = query or Q15()
    first, last = query.days
    day = col("ss_sold_date_sk")
    wanted = (day >= first) & (day <= last) & _there("ss_net_paid")
    if query.store is not None:
        wanted &= col("ss_store_sk") == query.store
    categories = item.filter(item["i_category_id"].is_valid())
    lines = sales.filter(wanted, name="q15-wanted")
    lines = lines.join(categories, {"ss_item_sk": "i_item_sk"}, name="q15-items")
    names = {"category": "i_category_id", "day": "ss_sold_date_sk", "paid": "ss_net_paid"}
    return _renamed(lines, "q15-sales", names)


def _renamed(stream: Stream, name: str, names: _Names, parts: int = 0) -> Stream:
    """Keep some fields under other names; a day and a second of it become one time.

    Of ``sold`` only matters whether there is a value. With parts, that of the first field is added.
    """

    def rename(batch: pa.RecordBatch) -> pa.RecordBatch:
        made = []
        for new, old in names.items():
            if isinstance(old, tuple):
                days = pc.multiply(batch[old[0]].cast(pa.int64()), DAY)
                made.append(pc.add(days, batch[old[1]]))
            else:
                made.append(pc.is_valid(batch[old]) if new == "sold" else batch[old])
        found = pa.RecordBatch.from_arrays(made, schema=schema)
        return add_part(found) if parts else found

    schema = pa.schema({new: _TYPES[new] for new in names})
    add_part = parted(schema.names[0], max(1, parts))
    fields = schema.append(pa.field(PART, pa.int32())) if parts else schema
    return stream.map_block(rename, fields=fields, name=name)


def _there(*names: str) -> Expression:
    """Test whether all of these have values."""
    found = lit(True)
    for name in names:
        found &= ~col(name).is_null()
    return found


def _of(item: pa.RecordBatch, categories: tuple[int, ...]) -> pa.RecordBatch:
    wanted = pa.array(categories, item.schema.field("i_category_id").type)
    return item.filter(pc.is_in(item["i_category_id"], wanted))
