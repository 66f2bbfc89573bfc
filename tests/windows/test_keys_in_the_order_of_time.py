"""Time passes keys by for which nothing is due; those for which something is are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.eventtime import ALWAYS
from thalweg.flow import Stream
from thalweg.operators.due_keys import DueKeys
from thalweg.state import MemoryState

names = st.sampled_from("abcd")
steps = st.one_of(
    st.tuples(st.just("put"), names, st.integers(0, 40) | st.just(ALWAYS)),
    st.tuples(st.just("delete"), names, st.just(0)),
    st.tuples(st.just("move"), names, st.just(0)),
    st.tuples(st.just("time"), st.just(""), st.integers(0, 8)),
)


@given(st.lists(steps, max_size=40))
def test_those_are_given_that_are_due(script: list[tuple[str, str, int]]) -> None:
    """Two tasks, between which keys move; a value is the time at which it is due."""
    states = MemoryState(), MemoryState()
    lists = [DueKeys(state, due=lambda value: value) for state in states]
    where: dict[str, int] = {}
    now = 0
    for what, key, number in script:
        at = where.setdefault(key, 0)
        if what == "put":
            states[at].put(key, number)
            lists[at].note([(key, number)])
        elif what == "delete":
            states[at].delete(key)
        elif what == "move":
            where[key] = 1 - at
            states[1 - at].take_over(states[at].give_away([key]))
        else:
            now += number
            for state, keys in zip(states, lists, strict=True):
                expected = {key: due for key, due in state.items() if due <= now}
                assert keys.take(now) == expected
                for past in expected:
                    state.delete(past)
    for state, keys in zip(states, lists, strict=True):
        assert keys.take(ALWAYS) == dict(state.items())


def test_keys_that_were_there_before_are_listed() -> None:
    state = MemoryState()
    state.put_many({"eu": 7, "us": 90})
    assert DueKeys(state, due=lambda value: value).take(10) == {"eu": 7}


class Batch(dict[Any, Any]):
    """A state that tells nobody of keys that come."""

    def put_many(self, values: Any) -> None:
        self.update(values)


def test_a_state_that_tells_nothing_is_gone_through() -> None:
    state: Any = Batch(eu=7, us=90)
    keys = DueKeys(state, due=lambda value: value)
    keys.note([("asia", 3)])
    assert keys.take(10) == {"eu": 7}
    assert keys.take(ALWAYS) == {"eu": 7, "us": 90}


COUNT = {"n": tw.agg.count()}
KINDS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "as of": lambda one, other: one.join_asof(other, "user", prefix="o_"),
    "within": lambda one, other: one.join_within(other, "user", within=8, prefix="o_"),
    "tumbling": lambda one, _: one.key_by("user").window(tw.tumbling(5)).aggregate(**COUNT),
    "session": lambda one, _: one.key_by("user").window(tw.session(8)).aggregate(**COUNT),
    "landmark": lambda one, _: one.key_by("user").window(tw.landmark(5)).aggregate(**COUNT),
    "istream": lambda one, _: (
        one.key_by("user").window(tw.tumbling(5), relation="istream").aggregate(**COUNT)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_not_all_keys_are_gone_through_when_time_goes_on(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    gone_through: list[int] = []

    def items(state: MemoryState) -> Iterator[tuple[Any, Any]]:
        gone_through.append(len(told))
        return iter(state._values.items())

    monkeypatch.setattr(MemoryState, "items", items)
    flow = tw.Flow("idle")
    rows = [(at, f"u{at % 20}") for at in range(100)]
    fields = {"at": int, "user": str}
    one, other = (flow.source(name, tw.items(rows), fields=fields, time="at") for name in "ab")
    KINDS[kind](one, other).sink("out", tw.call(lambda t: told.append(1)))
    flow.run(on=tw.Inline(block_rows=1))
    assert len(told) > 20
    assert len(gone_through) <= 4  # at the end
