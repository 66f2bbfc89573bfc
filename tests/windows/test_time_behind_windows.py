"""How far time may go behind components that hear it themselves: nothing comes too late."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.eventtime import NEVER
from thalweg.flow import Stream
from thalweg.watermarks import BatchTimes, Came, Watermarks

FIELDS = {"at": int, "user": str}
SECOND = 1_000_000


def clicks(flow: tw.Flow, name: str = "clicks", rows: Any = (), **time: Any) -> Stream:
    made = tw.event_time("at", **time)
    return flow.source(name, tw.items(list(rows)), fields=FIELDS, time=made)


def counted(stream: Stream, window: Any, name: str, result: Any = None) -> Stream:
    n = tw.agg.count() if result is None else tw.agg.sum(result)
    return stream.key_by("user").window(window).aggregate(name, n=n)


def marks(stream: Stream) -> Watermarks:
    stream.sink("out", tw.collect([]))
    return Watermarks(stream.flow.build(), 0.0)


def came(watermarks: Watermarks, at: int, source: str = "clicks") -> dict[str, int]:
    """Let a source come to a time, in seconds; gives who is told, and how far."""
    watermarks.saw(source, 0, at * SECOND, 0.0)
    return {name: time // SECOND for name, time in watermarks.look(0.0, lambda _: True).items()}


def test_behind_sessions_time_goes_as_far_as_they_were_told() -> None:
    sessions = counted(clicks(tw.Flow("sessions")), tw.session(80), "sessions")
    time = marks(counted(sessions, tw.tumbling(1), "next", "n"))
    assert came(time, 13) == {"sessions": 13, "next": 13}
    # Sessions are looked at every ten seconds: one that ends at 15 has not been told yet.
    assert came(time, 19) == {}
    assert came(time, 21) == {"sessions": 21, "next": 21}


def test_windows_that_begin_at_another_time_are_told_at_their_ends() -> None:
    time = marks(counted(clicks(tw.Flow("offset")), tw.tumbling(60, offset=30), "count"))
    assert came(time, 10) == {"count": 10}
    assert came(time, 29) == {}
    assert came(time, 31) == {"count": 31}
    assert came(time, 61) == {}
    assert came(time, 95) == {"count": 95}


def test_windows_whose_length_is_not_a_number_of_steps_are_told_at_their_ends() -> None:
    time = marks(counted(clicks(tw.Flow("uneven")), tw.sliding(50, every=20), "count"))
    assert came(time, 11) == {"count": 11}
    assert came(time, 29) == {}
    assert came(time, 30) == {"count": 30}


def test_between_two_ends_of_windows_nobody_has_to_wait_for_them() -> None:
    hours = counted(clicks(tw.Flow("hours")), tw.tumbling(60), "minutes")
    time = marks(counted(hours, tw.tumbling(10), "next", "n"))
    assert came(time, 5) == {"minutes": 5, "next": 5}
    assert came(time, 31) == {"next": 31}


def test_while_a_window_cannot_be_told_nobody_behind_it_is() -> None:
    hours = counted(clicks(tw.Flow("busy")), tw.tumbling(60), "minutes")
    time = marks(counted(hours, tw.tumbling(10), "next", "n"))
    came(time, 5)
    time.saw("clicks", 0, 75 * SECOND, 0.0)
    assert time.look(0.0, lambda name: name != "minutes") == {}
    assert time.look(0.0, lambda _: True) == {"minutes": 75 * SECOND, "next": 75 * SECOND}


def test_time_of_batches_is_no_further_behind_sessions_either() -> None:
    sessions = counted(clicks(tw.Flow("sessions")), tw.session(80), "sessions")
    stream = counted(sessions, tw.tumbling(1), "next", "n")
    stream.sink("out", tw.collect([]))
    times = BatchTimes(stream.flow.build())
    told = {"sessions": 13 * SECOND, "next": 13 * SECOND}
    assert times.next(Came({"clicks": 19 * SECOND}), told) == told
    assert times.next(Came({"clicks": 20 * SECOND}), told) == dict.fromkeys(told, 20 * SECOND)


def test_time_of_batches_is_that_of_the_slowest_task() -> None:
    flow = tw.Flow("tasks")
    source = flow.source("clicks", tw.items([]), fields=FIELDS, time="at", degree=2)
    stream = counted(source, tw.tumbling(10), "count")
    stream.sink("out", tw.collect([]))
    times, far, near = BatchTimes(flow.build()), 90 * SECOND, 20 * SECOND
    assert times.next(Came({"clicks/0": far}), {}) == {"count": NEVER}
    assert times.next(Came({"clicks/0": far, "clicks/1": near}), {}) == {"count": near}
    assert times.next(Came({"clicks/0": far}, silent={"clicks/1"}), {}) == {"count": far}
    ended = Came({"clicks/0": far, "clicks/1": near}, ended={"clicks/1"})
    assert times.next(ended, {"count": near}) == {"count": far}
    # As it was written once.
    assert times.next(Came({"clicks": far}), {}) == {"count": far}


def two_sources() -> Watermarks:
    flow = tw.Flow("two")
    short = counted(clicks(flow, "short", idle=5), tw.tumbling(10), "count")
    long = clicks(flow, "long").map(
        lambda at, user: (user, None, None, at), fields=short.fields, name="alike"
    )
    return marks(counted(short.merge(long), tw.tumbling(10), "both", "n"))


def test_what_is_left_of_a_source_that_has_ended_is_told_as_others_go_on() -> None:
    time = two_sources()
    came(time, 3, "short")
    assert came(time, 4, "long") == {"both": 3}
    time.ended("short", 0)
    assert came(time, 25, "long") == {"count": 25, "both": 25}


def test_a_source_that_is_silent_keeps_nobody_waiting_behind_windows_either() -> None:
    time = two_sources()
    came(time, 3, "short")
    time.saw("long", 0, 25 * SECOND, 6.0)
    assert time.look(6.0, lambda _: True) == {"both": 25 * SECOND}


class Hears(tw.Bolt):
    """Hears the time, if there is one."""

    outputs = ["word"]
    timed = True

    def process(self, t: Any) -> None:
        self.emit(t.word)


def test_a_component_without_a_time_before_it_is_told_nothing() -> None:
    flow = tw.Flow("timeless")
    stream = flow.source("words", tw.items(["a"]), fields=["word"])
    time = marks(stream.through("hears", Hears()))
    assert not time
    assert time.look(0.0, lambda _: True) == {}


def test_what_was_told_is_kept_up_in_what_was_given() -> None:
    stream = counted(clicks(tw.Flow("kept")), tw.tumbling(10), "count")
    stream.sink("out", tw.collect([]))
    told: dict[str, int] = {}
    time = Watermarks(stream.flow.build(), 0.0, told)
    assert told == {"count": NEVER}
    came(time, 12)
    assert told == {"count": 12 * SECOND}


@settings(max_examples=50)
@given(
    times=st.lists(st.integers(0, 60), min_size=1, max_size=30).map(sorted),
    window=st.one_of(
        st.integers(1, 30).map(tw.session),
        st.tuples(st.integers(1, 9), st.integers(0, 8)).map(
            lambda d: tw.tumbling(d[0], offset=d[1])
        ),
    ),
    step=st.integers(1, 7),
    rows=st.integers(1, 4),
)
def test_nothing_is_late_behind_a_window(
    times: list[int], window: Any, step: int, rows: int
) -> None:
    found: list[int] = []
    stream = clicks(tw.Flow("behind"), rows=[(at, "ab"[at % 2]) for at in times])
    first = counted(stream, window, "first")
    second = counted(first, tw.tumbling(step), "second", "n")
    second.sink("out", tw.call(lambda t: found.append(t.n)))
    stream.flow.run(on=tw.Inline(block_rows=rows))
    assert sum(found) == len(times)


def joined(how: str, left: list[int], right: list[int]) -> Stream:
    """Join clicks of one user by time, three seconds apart at most, or with the last before."""
    flow = tw.Flow("join")
    one = clicks(flow, "left", [(at, "u") for at in left])
    other = clicks(flow, "right", [(at, "u") for at in right])
    if how == "asof":
        return one.join_asof(other, "user", how="left", prefix="r_")
    return one.join_within(other, "user", within=3, how="left", prefix="r_")


def pairs(how: str, left: list[int], right: list[int]) -> list[tuple[int, int | None]]:
    """Find what belongs together by comparing all with all."""
    if how == "asof":
        return [(at, max((r for r in right if r <= at), default=None)) for at in left]
    near = {at: [r for r in right if abs(r - at) <= 3] or [None] for at in left}
    return [(at, r) for at in left for r in near[at]]


in_time = st.lists(st.integers(0, 12), max_size=12).map(sorted)
every_join = pytest.mark.parametrize("how", ["asof", "within"])


@every_join
@settings(max_examples=50)
@given(left=in_time, right=in_time, rows=st.integers(1, 3))
def test_tuples_of_one_time_are_never_late_for_each_other(
    how: str, left: list[int], right: list[int], rows: int
) -> None:
    found: list[tuple[int, int | None]] = []
    stream = joined(how, left, right)
    stream.sink("out", tw.call(lambda t: found.append((t.at, t.r_at))))
    stream.flow.run(on=tw.Inline(block_rows=rows))
    assert Counter(found) == Counter(pairs(how, left, right))


@every_join
@settings(max_examples=50)
@given(left=in_time, right=in_time, step=st.integers(1, 4), rows=st.integers(1, 3))
def test_nothing_is_late_behind_a_join(
    how: str, left: list[int], right: list[int], step: int, rows: int
) -> None:
    found: list[tuple[int, int]] = []
    counts = counted(joined(how, left, right), tw.tumbling(step), "count")
    counts.sink("out", tw.call(lambda t: found.append((t.start.second, t.n))))
    counts.flow.run(on=tw.Inline(block_rows=rows))
    expected = Counter(at // step * step for at, _ in pairs(how, left, right))
    assert sorted(found) == sorted(expected.items())
