"""Timers beside values: what bolts see, what is written down, and when they are called."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import thalweg as tw
from thalweg.codecs import MsgpackCodec
from thalweg.components import Bolt, Kind, Spout, has_timers
from thalweg.errors import StateError, TopologyError, UsageError
from thalweg.eventtime import ALWAYS, NEVER, SECOND
from thalweg.state import ExpiringState, MemoryState
from thalweg.statelog.versioned import StateSettings, VersionedState
from thalweg.testing import ManualClock
from thalweg.timers import NOTHING, KeyTimers, Timed, TimedState, TimersCodec, plain_items
from thalweg.watermarks import BatchTimes, Came, Silence, Watermarks

Fired = list[tuple[Any, int, str]]


def memory(clock: ManualClock | None = None) -> tuple[TimedState, KeyTimers, MemoryState]:
    kept = MemoryState(TimersCodec())
    return TimedState(kept), KeyTimers(kept, clock or ManualClock()), kept


def advanced(timers: KeyTimers, now: int) -> Fired:
    fired: Fired = []
    timers.advance(now, lambda *timer: fired.append(timer))
    return fired


def woken(timers: KeyTimers) -> Fired:
    fired: Fired = []
    timers.fire(lambda *timer: fired.append(timer))
    return fired


# --- what bolts see -------------------------------------------------------------------------------


def test_values_and_timers_do_not_see_each_other() -> None:
    state, timers, _ = memory()
    timers.at("a", 10)
    assert state.get("a", "none") == "none"
    assert len(state) == 0
    state.put("a", None)  # a value like any other
    assert state.get("a", "none") is None
    state.delete("a")
    assert dict(state.items()) == {}
    assert advanced(timers, 10) == [("a", 10, "")]


def test_a_key_without_value_and_timers_is_gone() -> None:
    state, timers, kept = memory()
    timers.at("a", 10)
    timers.at("b", 10)
    timers.cancel("b")
    timers.cancel("nobody")
    assert kept.keys() == ["a"]
    advanced(timers, 10)
    assert kept.keys() == []
    state.put("a", 1)
    state.delete("a")
    state.delete("a")
    assert kept.keys() == []


def test_many_values_at_once_keep_their_timers() -> None:
    state, timers, _ = memory()
    timers.at("a", 10)
    state.put_many({"a": 1, "b": 2})
    state.update(["a", "c"], lambda old: [(value or 0) + 5 for value in old])
    assert state.get_many(["a", "b", "c", "d"]) == {"a": 6, "b": 2, "c": 5}
    with state.working(["a", "b", "d"]) as values:
        values["a"] += 1
        del values["b"]
        values["d"] = 0
    assert dict(state.items()) == {"a": 7, "c": 5, "d": 0}
    assert advanced(timers, 10) == [("a", 10, "")]


def test_setting_a_timer_again_moves_it_whatever_it_goes_by() -> None:
    clock = ManualClock()
    _, timers, _ = memory(clock)
    timers.at("a", 10)
    timers.at("a", 30)
    timers.at("a", 20, "other")
    assert advanced(timers, 25) == [("a", 20, "other")]
    timers.after("a", 1)
    assert advanced(timers, 40) == []
    clock.advance(1)
    assert woken(timers) == [("a", SECOND, "")]


def test_a_time_may_be_a_datetime() -> None:
    _, timers, _ = memory()
    timers.at("naive", dt.datetime(1970, 1, 1, 0, 0, 1))
    timers.at("zoned", dt.datetime(1970, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))))
    assert advanced(timers, SECOND) == [("zoned", 0, ""), ("naive", SECOND, "")]
    with pytest.raises(TypeError):
        timers.at("a", 1.5)  # type: ignore[arg-type]  # seconds, probably


def test_waiting_for_nothing_is_refused() -> None:
    _, timers, _ = memory()
    with pytest.raises(UsageError, match="duration"):
        timers.after("a", 0)


# --- when they are called -------------------------------------------------------------------------


def test_timers_are_called_in_the_order_of_time_and_once() -> None:
    _, timers, _ = memory()
    for at, key in [(30, "c"), (10, "b"), (20, "a"), (10, "a")]:
        timers.at(key, at, f"{at}")
    assert advanced(timers, 20) == [("a", 10, "10"), ("b", 10, "10"), ("a", 20, "20")]
    assert advanced(timers, 20) == []
    assert advanced(timers, 100) == [("c", 30, "30")]


def test_a_timer_that_sets_the_next_is_called_as_often_as_time_has_passed() -> None:
    _, timers, _ = memory()
    fired: Fired = []

    def again(key: Any, at: int, name: str) -> None:
        fired.append((key, at, name))
        timers.at(key, at + 10, name)

    timers.at("a", 5)
    timers.at("b", 20)
    timers.advance(31, again)
    assert [at for _, at, _ in fired] == [5, 15, 20, 25, 30]


def test_at_the_end_all_timers_of_events_are_called_but_none_that_they_set() -> None:
    clock = ManualClock()
    _, timers, kept = memory(clock)
    fired: Fired = []

    def end(key: Any, at: int, name: str) -> None:
        fired.append((key, at, name))
        timers.at(key, at + 1)
        timers.cancel("c")

    timers.at("b", 20)
    timers.at("a", 10)
    timers.at("c", 30)
    timers.after("d", 5)
    timers.end(end)
    assert fired == [("a", 10, ""), ("b", 20, "")]
    assert sorted(map(str, kept.keys())) == ["a", "b", "d"]


def test_a_timer_for_a_time_that_has_passed_wakes_its_task_at_once() -> None:
    clock = ManualClock(100.0)
    _, timers, _ = memory(clock)
    assert timers.alarm == ALWAYS
    timers.after("a", 5)
    assert timers.alarm == 105 * SECOND
    advanced(timers, 50)
    timers.at("b", 51)
    assert timers.alarm == 105 * SECOND
    timers.at("b", 50)
    assert timers.alarm == NEVER
    assert woken(timers) == [("b", 50, "")]
    assert timers.alarm == 105 * SECOND


def test_timers_that_were_moved_many_times_do_not_pile_up() -> None:
    _, timers, _ = memory()
    for at in range(10_000):
        timers.at("a", at + 100_000)
        timers.at(at % 50, at + 200_000, "other")
    assert timers._lists is not None
    assert len(timers._lists[0]) < 2000
    assert advanced(timers, 109_999) == [("a", 109_999, "")]


def test_a_key_that_is_forgotten_takes_its_timers_along() -> None:
    clock = ManualClock()
    kept = ExpiringState(clock, 10.0, TimersCodec())
    timers = KeyTimers(kept, clock)
    timers.at("a", 1)
    clock.advance(11)
    assert advanced(timers, 5) == []


# --- from task to task, and written down ----------------------------------------------------------


def test_timers_go_where_their_key_goes() -> None:
    one, other = memory(), memory()
    one[0].put("a", 1)
    one[1].at("a", 10)
    one[1].at("b", 10)
    other[2].take_over(one[2].give_away(["a"]))
    assert other[1].alarm == ALWAYS
    assert advanced(one[1], 20) == [("b", 10, "")]
    assert advanced(other[1], 20) == [("a", 10, "")]
    assert other[0].get("a") == 1


def test_timers_that_come_too_late_for_the_time_wake_the_task() -> None:
    one, other = memory(), memory()
    one[1].at("a", 10)
    advanced(other[1], 20)
    other[2].load(one[2].entries())
    assert other[1].alarm == NEVER
    assert woken(other[1]) == [("a", 10, "")]


def test_values_are_written_as_their_own_codec_has_them() -> None:
    codec = TimersCodec(MsgpackCodec(dict[str, int]))
    for value in ({"n": 3}, NOTHING):
        read = codec.decode(codec.encode(Timed(value, {"x": (5, True)})))
        assert (read.value, read.timers) == (value, {"x": (5, True)})
    with pytest.raises(StateError, match="timers"):
        codec.decode(b"\x01")


def test_plain_items_are_values_without_timers() -> None:
    pairs = [("a", Timed(1)), ("b", Timed(NOTHING, {"": (1, False)})), ("c", 3)]
    assert list(plain_items(pairs)) == [("a", 1), ("c", 3)]


# --- a state that is read little by little --------------------------------------------------------


def versioned(parts: list[Any], due: tuple[int, int]) -> tuple[KeyTimers, VersionedState]:
    state = VersionedState(parts, StateSettings("timed", 0.0, TimersCodec()))
    return KeyTimers(state, ManualClock(), NEVER, due), state


def test_a_state_is_gone_through_only_when_something_may_be_due() -> None:
    timers, state = versioned([], (ALWAYS, ALWAYS))
    timers.at("a", 10)
    timers.after("b", 7)
    assert timers.soonest() == (10, 7 * SECOND)
    delta = state.delta()
    timers, _ = versioned([delta], (10, 7 * SECOND))
    assert advanced(timers, 9) == []
    assert timers.soonest() == (ALWAYS, ALWAYS)  # nothing was set here, nothing was looked at
    timers.at("c", 20)
    assert timers.soonest() == (20, ALWAYS)
    assert advanced(timers, 10) == [("a", 10, "")]
    assert timers.soonest() == (20, 7 * SECOND)


# --- what topologies may have ---------------------------------------------------------------------


class Waits(Bolt):
    kind = Kind.KEYED
    outputs = {"key": str}

    def process(self, t: Any) -> None:
        self.timers.at(t.word, 1)

    def process_timer(self, key: Any, at: int, name: str) -> None:
        self.emit(key)


class Stateless(Waits):
    kind = Kind.STATELESS


class Words(Spout):
    outputs = {"word": str}

    def next_tuple(self) -> None:
        self.finish()


def test_a_bolt_with_process_timer_has_to_know_the_time() -> None:
    assert Waits.timed
    assert has_timers(Waits)
    assert not has_timers(Words)
    assert not has_timers(Bolt)


def test_a_stateless_bolt_has_no_timers() -> None:
    builder = tw.TopologyBuilder("t")
    builder.add_spout("words", Words())
    builder.add_bolt("waits", Stateless()).shuffle("words")
    with pytest.raises(TopologyError, match="process_timer"):
        builder.build()


def test_a_key_with_timers_has_one_task() -> None:
    class Merges(Waits):
        def merge(self, a: Any, b: Any) -> Any:
            return a

    builder = tw.TopologyBuilder("t")
    builder.add_spout("words", Words())
    builder.add_bolt("waits", Merges()).partial_key("words", "word")
    with pytest.raises(TopologyError, match="one task for each key"):
        builder.build()


def test_an_error_in_process_timer_ends_the_run() -> None:
    class Bad(Waits):
        def process_timer(self, key: Any, at: int, name: str) -> None:
            raise ValueError(key)

    builder = tw.TopologyBuilder("t")
    builder.add_spout("words", tw.items(["a"]), fields={"word": str})
    builder.add_bolt("waits", Bad()).fields("words", "word")
    builder.add_bolt("out", tw.call(print)).global_("waits")
    with pytest.raises(tw.ComponentError, match="process_timer"):
        builder.build().run(on="inline")


# --- sources that are silent, where tuples come in batches ----------------------------------------


def two_sources() -> tw.Topology:
    builder, fields = tw.TopologyBuilder("t"), {"at": int, "word": str}
    builder.add_spout("busy", tw.items([]), fields=fields, time="at")
    silent = tw.event_time("at", idle="5 s")
    builder.add_spout("silent", tw.items([]), fields=fields, time=silent)
    builder.add_bolt("waits", Waits()).fields("busy", "word").fields("silent", "word")
    return builder.build()


def test_a_source_is_silent_when_it_has_given_nothing_for_long_enough() -> None:
    silence = Silence(two_sources(), now=10.0)
    assert silence.at(14.9) == frozenset()
    silence.heard(["busy/0", "silent/0"], now=12.0)
    assert silence.at(16.9) == frozenset()
    assert silence.at(17.0) == {"silent/0"}  # the other may be silent as long as it likes


def test_time_goes_on_without_a_silent_source() -> None:
    times, newest = BatchTimes(two_sources()), {"busy/0": 30, "silent/0": 10}
    assert times.next(Came(newest), {}) == {"waits": 10}
    assert times.next(Came(newest, silent=["silent/0"]), {"waits": 10}) == {"waits": 30}
    assert times.next(Came(newest), {"waits": 30}) == {"waits": 30}
    both = ["busy/0", "silent/0"]
    assert times.next(Came(newest, silent=both), {"waits": 10}) == {"waits": 10}


def test_an_ended_source_keeps_nobody_waiting_and_when_all_have_ended_what_came_counts() -> None:
    times, newest = BatchTimes(two_sources()), {"busy/0": 30, "silent/0": 10}
    assert times.next(Came(newest, ended=["silent/0"]), {"waits": 5}) == {"waits": 30}
    both = ["busy/0", "silent/0"]
    assert times.next(Came(newest, ended=both), {"waits": 5}) == {"waits": 10}


def test_what_is_left_to_be_told_at_the_end_is_told_once() -> None:
    marks = Watermarks(two_sources(), 0.0)
    marks.saw("busy", 0, 30, 0.0)
    assert marks.last() == {}
    marks.saw("silent", 0, 20, 0.0)
    assert marks.last() == {"waits": 20}
    assert marks.last() == {}


def test_it_is_told_how_far_time_has_come_also_where_that_makes_no_difference_yet() -> None:
    marks = Watermarks(two_sources(), 0.0)
    assert marks.marks(0.0) == {}
    marks.saw("busy", 0, 30, 0.0)
    assert marks.marks(0.0) == {"busy": (30, 30)}  # the other one has given nothing: time waits
    marks.saw("silent", 0, 10, 0.0)
    marks.look(0.0, lambda _name: False)
    assert marks.told["waits"] == NEVER
    assert marks.marks(0.0) == {"busy": (30, 30), "silent": (10, 10), "waits": (10, 30)}
    marks.ended("silent", 0)
    marks.look(0.0, lambda _name: False)
    assert marks.marks(0.0)["waits"] == (30, 30)


def test_the_newest_tuple_may_be_far_ahead_of_a_source_that_knows_how_far_it_has_come() -> None:
    marks = Watermarks(two_sources(), 0.0)
    marks.saw("silent", 0, 20, 0.0)
    marks.saw("busy", 0, 30, 0.0, knows=True)
    assert marks.marks(0.0) == {"silent": (20, 20)}
    marks.reached("busy", 0, 10)
    marks.look(0.0, lambda _name: False)
    assert marks.marks(0.0) == {"silent": (20, 20), "busy": (10, 30), "waits": (10, 30)}
    batches, reached = BatchTimes(two_sources()), {"busy/0": 10, "silent/0": 20}
    came = Came(reached, given={"busy/0": 30})
    assert batches.marks(came, {}) == marks.marks(0.0)


def test_where_tuples_come_in_batches_it_is_what_was_committed() -> None:
    times, newest = BatchTimes(two_sources()), {"busy/0": 30, "silent/0": 10}
    assert times.marks(Came(), {}) == {}
    assert times.marks(Came(newest), {})["waits"] == (10, 30)
    # One that was silent for too long and has kept nobody waiting does so no more.
    assert times.marks(Came(newest), {"waits": 30})["waits"] == (30, 30)
    assert times.marks(Came(newest, ended=["silent/0"]), {})["waits"] == (30, 30)
    both = ["busy/0", "silent/0"]
    assert times.marks(Came(newest, ended=both), {})["waits"] == (10, 30)
