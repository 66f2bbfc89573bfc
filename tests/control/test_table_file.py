"""Tables in files: every key comes back as what it was, and wrong files say what is wrong."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thalweg.errors import UsageError
from thalweg.hashing import hash_key
from thalweg.keys import canonical
from thalweg.routing.table_file import TableFile, read_table_file, write_table_file

SCALARS = (
    st.none()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
    | st.dates()
)
KEYS = (SCALARS | st.tuples(SCALARS, SCALARS)).map(canonical)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.dictionaries(KEYS, st.integers(0, 5)), max_size=3))
def test_what_was_written_is_read(tmp_path: Path, fields: dict) -> None:
    path = tmp_path / "table.json"
    write_table_file(path, TableFile(6, fields))
    assert read_table_file(path) == TableFile(6, fields)


def test_plain_keys_can_be_read_and_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(
        '{"format": "thalweg-table-1", "places": 3,'
        ' "fields": {"region": {"keys": ["eu", 7], "places": [2, 1]}}}'
    )
    table = read_table_file(path).table("region")
    assert table.places == 3
    assert dict(zip(table.hashes.tolist(), table.key_places.tolist(), strict=True)) == {
        hash_key("eu"): 2,
        hash_key(7): 1,
    }


def test_an_unknown_field_names_those_that_exist() -> None:
    found = TableFile(2, {"region": {dt.date(2020, 1, 1): 1}})
    with pytest.raises(UsageError, match=r"expected one of \['region'\], got 'tag'"):
        found.table("tag")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "expected JSON that 'thalweg analyze --table' wrote"),
        ("{}", "missing required field"),
        ('{"format": "other", "places": 1, "fields": {}}', "expected format 'thalweg-table-1'"),
        ('{"format": "thalweg-table-1", "places": 0, "fields": {}}', "at least one place"),
        (
            '{"format": "thalweg-table-1", "places": 2,'
            ' "fields": {"k": {"keys": [1], "places": []}}}',
            "a place for each key of 'k', got 1 keys and 0 places",
        ),
        (
            '{"format": "thalweg-table-1", "places": 2,'
            ' "fields": {"k": {"keys": [1], "places": [2]}}}',
            "places from 0 to 1 for 'k', got 2",
        ),
        (
            '{"format": "thalweg-table-1", "places": 2,'
            ' "fields": {"k": {"keys": [{"stored": "%"}], "places": [1]}}}',
            "expected keys of 'k'",
        ),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_table_file(path)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_table_file(tmp_path / "none.json")
    with pytest.raises(UsageError, match="expected a file to write"):
        write_table_file(tmp_path / "no" / "table.json", TableFile(1, {}))
