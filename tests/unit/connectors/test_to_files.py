"""What is written to files can be read again, at any time for lines."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from connectors.running import read, write

FIELDS = {"text": str, "n": int, "x": float, "yes": bool}
rows = st.lists(
    st.tuples(
        st.none() | st.text(),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | st.booleans(),
    ),
    max_size=30,
)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
@settings(max_examples=50, deadline=None)
@given(rows=rows)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, rows: list[tuple[Any, ...]]
) -> None:
    path = tmp_path_factory.mktemp("trip") / f"a.{suffix}"
    write(tw.to_files(path), rows, FIELDS, block_rows=7)
    if not rows and suffix == "parquet":
        assert not path.exists()
    else:
        assert read(tw.files(path), FIELDS, block_rows=5).rows == rows


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.none() | st.text(), max_size=20))
def test_a_single_field_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, values: list[str | None]
) -> None:
    path = tmp_path_factory.mktemp("single") / f"a.{suffix}"
    write(tw.to_files(path), values, {"text": str}, block_rows=7)
    assert read(tw.files(path), {"text": str}, block_rows=3).values == values


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(), max_size=20))
def test_csv_also_keeps_infinities_and_nan(
    tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    path = tmp_path_factory.mktemp("floats") / "a.csv"
    write(tw.to_files(path), values, {"x": float})
    assert str(read(tw.files(path), {"x": float}).values) == str(values)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_values_without_a_form_of_their_own_are_read_again(tmp_path: Path, suffix: str) -> None:
    fields = {
        "tags": list[str],
        "raw": bytes,
        "at": dt.datetime,
        "day": dt.date,
        "hour": dt.time,
        "took": dt.timedelta,
    }
    at = dt.datetime.fromisoformat("2024-05-06T07:08:09.000123")
    row = (["a,b", 'c"d'], b"\x00\xff", at, at.date(), at.time(), dt.timedelta(1, 2))
    write(tw.to_files(tmp_path / f"a.{suffix}"), [row, (None,) * 6], fields)
    assert read(tw.files(tmp_path / f"a.{suffix}"), fields).rows == [row, (None,) * 6]


def test_nested_values_are_json_text_in_csv(tmp_path: Path) -> None:
    write(tw.to_files(tmp_path / "a.csv"), [[1, 2]], {"l": list[int]})
    assert (tmp_path / "a.csv").read_text() == 'l\n"[1,2]"\n'


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_lines_are_complete_after_each_block(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    seen: list[int] = []

    def numbers() -> Iterable[int]:
        for n in range(4):
            seen.append(path.read_text().count("\n"))
            assert not path.read_text() or path.read_text().endswith("\n")
            yield n

    flow = tw.Flow("growing")
    flow.source("n", tw.items(numbers), fields={"n": int}).sink("out", tw.to_files(path))
    flow.run(tw.Inline(block_rows=2))
    header = suffix == "csv"
    assert seen == [0, 0, 2 + header, 2 + header]


def test_parquet_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"

    def numbers() -> Iterable[int]:
        for n in range(10):
            assert not path.exists()
            yield n

    flow = tw.Flow("parquet")
    flow.source("n", tw.items(numbers), fields={"n": int}).sink("out", tw.to_files(path))
    flow.run(tw.Inline(block_rows=2))
    assert pq.read_table(path).column("n").to_pylist() == list(range(10))
    assert os.listdir(tmp_path) == ["a.parquet"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_after_an_error_what_was_complete_is_kept(tmp_path: Path, suffix: str) -> None:
    def numbers() -> Iterable[int]:
        yield from range(4)
        raise ValueError("the source broke")

    flow = tw.Flow("broken")
    path = tmp_path / f"a.{suffix}"
    flow.source("n", tw.items(numbers), fields={"n": int}).sink("out", tw.to_files(path))
    with pytest.raises(tw.ComponentError, match="the source broke"):
        flow.run(tw.Inline(block_rows=2))
    assert read(tw.files(path), {"n": int}).values == [0, 1, 2, 3]


def test_a_file_that_exists_is_not_replaced_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("precious\n")
    with pytest.raises(tw.UsageError, match=r"a\.csv.*'out'.*a file that exists.*overwrite=True"):
        write(tw.to_files(path), [1], {"n": int})
    assert path.read_text() == "precious\n"
    write(tw.to_files(path, overwrite=True), [1], {"n": int})
    assert path.read_text() == "n\n1\n"


def test_a_parquet_file_is_overwritten_also_by_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(tw.to_files(path), [1], {"n": int})
    write(tw.to_files(path, overwrite=True), [], {"n": int})
    assert os.listdir(tmp_path) == []


def test_folders_are_created(tmp_path: Path) -> None:
    write(tw.to_files(tmp_path / "a" / "b" / "c.jsonl"), [1], {"n": int})
    assert (tmp_path / "a" / "b" / "c.jsonl").read_text() == '{"n":1}\n'


def test_each_task_has_its_file(tmp_path: Path) -> None:
    write(tw.to_files(tmp_path / "n.csv"), range(100), {"n": int}, block_rows=10, degree=3)
    assert sorted(os.listdir(tmp_path)) == ["n-0.csv", "n-1.csv", "n-2.csv"]
    assert sorted(read(tw.files(f"{tmp_path}/n-*.csv"), {"n": int}).values) == list(range(100))


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(tw.UsageError, match=r"n\.csv.*can be written"):
        write(tw.to_files(tmp_path / "file" / "n.csv"), [1], {"n": int})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("n.xyz", r"ends in one of .*\.csv"),
        ("n.txt", r"ends in \.csv"),
        ("n.csv.gz", r"ends in \.csv"),
        ("", "a folder"),
    ],
)
def test_names_that_say_no_format_are_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(tw.UsageError, match=message):
        tw.to_files(tmp_path / name)
