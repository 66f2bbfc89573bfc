"""SQL and kernels agree on real sales and clicks too, and with what is known of these."""

from __future__ import annotations

import csv
import gzip
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import thalweg as tw
from thalweg.operators.side_tables import as_batch
from thalweg.workloads.tpcxbb import answers, real
from thalweg.workloads.tpcxbb.queries import Q1, Q2, Q3, Q4, Q15
from thalweg.workloads.tpcxbb.tables import web_page
from thalweg.workloads.tpcxbb.topologies import Tables
from tpcxbb import by_kernels
from tpcxbb.running import at_once, streamed

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
#: One window for all that there is.
EVER = 10**10


def rows_of(table: pa.Table) -> list[tuple[int, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture(scope="module")
def retail() -> real.Sales:
    if not (DATA / real.RETAIL).exists():
        pytest.skip("the data set 'online retail' is not beside this repository")
    return real.retail(DATA)


@pytest.fixture(scope="module")
def eshop() -> real.Clicks:
    if not (DATA / real.CLICKS).exists():
        pytest.skip("the data set 'e-shop clothing 2008' is not beside this repository")
    return real.eshop(DATA)


def test_the_retail_data_is_what_it_is_said_to_be(retail: real.Sales) -> None:
    assert retail.sales.num_rows == 541_909 - 9_288
    assert pc.count_distinct(retail.sales["ss_ticket_number"]).as_py() == 25_900 - 3_836
    assert pc.count_distinct(retail.sales["ss_store_sk"]).as_py() == 38


def test_the_pair_sold_most_often_is_found_by_reading_the_file_line_by_line(
    retail: real.Sales,
) -> None:
    query = Q1(1, EVER, 1, None, None)
    [(_, a, b, sold)] = rows_of(answers.q1(retail.sales, retail.item, query))
    pair = {retail.names[a - 1], retail.names[b - 1]}
    assert pair == {"22386", "85099B"}
    with gzip.open(DATA / real.RETAIL, "rt", encoding="utf-8") as file:
        lines = {(row["InvoiceNo"], row["StockCode"]) for row in csv.DictReader(file)}
    first, second = ({ticket for ticket, code in lines if code == each} for each in sorted(pair))
    assert sold == sum(not ticket.startswith("C") for ticket in first & second) > 0


def test_q1_on_retail_data(retail: real.Sales) -> None:
    query = Q1(stores=None)
    found = rows_of(answers.q1(retail.sales, retail.item, query))
    assert found == by_kernels.q1(retail.sales, as_batch(retail.item), query)
    assert len(found) > 10_000


def test_q15_on_retail_data(retail: real.Sales) -> None:
    query = Q15(None, date(2010, 12, 1), date(2011, 12, 9))
    found = rows_of(answers.q15(retail.sales, retail.item, query))
    by_hand = by_kernels.q15(retail.sales, as_batch(retail.item), query)
    assert [category for category, _ in found] == [category for category, _ in by_hand]
    assert [slope for _, slope in found] == pytest.approx([slope for _, slope in by_hand])


def test_the_clicks_are_what_they_are_said_to_be(eshop: real.Clicks) -> None:
    assert eshop.clicks.num_rows == 165_474
    assert pc.count_distinct(eshop.clicks["wcs_user_sk"]).as_py() == 24_026
    assert eshop.item.num_rows == 217
    assert set(eshop.item["i_category_id"].to_pylist()) == {1, 2, 3, 4}


def test_q2_on_real_clicks(eshop: real.Clicks) -> None:
    found = rows_of(answers.q2(eshop.clicks))
    assert found == by_kernels.q2(eshop.clicks, Q2())
    assert found[0][2] > found[-1][2] > 500


def test_q3_on_real_clicks(eshop: real.Clicks) -> None:
    found = rows_of(answers.q3(eshop.clicks, eshop.item))
    assert found == by_kernels.q3(eshop.clicks, as_batch(eshop.item), Q3())
    assert len(found) > 1000


def test_q4_on_real_clicks(eshop: real.Clicks) -> None:
    [found] = rows_of(answers.q4(eshop.clicks, eshop.web_page))
    assert found == pytest.approx(by_kernels.q4(eshop.clicks, as_batch(eshop.web_page), Q4()))
    assert found[0] > 1000


# --- the queries as topologies ----------------------------------------------------------------


def agree(name: str, table: pa.Table, tables: Tables, query: Any = None) -> None:
    expected = at_once(name, table, tables, query)
    assert expected
    assert streamed(name, table, tables, query, tw.Local(workers=2)) == expected


def test_sales_stream_to_the_same_answers(retail: real.Sales) -> None:
    tables = Tables(as_batch(retail.item), web_page())
    agree("q1", retail.sales, tables, Q1(stores=None))
    agree("q15", retail.sales, tables, Q15(None, date(2010, 12, 1), date(2011, 1, 31)))


@pytest.mark.parametrize("name", ["q2", "q3", "q4"])
def test_clicks_stream_to_the_same_answers(eshop: real.Clicks, name: str) -> None:
    agree(name, eshop.clicks, Tables(as_batch(eshop.item), as_batch(eshop.web_page)))
