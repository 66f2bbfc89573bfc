"""Three ways to the same answers: SQL, the kernels, and plain Python, which are independent."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.workloads import tpcxbb
from thalweg.workloads.tpcxbb import answers
from thalweg.workloads.tpcxbb.queries import Q1, Q2, Q3, Q4, Q15
from thalweg.workloads.tpcxbb.tables import (
    BEGIN_DAY,
    CLICKS_SCHEMA,
    ITEM_SCHEMA,
    PAGE_SCHEMA,
    SALES_SCHEMA,
)
from tpcxbb import by_kernels, plainly
from tpcxbb.plainly import Click, Line

HOUR, DAY = 3600, 86_400


def batch(rows: dict[int, Any], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(list(rows), pa.int32()), pa.array(rows.values(), schema.field(1).type)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


#: Item 6 is of no category, and items from 7 on are not in the table.
CATEGORY = {1: 1, 2: 2, 3: 3, 4: 2, 5: 9}
ITEM = batch({**CATEGORY, 6: None}, ITEM_SCHEMA)
TYPES = {1: "dynamic", 2: "order", 3: "review"}
PAGE = batch(TYPES, PAGE_SCHEMA)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


# --- each query, asked three ways -----------------------------------------------------------------


def ask_q1(lines: list[Line], query: Q1) -> list[tuple[int, ...]]:
    table = plainly.as_table(lines, SALES_SCHEMA)
    plain = plainly.q1(lines, CATEGORY, query)
    assert rows_of(answers.q1(table, ITEM, query)) == plain
    assert by_kernels.q1(table, ITEM, query) == plain
    return plain


def ask_q2(clicks: list[Click], query: Q2) -> list[tuple[int, ...]]:
    table = plainly.as_table(clicks, CLICKS_SCHEMA)
    plain = plainly.q2(clicks, query)
    assert rows_of(answers.q2(table, query)) == plain
    assert by_kernels.q2(table, query) == plain
    return plain


def ask_q3(clicks: list[Click], query: Q3) -> list[tuple[int, ...]]:
    table = plainly.as_table(clicks, CLICKS_SCHEMA)
    plain = plainly.q3(clicks, CATEGORY, query)
    assert rows_of(answers.q3(table, ITEM, query)) == plain
    assert by_kernels.q3(table, ITEM, query) == plain
    return plain


def ask_q4(clicks: list[Click], query: Q4) -> tuple[int, int, float | None]:
    table = plainly.as_table(clicks, CLICKS_SCHEMA)
    plain = plainly.q4(clicks, TYPES, query)
    assert rows_of(answers.q4(table, PAGE, query)) == [plain]
    assert by_kernels.q4(table, PAGE, query) == plain
    return plain


def ask_q15(lines: list[Line], query: Q15) -> list[tuple[int, float]]:
    table = plainly.as_table(lines, SALES_SCHEMA)
    plain = plainly.q15(lines, CATEGORY, query)
    for found in (rows_of(answers.q15(table, ITEM, query)), by_kernels.q15(table, ITEM, query)):
        assert [category for category, _ in found] == [category for category, _ in plain]
        assert [s for _, s in found] == pytest.approx([s for _, s in plain])
    return plain


# --- by hand --------------------------------------------------------------------------------------


def sold(ticket: int | None, *items: int | None, at: int = 0, store: int = 10) -> list[Line]:
    return [Line(*divmod(at, DAY), item, store, ticket, 100) for item in items]


def test_q1_counts_a_pair_once_per_basket() -> None:
    lines = sold(1, 2, 1, 2, 3) + sold(2, 1, 2) + sold(None, 1, 2) + sold(3, None, 1)
    assert ask_q1(lines, Q1()) == [(0, 1, 2, 2), (0, 1, 3, 1), (0, 2, 3, 1)]


def test_q1_looks_only_at_its_stores_and_categories() -> None:
    lines = sold(1, 1, 2, store=20) + sold(2, 1, 2, store=11) + sold(3, 1, 5, 6, 7, 3)
    assert ask_q1(lines, Q1()) == [(0, 1, 2, 1), (0, 1, 3, 1)]
    # All ten pairs of five items, and (1, 2), which is in two baskets now.
    everything = ask_q1(lines, Q1(categories=None, stores=None))
    assert (len(everything), everything[0]) == (11, (0, 1, 2, 2))


def test_q1_begins_a_new_hour_at_its_first_second() -> None:
    lines = sold(1, 1, 2, at=HOUR - 1) + sold(2, 1, 2, at=HOUR) + sold(1, 3, at=HOUR)
    assert ask_q1(lines, Q1()) == [(0, 1, 2, 1), (HOUR, 1, 2, 1)]


def test_q1_puts_the_smaller_items_first_among_equals_and_ends_between_them() -> None:
    lines = sold(1, 3, 2, 1) + sold(2, 2, 3)
    assert ask_q1(lines, Q1(top=2)) == [(0, 2, 3, 2), (0, 1, 2, 1)]
    assert ask_q1(lines, Q1(least=2)) == [(0, 2, 3, 2)]


def clicked(
    user: int | None, *seen: tuple[int, int | None], sale: int | None = None
) -> list[Click]:
    """Clicks that show items, as (time, item)."""
    return [Click(*divmod(time, DAY), user, item, 3, sale) for time, item in seen]


def test_q2_goes_on_with_a_session_for_an_hour_and_not_a_second_longer() -> None:
    assert ask_q2(clicked(1, (0, 5), (HOUR, 4)), Q2()) == [(4, 5, 1)]
    assert ask_q2(clicked(1, (0, 5), (HOUR + 1, 4)), Q2()) == []
    # A session may last longer than an hour as a whole.
    assert ask_q2(clicked(1, (HOUR, 2), (2 * HOUR, 3), (0, 1)), Q2(top=9))[1] == (1, 3, 1)


def test_q2_does_not_see_clicks_without_an_item_or_a_user() -> None:
    # The click between them shows nothing, so that it does not keep the session alive.
    assert ask_q2(clicked(1, (0, 5), (HOUR, None), (HOUR + 1, 4)), Q2()) == []
    assert ask_q2(clicked(None, (0, 5), (1, 4)), Q2()) == []


def test_q2_counts_a_pair_once_per_session_and_can_ask_for_one_item() -> None:
    clicks = clicked(1, (0, 1), (1, 2), (2, 1), (3, 2)) + clicked(2, (0, 2), (0, 1), (9, 3))
    assert ask_q2(clicks, Q2()) == [(1, 2, 2), (1, 3, 1), (2, 3, 1)]
    assert ask_q2(clicks, Q2(item=3)) == [(1, 3, 1), (2, 3, 1)]


TEN_DAYS = 10 * DAY


def test_q3_takes_the_last_five_views_of_the_categories_also_twice_the_same() -> None:
    views = [(1, 2), (2, 3), (3, 3), (4, 5), (5, 4), (6, 4), (7, 4)]
    clicks = clicked(1, *views) + clicked(1, (8, 5), sale=1)
    # 5 is of category 9 and takes no place; 2 is the sixth last.
    assert ask_q3(clicks, Q3()) == [(5, 4, 3), (5, 3, 2)]


def test_q3_looks_back_ten_days_and_not_a_second_further() -> None:
    clicks = clicked(1, (0, 2), (1, 3)) + clicked(1, (TEN_DAYS + 1, 1), sale=1)
    assert ask_q3(clicks, Q3()) == [(1, 3, 1)]


def test_q3_counts_a_view_in_the_same_second_and_the_larger_item_as_later() -> None:
    clicks = clicked(1, (5, 4), (5, 3), (5, 2), (6, 2)) + clicked(1, (5, 1), sale=1)
    assert ask_q3(clicks, Q3(last=2)) == [(1, 3, 1), (1, 4, 1)]


def test_q3_lets_two_purchases_share_views_but_not_two_users() -> None:
    clicks = clicked(1, (0, 2)) + clicked(1, (1, 4), (2, 1), sale=1) + clicked(2, (3, 1), sale=2)
    assert ask_q3(clicks, Q3()) == [(1, 2, 1), (4, 2, 1)]
    assert ask_q3(clicks, Q3(bought=(4,))) == [(4, 2, 1)]


def paged(
    user: int | None, *pages: int | None, at: int = 0, sale: int | None = None
) -> list[Click]:
    return [Click(0, at + number, user, None, page, sale) for number, page in enumerate(pages)]


CART, CHECK_OUT, OTHER = 1, 2, 3


def test_q4_counts_all_pages_of_sessions_with_a_cart_and_no_check_out() -> None:
    clicks = paged(1, OTHER, CART, OTHER, OTHER) + paged(2, CART, CHECK_OUT) + paged(3, OTHER)
    assert ask_q4(clicks, Q4()) == (1, 4, 4.0)
    # A check-out before the cart is one too.
    assert ask_q4(paged(1, CHECK_OUT, CART), Q4()) == (0, 0, None)


def test_q4_does_not_see_sales_and_unknown_users_and_pages() -> None:
    clicks = paged(1, CART, CART) + paged(1, CHECK_OUT, at=9, sale=7) + paged(None, CART)
    clicks += paged(1, None, 44, at=20)
    assert ask_q4(clicks, Q4()) == (1, 2, 2.0)


def test_q4_cuts_sessions_like_q2() -> None:
    clicks = paged(1, CART) + paged(1, CHECK_OUT, at=HOUR + 1)
    assert ask_q4(clicks, Q4()) == (1, 1, 1.0)
    assert ask_q4(clicks, Q4(timeout=HOUR + 1)) == (0, 0, None)


def paid(day: int, item: int, *amounts: int | None, store: int = 10) -> list[Line]:
    return [Line(BEGIN_DAY + day, 0, item, store, 1, amount) for amount in amounts]


def test_q15_fits_a_line_to_the_sums_of_days() -> None:
    # Category 1 falls by 2 per day, with a day on which nothing was sold; 2 is flat; 3 rises.
    lines = paid(0, 1, 4, 6) + paid(1, 1, 8) + paid(3, 1, 4)
    lines += paid(0, 2, 5) + paid(1, 2, 9) + paid(2, 4, 5) + paid(0, 3, 1) + paid(1, 3, 2)
    assert ask_q15(lines, Q15()) == [(1, -2.0), (2, 0.0)]


def test_q15_needs_two_days_in_the_year_and_the_store() -> None:
    lines = paid(0, 1, 9) + paid(366, 1, 1) + paid(-1, 1, 99) + paid(1, 1, 1, store=11)
    assert ask_q15(lines, Q15()) == []
    # The last day of the year is part of it.
    assert ask_q15([*lines, *paid(365, 1, 9)], Q15()) == [(1, 0.0)]


def test_q15_decides_exactly_what_is_flat() -> None:
    # As floating-point numbers these sums would be rounded.
    huge = 2**52 + 1
    lines = paid(0, 1, huge) + paid(1, 1, huge - 1) + paid(2, 1, huge)
    assert ask_q15(lines, Q15()) == [(1, 0.0)]
    assert ask_q15([*lines, *paid(2, 1, 1)], Q15()) == []


# --- for all rows ---------------------------------------------------------------------------------

#: Times at which it matters on which side of a border they are.
TIMES = st.sampled_from(
    [
        base + shift
        for base in (0, HOUR, 2 * HOUR, TEN_DAYS)
        for shift in (-1, 0, 1, 2)
        if base + shift >= 0
    ]
)
ITEMS = st.one_of(st.none(), st.integers(1, 7))


@st.composite
def some_lines(draw: st.DrawFn) -> list[Line]:
    fields = st.tuples(
        TIMES, ITEMS, st.sampled_from([10, 20, 11, None]), st.sampled_from([1, 2, 3, None])
    )
    amounts = st.one_of(st.none(), st.integers(0, 5))
    rows = draw(st.lists(st.tuples(fields, amounts), max_size=25))
    return [Line(*divmod(time, DAY), *rest, amount) for (time, *rest), amount in rows]


@st.composite
def some_clicks(draw: st.DrawFn) -> list[Click]:
    users = st.sampled_from([1, 1, 2, None])
    pages = st.sampled_from([1, 2, 3, 3, 9, None])
    sales = st.sampled_from([None, None, None, 1])
    rows = draw(st.lists(st.tuples(TIMES, users, ITEMS, pages, sales), max_size=30))
    return [Click(*divmod(time, DAY), *rest) for time, *rest in rows]


SOME = st.sampled_from([None, (2, 3), (1, 2, 3)])


@given(some_lines(), st.integers(1, 6), st.integers(1, 2), SOME, st.sampled_from([None, (10, 20)]))
def test_all_three_agree_on_q1(
    lines: list[Line], top: int, least: int, categories: Any, stores: Any
) -> None:
    ask_q1(lines, Q1(top, HOUR, least, categories, stores))


@given(some_clicks(), st.integers(1, 6), st.sampled_from([None, 2]))
def test_all_three_agree_on_q2(clicks: list[Click], top: int, item: int | None) -> None:
    ask_q2(clicks, Q2(top, HOUR, item))


@given(some_clicks(), st.integers(1, 3), st.integers(1, 5), SOME, st.sampled_from([None, (1, 5)]))
def test_all_three_agree_on_q3(
    clicks: list[Click], top: int, last: int, categories: Any, bought: Any
) -> None:
    ask_q3(clicks, Q3(top, last, TEN_DAYS, categories, bought))


@given(some_clicks())
def test_all_three_agree_on_q4(clicks: list[Click]) -> None:
    ask_q4(clicks, Q4())


@given(some_lines(), st.sampled_from([None, 10]))
def test_all_three_agree_on_q15(lines: list[Line], store: int | None) -> None:
    ask_q15(lines, Q15(store, date(1970, 1, 1), date(1970, 1, 11)))


# --- on generated streams -------------------------------------------------------------------------


@pytest.mark.parametrize("late", [0, 900])
def test_sql_and_kernels_agree_on_generated_sales(late: int) -> None:
    sales, item = tpcxbb.table(tpcxbb.store_sales(rows=60_000, rate=5.0, late=late)), tpcxbb.item()
    query = Q1(stores=None)
    found = rows_of(answers.q1(sales, item, query))
    assert found == by_kernels.q1(sales, item, query)
    assert len({hour for hour, *_ in found}) == 4
    slow = tpcxbb.table(tpcxbb.store_sales(rows=60_000, late=late * 1000))
    falling = rows_of(answers.q15(slow, item, Q15(store=None)))
    assert falling == by_kernels.q15(slow, item, Q15(store=None))
    assert 3 <= len(falling) <= 7


@pytest.mark.parametrize("late", [0, 900])
def test_sql_and_kernels_agree_on_generated_clicks(late: int) -> None:
    clicks = tpcxbb.table(tpcxbb.web_clickstreams(rows=60_000, rate=1.0, late=late))
    item, page = tpcxbb.item(), tpcxbb.web_page()
    assert rows_of(answers.q2(clicks)) == by_kernels.q2(clicks, Q2())
    assert len(rows_of(answers.q2(clicks))) == 30
    assert rows_of(answers.q3(clicks, item)) == by_kernels.q3(clicks, item, Q3())
    [found] = rows_of(answers.q4(clicks, page))
    assert found == pytest.approx(by_kernels.q4(clicks, page, Q4()))
    assert found[0] > 1000


def test_the_order_in_which_rows_come_does_not_matter() -> None:
    in_order, late = (
        tpcxbb.table(tpcxbb.web_clickstreams(rows=30_000, rate=1.0, late=late)) for late in (0, 900)
    )
    assert in_order != late
    assert answers.q2(in_order) == answers.q2(late)
    assert answers.q3(in_order, tpcxbb.item()) == answers.q3(late, tpcxbb.item())
    assert answers.q4(in_order, tpcxbb.web_page()) == answers.q4(late, tpcxbb.web_page())
