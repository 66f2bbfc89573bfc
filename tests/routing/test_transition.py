"""From one set of tables to the next: no key is ever at two places, or at none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.routing.table import RoutingTable, is_in, united
from thalweg.routing.transition import Transition

PLACES = 4
HASHES = st.integers(0, 2**64 - 1)
OWN = st.dictionaries(HASHES, st.integers(0, PLACES - 1), max_size=20)


def table(own: dict[int, int]) -> RoutingTable:
    hashes = np.array(list(own), dtype=np.uint64)
    return RoutingTable.even(PLACES).with_hashes(hashes, np.array(list(own.values()), np.int64))


@st.composite
def courses(draw: Any) -> tuple[RoutingTable, RoutingTable, list[dict[str, Any]], Any]:
    old, new = draw(OWN), draw(OWN)
    # Half of the keys are in both, so that places differ and not only who is named.
    new |= {hash_: draw(st.integers(0, PLACES - 1)) for hash_ in list(old)[::2]}
    before, after = table(old), table(new)
    every = np.array(sorted({*old, *new}), dtype=np.uint64)
    moved = every[before.places_of(every) != after.places_of(every)]
    numbers = draw(st.lists(st.integers(0, 3), min_size=len(moved), max_size=len(moved)))
    steps = [{"count": moved[np.array(numbers, dtype=np.int64) == number]} for number in range(4)]
    return before, after, steps, every


@given(courses())
def test_each_step_moves_its_keys_and_no_others(course: Any) -> None:
    before, after, steps, every = course
    made = Transition.between({"count": before}, {"count": after}, steps)
    now = before.places_of(every)
    for number, step in enumerate(steps, start=1):
        now = np.where(is_in(every, step["count"]), after.places_of(every), now)
        assert made.tables(number)["count"].places_of(every).tolist() == now.tolist()
    assert now.tolist() == after.places_of(every).tolist()


@given(courses())
def test_what_moves_goes_from_its_old_place_to_its_new_one(course: Any) -> None:
    before, after, steps, _ = course
    made = Transition.between({"count": before}, {"count": after}, steps)
    for number, step in enumerate(steps, start=1):
        found = made.moving(number).get("count")
        assert (found.hashes.tolist() if found else []) == step["count"].tolist()
        if found:
            assert found.sources.tolist() == before.places_of(found.hashes).tolist()
            assert found.targets.tolist() == after.places_of(found.hashes).tolist()
            assert (found.sources != found.targets).all()
        parts = [made.moving(number, place).get("count") for place in range(PLACES)]
        apart = [hash_ for part in parts if part for hash_ in part.hashes.tolist()]
        assert sorted(apart) == step["count"].tolist()


@given(courses())
def test_it_is_read_as_it_was_written(course: Any) -> None:
    before, after, steps, every = course
    made = Transition.between({"count": before}, {"count": after}, steps)
    again = Transition.from_bytes(made.to_bytes())
    assert (again.epoch, again.places, again.groups, again.steps) == (1, PLACES, 1024, 4)
    for step in range(5):
        ours, theirs = (t.tables(step)["count"].places_of(every) for t in (made, again))
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("data", [b"", b"tables", b"\xff" * 200])
def test_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(tw.StateError, match="routing tables"):
        Transition.from_bytes(data)


def test_tables_of_nobody_are_refused() -> None:
    with pytest.raises(tw.UsageError, match="routing tables: expected some component's, got none"):
        Transition.between({}, {})


def test_a_key_that_is_named_where_its_group_is_does_not_move() -> None:
    plain = RoutingTable.even(PLACES)
    hashes = np.array([5, 77], dtype=np.uint64)
    named = plain.with_hashes(hashes, plain.places_of(hashes))
    made = Transition.between({"count": plain}, {"count": named}, [{"count": hashes}])
    assert made.moving(1) == {}


@given(st.lists(HASHES), st.lists(HASHES))
def test_unions_and_memberships_are_those_of_sets(a: list[int], b: list[int]) -> None:
    left, right = (np.array(sorted(side), dtype=np.uint64) for side in (a, b))
    assert united(left, right).tolist() == sorted({*a, *b})
    assert is_in(left, right).tolist() == [hash_ in b for hash_ in sorted(a)]
