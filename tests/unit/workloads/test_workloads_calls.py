"""Calls and clicks are what their settings say, and always the same."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings as effort
from hypothesis import strategies as st

import thalweg as tw
from thalweg.errors import UsageError
from thalweg.workloads.calls import CallSettings, area_of, phone_calls, phone_number
from thalweg.workloads.chunks import CHUNK, rows_of
from thalweg.workloads.cities import CITIES, kilometres
from thalweg.workloads.visits import VisitSettings, visits

# --- chunks --------------------------------------------------------------------------------------


@for_all(st.integers(0, 4 * CHUNK))
@effort(max_examples=30)
def test_each_row_is_in_one_chunk(total: int) -> None:
    numbers = [n for chunk in range(6) for n in rows_of(chunk, total).tolist()]
    assert numbers == list(range(total))


# --- calls ---------------------------------------------------------------------------------------


def all_calls(settings: CallSettings, degree: int = 1, block_rows: int = 1024) -> list[Any]:
    flow = tw.Flow("calls")
    found: list[Any] = []
    flow.source("calls", phone_calls(settings), degree=degree).sink("out", tw.collect(found))
    flow.run(on=tw.Inline(block_rows=block_rows))
    return [tuple(t) for t in found]


@pytest.mark.parametrize("count", [0, 1, CHUNK, CHUNK + 1])
def test_there_are_as_many_calls_as_asked_for(count: int) -> None:
    assert len(all_calls(CallSettings(calls=count))) == count


def test_calls_do_not_depend_on_how_they_are_asked_for() -> None:
    settings = CallSettings(calls=2 * CHUNK + 5)
    once = all_calls(settings)
    assert all_calls(settings, block_rows=777) == once
    assert Counter(all_calls(settings, degree=3)) == Counter(once)
    assert all_calls(CallSettings(calls=2 * CHUNK + 5, seed=2)) != once


def test_calls_are_in_the_order_of_time_and_nobody_calls_at_night_or_himself() -> None:
    calls = all_calls(CallSettings(calls=5000, days=2))
    times = [at for at, *_ in calls]
    assert times == sorted(times)
    assert (times[-1] - times[0]) > timedelta(days=1, hours=17)
    assert all(at.hour >= 6 for at in times)
    assert all(caller != callee for _, _, caller, callee, *_ in calls)


def fastest(settings: CallSettings) -> dict[str, float]:
    """Give the highest speed of each phone, in km/h, worked out call by call."""
    last: dict[str, tuple[Any, str]] = {}
    found: dict[str, float] = {}
    for at, _, caller, callee, caller_city, callee_city in all_calls(settings):
        for phone, city in ((caller, caller_city), (callee, callee_city)):
            before, origin = last.get(phone, (at - timedelta(days=1), city))
            hours = max(at - before, timedelta(seconds=1)) / timedelta(hours=1)
            found[phone] = max(found.get(phone, 0.0), kilometres(origin, city) / hours)
            last[phone] = at, city
    return found


def test_nobody_travels_faster_than_a_plane_unless_his_phone_was_copied() -> None:
    honest = CallSettings(calls=20_000, phones=500, copied=0)
    assert 100 < max(fastest(honest).values()) < 700
    copied = fastest(CallSettings(calls=20_000, phones=500, copied=0.1))
    assert 30 < sum(speed > 1000 for speed in copied.values()) < 70


def test_a_number_says_where_its_owner_is_at_home() -> None:
    assert [area_of(phone_number(phone)) for phone in range(24)] == list(CITIES)
    at_home = Counter(
        area_of(callee) == city for *_, callee, _, city in all_calls(CallSettings(calls=5000))
    )
    assert at_home[True] / 5000 == pytest.approx(0.85, abs=0.03)


@pytest.mark.parametrize("area", ["", "1", "00", "25", "x1"])
def test_an_area_that_does_not_exist_is_told(area: str) -> None:
    with pytest.raises(UsageError, match="setting 'area' of calls: expected two digits, 01 to 24"):
        area_of(area)


@for_all(*[st.sampled_from(sorted(CITIES))] * 3)
def test_distances_are_distances(here: str, there: str, by: str) -> None:
    assert kilometres(here, there) == pytest.approx(kilometres(there, here))
    assert (kilometres(here, there) == 0) == (here == there)
    assert kilometres(here, there) <= kilometres(here, by) + kilometres(by, there) + 1e-9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"call": "1"}, "did you mean 'calls'"),
        ({"phones": "1"}, "setting 'phones' of calls: expected at least 2, got 1"),
        ({"days": "0"}, "expected at least 1"),
        ({"copied": "1.1"}, "expected 0 to 1"),
    ],
)
def test_settings_of_calls_that_make_no_sense(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CallSettings.read(given)


# --- clicks --------------------------------------------------------------------------------------


@for_all(st.integers(0, 300), st.integers(1, 9), st.floats(0, 500), st.integers(0, 99))
@effort(max_examples=30)
def test_clicks_come_as_late_as_asked_for_and_no_later(
    count: int, users: int, late: float, seed: int
) -> None:
    settings = VisitSettings(clicks=count, users=users, late=late, seed=seed)
    clicks = list(visits(settings))
    assert (len(clicks), clicks) == (count, list(visits(settings)))
    newest = None
    for _, _, at in clicks:
        newest = at if newest is None else max(newest, at)
        assert newest - at <= timedelta(seconds=late)
    in_order = VisitSettings(clicks=count, users=users, late=0, seed=seed)
    assert sorted(clicks, key=lambda click: click[2]) == list(visits(in_order))


def test_clicks_that_are_late_are_out_of_order() -> None:
    times = [at for *_, at in visits(VisitSettings(clicks=1000, late=300))]
    assert any(later < sooner for sooner, later in pairwise(times))


def test_settings_of_clicks_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="setting 'late' of visits: expected at least 0"):
        VisitSettings.read({"late": "-1"})
