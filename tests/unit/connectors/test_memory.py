"""Iterables, functions and lists as sources and sinks."""

from __future__ import annotations

from typing import Any

import pytest

import thalweg as tw
from connectors.running import read, write


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_tasks_share_the_items_of_an_iterable(degree: int) -> None:
    assert sorted(read(tw.items(range(10)), ["n"], degree=degree).values) == list(range(10))


def test_a_function_is_called_anew_for_each_run() -> None:
    source = tw.items(lambda: iter([1, 2]))
    assert read(source, ["n"]).values == [1, 2]
    assert read(source, ["n"]).values == [1, 2]


def test_only_the_items_that_do_not_fit_are_refused() -> None:
    mixed = [x for n in range(50) for x in (n, "x")]
    outcome = read(tw.items(mixed), {"n": int}, on_error="skip")
    assert outcome.values == list(range(50))
    assert outcome.errors == 50


def test_collect_appends_tuples_with_fields() -> None:
    into: list[Any] = []
    write(tw.collect(into), [("a", 1)], ["s", "n"])
    assert [(t.s, t.n) for t in into] == [("a", 1)]


def test_a_function_that_raises_is_refused_tuple_by_tuple() -> None:
    seen: list[int] = []

    def pick(t: Any) -> None:
        if t.n % 2:
            raise ValueError("odd")
        seen.append(t.n)

    write(tw.call(pick), range(5), ["n"], on_error="skip")
    assert seen == [0, 2, 4]
    with pytest.raises(tw.ComponentError, match="odd"):
        write(tw.call(pick), range(5), ["n"])
