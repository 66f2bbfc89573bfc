"""Columns of any values: whatever goes in comes out, the same, wherever it was in between."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg import columns
from thalweg.anyvalues import ANYTHING, bare, dressed
from thalweg.blocks import Block, Origin, from_ipc, to_ipc
from thalweg.errors import StateError
from thalweg.hashing import hash_columns, hash_key
from thalweg.keys import canonical, key_arrays, key_values
from thalweg.schemas import fields
from thalweg.weights import WEIGHT, weighed

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["x" * 31, "x" * 32, "x" * 255, "x" * 256, "ü" * 40000]
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | st.binary()
)
VALUES = st.recursive(
    SCALARS | st.dates(),
    lambda part: st.lists(part) | st.dictionaries(TEXT, part) | st.lists(part).map(tuple),
    max_leaves=8,
)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats()
KEYS = st.none() | st.booleans() | NUMBERS | TEXT | st.binary() | st.dates()


def kinds(values: list[Any]) -> list[type]:
    return [type(value) for value in values]


@given(st.lists(VALUES) | st.lists(TEXT) | st.lists(st.integers()))
def test_values_come_back_as_they_were(values: list[Any]) -> None:
    back = ANYTHING.encode(values).to_pylist()
    assert back == values
    assert kinds(back) == kinds(values)


@given(st.lists(VALUES, min_size=1), st.data())
def test_rows_of_a_block_come_back_after_any_cut_and_any_bytes(
    values: list[Any], data: st.DataObject
) -> None:
    batch = pa.RecordBatch.from_arrays([ANYTHING.encode(values)], names=["v"])
    block = Block.of(batch, Origin("a"))
    rows = data.draw(st.lists(st.integers(0, len(values) - 1)))
    start = data.draw(st.integers(0, len(values)))
    taken = block.take(np.array(rows, dtype=np.int64))
    assert from_ipc(to_ipc(taken)).values("v") == [values[row] for row in rows]
    assert from_ipc(to_ipc(block.slice(start, len(values)))).values("v") == values[start:]


@given(st.lists(KEYS, min_size=1))
def test_a_key_hashes_in_a_column_as_it_does_alone(keys: list[Any]) -> None:
    column = ANYTHING.encode(keys)
    assert hash_columns([column]).tolist() == [hash_key(key) for key in keys]
    found = key_values([column])
    assert all(same(canonical(a), canonical(b)) for a, b in zip(found, keys, strict=True))
    again = key_values(key_arrays(found, [ANYTHING]))
    assert all(same(canonical(a), canonical(b)) for a, b in zip(again, found, strict=True))


@given(st.lists(SCALARS, min_size=1))
def test_equal_values_become_one_row_with_a_weight(values: list[Any]) -> None:
    batch = pa.RecordBatch.from_arrays([ANYTHING.encode(values)], names=["v"])
    made = weighed(Block.of(batch, Origin("a")), ("v",)).batch
    assert made.schema.field("v").type == ANYTHING
    rows = zip(made.column("v").to_pylist(), made.column(WEIGHT).to_pylist(), strict=True)
    repeated = [value for value, weight in rows for _ in range(weight)]
    assert sorted(map(repr, repeated)) == sorted(map(repr, values))


def test_a_column_takes_its_type_off_and_puts_it_on_again() -> None:
    batch = pa.record_batch({"v": ANYTHING.encode(["a", 1]), "n": pa.array([1, 2])})
    shown = bare(batch)
    assert shown.schema.types == [pa.binary(), pa.int64()]
    assert dressed(shown.column("v"), ANYTHING).to_pylist() == ["a", 1]
    assert dressed(shown.column("n"), pa.int64()).to_pylist() == [1, 2]


def test_lists_as_keys_are_tuples_and_dictionaries_are_none() -> None:
    assert key_values([ANYTHING.encode([[1, ["a"]]])]) == [(1, ("a",))]
    with pytest.raises(StateError, match="dict"):
        hash_columns([ANYTHING.encode([{"a": 1}])])


@pytest.mark.parametrize(
    "bad", [object(), 1j, "\ud800", [object()]], ids=["object", "complex", "surrogate", "list"]
)
def test_what_is_not_plain_is_refused_with_its_row(bad: Any) -> None:
    with pytest.raises(columns.Misfit) as caught:
        columns.column(["a", bad, 2], ANYTHING)
    assert caught.value.row == 1


def test_scalars_are_handed_on_and_what_can_be_changed_is_copied() -> None:
    assert columns.column(["a", 1, None], ANYTHING).same
    assert not columns.column(["a", [1]], ANYTHING).same


def test_other_columns_become_one_of_any_values_and_back_they_do_not() -> None:
    made = columns.cast(pa.array([1, None, 3]), ANYTHING)
    assert made.to_pylist() == [1, None, 3]
    with pytest.raises(columns.Misfit):
        columns.cast(made, pa.int64())


def test_numbers_of_numpy_are_numbers() -> None:
    assert columns.column([np.int64(3), np.float64(0.5)], ANYTHING).array.to_pylist() == [3, 0.5]


def test_a_field_is_declared_with_the_type() -> None:
    assert fields({"v": ANYTHING}).describe() == "v: anything"


def test_damaged_bytes_are_reported() -> None:
    broken = pa.ExtensionArray.from_storage(ANYTHING, pa.array([b"\xc1"], pa.binary()))
    with pytest.raises(StateError, match="any values"):
        broken.to_pylist()


def test_dates_and_times_keep_their_kind() -> None:
    values = [dt.datetime(2024, 1, 1, 12), dt.time(1), dt.timedelta(1), dt.date(2024, 1, 1)]
    assert ANYTHING.encode(values).to_pylist() == values


def same(a: Any, b: Any) -> bool:
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return both_nan or a == b
