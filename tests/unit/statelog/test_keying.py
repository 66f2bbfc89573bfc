"""Many keys at once are what they are one by one."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import StateError
from thalweg.hashing import hash_key
from thalweg.keys import decode_key, encode_key
from thalweg.statelog.keying import decode_keys, encode_keys, hash_keys


class Colour(enum.StrEnum):
    RED = "red"


CASES: list[list[Any]] = [
    [],
    ["a", "", "ä", "x" * 300],
    [1, -1, 2**63 - 1],
    [1, 2**64 - 1],
    [b"a", b""],
    [None, None],
    [None, "a"],
    [1, "a", b"a", None],
    [1.5, -0.0, float("nan"), 2.0],
    [True, 2],
    [("a", 1), ("b", None)],
    [("a", 1), ("b", 1.5)],
    [("a",), ("b",)],
    [("a",), ("a", 1), ()],
    [("a", ("b", 1)), ("a", ("c", 2))],
    [("a", 2**64 - 1), ("b", 0)],
    [(True, "a"), (False, "a")],
    [(-0.0, "a"), (float("nan"), "a")],
    [dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)],
    [Colour.RED, "red"],
]


@pytest.mark.parametrize("keys", CASES, ids=repr)
def test_many_keys_are_what_they_are_one_by_one(keys: list[Any]) -> None:
    encoded = encode_keys(keys)
    assert encoded == [encode_key(key) for key in keys]
    assert hash_keys(keys).tolist() == [hash_key(key) for key in keys]
    read = decode_keys(pa.array(encoded, pa.large_binary()))
    assert repr(read) == repr([decode_key(data) for data in encoded])


@pytest.mark.parametrize("key", [2**64, "\ud800", ["list"], object()])
def test_what_is_no_key_is_refused(key: Any) -> None:
    for keys in ([key], [key, "a"], [(key, 1), ("a", 1)]):
        with pytest.raises(StateError, match="key"):
            encode_keys(keys)


def test_bytes_that_are_no_key_are_refused() -> None:
    with pytest.raises(StateError, match="stored key"):
        decode_keys(pa.array([b"\x01", b"\xc1"]))
