"""Times that are none, keys that are written in two ways: windows hold what they should."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.anyvalues import ANYTHING
from thalweg.errors import TopologyError
from thalweg.eventtime import EventTime, newest
from thalweg.schemas import arrow_type

NAN, INF = math.nan, math.inf


def at(seconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)


def counts(rows: list[Any], fields: Any, window: Any, block_rows: int, **options: Any) -> list[Any]:
    flow, found = tw.Flow("odd"), []
    source = flow.source("s", tw.items(rows), fields=fields, time=options.pop("time", "at"))
    made = source.key_by("u").window(window).aggregate("w", n=tw.agg.count(), **options)
    made.sink("out", tw.call(lambda t: found.append((t.u, t.start, t.n))))
    flow.run(on=tw.Inline(block_rows=block_rows))
    return found


# --- times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [NAN, INF, -INF, 1e300, None])
@pytest.mark.parametrize("block_rows", [1, 10])
@pytest.mark.parametrize("window", [tw.tumbling(10), tw.session(10), tw.landmark(10)])
def test_a_time_that_is_none_is_refused_and_harms_no_other(
    odd: Any, block_rows: int, window: Any
) -> None:
    rows = [(1.0, "a"), (odd, "a"), (25.0, "a")]
    fields = {"at": float, "u": str}
    found = counts(rows, fields, window, block_rows, on_error="skip")
    assert found == counts([rows[0], rows[2]], fields, window, block_rows)
    with pytest.raises(tw.ComponentError, match="a time in field 'at'"):
        counts(rows, fields, window, block_rows)


def test_whole_numbers_of_another_unit_are_refused_with_the_likely_cause() -> None:
    now = 1_790_000_000
    for unit, value in (("s", now * 10**3), ("s", now * 10**9), ("ms", now * 10**9)):
        rows, fields = [(value, "a")], {"at": int, "u": str}
        with pytest.raises(tw.ComponentError, match="another unit"):
            counts(rows, fields, tw.tumbling(10), 1, time=tw.event_time("at", unit=unit))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([5, 2**62]),
        pa.array([5, 2**64 - 5], pa.uint64()),
        pa.array([5, NAN]),
        pa.array([5, None]),
        pa.array([5, 2**55], pa.timestamp("s")),
    ],
    ids=lambda column: str(column.type),
)
def test_only_times_move_time_on(column: Any) -> None:
    assert newest(column) == 5_000_000
    times, known = EventTime("at").read(column)
    assert times.tolist() == [5_000_000, 0]
    assert known.tolist() == [True, False]


def test_days_are_times_however_far_away() -> None:
    times, known = EventTime("at").read(pa.array([1, 2**31 - 1], pa.int32()).cast(pa.date32()))
    assert times.tolist() == [86_400_000_000, 0]
    assert known.tolist() == [True, False]


# --- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_rows", [1, 100])
def test_zero_is_one_key_whatever_its_sign(block_rows: int) -> None:
    rows = [(1, -0.0), (1, 0.0), (1, 0.0), (1, 5.0)]
    fields = {"at": int, "u": float}
    assert counts(rows, fields, tw.tumbling(10), block_rows) == [(0.0, at(0), 3), (5.0, at(0), 1)]
    assert counts(rows, fields, tw.session(5), block_rows) == [(0.0, at(1), 3), (5.0, at(1), 1)]
    assert counts(rows, fields, tw.rows(3), block_rows) == [(0.0, 0, 3)]


@pytest.mark.parametrize("block_rows", [1, 100])
def test_all_that_is_no_number_is_one_key(block_rows: int) -> None:
    other = float(pa.array([-NAN])[0].as_py())
    rows = [(1, NAN), (1, other), (1, -NAN), (1, 1.0)]
    fields = {"at": int, "u": float}
    found = counts(rows, fields, tw.tumbling(10), block_rows)
    assert sorted(n for _, _, n in found) == [1, 3]


@pytest.mark.parametrize("block_rows", [1, 100])
def test_keys_of_any_kind_are_one_where_they_are_equal(block_rows: int) -> None:
    rows = [(1, 1), (1, 1.0), (1, True), (1, "1"), (1, 0.0), (1, -0.0), (1, False)]
    found = counts(rows, {"at": int, "u": ANYTHING}, tw.tumbling(10), block_rows)
    assert [(u, n) for u, _, n in found] == [(1, 3), ("1", 1), (0, 3)]
    by_rows = counts(rows, {"at": int, "u": ANYTHING}, tw.rows(3), block_rows)
    assert [(u, n) for u, _, n in by_rows] == [(1, 3), (0, 3)]


@pytest.mark.parametrize("type_", [str, bool, pa.duration("us"), pa.decimal128(4, 2)])
def test_what_is_no_time_is_refused_when_the_flow_is_built(type_: Any) -> None:
    flow = tw.Flow("odd")
    stream = flow.source("s", tw.items([]), fields={"at": type_, "n": int}, time="at")
    what = f"expected a timestamp, a date or a number, got {arrow_type(type_)}"
    with pytest.raises(TopologyError) as refused:
        stream.window(tw.tumbling(10)).aggregate("w", n=tw.agg.count())
    assert str(refused.value) == f"field 'at' in time of 'w': {what}"
    stream.sink("out", tw.stdout())
    with pytest.raises(TopologyError) as refused:
        flow.build()
    assert str(refused.value) == f"field 'at' in time of source 's': {what}"
