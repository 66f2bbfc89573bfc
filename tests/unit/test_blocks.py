"""Blocks and the tuple view."""

import numpy as np
import pyarrow as pa
import pytest

from thalweg.blocks import Block, Origin, concatenate, from_ipc, merge, to_ipc
from thalweg.errors import StateError
from thalweg.tuples import as_dict, tuple_class, tuples_of


def block(values, serial=0):
    return Block.of(pa.record_batch({"x": values}), Origin("a"), serial)


def test_split_gives_each_row_to_one_part_and_merge_undoes_it():
    whole = block(["a", "b", "c", "d"], serial=10)
    parts = whole.split(np.array([2, 0, 2, 0]), 3)
    assert [part.values("x") for part in parts] == [["b", "d"], [], ["a", "c"]]
    assert parts[2].serials.tolist() == [10, 12]
    assert merge(parts).batch.equals(whole.batch)


def test_split_refuses_targets_of_another_length():
    with pytest.raises(ValueError, match="expected 2 targets, got 1"):
        block([1, 2]).split(np.array([0]), 2)


def test_rows_with_the_same_serial_keep_their_order():
    whole = Block(pa.record_batch({"x": [1, 2, 3]}), Origin("a"), np.array([5, 5, 5]))
    parts = whole.split(np.array([1, 0, 1]), 2)
    assert merge(parts).values("x") == [1, 2, 3]


def test_roots_and_targets_follow_their_rows():
    whole = Block(
        pa.record_batch({"x": [1, 2]}),
        Origin("a"),
        np.array([0, 1]),
        roots=[(7,), (8,)],
        targets=np.array([3, 4]),
    )
    first, second = whole.split(np.array([1, 0]), 2)
    assert (first.roots, first.targets.tolist()) == ([(8,)], [4])
    joined = concatenate([second, first])
    assert (joined.roots, joined.targets.tolist()) == ([(7,), (8,)], [3, 4])
    assert whole.slice(1, 2).roots == [(8,)]


def test_values_that_are_known_are_not_converted():
    words = ["a", None]
    shared = Block(pa.record_batch({"x": words}), Origin("a"), np.arange(2), lists={"x": words})
    assert shared.values("x") is words


def test_values_are_converted_once():
    whole = block(["a"])
    assert whole.values("x") is whole.values("x")


def test_ipc_keeps_origin_serials_and_types():
    sent = Block.of(
        pa.record_batch({"x": pa.array([1, None], pa.int8())}), Origin("a", "s", 4), serial=3
    )
    got = from_ipc(to_ipc(sent))
    assert got.origin == Origin("a", "s", 4)
    assert got.serials.tolist() == [3, 4]
    assert got.batch.equals(sent.batch)


@pytest.mark.parametrize("cut", [0, 10, 100])
def test_bytes_that_are_no_block_are_refused(cut):
    with pytest.raises(StateError, match="block bytes"):
        from_ipc(to_ipc(block([1]))[:cut])


def test_an_arrow_stream_without_our_marks_is_refused():
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"x": [1]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(StateError):
        from_ipc(sink.getvalue().to_pybytes())


def test_a_tuple_has_fields_positions_and_names():
    t = tuple_class(("word", "values"))("a", 2)
    assert (t.word, t[1], t["values"], list(t), len(t)) == ("a", 2, 2, ["a", 2], 2)
    assert as_dict(t) == {"word": "a", "values": 2}
    assert t == tuple_class(("word", "values"))("a", 2)


def test_tuples_of_a_batch_without_columns():
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert len(list(tuples_of(batch))) == batch.num_rows
