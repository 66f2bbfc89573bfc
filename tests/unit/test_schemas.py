"""Fields and shapes."""

import dataclasses
import datetime as dt
import re
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pytest

from thalweg.errors import SchemaError, TopologyError
from thalweg.schemas import NO_FIELDS, Fields, Shape, arrow_type, fields, record_fields


class Post(NamedTuple):
    region: str
    likes: int


@dataclasses.dataclass
class Click:
    page: str
    at: dt.datetime


class Sale(msgspec.Struct):
    item: str
    price: float | None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, ""),
        ("word", "word"),
        (["a", "b"], "a, b"),
        ({"a": str, "b": None}, "a: string, b"),
        ({"a": list[str], "b": dict[str, int]}, "a: list<item: string>, b: map<string, int64>"),
        (pa.schema([("a", pa.int8())]), "a: int8"),
        (Post, "region: string, likes: int64"),
        (Click, "page: string, at: timestamp[us]"),
        (Sale, "item: string, price: double"),
        (fields(["x"]), "x"),
    ],
)
def test_fields_are_written_in_many_ways(spec, expected):
    assert fields(spec).describe() == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (["a", "a"], "each name once"),
        (["not a name"], "a name that Python accepts"),
        (["class"], "a name that Python accepts"),
        (["_hidden"], "without leading"),
        ([1], "a name that Python accepts"),
        (5, "names"),
        ({"a": complex}, "type"),
        ({"a": int | str}, "type"),
        (int, "annotated fields"),
    ],
)
def test_fields_that_make_no_sense_are_refused(spec, message):
    with pytest.raises(TopologyError, match=message):
        fields(spec)


def test_a_type_that_is_any_is_learnt():
    assert arrow_type(Any) is None
    assert arrow_type(object) is None
    assert record_fields(int) is None


def test_extending_replaces_a_field_in_its_place():
    extended = fields({"a": str, "b": str}).extend(fields({"a": int, "c": int}))
    assert extended.describe() == "a: int64, b: string, c: int64"
    assert NO_FIELDS.extend(fields("x")) == Fields(("x",), (None,))


def test_the_first_values_fix_the_type_of_a_stream():
    shape = Shape(fields(["n"]), "stream 's'")
    shape.batch([[None]])
    assert shape.types == [None]
    shape.batch([[1, None]])
    assert shape.fields.describe() == "n: int64"
    expected = r"field 'n' of stream 's': expected int64, got row 1: 2.5"
    with pytest.raises(SchemaError, match=expected):
        shape.batch([[1, 2.5]])


def test_an_empty_list_does_not_fix_the_type_of_its_parts():
    shape = Shape(fields(["x"]))
    assert shape.batch([[[]]]).column("x").to_pylist() == [[]]
    assert shape.types == [None]
    shape.batch([[[2]]])
    assert shape.fields.describe() == "x: list<item: int64>"


def test_views_become_plain_text():
    batch = pa.record_batch({"x": pa.array(["a"], pa.string_view())})
    assert Shape(fields(["x"])).conform(batch).schema.field("x").type == pa.string()


def test_a_misfit_names_value_and_row():
    shape = Shape(fields({"word": str}), "stream")
    with pytest.raises(SchemaError, match=r"got row 2: 7 \(int\)"):
        shape.batch([["a", "b", 7]])
    with pytest.raises(SchemaError, match="values of one type"):
        Shape(fields(["x"])).batch([["a", 1]])


def test_whole_numbers_fit_a_float_field():
    shape = Shape(fields({"x": float}))
    assert shape.batch([[1, 2.5]]).column("x").to_pylist() == [1.0, 2.5]


def test_a_returned_batch_is_reordered_and_cast_to_the_stream():
    shape = Shape(fields({"a": int, "b": str}))
    given = pa.record_batch({"b": ["x"], "a": pa.array([1], pa.int8())})
    batch = shape.conform(given)
    assert batch.schema.names == ["a", "b"]
    assert batch.schema.field("a").type == pa.int64()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.record_batch({"a": [1], "c": [1]}), r"expected fields \['a', 'b'\]"),
        (pa.record_batch({"a": [1]}), "expected fields"),
        ([1, 2], "pyarrow.RecordBatch"),
        (pa.record_batch({"a": ["x"], "b": ["y"]}), "expected int64"),
    ],
)
def test_a_returned_batch_that_does_not_fit_is_refused(given, message):
    with pytest.raises(SchemaError, match=message):
        Shape(fields({"a": int, "b": str})).conform(given)


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("", "with a zone declare {'at': pa.timestamp('us', 'UTC')}, or --types at:timestamptz"),
        ("UTC", "without a zone declare {'at': pa.timestamp('us')}, or --types at:timestamp"),
    ],
)
def test_a_time_of_the_other_kind_is_told_how_to_declare_it(zone: str, said: str) -> None:
    value = dt.datetime(2026, 1, 1, tzinfo=None if zone else dt.UTC)
    shape = Shape(fields({"at": pa.timestamp("us", zone or None)}))
    with pytest.raises(SchemaError, match=re.escape(f"(for times {said} for a query)")):
        shape.make([[value]])
