"""State and codecs: values come back as they were; snapshots and moves lose and double nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
from collections import Counter
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from property.strategies import (
    AWARE,
    BYTES,
    DATES,
    FLOATS,
    KEYS,
    NAIVE,
    SCALAR_KEYS,
    SPANS,
    TEXT,
    TIMES,
    blocks,
    plain,
)
from thalweg.blocks import Block
from thalweg.clock import ManualClock
from thalweg.codecs import ArrowCodec, MsgpackCodec
from thalweg.errors import StateError
from thalweg.hashing import hash_key
from thalweg.keys import canonical, encode_key
from thalweg.state import ExpiringState, MemoryState
from thalweg.statelog import StateSettings, VersionedState, merge
from thalweg.statelog.parts import milliseconds

# --- codecs ------------------------------------------------------------------------------------

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | FLOATS
    | TEXT
    | BYTES
    | DATES
    | NAIVE
    | AWARE
    | TIMES
    | SPANS
)
HASHABLE = st.recursive(
    ATOMS,
    lambda part: st.lists(part, max_size=3).map(tuple) | st.frozensets(part, max_size=3),
    max_leaves=4,
)
VALUES = st.recursive(
    ATOMS,
    lambda part: (
        st.lists(part, max_size=3)
        | st.lists(part, max_size=3).map(tuple)
        | st.sets(HASHABLE, max_size=3)
        | st.frozensets(HASHABLE, max_size=3)
        | st.dictionaries(TEXT, part, max_size=3)
        | st.dictionaries(HASHABLE, part, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    codec = MsgpackCodec()
    assert plain(codec.decode(codec.encode(value))) == plain(value)


class Visit(msgspec.Struct):
    page: str
    seconds: float | None
    at: dt.datetime | None = None


@dataclasses.dataclass
class Session:
    visits: list[Visit]
    tags: set[str] = dataclasses.field(default_factory=set)
    counts: dict[str, int] = dataclasses.field(default_factory=dict)


VISITS = st.builds(Visit, TEXT, st.none() | st.floats(allow_nan=False), st.none() | NAIVE)
SESSIONS = st.builds(
    Session,
    st.lists(VISITS, max_size=3),
    st.sets(TEXT, max_size=3),
    st.dictionaries(TEXT, st.integers(0, 2**60), max_size=3),
)


@given(SESSIONS)
def test_values_of_a_declared_type_come_back_as_they_were(session: Session) -> None:
    codec = MsgpackCodec(Session)
    assert codec.decode(codec.encode(session)) == session


@given(blocks())
def test_record_batches_come_back_as_they_were(block: Block) -> None:
    codec = ArrowCodec()
    again = codec.decode(codec.encode(block.batch))
    assert again.schema == block.batch.schema
    assert plain(again.to_pylist()) == plain(block.batch.to_pylist())


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Visit("a", 1.0),
        [Session([])],
        dt.time(12, tzinfo=dt.UTC),
        dt.timedelta.max,
        "\ud800",
        {"a": {1: object()}},
        bytearray(b"a"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_not_come_back_is_refused(value: Any) -> None:
    with pytest.raises(StateError):
        MsgpackCodec().encode(value)


def test_only_record_batches_go_through_the_arrow_codec() -> None:
    with pytest.raises(StateError):
        ArrowCodec().encode(pa.table({"a": [1]}))


@given(st.binary(max_size=30))
def test_bytes_that_are_no_value_are_refused_or_read(data: bytes) -> None:
    for codec in (MsgpackCodec(), MsgpackCodec(Session), ArrowCodec()):
        with contextlib.suppress(StateError):
            codec.decode(data)


# --- state -------------------------------------------------------------------------------------

CONTENTS = st.dictionaries(KEYS.map(canonical), VALUES, max_size=12)


def filled(values: dict[Any, Any], groups: int = 16) -> MemoryState:
    state = MemoryState(groups=groups)
    for key, value in values.items():
        state.put(key, value)
    return state


def content(state: MemoryState) -> dict[bytes, Any]:
    listed = [(encode_key(key), plain(value)) for key, value in state.items()]
    assert len(dict(listed)) == len(listed), "a key is there twice"
    return dict(listed)


@given(CONTENTS, CONTENTS)
def test_restoring_a_snapshot_gives_the_state_back(
    values: dict[Any, Any], others: dict[Any, Any]
) -> None:
    state, other = filled(values), filled(others)
    other.restore(state.snapshot())
    assert content(other) == content(state) == content(filled(values))


@given(CONTENTS)
def test_a_snapshot_is_cut_by_key_group(values: dict[Any, Any]) -> None:
    state = filled(values)
    snapshot = state.snapshot()
    for group, data in snapshot.items():
        part = MemoryState(groups=16)
        part.restore({group: data})
        assert {hash_key(key) % 16 for key, _ in part.items()} == {group}
        assert sorted(map(encode_key, state.keys_of(group))) == sorted(content(part))
    assert list(snapshot) == sorted({hash_key(key) % 16 for key in values})


@given(CONTENTS, st.data())
def test_entries_of_some_keys_are_those_keys_and_no_others(
    values: dict[Any, Any], data: st.DataObject
) -> None:
    state = filled(values)
    some = data.draw(st.lists(st.sampled_from([*values, "not there"]), unique_by=encode_key))
    other = MemoryState()
    other.load(state.entries(some))
    wanted = {encode_key(key) for key in some}
    assert content(other) == {k: v for k, v in content(state).items() if k in wanted}
    assert content(state) == content(filled(values))


@given(CONTENTS, st.lists(st.tuples(st.integers(0, 15), st.integers(0, 2)), max_size=10))
def test_moving_key_groups_loses_and_doubles_nothing(
    values: dict[Any, Any], moves: list[tuple[int, int]]
) -> None:
    tasks = [filled(values), MemoryState(groups=16), MemoryState(groups=16)]
    owner = dict.fromkeys(range(16), 0)
    for group, target in moves:
        source = tasks[owner[group]]
        keys = source.keys_of(group)
        entries = source.entries(keys)
        for key in keys:
            source.delete(key)
        tasks[target].load(entries)
        owner[group] = target
    everything = Counter(key for task in tasks for key in content(task))
    assert everything == Counter(map(encode_key, values))
    for number, task in enumerate(tasks):
        assert all(owner[hash_key(key) % 16] == number for key, _ in task.items())
        assert content(task).items() <= content(filled(values)).items()


class StateMachine(RuleBasedStateMachine):
    """A state under random use, against a dictionary from encoded key to value."""

    def __init__(self) -> None:
        super().__init__()
        self.state = MemoryState()
        self.model: dict[bytes, Any] = {}

    keys = st.sampled_from(
        [None, 0, 0.0, True, 1, 1.0, float("nan"), -float("nan"), "a", b"a", ("a", 1), ("a", 1.0)]
    )

    @rule(key=keys | SCALAR_KEYS, value=st.integers())
    def put(self, key: Any, value: int) -> None:
        self.state.put(key, value)
        self.model[encode_key(key)] = value

    @rule(key=keys)
    def get(self, key: Any) -> None:
        assert self.state.get(key, "none") == self.model.get(encode_key(key), "none")

    @rule(key=keys)
    def delete(self, key: Any) -> None:
        self.state.delete(key)
        self.model.pop(encode_key(key), None)

    @rule(pairs=st.lists(st.tuples(keys.map(canonical), st.integers()), max_size=4))
    def put_many(self, pairs: list[tuple[Any, int]]) -> None:
        self.state.put_many(dict(pairs))
        self.model.update((encode_key(key), value) for key, value in dict(pairs).items())

    @rule(wanted=st.lists(keys.map(canonical), unique_by=encode_key, max_size=4))
    def update(self, wanted: list[Any]) -> None:
        self.state.update(wanted, lambda values: [(value or 0) + 10 for value in values])
        for name in map(encode_key, wanted):
            self.model[name] = self.model.get(name, 0) + 10

    @rule(wanted=st.lists(keys.map(canonical), max_size=4))
    def get_many(self, wanted: list[Any]) -> None:
        found = {encode_key(key): value for key, value in self.state.get_many(wanted).items()}
        names = {encode_key(key) for key in wanted}
        assert found == {name: self.model[name] for name in names & self.model.keys()}

    @rule()
    def restart(self) -> None:
        again = MemoryState()
        again.restore(self.state.snapshot())
        self.state = again

    @invariant()
    def is_the_dictionary(self) -> None:
        assert len(self.state) == len(self.model)
        assert {encode_key(key): value for key, value in self.state.items()} == self.model


TestState = StateMachine.TestCase
TestState.settings = settings(max_examples=50, stateful_step_count=20)


# --- time to live ---------------------------------------------------------------------------------

#: Few keys in their canonical form, so that they meet again.
FEW = st.sampled_from(["a", "b", b"a", 0, 1.5, None, ("a", 1), ("a", None)])
SOME = st.lists(FEW, unique_by=encode_key, max_size=4)
TTL = 3


class ExpiringMachine(RuleBasedStateMachine):
    """State in memory and state of a log, batch after batch, against one dictionary with times."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.memory = ExpiringState(self.clock, TTL)
        self.parts: list[pa.RecordBatch] = []
        #: Value of each key, and when it was written.
        self.model: dict[Any, tuple[Any, float]] = {}
        self._begin()

    def _begin(self) -> None:
        self.logged = VersionedState(self.parts, StateSettings("counts", self.clock.now(), ttl=TTL))

    @property
    def states(self) -> tuple[ExpiringState, VersionedState]:
        return self.memory, self.logged

    def _alive(self) -> dict[Any, Any]:
        limit = self.clock.now() - TTL
        return {key: value for key, (value, time) in self.model.items() if time >= limit}

    def _write(self, values: dict[Any, Any]) -> None:
        self.model.update((key, (value, self.clock.now())) for key, value in values.items())

    @rule(key=FEW, value=st.integers(0, 3))
    def put(self, key: Any, value: int) -> None:
        for state in self.states:
            state.put(key, value)
        self._write({key: value})

    @rule(keys=SOME, value=st.integers(0, 3))
    def put_many(self, keys: list[Any], value: int) -> None:
        for state in self.states:
            state.put_many(dict.fromkeys(keys, value))
        self._write(dict.fromkeys(keys, value))

    @rule(key=FEW)
    def delete(self, key: Any) -> None:
        for state in self.states:
            state.delete(key)
        self.model.pop(key, None)

    @rule(key=FEW)
    def get(self, key: Any) -> None:
        for state in self.states:
            assert state.get(key, "none") == self._alive().get(key, "none")

    @rule(keys=SOME)
    def get_many(self, keys: list[Any]) -> None:
        alive = self._alive()
        for state in self.states:
            assert state.get_many(keys) == {key: alive[key] for key in keys if key in alive}

    @rule(keys=SOME)
    def update(self, keys: list[Any]) -> None:
        known = [self._alive().get(key) for key in keys]

        def change(before: list[Any]) -> list[Any]:
            assert before == known
            return [(value or 0) + 10 for value in before]

        for state in self.states:
            state.update(keys, change)
        self._write(dict(zip(keys, [(value or 0) + 10 for value in known], strict=True)))

    @rule(keys=SOME)
    def work(self, keys: list[Any]) -> None:
        """Every other key is deleted; the others count as written, changed or not."""
        alive = self._alive()
        for state in self.states:
            with state.working(keys) as values:
                for key in keys[::2]:
                    values.pop(key, None)
        for key in keys[::2]:
            self.model.pop(key, None)
        self._write({key: alive[key] for key in keys[1::2] if key in alive})

    @rule(seconds=st.integers(0, TTL + 1))
    def next_batch(self, seconds: int) -> None:
        delta = self.logged.delta()
        self.parts += [] if delta is None else [delta]
        self.clock.advance(seconds)
        self._begin()

    @rule(data=st.data())
    def merge_parts(self, data: st.DataObject) -> None:
        if len(self.parts) > 1:
            start = data.draw(st.integers(0, len(self.parts) - 1))
            expired = milliseconds(self.clock.now() - TTL)
            merged = merge(self.parts[start:], oldest=start == 0, expired_before=expired)
            self.parts[start:] = [merged]

    @rule()
    def read_everything(self) -> None:
        alive = self._alive()
        for state in self.states:
            assert len(state) == len(alive)
            assert plain(dict(state.items())) == plain(alive)


TestExpiring = ExpiringMachine.TestCase
TestExpiring.settings = settings(max_examples=50, stateful_step_count=20)
