"""Timers against a list of all of them, whatever is set, cancelled, moved and written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from conformance.moving import Anywhere
from thalweg.components import Bolt, Kind
from thalweg.eventtime import ALWAYS, NEVER, SECOND
from thalweg.keys import encode_key
from thalweg.runtimes.spark.notes import Note
from thalweg.runtimes.spark.program import Facts
from thalweg.runtimes.spark.ticking import next_due
from thalweg.state import MemoryState
from thalweg.statelog.versioned import StateSettings, VersionedState
from thalweg.testing import ManualClock
from thalweg.timers import KeyTimers, TimersCodec

KEYS = st.sampled_from(["a", "b", 1, ("a", 2), None])
NAMES = st.sampled_from(["", "x"])
TIMES = st.integers(-5, 40)
OPS = st.one_of(
    st.tuples(st.just("at"), KEYS, NAMES, TIMES),
    st.tuples(st.just("after"), KEYS, NAMES, st.integers(1, 40)),
    st.tuples(st.just("cancel"), KEYS, NAMES, st.just(0)),
    st.tuples(st.just("advance"), st.none(), st.just(""), TIMES),
    st.tuples(st.just("sleep"), st.none(), st.just(""), st.integers(0, 20)),
    st.tuples(st.just("move"), KEYS, st.just(""), st.integers(0, 1)),
    st.tuples(st.just("again"), st.none(), st.just(""), st.just(0)),
)
Timer = tuple[Any, int, str]


class Model:
    """All timers, gone through one by one."""

    def __init__(self) -> None:
        self.timers: dict[tuple[Any, str], tuple[int, bool]] = {}
        self.now, self.clock = NEVER, 0

    def due(self, mine: Callable[[Any], bool]) -> list[Timer]:
        """Take out what is due of some keys: first that of events, each in the order of time."""
        found = []
        for by_clock, now in ((False, self.now), (True, self.clock * SECOND)):
            own = [
                (at, encode_key(key), name, key)
                for (key, name), (at, which) in self.timers.items()
                if which == by_clock and at <= now and mine(key)
            ]
            found += sorted(own, key=lambda timer: timer[:3])
        for _, _, name, key in found:
            del self.timers[key, name]
        return [(key, at, name) for at, _, name, key in found]


class Tasks:
    """Two tasks with state in memory, and who has which key."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.states = [MemoryState(TimersCodec()) for _ in range(2)]
        self.timers = [KeyTimers(state, clock) for state in self.states]
        self.owner: dict[Any, int] = {}

    def of(self, key: Any) -> KeyTimers:
        return self.timers[self.owner.get(key, 0)]

    def move(self, key: Any, to: int) -> None:
        before = self.owner.get(key, 0)
        self.owner[key] = to
        if before != to:
            self.states[to].take_over(self.states[before].give_away([key]))

    def begin_again(self, now: int) -> None:
        """Write everything down, and read it back."""
        written = [state.snapshot() for state in self.states]
        self.states = [MemoryState(TimersCodec()) for _ in range(2)]
        self.timers = [KeyTimers(state, self.clock, now) for state in self.states]
        for state, snapshot in zip(self.states, written, strict=True):
            state.restore(snapshot)


def called(timers: KeyTimers, now: int | None = None) -> list[Timer]:
    found: list[Timer] = []
    if now is None:
        timers.fire(lambda *timer: found.append(timer))
    else:
        timers.advance(now, lambda *timer: found.append(timer))
    return found


@given(st.lists(OPS, max_size=60))
def test_timers_in_memory_are_called_as_a_list_of_them_says(ops: list[Any]) -> None:
    model, clock = Model(), ManualClock()
    tasks = Tasks(clock)
    for what, key, name, number in ops:
        if what == "at":
            tasks.of(key).at(key, number, name)
            model.timers[key, name] = number, False
        elif what == "after":
            tasks.of(key).after(key, number, name)
            model.timers[key, name] = (model.clock + number) * SECOND, True
        elif what == "cancel":
            tasks.of(key).cancel(key, name)
            model.timers.pop((key, name), None)
        elif what == "move":
            tasks.move(key, number)
        elif what == "again":
            tasks.begin_again(model.now)
        else:
            model.now = max(model.now, number) if what == "advance" else model.now
            model.clock += number if what == "sleep" else 0
            clock.advance(number if what == "sleep" else 0)
            for task, timers in enumerate(tasks.timers):
                expected = model.due(lambda key, task=task: tasks.owner.get(key, 0) == task)
                moment = round(clock.now() * SECOND)
                assert not expected or timers.alarm <= moment or what == "advance"
                assert called(timers, model.now if what == "advance" else None) == expected
                assert timers.alarm > moment


def batch(parts: list[Any], facts: Facts, ops: list[Any]) -> tuple[list[Timer], Any, Any]:
    """Do what a batch does: it gives what was called, what is written, and what is due next."""
    told, now = facts.times["timed"]
    state = VersionedState(parts, StateSettings("timed", facts.clock, TimersCodec()))
    bounds = facts.due.get("timed", (ALWAYS, ALWAYS))
    timers = KeyTimers(state, ManualClock(facts.clock), told, bounds)
    for what, key, name, number in ops:
        if what == "at":
            timers.at(key, number, name)
        elif what == "after":
            timers.after(key, number, name)
        elif what == "cancel":
            timers.cancel(key, name)
    fired = called(timers, now) if now > told else []
    fired += called(timers) if facts.is_due("timed") else []
    note = Note(1, 0, "", due={"timed": timers.soonest()})
    return fired, state.delta(), next_due(facts, [note])


@given(st.lists(st.tuples(st.lists(OPS, max_size=6), st.integers(0, 10)), max_size=12))
def test_timers_in_batches_are_called_as_a_list_of_them_says(batches: list[Any]) -> None:
    """Each batch has a state of its own, read from what those before have written."""
    model, parts, told = Model(), [], NEVER
    due: dict[str, tuple[int, int]] = {}
    for ops, pause in batches:
        model.clock += pause
        model.now = max([model.now, *(op[3] for op in ops if op[0] == "advance")])
        facts = Facts(1, float(model.clock), 0, times={"timed": (told, model.now)}, due=due)
        for what, key, name, number in ops:
            if what == "at":
                model.timers[key, name] = number, False
            elif what == "after":
                model.timers[key, name] = (model.clock + number) * SECOND, True
            elif what == "cancel":
                model.timers.pop((key, name), None)
        fired, delta, due = batch(parts, facts, ops)
        assert (fired, delta, due) == batch(parts, facts, ops)  # as often as it is tried
        if model.now > told or facts.is_due("timed"):
            assert sorted(fired, key=str) == sorted(model.due(lambda _key: True), key=str)
        told = model.now
        parts += [] if delta is None else [delta]
        # Nothing that is there may be overlooked.
        for at, by_clock in model.timers.values():
            assert due["timed"][by_clock] <= at


class Deadlines(Bolt):
    """Every tuple has a deadline; those of a name that comes again are put off."""

    kind = Kind.KEYED
    outputs = {"key": int, "at": int, "name": str, "n": int}

    def process(self, t: Any) -> None:
        self.state.put(t.key, self.state.get(t.key, 0) + 1)
        self.timers.at(t.key, (t.at + t.wait) * SECOND, f"{t.at}")

    def process_timer(self, key: Any, at: int, name: str) -> None:
        self.emit(key, at // SECOND, name, 1)


ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), max_size=40)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(0, 20), st.integers(1, 50), st.integers(1, 3), st.integers(0, 1 << 20))
def test_every_deadline_is_called_once_in_any_order_and_block_size(
    rows: list[tuple[int, int]], delay: int, block_rows: int, degree: int, seed: int
) -> None:
    """Tuples come up to the delay late, their keys move all the time."""
    by_arrival = sorted(enumerate(rows), key=lambda p: p[1][0] + (p[0] * 7919 + seed) % (delay + 1))
    given_rows = [(at, key, 1 + delay) for _, (at, key) in by_arrival]
    builder = tw.TopologyBuilder("deadlines")
    fields = {"at": int, "key": int, "wait": int}
    time = tw.event_time("at", delay=delay)
    builder.add_spout("rows", tw.items(given_rows), fields=fields, time=time)
    builder.add_bolt("deadlines", Deadlines(), degree=degree).fields("rows", "key")
    seen: list[Any] = []
    builder.add_bolt("out", tw.call(lambda t: seen.append(tuple(t)))).global_("deadlines")
    moving = Anywhere({}, seed, groups=True)
    builder.build().run(on=tw.Inline(block_rows=block_rows, clock=ManualClock(), rerouter=moving))
    expected = {(key, at + wait, str(at), 1) for at, key, wait in given_rows}
    assert sorted(seen) == sorted(expected)
    for key in range(6):
        own = [row[1] for row in seen if row[0] == key]
        assert own == sorted(own)
