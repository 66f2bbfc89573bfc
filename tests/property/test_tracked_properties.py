"""State that knows what has changed: snapshots put together are the state, wherever keys were."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from thalweg.clock import ManualClock
from thalweg.keys import Key, canonical
from thalweg.statelog.parts import merge, milliseconds
from thalweg.statelog.tracked import Tracked, TrackedExpiringState, TrackedState, together

#: Few, so that they meet; some are the same.
KEYS = st.sampled_from(["a", 1, 1.0, ("a", 2.0)])
TASKS = st.integers(0, 1)
NUMBERS = st.integers(-5, 5)


class SnapshotsOfTwoTasks(RuleBasedStateMachine):
    """Two tasks of a component, between which keys move; every key is at one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[Tracked] = [TrackedState(), TrackedState()]
        self.owners: dict[Key, int] = {}
        self.now: dict[Key, list[int]] = {}
        self.parts: list[pa.RecordBatch] = []
        self.saved: dict[Key, list[int]] = {}

    def at(self, key: Any) -> Tracked:
        return self.states[self.owners.setdefault(canonical(key), 0)]

    @rule(key=KEYS, number=NUMBERS)
    def put(self, key: Any, number: int) -> None:
        self.at(key).put(key, [number])
        self.now[canonical(key)] = [number]

    @rule(key=KEYS, number=NUMBERS)
    def change_in_place(self, key: Any, number: int) -> None:
        found = self.at(key).get(key)
        if found is not None:
            found.append(number)
            self.now[canonical(key)].append(number)

    @rule(key=KEYS)
    def delete(self, key: Any) -> None:
        self.at(key).delete(key)
        self.now.pop(canonical(key), None)

    @rule(task=TASKS, number=NUMBERS)
    def work_on_all(self, task: int, number: int) -> None:
        """Change what a task has, as vectorised bolts do; one of its keys is forgotten."""
        state = self.states[task]
        keys = [key for key in self.now if self.owners[key] == task]
        with state.working(keys) as values:
            for key in keys:
                values[key].append(number)
                self.now[key].append(number)
            if keys:
                del values[keys[0]], self.now[keys[0]]

    @rule(task=TASKS, number=NUMBERS)
    def look_at_all(self, task: int, number: int) -> None:
        for key, value in self.states[task].items():
            value.append(number)
            self.now[key].append(number)

    @rule(key=KEYS)
    def move(self, key: Any) -> None:
        """Give a key another owner, whether it has a value or not."""
        known = canonical(key)
        old = self.owners.setdefault(known, 0)
        self.owners[known] = 1 - old
        self.states[1 - old].take_over(self.states[old].give_away([known]))

    @rule()
    def crash_of_a_process(self) -> None:
        """Make the first state anew of what is kept for that."""
        old, new = self.states[0], TrackedState()
        touched = old.touched()
        new.load(old.entries())
        new.touch(touched)
        self.states[0] = new

    @rule()
    def snapshot(self) -> None:
        parts = [part for state in self.states if (part := state.delta("c", 1.0)) is not None]
        self.parts += [together(parts)] if parts else []
        self.saved = {key: list(value) for key, value in self.now.items()}

    @invariant()
    def what_was_saved_can_be_read(self) -> None:
        found = TrackedState()
        if self.parts:
            found.take_back(merge(self.parts, oldest=True), "c")
        assert dict(found.items()) == self.saved


class SnapshotsWithTimes(RuleBasedStateMachine):
    """A state whose keys expire, written down and read again at any time."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock(100.0)
        self.state = TrackedExpiringState(self.clock, ttl=10)
        self.parts: list[pa.RecordBatch] = []

    @rule(key=st.sampled_from("abc"), number=NUMBERS)
    def put(self, key: str, number: int) -> None:
        self.state.put(key, number)

    @rule(key=st.sampled_from("abc"))
    def delete(self, key: str) -> None:
        self.state.delete(key)

    @rule(seconds=st.integers(0, 12))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def restart(self) -> None:
        part = self.state.delta("c", self.clock.now())
        self.parts += [] if part is None else [part]
        before = milliseconds(self.clock.now()) - milliseconds(10)
        found = TrackedExpiringState(self.clock, ttl=10)
        found.take_back(merge(self.parts, oldest=True, expired_before=before), "c")
        assert dict(found.items()) == dict(self.state.items())
        self.state = found


TestSnapshotsOfTwoTasks = SnapshotsOfTwoTasks.TestCase
TestSnapshotsOfTwoTasks.settings = settings(max_examples=150, stateful_step_count=40)
TestSnapshotsWithTimes = SnapshotsWithTimes.TestCase
TestSnapshotsWithTimes.settings = settings(max_examples=60, stateful_step_count=20)
