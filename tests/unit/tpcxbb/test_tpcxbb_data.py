"""The generated streams: the same rows always, any range of them, true to the facts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.contexts import TaskContext
from thalweg.errors import UsageError
from thalweg.testing import ManualClock
from thalweg.workloads import tpcxbb
from thalweg.workloads.tpcxbb.clicks import ClickRows
from thalweg.workloads.tpcxbb.drawing import Law, Pieces, below, scatter, shuffled
from thalweg.workloads.tpcxbb.rows import Rows
from thalweg.workloads.tpcxbb.sales import SalesRows, trends
from thalweg.workloads.tpcxbb.sources import CHUNK, Generated
from thalweg.workloads.tpcxbb.tables import BEGIN_DAY, DAY, DAYS, Stream, categories

KINDS = pytest.mark.parametrize("kind", [SalesRows, ClickRows])


def numbers(table: pa.Table, name: str) -> np.ndarray:
    return table[name].to_numpy()


def times(table: pa.Table | pa.RecordBatch, prefix: str) -> np.ndarray:
    days, seconds = f"{prefix}_date_sk", f"{prefix}_time_sk"
    return table[days].to_numpy().astype(np.int64) * DAY + table[seconds].to_numpy()


# --- chance ---------------------------------------------------------------------------------------


@given(st.integers(0, 9), st.integers(0, 1000), st.integers(0, 40))
def test_shuffling_leaves_every_row_in_its_block(size: int, total: int, salt: int) -> None:
    width = 1 << size
    found = shuffled(np.arange(total), width, total, salt)
    whole = total // width * width
    assert sorted(found.tolist()) == list(range(total))
    assert (found // width == np.arange(total) // width).all()
    assert (found[whole:] == np.arange(whole, total)).all()


@pytest.mark.parametrize("skew", [0.0, 0.6, 1.0])
def test_a_law_draws_values_as_often_as_zipf_says(skew: float) -> None:
    law = Law(1000, skew, seed=3)
    drawn = np.bincount(law.draw(scatter(np.arange(400_000), 1)), minlength=1001)
    assert drawn[0] == 0
    shares = np.arange(1, 1001) ** -skew
    expected = 400_000 * shares / shares.sum()
    assert np.sort(drawn[1:])[::-1][:5].mean() == pytest.approx(expected[:5].mean(), rel=0.15)
    assert np.sort(drawn[1:])[500:].sum() == pytest.approx(expected[:500].sum(), rel=0.05)


@given(st.integers(2, 70), st.integers(0, 30), st.data())
def test_pieces_are_whole_and_as_many_as_asked_for(
    length: int, seed: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, length))
    pieces = Pieces(length, count, seed)
    runs = np.repeat(np.arange(3), length)
    rows = np.tile(np.arange(length), 3)
    entries = pieces.entries(runs, rows, salt=1)
    for run in range(3):
        mine = entries[runs == run]
        piece, begin, left = pieces.piece(mine), pieces.begin(mine), pieces.left(mine)
        assert np.unique(piece).tolist() == list(range(count))
        assert (np.diff(piece) >= 0).all()
        for each in range(count):
            at = np.flatnonzero(piece == each)
            assert (begin[at] == at[0]).all()
            assert left[at].tolist() == list(range(len(at)))[::-1]


def test_below_reaches_every_number_evenly() -> None:
    counts = np.bincount(below(scatter(np.arange(100_000), 5), 10), minlength=10)
    assert counts.min() > 9_500


# --- any range ------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("late", [0, 300])
@settings(max_examples=30)
@given(data=st.data())
def test_a_range_is_made_without_what_is_before_it(
    kind: type[Rows], late: int, data: st.DataObject
) -> None:
    rows = kind(Stream(rows=5_000, rate=3.0, late=late, seed=data.draw(st.integers(0, 5))))
    first = data.draw(st.integers(0, 5_100))
    stop = data.draw(st.integers(0, 5_100))
    whole = rows.make(0, 5_000)
    assert whole.num_rows == rows.total
    assert rows.make(first, stop) == whole[first : max(first, stop)]


@KINDS
def test_another_seed_gives_other_rows_and_the_same_one_the_same(kind: type[Rows]) -> None:
    made = [kind(Stream(rows=1_000, seed=seed)).make(0, 1_000) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


@KINDS
@given(st.integers(0, 4000), st.sampled_from([0.01, 0.5, 7.0, 300.0]), st.integers(1, 30))
@settings(max_examples=40)
def test_no_row_is_later_than_its_bound(
    kind: type[Rows], late: int, rate: float, seed: int
) -> None:
    rows = kind(Stream(rows=4_000, rate=rate, late=late, seed=seed)).make(0, 4_000)
    prefix = "ss_sold" if kind is SalesRows else "wcs_click"
    at = times(rows, prefix)
    behind = np.maximum.accumulate(at) - at
    assert behind.max() <= late
    if late * rate > 1000:
        # No more than a quarter of the stream is mixed at once.
        assert behind.max() > min(late, 1000 / rate) / 8


@KINDS
def test_rows_out_of_order_are_the_same_rows(kind: type[Rows]) -> None:
    ordered, late = (kind(Stream(rows=9_000, rate=9.0, late=n)).make(0, 9_000) for n in (0, 200))
    names = [(name, "ascending") for name in ordered.schema.names]
    assert ordered != late
    assert ordered.sort_by(names) == late.sort_by(names)


# --- facts ----------------------------------------------------------------------------------------


def test_scale_1_has_the_tickets_lines_and_stores_of_the_facts() -> None:
    sales = tpcxbb.table(tpcxbb.store_sales())
    assert sales.num_rows == 820_000
    assert pc.count_distinct(sales["ss_ticket_number"]).as_py() == pytest.approx(90_000, rel=0.01)
    assert pc.count_distinct(sales["ss_store_sk"]).as_py() == 11
    # The year of Q15, from its first day to its last.
    days = np.unique(numbers(sales, "ss_sold_date_sk"))
    assert days.tolist() == list(range(BEGIN_DAY, BEGIN_DAY + DAYS))
    top = np.sort(np.bincount(numbers(sales, "ss_item_sk")))[::-1]
    assert top[:10].sum() / 820_000 == pytest.approx(0.036, rel=0.15)


def test_a_ticket_has_one_time_and_one_store() -> None:
    sales = tpcxbb.table(tpcxbb.store_sales(rows=20_000, rate=2.0))
    found = sales.group_by("ss_ticket_number").aggregate(
        [(name, "count_distinct") for name in sales.schema.names[:2]]
        + [("ss_store_sk", "count_distinct")]
    )
    for name in found.schema.names[1:]:
        assert pc.max(found[name]).as_py() == 1
    assert (np.diff(times(sales, "ss_sold")) >= 0).all()


def test_some_items_are_sold_together_more_often_than_by_chance() -> None:
    sales = tpcxbb.table(tpcxbb.store_sales(rows=100_000))
    items, tickets = numbers(sales, "ss_item_sk"), numbers(sales, "ss_ticket_number")
    same = tickets[1:] == tickets[:-1]
    pairs = Counter(zip(items[:-1][same].tolist(), items[1:][same].tolist(), strict=True))
    [((first, second), count)] = pairs.most_common(1)
    by_chance = same.sum() * (items == first).mean() * (items == second).mean()
    assert count > 10 * by_chance


def test_categories_rise_and_fall_as_they_should() -> None:
    sales = tpcxbb.table(tpcxbb.store_sales(rows=400_000))
    category = categories(18_000, 1)[numbers(sales, "ss_item_sk") - 1]
    paid = numbers(sales, "ss_net_paid")
    half = len(paid) // 2
    for each, trend in enumerate(trends(1), 1):
        halves = [
            paid[part][category[part] == each].sum() for part in (slice(half), slice(half, None))
        ]
        # Means of 1 + trend / 4 and 1 + 3 / 4 trend.
        assert halves[1] / halves[0] == pytest.approx(
            (1 + 0.75 * trend) / (1 + trend / 4), rel=0.06
        )


def test_clicks_have_the_gaps_and_pages_that_queries_need() -> None:
    clicks = tpcxbb.table(tpcxbb.web_clickstreams(rows=200_000))
    share = {name: clicks[name].null_count / 200_000 for name in clicks.schema.names}
    assert share["wcs_user_sk"] == pytest.approx(1 / 8, rel=0.1)
    assert share["wcs_item_sk"] == pytest.approx(1 / 8, rel=0.1)
    assert 0.95 < share["wcs_sales_sk"] < 0.99
    assert share["wcs_click_date_sk"] == share["wcs_web_page_sk"] == 0
    types = np.array(tpcxbb.web_page()["wp_type"].to_pylist())
    kinds = types[numbers(clicks, "wcs_web_page_sk") - 1]
    assert 0.03 < (kinds == "dynamic").mean() < 0.12
    assert 0.02 < (kinds == "order").mean() < 0.10
    assert set(kinds) == set(types)


@pytest.mark.parametrize("rate", [None, 1.0, 200.0])
def test_sessions_have_seven_clicks_about_a_minute_apart(rate: float | None) -> None:
    clicks = tpcxbb.table(tpcxbb.web_clickstreams(rows=400_000, rate=rate))
    known = clicks.filter(pc.is_valid(clicks["wcs_user_sk"]))
    at, users = times(known, "wcs_click"), numbers(known, "wcs_user_sk")
    order = np.lexsort((at, users))
    gaps = np.diff(at[order])
    same = users[order][1:] == users[order][:-1]
    within = gaps[same & (gaps <= 3600)]
    assert 30 < np.median(within) < 90
    begun = 1 + int((~same | (gaps > 3600)).sum())
    # A stream that is short in event time cuts many sessions off.
    if rate != 200.0:
        assert len(at) / begun == pytest.approx(7.1, rel=0.15)


def test_users_are_numbers_from_1_at_any_rate() -> None:
    clicks = ClickRows(Stream(rows=10_000, rate=5e6))
    users = clicks.make(0, 10_000)["wcs_user_sk"]
    assert 0 < pc.min(users).as_py() < pc.max(users).as_py() <= clicks.users == 2**31 - 1


def test_a_sale_ends_a_session_with_a_check_out_before_it() -> None:
    clicks = tpcxbb.table(tpcxbb.web_clickstreams(rows=50_000))
    types = np.array(tpcxbb.web_page()["wp_type"].to_pylist())
    sold = clicks.filter(pc.is_valid(clicks["wcs_sales_sk"]))
    assert set(types[numbers(sold, "wcs_web_page_sk") - 1]) == {"order"}
    assert sold["wcs_item_sk"].null_count == 0
    assert pc.count_distinct(sold["wcs_sales_sk"]).as_py() == sold.num_rows
    unsold = clicks.filter(pc.is_null(clicks["wcs_sales_sk"]))
    orders = (types[numbers(unsold, "wcs_web_page_sk") - 1] == "order").sum()
    assert orders == pytest.approx(sold.num_rows, rel=0.02)


def test_side_tables_grow_with_the_scale() -> None:
    assert tpcxbb.item(scale=4).num_rows == 36_000
    assert tpcxbb.item(scale=0.1).num_rows == 18_000
    counts = pc.value_counts(tpcxbb.item()["i_category_id"]).field("counts").to_numpy()
    assert len(counts) == 10
    assert counts.min() > 1_600
    assert tpcxbb.web_page().num_rows == 60


@pytest.mark.parametrize(
    "wrong", [{"scale": 0}, {"seed": -1}, {"rows": -1}, {"rate": 0.0}, {"skew": -1}, {"late": -1}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        tpcxbb.store_sales(**wrong)


# --- as a source and as files ---------------------------------------------------------------------


class Asked:
    """A task of a source that is asked by hand."""

    def __init__(self, source: Generated, task: int = 0, degree: int = 1) -> None:
        self.clock, self.finished = ManualClock(), False
        self.body = source.__deepcopy__({})
        self.body.context = TaskContext("t", "c", task, degree, self.clock, random=None)
        self.body.finish = self._finish
        self.body.prepare(self.body.context)

    def _finish(self) -> None:
        self.finished = True

    def rows(self, limit: int) -> list[pa.RecordBatch]:
        found = []
        while not self.finished:
            batch = self.body.next_block(limit)
            if batch is None:
                break
            assert 0 < batch.num_rows <= limit
            found.append(batch)
        return found


SOURCE = tpcxbb.store_sales(rows=3 * CHUNK + 77)


@settings(max_examples=20)
@given(st.integers(1, 4), st.integers(2_000, 40_000))
def test_tasks_share_the_rows(degree: int, limit: int) -> None:
    parts = [batch for task in range(degree) for batch in Asked(SOURCE, task, degree).rows(limit)]
    lines = pa.Table.from_batches(parts, SOURCE.rows.schema)
    order = [
        ("ss_ticket_number", "ascending"),
        ("ss_item_sk", "ascending"),
        ("ss_net_paid", "ascending"),
    ]
    assert lines.sort_by(order) == tpcxbb.table(SOURCE).sort_by(order)


@settings(max_examples=20)
@given(st.integers(0, 2 * CHUNK), st.integers(0, 1))
def test_a_task_goes_on_behind_the_rows_it_gave(rows: int, task: int) -> None:
    whole = pa.Table.from_batches(Asked(SOURCE, task, 2).rows(9_999), SOURCE.rows.schema)
    resumed = Asked(SOURCE, task, 2)
    resumed.body.resume(rows)
    rest = pa.Table.from_batches(resumed.rows(9_999), SOURCE.rows.schema)
    assert rest.combine_chunks() == whole[rows:].combine_chunks()


def test_a_paced_source_gives_rows_when_they_are_due() -> None:
    asked = [Asked(SOURCE.paced(100_000), task, 2) for task in range(2)]
    for each in asked:
        assert each.rows(CHUNK) == []
        each.clock.advance(0.1)
        assert each.body.backlog() == (10_000 if each is asked[0] else 0)
    assert [sum(b.num_rows for b in each.rows(CHUNK)) for each in asked] == [10_000, 0]
    assert asked[0].body.wait_hint() == pytest.approx(1e-5)
    assert asked[1].body.wait_hint() == pytest.approx(0.06385)
    asked[0].body.resume(20_000)
    assert asked[0].body.next_block(10) is None
    asked[0].clock.advance(1.0)
    assert asked[0].body.next_block(10) == SOURCE.rows.make(CHUNK + 20_000, CHUNK + 20_010)
    assert tpcxbb.store_sales().paced(5).rows.total == 820_000
    assert Asked(SOURCE).body.backlog() is None
    with pytest.raises(UsageError, match="above 0"):
        SOURCE.paced(0)


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_flow_counts_all_rows(on: str) -> None:
    flow = tw.Flow("sales")
    flow.source("sales", SOURCE, degree=2).key_by("ss_store_sk").count("lines")
    assert sum(flow.run(on=on).table("lines").values()) == SOURCE.rows.total


def test_tables_are_written_as_files(tmp_path: Path) -> None:
    sales, clicks = tpcxbb.store_sales(rows=20_000), tpcxbb.web_clickstreams(rows=30_000)
    paths = tpcxbb.write_tables(tmp_path / "new", sales, clicks)
    assert [path.stem for path in paths] == ["store_sales", "web_clickstreams", "item", "web_page"]
    assert pq.read_table(paths[0]) == tpcxbb.table(sales)
    assert pq.read_table(paths[1]) == tpcxbb.table(clicks)
    assert pq.read_table(paths[2]).num_rows == 18_000
    with pytest.raises(UsageError, match="same scale and seed"):
        tpcxbb.write_tables(tmp_path, sales, tpcxbb.web_clickstreams(seed=2))
