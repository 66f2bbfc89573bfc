"""Nanoseconds, which Python's own types cannot hold, can be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from thalweg.connectors.csv_cells import plain_values, text_array
from thalweg.connectors.places import Place
from thalweg.connectors.writers import CsvWriter, json_lines

NESTED = pa.list_(pa.duration("ns"))
PARIS = pa.timestamp("ns", "Europe/Paris")
CASES = [
    (pa.timestamp("ns"), 1_000, "1970-01-01T00:00:00.000001"),
    (pa.timestamp("ns"), 1, "1970-01-01T00:00:00.000000001"),
    (pa.timestamp("ns"), -1, "1969-12-31T23:59:59.999999999"),
    (PARIS, 1, "1970-01-01T01:00:00.000000001+01:00"),
    (pa.timestamp("ns", "UTC"), 1, "1970-01-01T00:00:00.000000001Z"),
    (pa.duration("ns"), 1_000, "PT0.000001S"),
    (pa.duration("ns"), 86_402_000_000_001, "P1DT2.000000001S"),
    (pa.duration("ns"), -1, "-PT0.000000001S"),
    (pa.time64("ns"), 1_000, "00:00:00.000001"),
    (pa.time64("ns"), 3_723_000_000_001, "01:02:03.000000001"),
]


def as_json(type_: pa.DataType, value: Any) -> Any:
    column = pa.array([value, None], type_)
    lines = json_lines(pa.record_batch({"v": column})).splitlines()
    assert json.loads(lines[1]) == {"v": None}
    return json.loads(lines[0])["v"]


@pytest.mark.parametrize(("type_", "value", "text"), CASES)
def test_nanoseconds_are_iso_text_wherever_they_are(
    type_: pa.DataType, value: int, text: str
) -> None:
    assert as_json(type_, value) == text
    assert as_json(pa.list_(type_), [value, None]) == [text, None]
    assert as_json(pa.large_list(type_), [value]) == [text]
    assert as_json(pa.list_(type_, 1), [value]) == [text]
    assert as_json(pa.struct([("a", type_), ("b", pa.string())]), {"a": value, "b": "x"}) == {
        "a": text,
        "b": "x",
    }
    assert as_json(pa.map_(pa.string(), pa.list_(type_)), [("k", [value])]) == {"k": [text]}
    assert as_json(pa.map_(type_, pa.int64()), [(value, 1)]) == {text: 1}


@pytest.mark.parametrize(("type_", "value", "text"), CASES)
def test_nanoseconds_in_a_dictionary(type_: pa.DataType, value: int, text: str) -> None:
    column = pa.array([value, None], type_).dictionary_encode()
    assert text_array(column).to_pylist() == [text, None]


def test_csv_takes_nanoseconds(tmp_path: Path) -> None:
    columns = {"at": pa.array([1], pa.timestamp("ns")), "took": pa.array([[1]], NESTED)}
    place = Place(str(tmp_path / "a.csv"), "a.csv", False)
    writer = CsvWriter(place, ",")
    writer.write(pa.record_batch(columns))
    writer.finish()
    place.release()
    expected = 'at,took\n1970-01-01 00:00:00.000000001,"[""PT0.000000001S""]"\n'
    assert (tmp_path / "a.csv").read_text() == expected


def test_a_slice_keeps_its_rows() -> None:
    column = pa.array([[1], [2], [3]], pa.list_(pa.duration("ns")))[1:]
    assert plain_values(column) == [["PT0.000000002S"], ["PT0.000000003S"]]


def test_other_values_stay_as_they_are() -> None:
    column = pa.array([{"a": [1, None]}, None])
    assert plain_values(column) == [{"a": [1, None]}, None]
