"""Times of a query: clocks that go on and back, several zones, and units finer than most."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.sql.compiling import compiled
from thalweg.sql.truncating import UNITS, cut

#: Clocks that change by an hour at night, at midnight, by half an hour; and one that does not.
ZONES = ["Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Asia/Tokyo"]
_PARTS = {"second": 19, "minute": 16, "hour": 13, "day": 10, "month": 7, "year": 4}


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc, arg-type]  # year, month, day


@given(
    st.datetimes(dt.datetime(2020, 1, 1), dt.datetime(2026, 1, 1), timezones=st.just(dt.UTC)),
    st.sampled_from(ZONES),
    st.sampled_from(sorted(_PARTS)),
)
def test_a_time_is_cut_off_where_its_clock_shows_the_beginning(
    moment: dt.datetime, zone: str, unit: str
) -> None:
    (begun,) = cut(pa.array([moment], pa.timestamp("us", zone)), unit).to_pylist()
    shown = moment.astimezone(ZoneInfo(zone)).isoformat()
    assert begun <= moment
    assert begun.isoformat()[: _PARTS[unit]] == shown[: _PARTS[unit]]
    just_before = (begun.astimezone(dt.UTC) - dt.timedelta(microseconds=1)).astimezone(
        ZoneInfo(zone)
    )
    if unit in ("day", "month", "year"):
        assert just_before.isoformat()[: _PARTS[unit]] != shown[: _PARTS[unit]]


@pytest.mark.parametrize(
    ("zone", "moment", "unit", "expected"),
    [
        ("Europe/Berlin", utc(2024, 10, 27, 0, 30), "hour", "2024-10-27T02:00:00+02:00"),
        ("Europe/Berlin", utc(2024, 10, 27, 1, 30), "hour", "2024-10-27T02:00:00+01:00"),
        ("Europe/Berlin", utc(2024, 10, 27, 1, 30), "minute", "2024-10-27T02:30:00+01:00"),
        ("America/Havana", utc(2024, 3, 10, 12), "day", "2024-03-10T01:00:00-04:00"),
        ("America/Havana", utc(2024, 11, 3, 5, 12), "day", "2024-11-03T00:00:00-04:00"),
        ("Australia/Lord_Howe", utc(2024, 10, 5, 15, 45), "hour", "2024-10-06T02:30:00+11:00"),
    ],
)
def test_hours_that_come_twice_and_days_without_a_midnight_have_a_beginning(
    zone: str, moment: dt.datetime, unit: str, expected: str
) -> None:
    (begun,) = cut(pa.array([moment], pa.timestamp("us", zone)), unit).to_pylist()
    assert begun.isoformat() == expected


@pytest.mark.parametrize("unit", UNITS)
def test_no_time_stays_none(unit: str) -> None:
    for type_ in (pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin"), pa.date32()):
        assert cut(pa.nulls(2, type_), unit).to_pylist() == [None, None]


@pytest.fixture
def rows_of(tmp_path: Path) -> Callable[[str, Mapping[str, pa.Array]], list[tuple[Any, ...]]]:
    """Give what finds the rows of a query on the columns of a file."""

    def found(query: str, columns: Mapping[str, pa.Array]) -> list[tuple[Any, ...]]:
        pq.write_table(pa.table(columns), path := tmp_path / "rows.parquet")
        flow, rows = tw.Flow("query"), list[tuple[Any, ...]]()
        made = compiled(query, {"t": flow.source("t", tw.files(path))})
        made.sink("out", tw.call(lambda row: rows.append(tuple(row))), order="total")
        flow.run(on="inline")
        return rows

    return found


SECONDS = [1_000_000_000, 1_500_000_000, 3_000_000_000]
FINE = {"n": pa.array([1, 2, 3]), "at": pa.array(SECONDS, pa.timestamp("ns"))}
ZONED = FINE | {"at": pa.array(SECONDS, pa.timestamp("ns", "Europe/Berlin"))}


def test_times_with_nanoseconds_are_groups_when_they_are_cut_off(rows_of: Any) -> None:
    query = "SELECT date_trunc('second', at) AS second, count(*) AS n FROM t GROUP BY second"
    found = rows_of(query, FINE)
    assert [(at.second, n) for at, n in found] == [(1, 2), (3, 1)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("IF(n = 1, at, TIMESTAMPTZ '1970-01-01 00:00:02Z') = at", [1]),
        ("CASE WHEN n = 1 THEN TIMESTAMPTZ '1970-01-01 00:00:02Z' ELSE at END = at", [2, 3]),
        ("coalesce(at, TIMESTAMPTZ '1970-01-01 00:00:02Z') = at", [1, 2, 3]),
        ("at < TIMESTAMPTZ '9999-12-31 00:00:00Z'", [1, 2, 3]),
        ("at > TIMESTAMPTZ '0001-01-01 00:00:00Z'", [1, 2, 3]),
        ("at = TIMESTAMPTZ '9999-12-31 00:00:00Z'", []),
    ],
)
def test_zones_and_units_go_together_wherever_times_meet(
    condition: str, expected: list[int], rows_of: Any
) -> None:
    query = f"SELECT n FROM t WHERE {condition}"  # noqa: S608 (a test of SQL)
    assert [n for (n,) in rows_of(query, ZONED)] == expected


def test_an_expression_on_columns_takes_times_of_several_zones() -> None:
    batch = pa.record_batch(ZONED)
    later = tw.col("at") > dt.datetime(1970, 1, 1, 0, 0, 1, 200, tzinfo=dt.UTC)
    assert later.evaluate(batch).to_pylist() == [False, True, True]
    with pytest.raises(pa.ArrowInvalid, match="out of bounds"):
        (tw.col("at") - dt.datetime(9999, 1, 1, tzinfo=dt.UTC)).evaluate(batch)


def test_two_columns_of_times_are_never_compared_by_less_than_they_are() -> None:
    fine = pa.array([1], pa.timestamp("ns"))
    far = pa.array([253402214400000000], pa.timestamp("us"))
    with pytest.raises(pa.ArrowInvalid, match="out of bounds"):
        (tw.col("a") < tw.col("b")).evaluate(pa.record_batch({"a": fine, "b": far}))
