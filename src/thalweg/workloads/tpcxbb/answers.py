"""The answers to the queries, by DuckDB: what streaming answers are checked against.

Nothing here is shared with the streaming side. Tables are Arrow tables with the fields of
:mod:`.tables`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa

from thalweg.errors import UsageError, explain
from thalweg.workloads.tpcxbb.queries import Q1, Q2, Q3, Q4, Q15

_Q1 = """
WITH lines AS (
  SELECT DISTINCT
    (86400::BIGINT * ss_sold_date_sk + ss_sold_time_sk) // $window * $window AS hour,
    ss_ticket_number AS ticket, ss_item_sk AS item
  FROM sales LEFT JOIN item ON i_item_sk = ss_item_sk
  WHERE ($stores IS NULL OR list_contains($stores, ss_store_sk))
    AND ($categories IS NULL OR list_contains($categories, i_category_id))
    AND hour IS NOT NULL AND ticket IS NOT NULL AND item IS NOT NULL
)
SELECT a.hour, a.item AS item_a, b.item AS item_b, count(*) AS sold
FROM lines a JOIN lines b ON a.hour = b.hour AND a.ticket = b.ticket AND a.item < b.item
GROUP BY a.hour, a.item, b.item HAVING sold >= $least
QUALIFY row_number() OVER (PARTITION BY a.hour ORDER BY sold DESC, item_a, item_b) <= $top
ORDER BY a.hour, sold DESC, item_a, item_b
"""
_Q2 = """
WITH seen AS (
  SELECT wcs_user_sk AS u, 86400::BIGINT * wcs_click_date_sk + wcs_click_time_sk AS t,
    wcs_item_sk AS item
  FROM clicks WHERE u IS NOT NULL AND t IS NOT NULL AND item IS NOT NULL
), marked AS (
  SELECT *,
    CASE WHEN t - lag(t) OVER (PARTITION BY u ORDER BY t) <= $timeout THEN 0 ELSE 1 END AS new
  FROM seen
), numbered AS (
  SELECT u, item, sum(new) OVER (PARTITION BY u ORDER BY t ROWS UNBOUNDED PRECEDING) AS s
  FROM marked
), views AS (SELECT DISTINCT u, s, item FROM numbered)
SELECT a.item AS item_a, b.item AS item_b, count(*) AS viewed
FROM views a JOIN views b ON a.u = b.u AND a.s = b.s AND a.item < b.item
WHERE $item IS NULL OR a.item = $item OR b.item = $item
GROUP BY ALL ORDER BY viewed DESC, item_a, item_b LIMIT $top
"""
_Q3 = """
WITH seen AS (
  SELECT wcs_user_sk AS u, 86400::BIGINT * wcs_click_date_sk + wcs_click_time_sk AS t,
    wcs_item_sk AS item, wcs_sales_sk IS NOT NULL AS sold, i_category_id AS category
  FROM clicks LEFT JOIN item ON i_item_sk = wcs_item_sk
  WHERE u IS NOT NULL AND t IS NOT NULL AND wcs_item_sk IS NOT NULL
), sales AS (
  SELECT *, row_number() OVER () AS number FROM seen
  WHERE sold AND ($bought IS NULL OR list_contains($bought, item))
), views AS (
  SELECT * FROM seen
  WHERE NOT sold AND ($categories IS NULL OR list_contains($categories, category))
), before AS (
  SELECT sales.item AS bought, views.item AS viewed
  FROM sales JOIN views ON sales.u = views.u AND views.t BETWEEN sales.t - $within AND sales.t
  QUALIFY row_number() OVER (PARTITION BY number ORDER BY views.t DESC, views.item DESC) <= $last
)
SELECT bought, viewed, count(*) AS views FROM before GROUP BY bought, viewed
QUALIFY row_number() OVER (PARTITION BY bought ORDER BY views DESC, viewed) <= $top
ORDER BY bought, views DESC, viewed
"""
_Q4 = """
WITH seen AS (
  SELECT wcs_user_sk AS u, 86400::BIGINT * wcs_click_date_sk + wcs_click_time_sk AS t,
    wp_type AS type
  FROM clicks JOIN web_page ON wp_web_page_sk = wcs_web_page_sk
  WHERE u IS NOT NULL AND t IS NOT NULL AND wcs_sales_sk IS NULL
), marked AS (
  SELECT *,
    CASE WHEN t - lag(t) OVER (PARTITION BY u ORDER BY t) <= $timeout THEN 0 ELSE 1 END AS new
  FROM seen
), numbered AS (
  SELECT u, type, sum(new) OVER (PARTITION BY u ORDER BY t ROWS UNBOUNDED PRECEDING) AS s
  FROM marked
), abandoned AS (
  SELECT count(*) AS pages FROM numbered GROUP BY u, s
  HAVING bool_or(type = 'dynamic') AND NOT bool_or(type = 'order')
)
SELECT count(*) AS sessions, coalesce(sum(pages), 0)::BIGINT AS pages, avg(pages) AS mean
FROM abandoned
"""
_Q15 = """
WITH points AS (
  SELECT i_category_id AS category, (ss_sold_date_sk - $first)::HUGEINT AS x,
    sum(ss_net_paid)::HUGEINT AS y
  FROM sales JOIN item ON i_item_sk = ss_item_sk
  WHERE ($store IS NULL OR ss_store_sk = $store) AND ss_sold_date_sk BETWEEN $first AND $last
    AND ss_net_paid IS NOT NULL AND category IS NOT NULL
  GROUP BY ALL
), sums AS (
  SELECT category, count(*) * sum(x * y)::HUGEINT - sum(x)::HUGEINT * sum(y)::HUGEINT AS above,
    count(*) * sum(x * x)::HUGEINT - sum(x)::HUGEINT * sum(x)::HUGEINT AS below
  FROM points GROUP BY category
)
SELECT category, above::DOUBLE / below::DOUBLE AS slope FROM sums
WHERE below > 0 AND above <= 0 ORDER BY category
"""


def q1(sales: pa.Table, item: pa.Table, query: Q1 | None = None) -> pa.Table:
    """Answer Q1."""
    query = query or Q1()
    given = {
        "window": query.window,
        "stores": _list(query.stores),
        "categories": _list(query.categories),
        "least": query.least,
        "top": query.top,
    }
    return _ask(_Q1, given, sales=sales, item=item)


def q2(clicks: pa.Table, query: Q2 | None = None) -> pa.Table:
    """Answer Q2."""
    query = query or Q2()
    given = {"timeout": query.timeout, "item": query.item, "top": query.top}
    return _ask(_Q2, given, clicks=clicks)


def q3(clicks: pa.Table, item: pa.Table, query: Q3 | None = None) -> pa.Table:
    """Answer Q3."""
    query = query or Q3()
    given = {
        "bought": _list(query.bought),
        "categories": _list(query.categories),
        "within": query.within,
        "last": query.last,
        "top": query.top,
    }
    return _ask(_Q3, given, clicks=clicks, item=item)


def q4(clicks: pa.Table, web_page: pa.Table, query: Q4 | None = None) -> pa.Table:
    """Answer Q4."""
    query = query or Q4()
    return _ask(_Q4, {"timeout": query.timeout}, clicks=clicks, web_page=web_page)


def q15(sales: pa.Table, item: pa.Table, query: Q15 | None = None) -> pa.Table:
    """Answer Q15."""
    query = query or Q15()
    first, last = query.days
    given = {"store": query.store, "first": first, "last": last}
    return _ask(_Q15, given, sales=sales, item=item)


def _list(values: tuple[int, ...] | None) -> list[int] | None:
    return None if values is None else list(values)


def _ask(text: str, given: dict[str, Any], **tables: pa.Table | pa.RecordBatch) -> pa.Table:
    with _database().cursor() as connection:
        for name, table in tables.items():
            whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
            connection.register(name, whole)
        return connection.sql(text, params=given).to_arrow_table()


@cache
def _database() -> Any:
    """Give a database in memory; opening one takes longer than a small answer."""
    try:
        import duckdb  # noqa: PLC0415 (only whoever checks answers needs it)
    except ImportError as error:
        hint = "pip install duckdb"
        raise UsageError(explain("answers", expected="DuckDB", got="none", hint=hint)) from error
    return duckdb.connect()
