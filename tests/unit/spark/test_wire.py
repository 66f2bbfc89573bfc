"""What crosses an exchange comes out as it went in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.blocks import Block, Origin
from thalweg.errors import StateError, ThalwegError
from thalweg.runtimes.spark import wire
from thalweg.runtimes.spark.notes import Failure, Note
from thalweg.runtimes.spark.wire import (
    Address,
    kind_of,
    pack_block,
    pack_delta,
    pack_note,
    unpack_block,
    unpack_delta,
    unpack_note,
)

TO = Address("count", 1, 3)


def block(rows: int, path: tuple[list[int], ...] = ()) -> Block:
    batch = pa.record_batch({"n": list(range(rows)), "text": ["x" * (i % 5) for i in range(rows)]})
    levels = tuple(np.array(level, dtype=np.int64) for level in path)
    return Block(batch, Origin("a", "s", 2), np.arange(rows, dtype=np.int64) * 3, path=levels)


@given(st.integers(1, 30), st.integers(0, 3), st.booleans())
def test_a_block_in_order_keeps_its_rows_serials_and_path(rows, depth, flat) -> None:
    given_ = block(rows, tuple([[0 if flat else i % 4] * 1 * rows for i in range(depth)]))
    (payload,) = pack_block(TO, given_, in_order=True)
    address, found = unpack_block(payload)
    assert (address, found.origin) == (TO, given_.origin)
    assert found.batch.equals(given_.batch)
    assert found.serials.tolist() == given_.serials.tolist()
    assert [level.tolist() for level in found.path] == [level.tolist() for level in given_.path]


def test_a_block_without_order_carries_no_serials() -> None:
    (payload,) = pack_block(TO, block(3), in_order=False)
    _, found = unpack_block(payload)
    assert found.batch.schema.names == ["n", "text"]
    assert not found.serials.any()


def test_large_blocks_are_cut_and_nothing_is_lost(monkeypatch) -> None:
    monkeypatch.setattr(wire, "MAX_BYTES", 64)
    payloads = list(pack_block(TO, block(50), in_order=True))
    found = [unpack_block(payload)[1] for payload in payloads]
    assert len(found) > 3
    assert all(part.batch.nbytes <= 64 for part in found)
    assert [n for part in found for n in part.batch.column("n").to_pylist()] == list(range(50))


def test_a_tuple_that_is_too_large_is_refused_by_name(monkeypatch) -> None:
    monkeypatch.setattr(wire, "MAX_BYTES", 64)
    large = Block.of(pa.record_batch({"text": ["x" * 100]}), Origin("a"))
    with pytest.raises(ThalwegError, match=r"tuple from 'a' to 'count'.*at most 64 bytes"):
        list(pack_block(TO, large, in_order=False))


def test_changes_of_state_know_their_stage() -> None:
    changes = pa.record_batch({"hash": [1, 2], "key": [b"a", b"b"]})
    (payload,) = pack_delta("count#1", 2, changes)
    assert kind_of(payload) == "delta"
    name, stage, found = unpack_delta(payload)
    assert (name, stage) == ("count#1", 2)
    assert found.equals(changes)


def test_notes_come_back_whole() -> None:
    note = Note(1, 2, "host", failed=[5], failure=Failure("ComponentError", "no", "it", 3, "n=1"))
    payload = pack_note(note)
    assert kind_of(payload) == "note"
    found = unpack_note(pa.py_buffer(payload), Note)
    assert found == note
    error = found.failure.error()
    assert (error.component, error.task, error.tuple_text, str(error)) == ("it", 3, "n=1", "no")


def test_other_bytes_are_refused() -> None:
    with pytest.raises(StateError, match="a block, a delta or a note"):
        kind_of(b"?")
