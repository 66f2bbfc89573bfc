"""Equal tuples as one row with a weight: the tuples stay the same, however they are written."""

from __future__ import annotations

from collections import Counter
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property.strategies import KEY_COLUMNS, plain
from thalweg.blocks import Block, Origin
from thalweg.weights import WEIGHT, is_weighed, tuples_in, weighed

#: Types that Arrow groups by; others never meet a bolt that counts.
GROUPED = {t: v for t, v in KEY_COLUMNS.items() if "view" not in str(t) and t != pa.null()}


@st.composite
def few_values(draw: st.DrawFn, rows: int) -> pa.Array:
    """Draw a column in which values come again."""
    type_ = draw(st.sampled_from(list(GROUPED)))
    values = draw(st.lists(st.none() | GROUPED[type_], min_size=1, max_size=3))
    return pa.array(draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows)), type_)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Block, tuple[str, ...]]:
    """Draw a block, and some of its fields."""
    rows = draw(st.integers(1, 12))
    columns = draw(st.lists(few_values(rows), min_size=1, max_size=3))
    names = [f"c{i}" for i in range(len(columns))]
    batch = pa.RecordBatch.from_arrays(columns, names)
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    return Block.of(batch, Origin("words"), serial=7), tuple(chosen)


def rows_of(batch: pa.RecordBatch) -> list[Any]:
    return [plain(tuple(row.values())) for row in batch.to_pylist()]


def tuples_of(batch: pa.RecordBatch) -> Counter[Any]:
    """Write out what the rows of a weighed batch stand for."""
    rows = rows_of(batch.drop_columns([WEIGHT]))
    weights = batch.column(WEIGHT).to_pylist()
    return Counter(chain.from_iterable(map(repeat, rows, weights)))


@given(blocks())
def test_the_tuples_are_those_that_were_there(drawn: tuple[Block, tuple[str, ...]]) -> None:
    block, fields = drawn
    made = weighed(block, fields)
    assert made.batch.schema.names == [*fields, WEIGHT]
    assert [made.batch.schema.field(name).type for name in fields] == [
        block.batch.schema.field(name).type for name in fields
    ]
    assert tuples_of(made.batch) == Counter(rows_of(block.batch.select(fields)))
    assert tuples_in(made.batch) == len(block) == tuples_in(block.batch)


@given(blocks())
def test_a_row_stands_for_all_tuples_that_are_equal(drawn: tuple[Block, tuple[str, ...]]) -> None:
    block, fields = drawn
    made = weighed(block, fields)
    # Bits count: -0.0 is not 0.0 here, and one NaN may not be another.
    assert len(made) >= len(set(rows_of(block.batch.select(fields))))
    assert min(made.batch.column(WEIGHT).to_pylist()) >= 1
    assert made.origin == block.origin
    assert set(made.serials.tolist()) == {block.serials[-1]}


def test_unlike_tuples_keep_a_weight_of_one() -> None:
    block = Block.of(pa.record_batch({"n": list(range(300))}), Origin("words"))
    made = weighed(block, ("n",))
    assert (len(made), set(made.batch.column(WEIGHT).to_pylist())) == (300, {1})


def test_missing_values_are_equal_to_each_other() -> None:
    block = Block.of(pa.record_batch({"word": ["a", None, None, "a", None]}), Origin("words"))
    assert weighed(block, ("word",)).batch.to_pydict() == {"word": ["a", None], WEIGHT: [2, 3]}


@pytest.mark.parametrize("weights", [[], [3], [1, 2]])
def test_rows_with_weights_are_told_from_those_without(weights: list[int]) -> None:
    rows = pa.array(np.arange(len(weights)))
    with_weights = pa.record_batch({"n": rows, WEIGHT: pa.array(weights, pa.int64())})
    assert is_weighed(with_weights)
    assert tuples_in(with_weights) == sum(weights)
    assert not is_weighed(with_weights.select(["n"]))
    assert tuples_in(with_weights.select(["n"])) == len(weights)
