"""Parts: keys are found exactly, and merging keeps the newest row of each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from statelog.building import GONE, forged, part
from thalweg.hashing import hash_key
from thalweg.keys import decode_key, encode_key
from thalweg.statelog import SCHEMA, merge
from thalweg.statelog.parts import as_part, find, find_one, hashes_of

MAX = 2**64 - 1


def keys_of(batch: pa.RecordBatch) -> list[object]:
    return [decode_key(data) for data in batch.column(1).to_pylist()]


def rows_of(batch: pa.RecordBatch) -> set[tuple[object, object]]:
    return set(zip(keys_of(batch), batch.column(2).to_pylist(), strict=True))


def found(batch: pa.RecordBatch, wanted: list[tuple[int, object]]) -> list[int]:
    hashes = np.array([h for h, _ in wanted], dtype=np.uint64)
    encoded = [encode_key(key) for _, key in wanted]
    rows = find(batch, hashes, pa.array(encoded, pa.large_binary())).tolist()
    one_by_one = [find_one(batch, h, key) for h, key in zip(hashes, encoded, strict=True)]
    assert rows == one_by_one
    return rows


def test_keys_with_one_hash_are_told_apart() -> None:
    batch = forged([(3, "a", b"1"), (5, "b", b"2"), (5, "c", b"3"), (MAX, "d", b"4")])
    wanted = [(5, "c"), (5, "b"), (5, "x"), (MAX, "d"), (MAX, "e"), (0, "a"), (3, "a")]
    assert found(batch, wanted) == [2, 1, -1, 3, -1, -1, 0]


def test_nothing_is_found_in_nothing() -> None:
    assert found(forged([]), [(0, "a")]) == [-1]


def test_the_newest_row_of_a_key_wins() -> None:
    parts = [part({"a": 1, "b": 1}), part({"b": 2, "c": 2}), part({"c": 3})]
    merged = merge(parts, oldest=False)
    assert rows_of(merged) == {("a", b"\x01"), ("b", b"\x02"), ("c", b"\x03")}
    assert hashes_of(merged).tolist() == sorted(hash_key(key) for key in "abc")


@pytest.mark.parametrize("hash_", [0, 7, MAX])
def test_merging_keys_with_one_hash_mixes_nothing_up(hash_: int) -> None:
    first = forged([(hash_, "a", b"1"), (hash_, "b", b"1"), (hash_, "c", b"1")])
    second = forged([(hash_, "b", b"2"), (hash_, "a", b"2")])
    third = forged([(hash_, "b", None)])
    merged = merge([first, second, third], oldest=False)
    assert rows_of(merged) == {("a", b"2"), ("b", None), ("c", b"1")}
    assert rows_of(merge([first, second, third], oldest=True)) == {("a", b"2"), ("c", b"1")}


def test_one_and_its_complement_really_collide() -> None:
    assert hash_key(-1) == hash_key(MAX)
    merged = merge([part({-1: "minus", MAX: "max"}), part({MAX: "new"})], oldest=True)
    assert rows_of(merged) == {(-1, b"\xa5minus"), (MAX, b"\xa3new")}


def test_deleted_keys_stay_until_nothing_lies_below() -> None:
    parts = [part({"a": 1, "b": 1}), part({"a": GONE})]
    assert rows_of(merge(parts, oldest=False)) == {("a", None), ("b", b"\x01")}
    assert rows_of(merge(parts, oldest=True)) == {("b", b"\x01")}


def test_expired_rows_go_with_the_oldest() -> None:
    parts = [part({"a": 1, "b": 1}, now=1.0), part({"b": 2}, now=2.0)]
    assert rows_of(merge(parts, oldest=True, expired_before=2000)) == {("b", b"\x02")}
    assert len(rows_of(merge(parts, oldest=True, expired_before=1000))) == 2
    assert len(rows_of(merge(parts, oldest=False, expired_before=2000))) == 2


def test_rows_of_others_are_left_out() -> None:
    keys = [f"k{i}" for i in range(50)]
    parts = [part(dict.fromkeys(keys, 1)), part(dict.fromkeys(keys[::2], 2))]
    merged = merge(parts, oldest=True, keep=lambda hashes: hashes % np.uint64(3) == 0)
    assert set(keys_of(merged)) == {key for key in keys if hash_key(key) % 3 == 0}
    nothing = merge(parts, oldest=True, keep=lambda hashes: np.zeros(len(hashes), np.bool_))
    assert nothing.num_rows == 0


def test_merging_nothing_gives_nothing() -> None:
    assert merge([], oldest=True).schema == SCHEMA
    assert merge([forged([])], oldest=False).num_rows == 0


def test_columns_of_similar_types_become_a_part() -> None:
    batch = part({"a": 1})
    other = pa.record_batch(
        {
            "time": batch.column(3),
            "hash": batch.column(0),
            "key": batch.column(1).cast(pa.binary()),
            "value": batch.column(2).cast(pa.binary()),
        }
    )
    assert as_part(other).equals(batch)
