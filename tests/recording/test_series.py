"""Lines over time: smooth, neither higher nor lower than what was measured, with gaps."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean
from typing import Any

import msgspec
import pytest

from recording.runs import metrics, snapshot
from thalweg.events import Progress
from thalweg.metrics import ComponentMetrics
from thalweg.recording import series
from thalweg.recording.records import Record, record_of


def look(at: float, *components: ComponentMetrics, **given: Any) -> Record:
    return record_of(Progress(snapshot(at, components=components, **given)), 1, at, 0.0)


def known(points: list[tuple[float, float]]) -> list[float]:
    return [value for _, value in points if not math.isnan(value)]


def test_rates_and_shares_are_over_a_second() -> None:
    # A block of a hundred tuples in every second look.
    counts = [100 * (n // 2) for n in range(100)]
    looks = [
        look(n / 10, metrics("counts", degree=1, busy=count / 2000), tuples_in=count)
        for n, count in enumerate(counts)
    ]
    rates = [value for at, value in series.rates(looks)["in"] if at > 1.5]
    shares = [value for at, value in series.busy(looks)["counts"] if at > 1.5]
    assert all(value == pytest.approx(500.0, rel=0.11) for value in rates)
    assert all(value == pytest.approx(0.25, rel=0.11) for value in shares)


def test_shares_are_of_the_tasks_that_there_were() -> None:
    looks = [look(at, metrics("counts", degree=n, busy=b)) for at, n, b in ((1, 1, 0), (2, 3, 1.0))]
    assert series.busy(looks) == {"counts": [(2.0, 0.5)]}


def test_rates_are_drawn_as_high_as_they_are_and_waiting_as_high_as_it_was() -> None:
    random = Random(1)
    points = [(float(n), random.gauss(1000.0, 300.0)) for n in range(2000)]
    mean = fmean(value for _, value in points)
    drawn = series.drawable({"in": points}, fmean)["in"]
    assert fmean(value for _, value in drawn) == pytest.approx(mean)
    highest = series.drawable({"pending": points})["pending"]
    assert max(value for _, value in highest) == max(value for _, value in points)
    for each in (drawn, highest):
        assert len(each) <= series.MOST_POINTS
        assert each[-1][0] == 1999.0


def test_where_nothing_came_to_its_end_the_line_of_latency_has_a_gap() -> None:
    looks = [look(float(at)) for at in range(20)]
    for each in [*looks[5:12], looks[15]]:
        each["snapshot"]["recent"] = None
    drawn = series.latencies(map(msgspec.to_builtins, looks))["p50"]
    assert [at for at, value in drawn if math.isnan(value)] == list(range(5, 12))
    assert [at for at, value in drawn if not math.isnan(value)] == [
        at for at in range(20) if at not in (*range(5, 12), 15)
    ]


def test_where_nothing_was_counted_there_is_a_gap() -> None:
    local = [*range(0, 50, 10), *[50] * 8, *range(60, 100, 10)]
    looks = [
        look(float(at), metrics("counts", local=count, shuffled=0))
        for at, count in enumerate(local)
    ]
    points = series.locality(looks, ())["tuples"]
    missing = [at for at, value in points if math.isnan(value)]
    assert missing == [float(at) for at in range(6, 13)]
    assert known(points) == [1.0] * (len(points) - len(missing))


def test_a_few_looks_without_tuples_are_no_gap() -> None:
    looks = [
        look(float(at), metrics("counts", local=10 * (at // 3), shuffled=0)) for at in range(30)
    ]
    points = series.locality(looks, ())["tuples"]
    assert len(known(points)) == len(points) == 9


def test_a_long_gap_stays_one_when_there_are_many_points() -> None:
    values = [1.0, *[math.nan] * 998, 1.0]
    drawn = series.thinned(list(enumerate(values)), fmean)
    assert len(known(drawn)) == 2
    assert len(drawn) > 300


def test_what_was_never_measured_is_not_drawn() -> None:
    assert series.drawable({"tuples": [(1.0, math.nan), (2.0, math.nan)]}) == {}
    keys = {"at": 1.0, "links": [{"sender": "a", "reader": "b", "locality": None}]}
    made = series.locality([], [msgspec.convert(keys, dict[str, Any])])
    assert series.drawable(made) == {}
