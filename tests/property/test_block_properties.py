"""Blocks: splitting and merging lose, change and move nothing; bytes come back as blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property.strategies import blocks, content, numbers, plain
from thalweg.blocks import Block, Origin, concatenate, from_ipc, merge, positions_of, to_ipc
from thalweg.errors import StateError


def targets_for(data: st.DataObject, block: Block, parts: int) -> Any:
    return np.array(data.draw(numbers(len(block), parts), "targets"), dtype=np.int64)


@given(blocks(), st.integers(1, 6), st.data())
def test_merging_the_parts_of_a_split_gives_the_block_back(
    block: Block, parts: int, data: st.DataObject
) -> None:
    split = block.split(targets_for(data, block, parts), parts)
    assert content(merge(split)) == content(block)
    order = data.draw(st.permutations(range(parts)), "order of the parts")
    assert content(merge([split[i] for i in order])) == content(block)


@given(blocks(), st.integers(1, 6), st.data())
def test_each_row_is_in_the_part_that_its_target_names(
    block: Block, parts: int, data: st.DataObject
) -> None:
    targets = targets_for(data, block, parts)
    split = block.split(targets, parts)
    assert len(split) == parts
    for number, part in enumerate(split):
        rows = np.flatnonzero(targets == number)
        assert positions_of(part).tolist() == rows.tolist()
        assert content(part) == content(block.take(rows))
        assert (np.diff(part.serials) >= 0).all()


@given(blocks(), st.data())
def test_a_split_of_a_split_merges_step_by_step(block: Block, data: st.DataObject) -> None:
    halves = block.split(targets_for(data, block, 2), 2)
    merged = []
    for half in halves:
        again = merge(half.split(targets_for(data, half, 3), 3))
        assert content(again) == content(half)
        merged.append(Block(**vars(again) | {"positions": half.positions}))
    assert content(merge(merged)) == content(block)


@given(blocks(), st.data())
def test_slices_behind_each_other_are_the_block(block: Block, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(block)), max_size=4), "cuts"))
    bounds = zip([0, *cuts], [*cuts, len(block)], strict=True)
    slices = [block.slice(start, stop) for start, stop in bounds]
    assert content(concatenate(slices)) == content(block)
    assert content(merge(slices)) == content(block)


@given(blocks())
def test_values_are_what_arrow_gives(block: Block) -> None:
    for name in block.batch.schema.names:
        assert plain(block.values(name)) == plain(block.batch.column(name).to_pylist())


@given(blocks())
def test_bytes_come_back_as_the_block(block: Block) -> None:
    again = from_ipc(to_ipc(block))
    # Roots and targets do not travel; types, values, origin and serial numbers do.
    assert content(again)[:4] == content(block)[:4]


@given(blocks(max_rows=5), st.data())
def test_bytes_that_were_cut_off_are_refused(block: Block, data: st.DataObject) -> None:
    whole = to_ipc(block)
    body = whole[:-8]  # the last eight bytes only say that the stream ends
    cut = data.draw(st.integers(0, len(body) - 1), "bytes kept")
    with pytest.raises(StateError):
        from_ipc(body[:cut])


@given(st.integers(1, 5), st.integers(0, 5), st.data())
def test_parts_without_a_known_type_take_the_type_of_the_others(
    nulls: int, values: int, data: st.DataObject
) -> None:
    known = Block.of(pa.record_batch({"x": pa.array(range(values), pa.int64())}), Origin("a"))
    unknown = Block.of(pa.record_batch({"x": pa.nulls(nulls)}), Origin("a"))
    order = data.draw(st.permutations([known, unknown]))
    joined = concatenate(order).batch.column("x")
    assert joined.type == pa.int64()
    assert joined.to_pylist() == [value for block in order for value in block.values("x")]


def test_a_split_needs_a_target_for_each_row() -> None:
    block = Block.of(pa.record_batch({"x": [1, 2, 3]}), Origin("a"))
    with pytest.raises(ValueError, match="3 targets"):
        block.split(np.array([0, 1]), 2)
