"""Joins of streams against comparing each with each, for any disorder within the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from conformance.moving import Restless

DELAY = 10
FIELDS = {"at": int, "user": str, "x": int}
Tuples = list[tuple[int, str | None, int]]
USERS = st.sampled_from(["a", "b", "c", None])
SIDE = st.lists(st.tuples(st.integers(0, 60), st.integers(0, DELAY - 1), USERS), max_size=14)


def disordered(drawn: list[tuple[int, int, str | None]], first: int) -> Tuples:
    """Let tuples come up to the delay behind newer ones; each has a number of its own."""
    order = sorted(drawn, key=lambda each: each[0] + each[1])
    return [(time, user, first + n) for n, (time, _, user) in enumerate(order)]


def same(one: str | None, other: str | None) -> bool:
    return one is not None and one == other


def near(left: Tuples, right: Tuples, within: int, how: str) -> list[Any]:
    found: list[Any] = []
    for at, user, x in left:
        pairs = [(t, y) for t, who, y in right if same(user, who) and abs(t - at) <= within]
        lonely = [(None, None)] if how == "left" and not pairs else []
        found += [(at, user, x, *pair) for pair in pairs or lonely]
    return found


def last(left: Tuples, right: Tuples, within: int, how: str) -> list[Any]:
    found: list[Any] = []
    for at, user, x in left:
        # Of those of one time the one that came last.
        before = [(t, y) for t, who, y in right if same(user, who) and t <= at and at - t <= within]
        if before or how == "left":
            found.append((at, user, x, *max(before, default=(None, None))))
    return found


@dataclass(frozen=True)
class Join:
    kind: str
    within: int
    how: str


def joined(left: Tuples, right: Tuples, join: Join, on: Any, seed: int | None) -> list[Any]:
    flow, found = tw.Flow("joined"), []
    time = tw.event_time("at", delay=DELAY)
    one, other = (
        flow.source(name, tw.items(rows), fields=FIELDS, time=time)
        for name, rows in (("left", left), ("right", right))
    )
    method = one.join_within if join.kind == "within" else one.join_asof
    options: Any = {"within": join.within, "how": join.how, "prefix": "r_", "degree": 2}
    method(other, "user", name="join", **options).sink(
        "out", tw.call(lambda t: found.append(tuple(t)))
    )
    made = flow.build()
    steering = None if seed is None else Restless(made, seed, times=5)
    assert made.run(on=on, steering=steering).metrics.component("join").late == 0
    return found


def order(row: Any) -> Any:
    return [(value is None, str(value)) for value in row]


HOW, KIND = st.sampled_from(["inner", "left"]), pytest.mark.parametrize("kind", ["within", "asof"])
WITHIN, ROWS = st.integers(0, 25), st.integers(1, 8)


@KIND
@given(left=SIDE, right=SIDE, within=WITHIN, how=HOW, rows=ROWS)
def test_inline_finds_all_pairs_and_no_other(
    kind: str, left: Any, right: Any, within: int, how: str, rows: int
) -> None:
    check((left, right), Join(kind, within, how), tw.Inline(block_rows=rows))


@KIND
@settings(max_examples=15)
@given(left=SIDE, right=SIDE, within=WITHIN, how=HOW, rows=ROWS)
def test_local_finds_all_pairs_and_no_other(
    kind: str, left: Any, right: Any, within: int, how: str, rows: int
) -> None:
    local = tw.Local(block_rows=rows, most_block_rows=rows)
    check((left, right), Join(kind, within, how), local)


@KIND
@settings(max_examples=15)
@given(left=SIDE, right=SIDE, within=WITHIN, how=HOW, seed=st.integers(0, 2**16))
def test_degrees_may_change_while_pairs_are_found(
    kind: str, left: Any, right: Any, within: int, how: str, seed: int
) -> None:
    local = tw.Local(block_rows=1, most_block_rows=1, window=8, workers=3)
    check((left, right), Join(kind, within, how), local, seed)


def check(sides: Any, join: Join, on: Any, seed: int | None = None) -> None:
    left, right = (disordered(side, 100 * n) for n, side in enumerate(sides))
    expected = (near if join.kind == "within" else last)(left, right, join.within, join.how)
    found = joined(left, right, join, on, seed)
    assert sorted(found, key=order) == sorted(expected, key=order)
