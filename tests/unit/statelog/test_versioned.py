"""Versioned state: a dictionary over immutable parts that knows what a batch has changed."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from statelog.building import GONE, forged, part, settings
from thalweg.codecs import ArrowCodec, MsgpackCodec
from thalweg.errors import StateError
from thalweg.hashing import hash_key
from thalweg.keys import key_values
from thalweg.statelog import StateSettings, VersionedState

MAX = 2**64 - 1


def reopened(*parts: pa.RecordBatch | None, **others: Any) -> VersionedState:
    return VersionedState([p for p in parts if p is not None], settings(**others))


def changes(state: VersionedState) -> dict[Any, Any]:
    """What the delta of a state says, as the next batch would read it."""
    delta = state.delta()
    if delta is None:
        return {}
    hashes = delta.column(0).to_pylist()
    assert hashes == sorted(hashes)
    marks = VersionedState([delta], settings())
    present = dict(marks.items())
    gone = delta.filter(delta.column(2).is_null()).column(1).to_pylist()
    return present | {msgspec.msgpack.decode(key): GONE for key in gone}


def test_values_are_put_got_and_deleted() -> None:
    state = reopened(part({"a": 1, "b": 2}), part({"b": 3, "c": GONE}))
    assert [state.get("a"), state.get("b"), state.get("c"), state.get("c", 0)] == [1, 3, None, 0]
    state.put("c", None)
    state.delete("a")
    state.delete("never there")
    assert dict(state.items()) == {"b": 3, "c": None}
    assert len(state) == 2
    assert state.get("c", 5) is None


def test_many_values_at_once() -> None:
    state = reopened(part({"a": 1, "b": 2, "z": 9}))
    assert state.get_many(iter(["a", "x", "b", "a"])) == {"a": 1, "b": 2}
    state.put_many({"a": 5, "n": 6})
    with state.working(["b", "n", "z"]) as values:
        values["b"] += 1
        del values["z"]
    assert state.get_many(["a", "b", "n", "z"]) == {"a": 5, "b": 3, "n": 6}
    assert changes(state) == {"a": 5, "b": 3, "n": 6, "z": GONE}


def test_keys_are_the_same_as_the_house_rule_says() -> None:
    utc = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    elsewhere = utc.astimezone(dt.timezone(dt.timedelta(hours=5)))
    state = reopened(
        part({1: "one", float("nan"): "nan", ("x", 0): "zero", utc: "noon", "a": 1, b"a": 2})
    )
    assert state.get(True) == state.get(1.0) == state.get(np.int64(1)) == "one"
    assert state.get(float("nan")) == state.get(np.float32("nan")) == "nan"
    assert state.get(("x", -0.0)) == state.get(("x", False)) == "zero"
    assert state.get(elsewhere) == "noon"
    assert [state.get("a"), state.get(b"a")] == [1, 2]
    state.put(float("nan"), "other")
    state.put(("x", -0.0), "other")
    state.put(True, "other")
    assert len(state) == 6
    assert state.delta().num_rows == 3


@pytest.mark.parametrize("key", [[1], {"a": 1}, ("x", [1]), object(), 2**64])
def test_what_is_no_key_is_refused(key: Any) -> None:
    state = reopened(part({"a": 1}))
    with pytest.raises(StateError, match="key"):
        state.get(key)
    with pytest.raises(StateError, match="key"):
        state.delete(key)


def test_keys_with_one_hash_are_told_apart() -> None:
    assert hash_key(-1) == hash_key(MAX)
    state = reopened(part({-1: "minus", 3: "x"}), part({MAX: "max"}))
    state.prefetch([pa.array([MAX, 3, 4], pa.uint64())])
    state.prefetch([pa.array([-1, 3], pa.int64())])
    assert [state.get(-1), state.get(MAX)] == ["minus", "max"]
    state.delete(-1)
    assert dict(reopened(part({-1: "m", MAX: "max"}), state.delta()).items()) == {MAX: "max"}


# --- the delta ----------------------------------------------------------------------------------

READS: list[Callable[[VersionedState], object]] = [
    lambda state: state.get("list"),
    lambda state: state.get_many(["list", "set", "none"]),
    lambda state: state.prefetch([pa.array(["list", "int", "none"])]),
    lambda state: list(state.items()),
    len,
    lambda state: state.working(["list", "none"]).__enter__(),
    lambda state: state.delete("none"),
]
VALUES = {"list": [1, 2], "set": {"a", "b"}, "int": 10**6, "none": GONE, "nan": float("nan")}


@pytest.mark.parametrize("read", READS)
def test_reading_changes_nothing(read: Callable[[VersionedState], object]) -> None:
    state = reopened(part(VALUES))
    read(state)
    assert state.delta() is None


def test_what_is_put_back_as_it_was_is_no_change() -> None:
    state = reopened(part(VALUES))
    state.put("int", 10**6 + 0)
    state.put("list", [1, 2])
    state.put("set", {"b", "a"})
    assert state.delta() is None


def test_a_value_of_another_type_is_a_change() -> None:
    state = reopened(part({"a": 1, "b": 0, "c": (1,)}))
    state.put_many({"a": 1.0, "b": False, "c": [1]})
    assert {key: type(value) for key, value in changes(state).items()} == {
        "a": float,
        "b": bool,
        "c": list,
    }


def test_a_value_changed_in_place_is_not_lost() -> None:
    state = reopened(part({"a": [1], "b": {"n": 1}, "c": [3], "d": [4]}))
    state.get("a").append(2)
    state.get_many(["b"])["b"]["n"] = 2
    for key, value in state.items():
        if key == "c":
            value.clear()
    assert changes(state) == {"a": [1, 2], "b": {"n": 2}, "c": []}


def test_only_keys_that_were_there_are_marked_as_deleted() -> None:
    state = reopened(part({"a": 1}))
    state.put("new", 1)
    state.delete("new")
    state.delete("a")
    assert changes(state) == {"a": GONE}
    state.put("a", 1)
    assert state.delta() is None


def test_a_delta_can_be_asked_for_again() -> None:
    state = reopened(part({"a": 1}))
    state.put("a", 2)
    first = state.delta()
    assert state.delta().equals(first)
    state.put("b", 1)
    assert changes(state) == {"a": 2, "b": 1}


def test_one_key_in_two_forms_is_written_once() -> None:
    state = reopened()
    state.put_many({float("nan"): 1, np.float64("nan"): 2})
    assert state.delta().num_rows == 1


def test_the_clock_of_the_batch_is_noted() -> None:
    state = reopened(now=12.5)
    state.put("a", 1)
    assert state.delta().column(3).to_pylist() == [12500]


# --- keys of blocks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        [pa.array(["a", None, "b", "a"])],
        [pa.array([1, 2, None, 1])],
        [pa.array([1.5, -0.0, float("nan"), 2.0])],
        [pa.array(["x", "y", "x", "x"]), pa.array([1, 1, None, 1])],
        [pa.array(["x", "y"]).dictionary_encode()],
        [pa.array([dt.date(2026, 1, 1)])],
        [pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us", "Europe/Paris"))],
        [pa.array([], pa.string())],
    ],
    ids=lambda columns: "+".join(str(column.type) for column in columns),
)
def test_prefetching_a_block_loads_its_keys(columns: list[pa.Array]) -> None:
    keys = key_values(columns)
    expected = {key: [i] for i, key in enumerate(keys)}
    state = reopened(part(expected | {"other": 1}))
    state.prefetch(columns)
    state._parts = []  # what was not loaded is not found any more
    assert state.get_many(keys) == expected
    state.prefetch(columns)
    assert state.delta() is None


def test_prefetching_does_not_undo_what_was_written() -> None:
    state = reopened(part({"a": 1, "b": 1, "c": 1}))
    state.put("a", 2)
    state.delete("b")
    state.prefetch([pa.array(["a", "b", "c"])])
    assert state.get_many("abc") == {"a": 2, "c": 1}


# --- time to live -------------------------------------------------------------------------------


def test_keys_expire_after_their_time() -> None:
    parts = [part({"a": 1, "b": 1}, now=10.0), part({"b": 2}, now=20.0)]
    state = reopened(*parts, now=30.0, ttl=10.0)
    assert [state.get("a"), state.get("b"), len(state)] == [None, 2, 1]
    assert reopened(*parts, now=20.0, ttl=10.0).get_many("ab") == {"a": 1, "b": 2}
    late = reopened(*parts, now=30.001, ttl=10.0)
    assert late.get_many("ab") == dict(late.items()) == {}
    late.delete("b")
    assert late.delta() is None


def test_an_expired_key_can_be_put_again() -> None:
    old = part({"a": 1}, now=1.0)
    state = reopened(old, now=100.0, ttl=10.0)
    state.put("a", 1)
    assert reopened(old, state.delta(), now=105.0, ttl=10.0).get("a") == 1


@pytest.mark.parametrize(
    "write",
    [
        lambda state: state.put("a", 1),
        lambda state: state.put_many({"a": 1}),
        lambda state: state.working(["a"]).__enter__(),
    ],
)
def test_writing_the_same_value_keeps_a_key_alive(
    write: Callable[[VersionedState], object],
) -> None:
    old = part({"a": 1}, now=0.0)
    state = reopened(old, now=8.0, ttl=10.0)
    write(state)
    assert reopened(old, state.delta(), now=15.0, ttl=10.0).get("a") == 1


def test_reading_does_not_keep_a_key_alive() -> None:
    state = reopened(part({"a": 1}), now=8.0, ttl=10.0)
    state.get("a")
    state.get_many(["a"])
    assert state.delta() is None


# --- ownership and codecs -----------------------------------------------------------------------


def test_only_own_keys_are_listed() -> None:
    keys = [f"k{i}" for i in range(30)]
    odd = StateSettings("count", 0.0, owns=lambda hashes: hashes % np.uint64(2) == 1)
    state = VersionedState([part(dict.fromkeys(keys, 1))], odd)
    own = [key for key in keys if hash_key(key) % 2]
    assert sorted(key for key, _ in state.items()) == sorted(own)
    assert len(state) == len(own)


class Cart(msgspec.Struct):
    goods: set[str]
    n: int = 0


def test_values_of_a_declared_type_can_be_changed_in_place() -> None:
    codec = MsgpackCodec(Cart)
    state = VersionedState([], settings(codec=codec))
    goods = {f"thing {i}" for i in range(50)}
    state.put("a", Cart(copy.copy(goods)))
    state.put("b", Cart(goods))
    state = VersionedState([state.delta()], settings(codec=codec))
    state.get("a").n = 1
    assert state.get("b").goods == goods
    assert state.delta().num_rows == 1


class Shuffling:
    """A codec that writes the same value in another way when it has come back."""

    def encode(self, value: list[int]) -> bytes:
        return bytes(value)

    def decode(self, data: bytes) -> list[int]:
        return list(reversed(data))


def test_reading_through_an_unsteady_codec_changes_nothing() -> None:
    state = reopened(forged([(hash_key("a"), "a", b"\1\2")]), codec=Shuffling())
    assert state.get("a") == [2, 1]
    assert state.delta() is None
    state.get("a").append(3)
    assert state.delta().num_rows == 1


def test_record_batches_can_be_values() -> None:
    batch = pa.record_batch({"x": [1, 2]})
    state = reopened(codec=ArrowCodec())
    state.put("a", batch)
    assert reopened(state.delta(), codec=ArrowCodec()).get("a").equals(batch)


@pytest.mark.parametrize("value", [object(), [len], "\ud800", 1j])
def test_a_value_that_cannot_be_written_is_named(value: Any) -> None:
    state = reopened()
    state.put("fine", 1)
    state.put("bad", value)
    with pytest.raises(StateError, match="key 'bad' in component 'count'"):
        state.delta()


def test_a_value_that_cannot_be_read_is_named() -> None:
    state = reopened(forged([(hash_key("a"), "a", b"\xc1")]))
    with pytest.raises(StateError, match="key 'a' in component 'count'"):
        state.get("a")


def test_long_numbers_are_values_too() -> None:
    state = reopened()
    state.put("a", 2**70)
    assert reopened(state.delta()).get("a") == 2**70
