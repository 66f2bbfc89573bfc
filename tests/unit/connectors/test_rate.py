"""Items are emitted at the times that a profile says, and never earlier."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from connectors.running import read
from thalweg.testing import ManualClock


def test_each_item_is_emitted_when_it_is_due() -> None:
    outcome = read(tw.rate(tw.constant(2, "2 s"), lambda i: i * 10), ["n"])
    assert outcome.values == [0, 10, 20, 30]
    assert outcome.times == pytest.approx([0.5, 1.0, 1.5, 2.0], abs=1e-5)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 3)), min_size=1, max_size=3),
    st.integers(1, 4),
    st.floats(0, 1e6),
)
def test_no_item_is_early_and_none_is_missing(
    levels: list[tuple[int, int]], degree: int, start: float
) -> None:
    profile = tw.steps(levels)
    source = tw.rate(profile, lambda i: i)
    outcome = read(source, ["n"], clock=ManualClock(start), degree=degree, block_rows=8)
    assert sorted(outcome.values) == list(range(int(profile.total)))
    for item, at in zip(outcome.values, outcome.times, strict=True):
        due = profile.due(item)
        assert due is not None
        assert at - start >= due - 1e-9 * max(1.0, start)


def test_after_a_stall_it_catches_up() -> None:
    clock = ManualClock()
    times: list[tuple[int, float]] = []

    def stall(t: Any) -> None:
        times.append((t.n, clock.now()))
        if t.n == 1:
            clock.advance(2.0)

    flow = tw.Flow("stall")
    flow.source("n", tw.rate(tw.constant(2, "4 s"), lambda i: i), fields=["n"]).sink(
        "out", tw.call(stall)
    )
    flow.run(tw.Inline(clock=clock))
    assert [n for n, _ in times] == list(range(8))
    assert [at for _, at in times] == pytest.approx([0.5, 1, 3, 3, 3, 3, 3.5, 4], abs=1e-5)


def test_it_ends_after_count_items() -> None:
    assert read(tw.rate(tw.constant(1000), lambda i: i, count=5), ["n"]).values == [0, 1, 2, 3, 4]
    assert read(tw.rate(tw.constant(1000), lambda i: i, count=0), ["n"]).values == []


def test_items_may_come_from_an_iterable_and_end_with_it() -> None:
    words = ["to", "be", "or"]
    assert read(tw.rate(tw.constant(10), words), ["word"]).values == words
    assert read(tw.rate(tw.constant(10), iter(words)), ["word"]).values == words


def test_items_may_come_from_a_generator_function() -> None:
    def words() -> Iterator[str]:
        while True:
            yield "tick"
            yield "tock"

    outcome = read(tw.rate(tw.constant(10, "0.4 s"), words), ["word"])
    assert outcome.values == ["tick", "tock"] * 2


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_tasks_share_the_items_whatever_makes_them(degree: int) -> None:
    numbers = list(range(10))
    for make in (lambda i: i, numbers, iter(numbers), lambda: iter(numbers)):
        outcome = read(tw.rate(tw.constant(10, "1 s"), make), ["n"], degree=degree)
        assert sorted(outcome.values) == numbers


def test_items_may_have_several_fields() -> None:
    source = tw.rate(tw.constant(10), lambda i: (i, f"item {i}"), count=2)
    assert read(source, {"n": int, "text": str}).rows == [(0, "item 0"), (1, "item 1")]


def test_an_item_that_does_not_fit_is_refused_alone() -> None:
    source = tw.rate(tw.constant(10), lambda i: "x" if i == 1 else i, count=3)
    outcome = read(source, {"n": int}, on_error="skip")
    assert outcome.values == [0, 2]
    assert outcome.errors == 1


def test_a_function_that_raises_is_named_with_the_item() -> None:
    def make(i: int) -> float:
        return 1 / (i - 1)

    source = tw.rate(tw.constant(10), make, count=3)
    with pytest.raises(tw.RecordError, match=r"item 1.*make.*test_rate\.py.*ZeroDivisionError"):
        read(source, {"x": float})
    assert read(source, {"x": float}, on_error="skip").values == [-1.0, 1.0]


def test_a_function_that_exits_is_named_with_the_item() -> None:
    source = tw.rate(tw.constant(10), lambda i: sys.exit(i) if i == 1 else i, count=3)
    with pytest.raises(tw.RecordError, match=r"item 1.*it called sys\.exit\(1\)"):
        read(source, {"n": int})
    assert read(source, {"n": int}, on_error="skip").values == [0, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, lambda i: i), r"constant\(\.\.\.\)"),
        ((tw.constant(1), 7), "a function of the item's number"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    arguments: tuple[object, object], message: str
) -> None:
    with pytest.raises(tw.UsageError, match=message):
        tw.rate(*arguments)  # type: ignore[arg-type]


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(tw.UsageError, match="0 or more"):
        tw.rate(tw.constant(1), lambda i: i, count=-1)
