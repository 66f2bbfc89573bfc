"""Keyed state, snapshots and codecs."""

import dataclasses
import datetime as dt
import json

import msgspec
import pyarrow as pa
import pytest

from thalweg.cli.state_values import from_json, to_json
from thalweg.codecs import ArrowCodec, MsgpackCodec
from thalweg.errors import StateError
from thalweg.hashing import hash_key
from thalweg.keys import NAN, canonical
from thalweg.state import MemoryState, pack, unpack


class Cart(msgspec.Struct):
    items: list[str]
    total: float


@dataclasses.dataclass
class Seen:
    pages: set[str]


@pytest.fixture
def state():
    return MemoryState()


def test_values_are_put_got_and_deleted(state):
    state.put("a", 1)
    state.put("b", None)
    assert [state.get("a"), state.get("b", 5)] == [1, None]
    assert [state.get("c"), state.get("c", 0)] == [None, 0]
    state.delete("a")
    state.delete("never there")
    assert dict(state.items()) == {"b": None}
    assert len(state) == 1


def test_many_values_at_once(state):
    state.put_many({"a": 1, "b": 2})
    assert state.get_many(["a", "x"]) == {"a": 1}
    with state.working(["a"]) as values:
        values["a"] = 9
    assert state.get("a") == 9


def test_keys_are_told_apart_as_the_house_rule_says():
    state = MemoryState()
    state.put(float("nan"), "nan")
    state.put(1.0, "one")
    state.put(("x", -0.0), "zero")
    assert state.get(float("nan")) == "nan"
    assert state.get(True) == "one"
    assert state.get(("x", 0)) == "zero"
    assert state.get(NAN) == "nan"
    with pytest.raises(StateError):
        state.put([1], "list")


def test_a_snapshot_restores_everything(state):
    state.put_many({f"k{i}": {"n": i} for i in range(100)} | {None: "null", 1: "one"})
    other = MemoryState()
    other.put("gone", 1)
    other.restore(state.snapshot())
    assert dict(other.items()) == dict(state.items())


def test_a_snapshot_is_by_key_group():
    state = MemoryState(groups=4)
    state.put_many({i: i for i in range(50)})
    for group, data in state.snapshot().items():
        keys = MemoryState()
        keys.load(unpack(data))
        assert {hash_key(key) % 4 for key, _ in keys.items()} == {group}
        assert sorted(state.keys_of(group)) == sorted(key for key, _ in keys.items())


def test_single_keys_move_between_states(state):
    state.put_many({"a": 1, "b": 2})
    other = MemoryState()
    other.load(unpack(pack(state.entries(["b", "nowhere"]))))
    assert dict(other.items()) == {"b": 2}


def test_a_broken_snapshot_is_refused():
    with pytest.raises(StateError, match="snapshot"):
        MemoryState().restore({0: b"\xc1"})


@pytest.mark.parametrize(
    "value",
    [
        None,
        2**70,
        -5,
        [1, (2, {3}), frozenset([4])],
        {1: "int key", ("t", 1): "tuple key"},
        {"a": {"b": b"\x00"}},
        dt.date(2026, 1, 1),
        dt.datetime(2026, 1, 1, 5),
        dt.datetime(2026, 1, 1, 5, tzinfo=dt.UTC),
        dt.timedelta(seconds=-1),
        True,
        "",
    ],
)
def test_plain_values_come_back_as_they_were(value):
    codec = MsgpackCodec()
    again = codec.decode(codec.encode(value))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "type_", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns")], ids=str
)
@pytest.mark.parametrize("nanos", [1_000_000_001, 2_000_000_000, -1])
def test_nanoseconds_come_back_as_they_were(type_, nanos):
    pytest.importorskip("pandas")
    (value,) = pa.array([nanos], pa.int64()).cast(type_).to_pylist()
    again = MsgpackCodec().decode(MsgpackCodec().encode({"at": [value]}))["at"][0]
    assert (again, type(again)) == (value, type(value))
    assert from_json(json.loads(json.dumps(to_json(value)))) == value
    assert pa.array([again], type_).cast(pa.int64()).to_pylist() == [nanos]


def test_a_key_with_nanoseconds_is_one_of_microseconds():
    pytest.importorskip("pandas")
    several = pa.array([1_000, 1_001], pa.timestamp("ns")).to_pylist()
    assert {canonical(moment) for moment in several} == {dt.datetime(1970, 1, 1, 0, 0, 0, 1)}


def test_equal_sets_give_equal_bytes():
    codec = MsgpackCodec()
    words = [f"word{i}" for i in range(50)]
    backwards = words[::-1]
    assert codec.encode(set(words)) == codec.encode(set(backwards))
    assert codec.encode(frozenset(words)) == codec.encode(frozenset(backwards))


def test_declared_types_come_back_as_themselves():
    for value in (Cart(["a"], 2.5), Seen({"p"})):
        codec = MsgpackCodec(type(value))
        assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize("value", [object(), Seen({"p"}), [object()], {"a": {1: len}}, 1j])
def test_what_cannot_come_back_is_refused_with_a_way_out(value):
    with pytest.raises(StateError, match="state_type"):
        MsgpackCodec().encode(value)


def test_a_stored_value_of_another_type_is_refused():
    with pytest.raises(StateError, match="stored value"):
        MsgpackCodec(Cart).decode(MsgpackCodec().encode("no cart"))
    with pytest.raises(StateError):
        MsgpackCodec().decode(b"\xc7\x08\x63" + b"\0" * 8)


def test_record_batches_have_a_codec_of_their_own():
    batch = pa.record_batch({"x": [1, 2]})
    codec = ArrowCodec()
    assert codec.decode(codec.encode(batch)).equals(batch)
    with pytest.raises(StateError):
        codec.encode("no batch")
    with pytest.raises(StateError):
        codec.decode(b"rubbish")
