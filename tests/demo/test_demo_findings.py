"""What the demo says of what it saw; also where nothing was gained."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.demo.findings import Finding, at_last, mean, reached, sampled, sentences
from thalweg.demo.phases import Phase
from thalweg.demo.reporting import row

PLAIN = Finding(Phase("spark", False), 1000.0, 0.75, 0.25, 0, (4, 4), 4.0, 900.0, 4.0)
AWARE = Finding(Phase("spark", True), 1050.0, 0.2, 0.8, 3, (1, 4, 1), 2.0, 1400.0, 2.5)


def said(plain: Finding, aware: Finding) -> str:
    return "\n".join(sentences([plain, aware]))


def test_fewer_tuples_between_places_and_fewer_tasks_are_told() -> None:
    text = said(PLAIN, AWARE)
    assert "by hash the keys of 25 % of the tuples were at one place, locality-aware" in text
    assert "those of 80 %; so 20 % of the tuples were shuffled between the two steps" in text
    assert "not 75 %" in text
    assert "about as fast either way" in text
    assert "each step had 1 to 4 tasks, not 4 as by hash, 50 % fewer over the run" in text
    assert "last third of the rush it was 1,400 tuples/s locality-aware, and 900 by hash" in text


def test_what_a_task_did_is_told_apart_from_how_many_there_were() -> None:
    text = said(PLAIN, AWARE)
    assert "did 420 tuples/s in the rush locality-aware, when there were 2.5 of them" in text
    assert "and 250 by hash, with 4.0" in text


def test_where_locality_pays_is_told_in_any_case() -> None:
    for text in (said(PLAIN, AWARE), said(PLAIN, PLAIN), "\n".join(sentences([]))):
        assert "On one machine there is no network to save" in text
        assert "docs/locality.md" in text


def test_keys_that_do_not_occur_together_are_no_success() -> None:
    text = said(PLAIN, replace(AWARE, locality=0.26))
    assert "they do not occur together enough" in text


def test_small_tuples_that_are_shuffled_all_the_same_are_told() -> None:
    text = said(replace(PLAIN, shuffled=1.0), replace(AWARE, shuffled=1.0))
    assert "those of 80 %; tuples as small as these are shuffled all the same." in text


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (3000.0, "went 3.0 times as fast"),
        (500.0, "went at 0.50 of the rate"),
        (950.0, "about as fast either way"),
    ],
)
def test_the_rate_is_told_as_it_is(rate: float, expected: str) -> None:
    assert expected in said(PLAIN, replace(AWARE, rate=rate))


def test_a_number_of_tasks_that_stayed_is_told_as_such() -> None:
    assert "each step had 2 tasks all the time, 4 by hash" in said(
        PLAIN, replace(AWARE, degrees=(2,))
    )


def test_what_was_not_counted_is_left_out() -> None:
    unknown = replace(AWARE, shuffled=None, locality=None)
    assert "at one place" not in said(PLAIN, unknown)
    assert row(unknown) == ("Spark, locality-aware", "1,050", "", "", "2", "3")


def test_one_phase_alone_is_compared_with_nothing() -> None:
    assert list(sentences([AWARE])) == list(sentences([]))


POINTS = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0, 1000)),
    min_size=1,
    max_size=20,
    unique_by=lambda p: p[0],
).map(sorted)


@given(POINTS, st.integers(1, 60))
def test_what_is_drawn_and_its_mean_are_within_what_was_seen(
    points: list[tuple[float, float]], columns: int
) -> None:
    values = [value for _, value in points]
    assert set(sampled(points, columns)) <= set(values)
    assert len(sampled(points, columns)) == columns
    assert min(values) - 1e-6 <= mean(points) <= max(values) + 1e-6
    assert at_last(points, points[-1][0]) == values[-1]


@given(POINTS, st.floats(0, 1000))
def test_a_count_is_reached_within_the_run(points: list[tuple[float, float]], value: float) -> None:
    growing = [(at, max(v for t, v in points if t <= at)) for at, _ in points]
    assert growing[0][0] <= reached(growing, value) <= growing[-1][0]
