"""Times that are none, keys that are written in two ways: windows hold what they should."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
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


FOR_EVER = dt.datetime(9999, 12, 31, 23, 59, 59)
OF_OLD = dt.datetime(1, 1, 1)


@pytest.mark.parametrize(
    ("odd", "window"),
    [
        (FOR_EVER, tw.tumbling("1 h")),
        (FOR_EVER, tw.sliding("1 h", "1 s")),
        (FOR_EVER, tw.session("1 h")),
        (FOR_EVER, tw.landmark("1 h")),
        (OF_OLD, tw.tumbling("7 days")),
        (OF_OLD, tw.sliding("1 h", "1 min")),
    ],
    ids=str,
)
@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("block_rows", [1, 10])
def test_a_time_whose_windows_have_no_dates_is_refused_and_harms_no_other(
    odd: dt.datetime, window: Any, numbers: bool, block_rows: int
) -> None:
    times = [at(1), odd] if odd == FOR_EVER else [odd, at(1)]
    rows = [((time - at(0)).total_seconds() if numbers else time, "a") for time in times]
    fields = {"at": float if numbers else dt.datetime, "u": str}
    others = [row for row, time in zip(rows, times, strict=True) if time != odd]
    found = counts(rows, fields, window, block_rows, on_error="skip")
    assert found == counts(others, fields, window, 1)
    with pytest.raises(tw.ComponentError, match="begin and end in the years 1 to 9999"):
        counts(rows, fields, window, block_rows)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("block_rows", [1, 2, 10])
@pytest.mark.parametrize(
    "window", [tw.tumbling("1 h"), tw.sliding("2 h", "1 h"), tw.session("1 h"), tw.landmark("1 h")]
)
def test_a_time_that_says_never_makes_no_other_late(
    window: Any, block_rows: int, place: int
) -> None:
    rows, fields = [(at(n), "a") for n in (0, 1, 2)], {"at": dt.datetime, "u": str}
    odd = [*rows[:place], (FOR_EVER, "a"), *rows[place:]]
    found = counts(odd, fields, window, block_rows, on_error="skip")
    assert found == counts(rows, fields, window, 10)


@pytest.mark.parametrize(
    ("window", "edges"),
    [
        (tw.tumbling("1 h"), (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 22, 59, 59))),
        (tw.session("1 h"), (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 22, 59, 59))),
        (tw.sliding("2 h", "1 h"), (dt.datetime(1, 1, 1, 1), dt.datetime(9999, 12, 31, 21, 59))),
    ],
    ids=str,
)
def test_windows_of_the_first_and_the_last_dates_are_told(
    window: Any, edges: tuple[dt.datetime, dt.datetime]
) -> None:
    rows, fields = [(time, "a") for time in edges], {"at": dt.datetime, "u": str}
    found = counts(rows, fields, window, 1)
    assert [n for _, _, n in found] == [1] * len(found)
    assert len(found) >= len(edges)


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


def test_the_last_year_moves_no_time_on() -> None:
    end = dt.datetime(9999, 1, 1)
    assert newest(pa.array([end])) is None
    assert newest(pa.array([end, end - dt.timedelta(microseconds=1)])) is not None


def test_days_are_times_however_far_away() -> None:
    times, known = EventTime("at").read(pa.array([1, 2**31 - 1], pa.int32()).cast(pa.date32()))
    assert times.tolist() == [86_400_000_000, 0]
    assert known.tolist() == [True, False]


# --- moments that Python has no value for ---------------------------------------------------------

FAR = "11103-08-29 17:22:31.711744"


class Seen(tw.Bolt):
    outputs = ("at",)

    def process(self, t: Any) -> None:
        self.emit(t.at)


def after(where: str, tmp_path: Path, **options: Any) -> list[Any]:
    """Give what comes of a moment behind the year 9999."""
    path = tmp_path / "far.parquet"
    pq.write_table(pa.table({"at": pa.array([2**58]).cast(pa.timestamp("us"))}), path)
    flow, found = tw.Flow("far"), []
    source = flow.source("s", tw.files(str(path)))
    if where == "bolt":
        source.through("there", Seen(), **options).sink("out", tw.collect(found))
    elif where == "map":
        made = source.map(lambda at: at, fields={"at": dt.datetime}, name="there", **options)
        made.sink("out", tw.collect(found))
    elif where == "window":
        count = source.window(tw.tumbling(10), time="at")
        count.aggregate("there", n=tw.agg.count(), **options).sink("out", tw.collect(found))
    else:
        source.sink("there", tw.collect(found), **options)
    flow.run(on="inline")
    return found


@pytest.mark.parametrize("where", ["bolt", "map", "window", "sink"])
def test_a_moment_that_no_date_names_is_refused_where_it_is_read(
    where: str, tmp_path: Path
) -> None:
    with pytest.raises(tw.ComponentError) as raised:
        after(where, tmp_path)
    assert (raised.value.component, raised.value.tuple_text) == ("there", f"at={FAR!r}")
    assert f"of the years 1 to 9999, got {FAR}\n" in str(raised.value)
    letters = tmp_path / "letters.jsonl"
    assert after(where, tmp_path, on_error="skip") == []
    assert after(where, tmp_path, on_error=tw.dead_letter(letters)) == []
    (letter,) = [msgspec.json.decode(line) for line in letters.read_bytes().splitlines()]
    assert letter["tuple"] == {"at": FAR}


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
