"""Load shedding: when it is decided, how much, and what it costs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scaling_views import bolt, samples, source, view

from thalweg.control.loop import Plan
from thalweg.control.scaling.values import Change, Node
from thalweg.control.shedding import Shed, Shedding, relative_error


def shed(
    received: int,
    *,
    share: float = 0.0,
    allowed: float = 0.5,
    degree: int = 2,
    most: int = 2,
    pending: int = 0,
    changes: tuple[Change, ...] = (),
    slots: int | None = None,
) -> list[Shedding]:
    """Two tasks of 0.1 s per tuple: 1200 tuples per Delta (60 s)."""
    nodes = [Node("posts"), bolt("work", "posts", most=most)]
    history = {
        "posts": source("posts", [received] * 6),
        "work": samples("work", [received] * 6, degree=degree, pending=pending),
    }
    seen = view(nodes, history, changes=changes, grace=60.0, slots=slots)
    return [m for m in Shed(allowed, lambda: share).decide(seen, Plan()) if isinstance(m, Shedding)]


def test_what_the_highest_degree_cannot_do_is_given_up() -> None:
    (made,) = shed(300)  # 1800 come in 60 s, 1200 can be done
    assert made.share == 0.34  # of a third, whole percents up
    assert made.changes
    assert made.reason.startswith("'work' can do 67 % of what comes at its highest degree")
    assert "34 % of all tuples are given up (allowed: 50 %)" in made.reason


def test_no_more_is_given_up_than_is_allowed() -> None:
    (made,) = shed(300, allowed=0.1)
    assert made.share == 0.1


def test_what_waits_counts() -> None:
    (made,) = shed(200, pending=300)  # 1200 come and 300 wait, 1200 can be done
    assert made.share == 0.2


def test_what_would_come_without_shedding_counts() -> None:
    (made,) = shed(150, share=0.5)  # 900 come, which are half of it
    assert made.share == 0.34


def test_nothing_is_given_up_any_more_when_all_can_be_done() -> None:
    (made,) = shed(50, share=0.2)
    assert (made.share, made.before, made.changes, made.error) == (0.0, 0.2, True, 0.0)


def test_a_component_that_can_have_more_tasks_is_left_to_the_policy() -> None:
    assert shed(300, most=8) == []


def test_a_component_for_which_there_is_no_slot_is_at_its_highest_degree() -> None:
    (made,) = shed(300, most=8, slots=3)  # one of them for the source
    assert made.share == 0.34
    assert made.reason.startswith("'work' can do 67 % of what comes with the slots that there are")
    assert shed(300, most=8, slots=4) == []


def test_nothing_is_given_up_any_more_when_more_tasks_can_be_had() -> None:
    (made,) = shed(300, share=0.3, most=8)
    assert (made.share, made.before) == (0.0, 0.3)


def test_nothing_is_decided_in_grace() -> None:
    assert shed(300, changes=(Change(50.0, "work", 1, 2),)) == []


# --- whole windows ---------------------------------------------------------------------------


def by_window(received: int, lost: int, share: float) -> list[Shedding]:
    """The same, where windows of 10 s are given up: ``lost`` of the sources' tuples were."""
    nodes = [Node("posts"), bolt("work", "posts", most=2)]
    sent = [replace(s, received=received, lost=lost) for s in source("posts", [received] * 6)]
    history = {"posts": tuple(sent), "work": samples("work", [received] * 6, degree=2)}
    step = Shed(0.5, lambda: share, window=10.0)
    seen = view(nodes, history, grace=60.0)
    return [m for m in step.decide(seen, Plan()) if isinstance(m, Shedding)]


def test_the_error_is_that_of_the_number_of_windows_where_they_are_given_up() -> None:
    (made,) = by_window(300, 0, 0.0)
    assert made.share == 0.34
    assert made.error == pytest.approx(relative_error(0.34, 6))  # 60 s
    assert "34 % of all windows of 10 s are given up (allowed: 50 %)" in made.reason


def test_what_was_really_given_up_counts_for_few_windows() -> None:
    (made,) = by_window(150, 50, 0.5)  # a quarter was: 1200 would have come, all can be done
    assert (made.share, made.changes) == (0.0, True)


def test_where_every_window_was_given_up_the_share_counts() -> None:
    assert by_window(0, 300, 0.5) == []


@pytest.mark.parametrize(("share", "tuples", "error"), [(0.5, 100, 0.1), (0.2, 2500, 0.01)])
def test_the_error_is_that_of_a_count_that_is_scaled_up(
    share: float, tuples: int, error: float
) -> None:
    stays = 1 - share
    deviation = math.sqrt(tuples * stays * share) / stays  # of a binomial number, scaled up
    assert relative_error(share, tuples) == pytest.approx(deviation / tuples)
    assert relative_error(share, tuples) == pytest.approx(error)


@given(st.integers(0, 5000), st.floats(0, 0.9), st.floats(0.01, 0.9), st.integers(0, 5000))
def test_a_share_is_never_beyond_what_is_allowed(
    received: int, share: float, allowed: float, pending: int
) -> None:
    for made in shed(received, share=share, allowed=allowed, pending=pending):
        assert 0 <= made.share <= allowed + 1e-4
        assert math.isfinite(made.error)
