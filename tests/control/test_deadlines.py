"""Bursts are done just in time: what waits, since when, and what that needs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.control.scaling.deadlines import (
    JustInTime,
    Part,
    late,
    later,
    queue,
    tasks_in_time,
    unsteady,
)
from thalweg.control.scaling.experience import Experience
from thalweg.control.scaling.values import Node, Sample, Stream, View

PERIOD = 10.0
KNOWN = Experience(per_task=10.0, pause=10.0)
NODE = Node("c", (Stream("s", "c"),), most=16)


@st.composite
def waiting(draw):
    """Parts of a queue, the oldest first, one behind the other in time."""
    lengths = draw(st.lists(st.floats(0.1, 10.0), max_size=5))
    ages = [sum(lengths[at:]) for at in range(len(lengths) + 1)]
    sizes = draw(st.lists(st.floats(0.1, 1e4), min_size=len(lengths), max_size=len(lengths)))
    return [Part(n, a, b) for n, a, b in zip(sizes, ages, ages[1:], strict=False)]


def view(received, pending, degree):
    """What is seen after some periods."""
    numbers = zip(received, pending, strict=True)
    samples = tuple(
        Sample("c", PERIOD * (k + 1), degree, came, 0, pending=waits)
        for k, (came, waits) in enumerate(numbers)
    )
    return View(
        samples[-1].time, (Node("s"), NODE), {"s": 1, "c": degree}, {}, 30.0, PERIOD, {"c": samples}
    )


def decided(received, pending, degree, rate=0.0):
    return JustInTime(25.0, 0.1, 1.0).decide(view(received, pending, degree), NODE, KNOWN, rate)


@given(waiting(), st.floats(0.1, 1e3), st.floats(1.0, 60.0))
def test_with_as_many_tasks_as_are_needed_nobody_is_late_who_is_not_late_already(
    parts, per_task, left
):
    tasks = tasks_in_time(parts, per_task, left)
    young = [part for part in parts if part.first < left]
    if young == parts and tasks:
        assert late(parts, per_task * tasks * (1 + 1e-9), left) == pytest.approx(0.0, abs=1e-3)
        assert late(parts, per_task * tasks * 0.9, left) > 0.0


@given(waiting(), st.floats(0.0, 1e5), st.floats(0.0, 1e4))
def test_what_was_not_done_still_waits_the_oldest_first(parts, done, coming):
    found = later(parts, done, PERIOD, coming)
    total = sum(part.tuples for part in parts) + coming
    assert sum(part.tuples for part in found) == pytest.approx(max(0.0, total - done))
    ages = [age for part in found for age in (part.first, part.last)]
    assert all(a >= b - 1e-9 for a, b in pairwise(ages))


@given(st.lists(st.integers(0, 500), min_size=1, max_size=8), st.data())
def test_those_that_wait_are_those_that_came_last(received, data):
    pending = data.draw(st.integers(0, sum(received)))
    samples = view(received, [0] * (len(received) - 1) + [pending], 1).history["c"]
    parts = queue(samples, PERIOD)
    assert sum(part.tuples for part in parts) == pending
    assert all(part.last < part.first <= PERIOD * len(received) for part in parts)


def test_a_burst_that_can_wait_is_left_alone_at_first():
    # 400 came in the last 4 s. In 10 s 300 of them are left, for which 6 tasks will then do.
    made = decided([0, 0, 1000], [0, 0, 400], degree=1)
    assert (made.degree, made.changes) == (1, False)
    assert "there is time" in made.reason


def test_it_gets_the_tasks_with_which_nothing_is_late_when_there_is_no_more_time():
    # 300 came in the last 10 s: after the pause there are 15 s for the last of them, so 2 tasks
    # with 10 tuples per second each. 10 s later the first of them could not be saved.
    made = decided([0, 0, 300], [0, 0, 300], degree=1)
    assert (made.degree, made.changes) == (2, True)
    assert "too much" in made.reason


def test_a_change_that_would_come_too_late_is_not_made():
    # All of it will be late if tasks rest now; half of it is in time as it is.
    made = decided([100, 0, 0], [100, 100, 100], degree=8)
    assert not made.changes


def test_tasks_go_as_soon_as_hardly_anything_waits():
    made = decided([200, 0, 0], [200, 100, 0], degree=8)
    assert (made.degree, made.changes) == (1, True)


def test_silence_is_no_burst():
    assert not unsteady([0.0, 0.0, 0.0], 0.5)
    assert not unsteady([], 0.5)
