"""Fields that lines of JSON show."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from thalweg.connectors import json_fields
from thalweg.connectors.formats import FileFormat
from thalweg.connectors.json_fields import learnt_fields


def learnt(*paths: Path) -> str:
    return learnt_fields(map(str, paths), FileFormat()).describe()


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        ('{"n": 1, "x": 1.5, "s": "a", "b": true}', "n: int64, x: double, s: string, b: bool"),
        ('{"x": 1}\n{"x": 1.5}\n{"x": null}', "x: double"),
        ('{"a": 1}\n{"b": 2}', "a: int64, b: int64"),
        ('{"at": "2026-01-02T03:04:05"}', "at: string"),
        ('{"none": null, "n": 1}', "none, n: int64"),
        ('{"list": [1], "object": {}, "n": 1}', "n: int64"),
        ('{"mixed": 1, "truth": true, "n": 1}\n{"mixed": "1", "truth": 0, "n": 2}', "n: int64"),
        ('{"no name": 1, "class": 2, "_id": 3, "": 4, "n": 5}', "n: int64"),
        (f'{{"large": {2**63}}}', "large: double"),
        ('\ufeff{"n": 1}', "n: int64"),
        ('not JSON\n\n[1]\n3\n{"n": 1}\n{"cut": ', "n: int64"),
        ("", ""),
    ],
)
def test_names_and_types_are_those_of_the_values(tmp_path: Path, lines: str, fields: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines, encoding="utf-8")
    assert learnt(path) == fields


def test_the_first_lines_of_all_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_fields, "LOOKED_AT", 3)
    one, two, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz", tmp_path / "other.csv"
    one.write_text('{"a": 1}\n')
    two.write_bytes(gzip.compress(b'{"b": 1}\n{"c": 1}\n{"d": 1}\n'))
    other.write_text("e\n1\n")
    assert learnt(one, other, two) == "a: int64, b: int64, c: int64"


def test_long_lines_are_looked_at_only_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_fields, "BLOCK_BYTES", 10)
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": "long enough"}\n{"b": 1}\n')
    assert learnt(path) == "a: string"
