"""A length of 0 means the same as a number and as text, and what is no length names its option."""

from __future__ import annotations

from typing import Any

import pytest

import thalweg as tw
from thalweg.errors import UsageError
from thalweg.windows import agg

ROWS = [(1, "a"), (5, "b"), (5, "c"), (2, "d")]
NOTHING = [0, 0.0, "0", "0 s", "0 min"]


def stream(flow: tw.Flow, name: str, delay: Any = 0) -> tw.Stream:
    time = tw.event_time("at", delay=delay)
    return flow.source(name, tw.items(ROWS), fields={"at": int, "k": str}, time=time)


def counted(delay: Any, allowed: Any) -> list[tuple[Any, ...]]:
    """Count in windows of a second, and once more in the windows of that."""
    seen: list[tuple[Any, ...]] = []
    flow = tw.Flow("counts")
    first = (
        stream(flow, "a", delay).window(tw.tumbling(1), allowed=allowed).aggregate(n=agg.count())
    )
    second = first.window(tw.tumbling(10)).aggregate(n=agg.sum("n"))
    second.sink("out", tw.call(lambda t: seen.append(tuple(t))))
    flow.run(on="inline")
    return seen


@pytest.mark.parametrize("nothing", NOTHING)
def test_a_delay_and_an_allowed_of_nothing(nothing: Any) -> None:
    assert tw.event_time("at", delay=nothing).delay == 0
    assert counted(nothing, nothing) == counted(0, 0)


@pytest.mark.parametrize("nothing", NOTHING)
def test_a_join_within_nothing_is_one_of_the_same_moment(nothing: Any) -> None:
    seen: list[tuple[Any, ...]] = []
    flow = tw.Flow("join")
    left, right = stream(flow, "a", "9 s"), stream(flow, "b", "9 s")
    joined = left.join_within(right, {"k": "k"}, within=nothing, prefix="r_")
    joined.sink("out", tw.call(lambda t: seen.append((t.at, t.k, t.r_at))))
    flow.run(on="inline")
    assert sorted(seen) == [(1, "a", 1), (2, "d", 2), (5, "b", 5), (5, "c", 5)]


@pytest.mark.parametrize(
    ("made", "tells"),
    [
        (
            lambda s, _: tw.event_time("at", delay="soon"),
            "delay of time field 'at': expected seconds from 0 on, or text such as '10 s', "
            "got 'soon'",
        ),
        (
            lambda s, _: tw.event_time("at", idle="0 s"),
            "idle of time field 'at': expected seconds above 0, or text such as '10 s', got '0 s'",
        ),
        (
            lambda s, _: s.window(tw.tumbling(1), allowed=-1).aggregate(n=agg.count()),
            "allowed of a window: expected seconds from 0 on, or text such as '10 s', got -1",
        ),
        (
            lambda s, other: s.join_within(other, "k", within="soon", prefix="r_"),
            "within of join 'join-1': expected seconds from 0 on, or text such as '10 s', "
            "got 'soon'",
        ),
    ],
)
def test_what_is_no_length_is_refused_by_the_name_of_its_option(made: Any, tells: str) -> None:
    flow = tw.Flow("refused")
    with pytest.raises(UsageError) as refused:
        made(stream(flow, "a"), stream(flow, "b"))
    assert str(refused.value) == tells
