"""What a key is."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from thalweg.errors import StateError
from thalweg.hashing import hash_columns, hash_key, key_groups
from thalweg.keys import (
    canonical,
    decode_key,
    encode_key,
    is_plain,
    key_arrays,
    key_values,
    refusal,
)

BERLIN = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    "same",
    [
        (1, 1.0, True, np.int32(1), np.float64(1)),
        (0, 0.0, -0.0, False),
        (float("nan"), -float("nan"), np.float32("nan")),
        (
            dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC),
            dt.datetime(2026, 1, 1, 14, tzinfo=BERLIN),
        ),
        ((1, "a"), (1.0, "a"), (True, "a")),
        ((float("nan"), None), (float("nan"), None)),
    ],
)
def test_keys_that_are_the_same(same):
    first = canonical(same[0])
    for key in same:
        assert encode_key(key) == encode_key(first)
        assert hash_key(key) == hash_key(first)
        assert {first: "here"}[canonical(key)] == "here"


def test_keys_of_different_kinds_differ():
    kinds = [
        None,
        0,
        "",
        b"",
        "0",
        b"0",
        (),
        (None,),
        0.5,
        dt.date(1970, 1, 1),
        dt.datetime(1970, 1, 1),
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        dt.time(0),
        dt.timedelta(0),
        "a",
        ("a",),
        (("a",),),
    ]
    assert len({encode_key(key) for key in kinds}) == len(kinds)
    assert len({hash_key(key) for key in kinds}) == len(kinds)
    assert len({canonical(key) for key in kinds}) == len(kinds)


def test_stored_keys_come_back_in_canonical_form():
    for key in [None, -5, 2**64 - 1, 0.5, "ü", b"\x00", ("a", (1, None)), dt.date(1960, 2, 29)]:
        assert decode_key(encode_key(key)) == canonical(key)
    assert decode_key(encode_key(dt.timedelta(days=-1))) == dt.timedelta(days=-1)
    assert decode_key(encode_key(dt.time(23, 59, 59, 7))) == dt.time(23, 59, 59, 7)


@pytest.mark.parametrize("key", [object(), [1], {"a": 1}, {1}, 2**64, -(2**63) - 1, 1j, ("a", [1])])
def test_a_key_that_cannot_be_hashed_stably_is_refused(key):
    with pytest.raises(StateError, match="key"):
        canonical(key)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\xc7\x08\x63" + b"\0" * 8, encode_key("a")[:-1]])
def test_bytes_that_are_no_key_are_refused(data):
    with pytest.raises(StateError):
        decode_key(data)


@pytest.mark.parametrize(
    ("type_", "word"),
    [
        (pa.list_(pa.int64()), "stable hash"),
        (pa.struct([("a", pa.int64())]), "stable hash"),
        (pa.decimal128(10, 2), "stable hash"),
        (pa.map_(pa.string(), pa.int64()), "stable hash"),
        (pa.timestamp("ns"), "microseconds"),
        (pa.dictionary(pa.int8(), pa.list_(pa.int8())), "stable hash"),
    ],
)
def test_types_that_cannot_be_keys_say_why(type_, word):
    assert word in str(refusal(type_))


def test_a_column_of_a_refused_type_is_an_error():
    with pytest.raises(StateError, match="stable hash"):
        hash_columns([pa.array([[1]])])


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", "b", None], pa.large_string()),
        pa.array(["a", "b", None], pa.string_view()),
        pa.array(["a", "a", None]).dictionary_encode(),
        pa.chunked_array([["a"], ["b", None]]),
        pa.array([b"ab", None], pa.binary(2)),
        pa.array([1, None], pa.uint8()),
        pa.array([1.5, None], pa.float32()),
        pa.array([dt.date(2026, 1, 1), None], pa.date64()),
        pa.array([1, None], pa.time32("s")),
        pa.array([1, None], pa.timestamp("s", "Europe/Berlin")),
        pa.array([1, None], pa.duration("ms")),
        pa.array([], pa.string()),
        pa.array(["", ""]),
        pa.array([None, None], pa.string()),
        pa.array(["x" * 256, "x" * 257, "x" * 5000]),
    ],
)
def test_a_column_hashes_as_its_values_do(array):
    assert hash_columns([array]).tolist() == [hash_key(value) for value in array.to_pylist()]


def test_a_sliced_column_hashes_as_its_values_do():
    array = pa.array(["skip", "ab", None, "abcdefgh", "skip"])[1:4]
    assert hash_columns([array]).tolist() == [hash_key(value) for value in array.to_pylist()]


def test_long_text_differs_in_its_last_letter():
    assert hash_key("x" * 1000 + "a") != hash_key("x" * 1000 + "b")


def test_several_columns_make_tuple_keys():
    columns = [pa.array(["a", "b"]), pa.array([1.0, None])]
    assert key_values(columns) == [("a", 1.0), ("b", None)]
    assert hash_columns(columns).tolist() == [hash_key(("a", 1)), hash_key(("b", None))]


def test_float_columns_give_one_nan_and_one_zero():
    values = key_values([pa.array([float("nan"), -0.0, 0.0, float("nan"), None])])
    assert len(dict.fromkeys(values)) == 3


def test_instants_are_equal_across_time_zones():
    a = pa.array([0], pa.timestamp("us", "Asia/Tokyo"))
    b = pa.array([0], pa.timestamp("us", "UTC"))
    assert key_values([a]) == key_values([b])
    assert hash_columns([a])[0] == hash_columns([b])[0]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([True, False, None]),
        pa.array([1.0, None, 2.5]),
        pa.array(["a", None]),
        pa.array([dt.date(2026, 1, 1), None]),
    ],
)
def test_stored_keys_turn_back_into_a_column(array):
    stored = [decode_key(encode_key(key)) for key in key_values([array])]
    assert key_arrays(stored, [array.type])[0].equals(array)


def test_key_groups_cover_their_range_evenly():
    groups = key_groups(hash_columns([pa.array(range(100_000))]), 16)
    counts = np.bincount(groups, minlength=16)
    assert counts.min() > 0.9 * 100_000 / 16


def test_plain_types_need_no_care():
    assert is_plain(pa.string())
    assert is_plain(pa.int8())
    assert not is_plain(pa.float64())
    assert not is_plain(pa.timestamp("us", "UTC"))
