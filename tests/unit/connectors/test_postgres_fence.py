"""Which batches a fence lets through; no server is needed to say so."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.connectors.postgres_fence import Mark, decide

STEPS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=20)


@given(STEPS)
def test_each_batch_is_written_once_however_often_it_comes(steps: list[tuple[int, int]]) -> None:
    last, number, written = None, 0, []
    for step, times in steps:
        number += step  # versions without rows have no batch
        for _ in range(times):
            new = Mark("state", 0, number, f"digest {number}")
            if decide("sink", last, new).write:
                written.append(number)
                last = new
    assert all(before < after for before, after in pairwise(written))
    assert written[-1:] == [number][: len(steps)]


@given(st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_a_batch_that_is_not_behind_the_last_one_is_refused(
    there: int, new: int, fell_back: bool
) -> None:
    last = Mark("state", 0, there, "a")
    coming = Mark("state", int(fell_back), new, "b")
    if fell_back or new > there:
        assert decide("sink", last, coming).write
    else:
        with pytest.raises(tw.StateError, match=f"expected a batch behind {there}"):
            decide("sink", last, coming)


@given(st.integers(1, 9), st.integers(1, 9))
def test_another_state_is_refused_whatever_its_batch(there: int, new: int) -> None:
    with pytest.raises(tw.StateError, match=f"got batch {there} of another state"):
        decide("sink", Mark("one", 0, there, "a"), Mark("two", 0, new, "a"))
