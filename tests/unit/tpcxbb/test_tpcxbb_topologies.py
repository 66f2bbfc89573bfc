"""The queries as topologies: their answers are those of DuckDB, however rows come."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.errors import StateError, UsageError
from thalweg.workloads import tpcxbb
from thalweg.workloads.tpcxbb import counting, parts
from thalweg.workloads.tpcxbb.queries import Q1, Q2, Q3, Q4, Q15
from thalweg.workloads.tpcxbb.tables import CLICKS_SCHEMA, SALES_SCHEMA
from thalweg.workloads.tpcxbb.topologies import QUERIES, Tables, topology
from tpcxbb import plainly
from tpcxbb.plainly import Click, Line
from tpcxbb.running import at_once, rows_of, streamed
from tpcxbb.test_tpcxbb_answers import DAY, HOUR, ITEM, PAGE, SOME, some_clicks, some_lines

BY_HAND = Tables(ITEM, PAGE)
GENERATED = Tables(tpcxbb.item(), tpcxbb.web_page())

# --- for all rows ---------------------------------------------------------------------------------


def in_time(rows: list[Any]) -> list[Any]:
    """Sort rows by time, so that event time goes on while they come; some stay out of order."""
    return sorted(rows, key=lambda row: ((row[0] * DAY + row[1]) // 3 * 3, row[1] % 3 == 1))


def agree(name: str, rows: list[Any], tables: Tables, query: Any, size: int) -> None:
    """Stream rows as they are, and by time, in blocks of so many; all answers are DuckDB's."""
    schema = SALES_SCHEMA if name in ("q1", "q15") else CLICKS_SCHEMA
    expected = at_once(name, plainly.as_table(rows, schema), tables, query)
    with patch.object(parts.Amortised, "least", 1):
        for given_rows in (rows, in_time(rows)):
            table = plainly.as_table(given_rows, schema)
            assert streamed(name, table, tables, query, rows=size, degree=2) == expected


SIZES = st.integers(1, 8)


@settings(max_examples=30)
@given(some_lines(), st.integers(1, 6), st.integers(1, 2), SOME, SIZES)
def test_q1_streams_to_the_same_answer(
    lines: list[Line], top: int, least: int, categories: Any, size: int
) -> None:
    agree("q1", lines, BY_HAND, Q1(top, HOUR, least, categories, None), size)


@settings(max_examples=30)
@given(some_clicks(), st.integers(1, 6), st.sampled_from([None, 2]), SIZES)
def test_q2_streams_to_the_same_answer(
    clicks: list[Click], top: int, item: int | None, size: int
) -> None:
    agree("q2", clicks, BY_HAND, Q2(top, HOUR, item), size)


@settings(max_examples=30)
@given(some_clicks(), st.integers(1, 3), st.integers(1, 5), SOME, SIZES)
def test_q3_streams_to_the_same_answer(
    clicks: list[Click], top: int, last: int, categories: Any, size: int
) -> None:
    agree("q3", clicks, BY_HAND, Q3(top, last, 10 * DAY, categories), size)


@settings(max_examples=30)
@given(some_clicks(), SIZES)
def test_q4_streams_to_the_same_answer(clicks: list[Click], size: int) -> None:
    agree("q4", clicks, BY_HAND, Q4(), size)


@settings(max_examples=30)
@given(some_lines(), st.sampled_from([None, 10]), SIZES)
def test_q15_streams_to_the_same_answer(lines: list[Line], store: int | None, size: int) -> None:
    agree("q15", lines, BY_HAND, Q15(store, date(1970, 1, 1), date(1970, 1, 11)), size)


# --- on generated streams -------------------------------------------------------------------------

ASKED: dict[str, Any] = {"q1": Q1(stores=None), "q15": Q15(store=None)}
RUNTIMES = {
    "inline": tw.Inline(),
    "one worker": tw.Local(workers=1),
    "two workers": tw.Local(workers=2, block_rows=500),
    "partitioned": tw.Local(workers=2, queue="partitioned"),
    "locked": tw.Local(workers=2, locked_reordering=True),
}


def made(name: str, late: int) -> pa.Table:
    if name in ("q1", "q15"):
        rate = 5.0 if name == "q1" else None
        return tpcxbb.table(tpcxbb.store_sales(rows=60_000, rate=rate, late=late))
    return tpcxbb.table(tpcxbb.web_clickstreams(rows=60_000, rate=1.0, late=late))


@pytest.mark.parametrize("late", [0, 900])
@pytest.mark.parametrize("name", QUERIES)
def test_every_runtime_gives_the_answer_of_duckdb(name: str, late: int) -> None:
    table, query = made(name, late), ASKED.get(name)
    expected = at_once(name, table, GENERATED, query)
    assert expected
    with patch.object(parts.Amortised, "least", 500):
        for title, on in RUNTIMES.items():
            assert streamed(name, table, GENERATED, query, on) == expected, title


def test_q1_tells_an_hour_when_it_is_over() -> None:
    told: list[tuple[int, int]] = []
    seen = 0

    class Given(tpcxbb.Generated):
        def next_block(self, limit: int) -> pa.RecordBatch | None:
            nonlocal seen
            found = super().next_block(limit)
            seen = seen if found is None else found["time"][-1].as_py()
            return found

    class Heard(tw.BlockBolt):
        def process_block(self, batch: pa.RecordBatch) -> None:
            told.extend((hour, seen) for hour in batch["hour"].unique().to_pylist())

    source = Given(tpcxbb.store_sales(rows=60_000, rate=5.0).rows).timed()
    flow = tw.Flow("q1", order="total")
    build, _ = QUERIES["q1"]
    stream = flow.source("rows", source, time="time")
    build(stream, GENERATED, ASKED["q1"]).sink("heard", Heard())
    flow.run(on=tw.Inline(block_rows=1000))
    assert [hour for hour, _ in told] == sorted({hour for hour, _ in told})
    assert len(told) == 4
    assert all(hour + HOUR <= at < hour + HOUR + 300 for hour, at in told[:-1])


def test_the_state_of_sessions_stays_as_small_as_what_is_open() -> None:
    source = tpcxbb.web_clickstreams(rows=60_000, rate=1.0).timed()
    flow, _ = topology("q4", source, GENERATED)
    most = 0
    work = parts.Collecting._work

    def watched(self: Any, part: Any, kept: parts.Kept, now: int) -> None:
        nonlocal most
        most = max(most, sum(batch.num_rows for batch in kept))
        work(self, part, kept, now)

    with (
        patch.object(parts.Amortised, "least", 500),
        patch.object(parts.Collecting, "_work", watched),
    ):
        flow.run(on=tw.Inline(block_rows=500))
    assert 500 < most < 60_000 / 4 / 3


def test_an_unknown_query_is_refused() -> None:
    with pytest.raises(UsageError, match="one of"):
        topology("q9", tpcxbb.store_sales(rows=1).timed(), GENERATED)


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 32])
def test_each_task_has_a_part(count: int) -> None:
    names = parts.part_names(count)
    assert len(set(names.tolist())) == count
    table = parts.RoutingTable.even(count)
    assert set(table.places_of(parts.hash_columns([pa.array(names)])).tolist()) == set(range(count))


def test_rows_are_split_by_part_and_keep_their_order() -> None:
    batch = pa.record_batch({"n": [1, 2, 3, 4], "part": pa.array([7, 5, 7, 5], pa.int32())})
    found = {part: rows.to_pydict() for part, rows in parts.by_part(batch)}
    assert found == {5: {"n": [2, 4]}, 7: {"n": [1, 3]}}


def test_what_is_kept_comes_back_the_same() -> None:
    codec = parts.BatchesCodec()
    batch = pa.record_batch({"user": pa.array([1, 2], pa.int32()), "sold": [True, False]})
    assert codec.decode(codec.encode((batch, batch.slice(1)))) == (batch, batch.slice(1))
    with pytest.raises(StateError, match="stored record batches"):
        codec.decode(b"nonsense")


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1), max_size=9))
def test_runs_of_counts_say_how_often_each_pair_came(blocks: list[list[tuple[int, int]]]) -> None:
    runs: parts.Kept = ()
    for block in blocks:
        codes, counts = np.unique([(a << 32) | b for a, b in block], return_counts=True)
        runs = counting.with_run(runs, parts.as_batch([codes, counts], counting._RUN))
        sizes = [run.num_rows for run in runs]
        assert all(a >= 2 * b for a, b in pairwise(sizes))
    rows = [(a << 32) | b for block in blocks for a, b in block]
    expected = sorted((code, rows.count(code)) for code in set(rows))
    assert (rows_of(pa.Table.from_batches([counting.merged(runs)])) if runs else []) == expected
