"""Rates over time: as many items are due by a time as the integral of the rate says."""

from __future__ import annotations

import gzip
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.connectors.profiles import Profile

rates = st.integers(0, 1000).map(lambda n: n / 8)
durations = st.integers(1, 200).map(lambda n: n / 16)
levels = st.lists(st.tuples(rates, durations), min_size=1, max_size=8).filter(
    lambda several: sum(rate * duration for rate, duration in several) >= 1
)


def area(segments: list[tuple[float, float, float]], until: float) -> Fraction:
    """Integrate a rate exactly: (duration, first, last) one after the other."""
    total, left = Fraction(0), Fraction(until)
    for duration, first, last in segments:
        inside = min(left, Fraction(duration))
        slope = (Fraction(last) - Fraction(first)) / Fraction(duration)
        total += inside * (Fraction(first) + slope * inside / 2)
        left -= inside
    return total


def agrees(count: int, exact: Fraction) -> bool:
    """Compare a count with an area; where the area is all but whole, rounding may decide."""
    return count == math.floor(exact) or (
        abs(exact - round(exact)) < 1e-6 and count == round(exact)
    )


@settings(deadline=None)
@given(levels, st.floats(0, 120))
def test_steps_are_integrated(several: list[tuple[float, float]], until: float) -> None:
    profile = tw.steps(several)
    exact = area([(duration, rate, rate) for rate, duration in several], until)
    assert agrees(profile.count_by(until), exact)


@settings(deadline=None)
@given(rates, rates, durations, st.floats(0, 20))
def test_ramps_are_integrated(start: float, stop: float, duration: float, until: float) -> None:
    if (start + stop) * duration < 2:
        return
    profile = tw.ramp(start, stop, duration)
    assert agrees(profile.count_by(until), area([(duration, start, stop)], until))


@settings(deadline=None)
@given(st.integers(1, 8000).map(lambda n: n / 8), st.floats(0, 1e5))
def test_a_constant_rate_is_integrated(per_second: float, until: float) -> None:
    assert agrees(tw.constant(per_second).count_by(until), Fraction(per_second) * Fraction(until))


@settings(deadline=None)
@given(levels, st.data())
def test_items_are_due_one_after_the_other_and_counted_when_due(
    several: list[tuple[float, float]], data: st.DataObject
) -> None:
    profile = tw.steps(several)
    item = data.draw(st.integers(0, int(profile.total) - 1))
    due = profile.due(item)
    assert due is not None
    assert 0 <= due <= profile.end
    assert profile.count_by(due) >= item + 1
    assert profile.count_by(math.nextafter(due, -1)) <= item
    later = profile.due(item + 1)
    assert later is None or later >= due


def test_a_profile_has_exactly_the_items_of_its_area() -> None:
    profile = tw.constant(0.1, "30 s")
    assert profile.total == 3
    assert [profile.due(item) for item in range(4)] == [10.0, 20.0, 30.0, None]


def test_rounding_does_not_cost_an_item_that_is_due_at_the_end() -> None:
    profile = tw.steps([(0.1, "1 s")] * 10)
    assert profile.total == 1
    assert profile.due(0) == pytest.approx(10.0)


def test_nothing_is_due_during_a_pause() -> None:
    profile = tw.steps([(2, "1 s"), (0, "5 s"), (2, "1 s")])
    assert [profile.due(item) for item in range(4)] == [0.5, 1.0, 6.5, 7.0]


def test_a_constant_rate_without_duration_never_ends() -> None:
    assert tw.constant(4).due(10**9) == 250_000_000.25
    assert tw.constant(4).total == math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tw.constant(0), "more than 0"),
        (lambda: tw.constant(-1), "0 or more"),
        (lambda: tw.constant(float("nan")), "0 or more"),
        (lambda: tw.constant(1, "soon"), "duration"),
        (lambda: tw.steps([]), "at least one step"),
        (lambda: tw.steps([(0, "10 s")]), "at least one item"),
        (lambda: tw.ramp(0, 0.1, "1 s"), "at least one item"),
    ],
)
def test_rates_that_make_no_sense_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(tw.UsageError, match=message):
        make()


# --- traces ----------------------------------------------------------------------------------


def due_times(profile: Profile) -> list[float | None]:
    return [profile.due(item) for item in range(int(profile.total))]


def test_a_trace_spreads_each_count_over_its_interval(tmp_path: Path) -> None:
    (tmp_path / "counts.txt").write_text("2\n0\n1\n")
    assert due_times(tw.trace(tmp_path / "counts.txt")) == [0.5, 1.0, 3.0]


def test_a_trace_takes_the_last_column_or_the_named_one(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("period,count,other\n1998-04-30 21:30:00,4,1\n1998-04-30 21:31:00,0,1\n")
    assert due_times(tw.trace(path, every="1 minute")) == [60.0, 120.0]
    assert due_times(tw.trace(path, "count", every="1 minute")) == [15.0, 30.0, 45.0, 60.0]
    assert due_times(tw.trace(path, 1, every="4 s")) == [1.0, 2.0, 3.0, 4.0]


def test_a_trace_may_be_packed_and_scaled(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt.gz"
    path.write_bytes(gzip.compress(b"1\n1\n"))
    assert due_times(tw.trace(path, scale=2)) == [0.5, 1.0, 1.5, 2.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\nmany\n", r"record 2: expected a count of 0 or more, got 'many'"),
        ("1\n-2\n", "record 2"),
        ("", "expected counts, got none"),
        ("a,b\n1\n", "record 2: expected a column 1, got 1 columns"),
        ("1\nnan\n", "record 2"),
    ],
)
def test_a_trace_that_cannot_be_read_says_where(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "counts.csv").write_text(content)
    with pytest.raises(tw.RecordError, match=message):
        tw.trace(tmp_path / "counts.csv")


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text("period,count\n0,1\n")
    with pytest.raises(tw.RecordError, match=r"column 'cuont'.*\['period', 'count'\]"):
        tw.trace(tmp_path / "counts.csv", "cuont")


def test_a_trace_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(tw.RecordError, match=r"nowhere\.txt"):
        tw.trace(tmp_path / "nowhere.txt")
