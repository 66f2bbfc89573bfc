"""Many values of a state changed at once, in what a batch writes down."""

from __future__ import annotations

from typing import Any

import pytest

from thalweg.statelog import StateSettings, VersionedState


def state() -> VersionedState:
    return VersionedState([], StateSettings("count", now=0.0))


def add_one(values: list[Any]) -> list[Any]:
    return [(value or 0) + 1 for value in values]


def test_updates_of_one_batch_follow_one_another() -> None:
    made = state()
    for keys in (["a", "b"], ["b", "c"], ["b"]):
        made.update(keys, add_one)
    assert dict(made.items()) == {"a": 1, "b": 3, "c": 1}
    later = VersionedState([made.delta()], StateSettings("count", now=1.0))
    assert dict(later.items()) == {"a": 1, "b": 3, "c": 1}


def test_what_is_updated_can_be_deleted_and_updated_again() -> None:
    made = state()
    made.update(["a", "b"], add_one)
    made.delete("a")
    assert (made.get("a"), len(made)) == (None, 1)
    made.update(["a", "b"], add_one)
    assert dict(made.items()) == {"a": 1, "b": 2}


def test_what_a_change_raises_leaves_the_state_as_it_was() -> None:
    made = state()
    made.update(["a"], add_one)
    with pytest.raises(ZeroDivisionError):
        made.update(["a", "b"], lambda values: [1 // 0 for _ in values])
    assert dict(made.items()) == {"a": 1}


def test_what_is_updated_after_everything_was_read_is_read_too() -> None:
    made = state()
    assert dict(made.items()) == {}
    made.update(["a"], add_one)
    assert dict(made.items()) == {"a": 1}


def test_an_update_of_nothing_changes_nothing() -> None:
    made = state()
    made.update([], add_one)
    assert made.delta() is None
