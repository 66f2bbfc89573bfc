"""Tables in files: read, looked at again, and read again when they are others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thalweg as tw
from thalweg.connectors import table_files
from thalweg.connectors.table_files import TableFile, table_file
from thalweg.runtimes.shipping import pack, unpack
from thalweg.schemas import fields
from thalweg.testing import ManualClock

FIELDS = {"item": str, "price": int}


class Heard(list[str]):
    """What was noticed."""

    def __call__(self, text: str) -> None:
        """Take it."""
        self.append(text)


def replace(path: Path, text: str) -> None:
    """Put a complete file in the place of another."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def csv(*prices: int) -> str:
    return "item,price\n" + "".join(f"i{price},{price}\n" for price in prices)


def prices(table: TableFile, now: float, heard: Heard | None = None) -> list[int]:
    rows = table.current(now, heard if heard is not None else Heard()).rows
    return list(rows.column("price").to_pylist())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "prices.csv"
    made.write_text(csv(1))
    return made


# --- what a file holds ---------------------------------------------------------------------------


def write_parquet(path: Path) -> None:
    pq.write_table(pa.table({"item": ["a", "b"], "price": [1, 2]}), path)


WRITERS: dict[str, Callable[[Path], object]] = {
    "t.csv": lambda path: path.write_text("item,price\na,1\nb,2\n"),
    "t.tsv": lambda path: path.write_text("price\titem\n1\ta\n2\tb\n"),
    "t.jsonl": lambda path: path.write_text('{"item":"a","price":1}\n{"item":"b","price":2}\n'),
    "t.parquet": write_parquet,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_of_sources_can_be_a_table(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    table = table_file(tmp_path / name, fields=FIELDS)
    assert table.current(0.0, Heard()).rows.to_pylist() == [
        {"item": "a", "price": 1},
        {"item": "b", "price": 2},
    ]


def test_fields_are_those_of_the_header_or_the_schema(tmp_path: Path) -> None:
    write_parquet(tmp_path / "t.parquet")
    assert table_file(tmp_path / "t.parquet").fields == fields(FIELDS)
    (tmp_path / "t.csv").write_text("item,price\na,1\n")
    assert table_file(tmp_path / "t.csv").fields == fields({"item": str, "price": str})


def test_types_that_are_not_declared_are_read_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"item":"a","price":1.5}\n')
    table = table_file(tmp_path / "t.jsonl", fields=["item", "price"])
    assert table.fields == fields({"item": str, "price": float})


def test_json_needs_fields(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("{}\n")
    with pytest.raises(tw.UsageError, match="fields="):
        table_file(tmp_path / "t.jsonl").fields  # noqa: B018 (it reads the file)


def test_a_file_that_is_missing_or_broken_ends_the_run_at_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with pytest.raises(tw.RecordError, match=r"t\.csv.*to be readable"):
        table_file(path).fields  # noqa: B018 (it reads the file)
    flow, out = tw.Flow("f"), list[Any]()
    source = flow.source("s", tw.items(["a"]), fields={"item": str})
    source.join(table_file(path, fields=FIELDS), on="item").sink("out", tw.collect(out))
    with pytest.raises(tw.RecordError, match=r"t\.csv.*No such file"):
        flow.run()
    path.write_text("item,price\na,dear\n")
    with pytest.raises(tw.RecordError, match=r"line 2.*int64.*dear"):
        flow.run()


# --- a file that changes -------------------------------------------------------------------------


def test_a_new_version_is_seen_at_the_next_look(path: Path) -> None:
    table, heard = table_file(path, fields=FIELDS, reload="10 s"), Heard()
    assert prices(table, 100.0, heard) == [1]
    replace(path, csv(1, 2))
    assert prices(table, 109.0, heard) == [1]
    assert heard == []
    assert prices(table, 110.0, heard) == [1, 2]
    assert heard == [f"{str(path)!r} with 2 rows is used from now on"]


def test_a_file_that_is_the_same_is_not_read_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_file(path, fields=FIELDS)
    first = table.current(0.0, Heard())
    monkeypatch.setattr(table_files, "open_reader", None)
    assert table.current(5.0, Heard()) is first


def test_without_reload_it_is_read_once(path: Path) -> None:
    table = table_file(path, fields=FIELDS, reload=None)
    assert prices(table, 0.0) == [1]
    replace(path, csv(2))
    assert prices(table, 1e9) == [1]


@pytest.mark.parametrize(
    "text", ["item,price\ni2,dear\n", "item\ni2\n", "item,price\ni2,1,2\n", ""]
)
def test_a_broken_version_is_told_once_and_the_old_one_stays(path: Path, text: str) -> None:
    table, heard = table_file(path, fields=FIELDS), Heard()
    assert prices(table, 0.0) == [1]
    replace(path, text)
    if not text:
        path.unlink()
    assert [prices(table, now, heard) for now in (2.0, 4.0, 6.0)] == [[1]] * 3
    assert len(heard) == 1
    assert "the version before stays in use" in heard[0]
    replace(path, csv(3))
    assert prices(table, 8.0, heard) == [3]


def test_a_file_that_is_being_written_is_looked_at_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, heard, open_reader = table_file(path, fields=FIELDS), Heard(), table_files.open_reader
    assert prices(table, 0.0) == [1]

    def opened(*arguments: Any) -> Any:
        found = open_reader(*arguments)
        replace(path, csv(4, 5, 6))  # between the look at the file and its end
        monkeypatch.undo()
        return found

    replace(path, csv(2, 3))
    monkeypatch.setattr(table_files, "open_reader", opened)
    assert prices(table, 2.0, heard) == [1]
    assert heard == []
    assert prices(table, 4.0, heard) == [4, 5, 6]


def test_a_clock_that_begins_anew_does_not_stop_the_looks(path: Path) -> None:
    table = table_file(path, fields=FIELDS)
    assert prices(table, 1000.0) == [1]
    replace(path, csv(2))
    assert prices(table, 0.0) == [2]


def test_another_process_reads_the_file_itself_with_the_same_types(path: Path) -> None:
    table = table_file(path)
    assert table.fields == fields({"item": str, "price": str})
    os.remove(path)
    other = unpack(pack(table))
    assert other.fields == table.fields
    replace(path, csv(7))
    assert prices(other, 0.0) == ["7"]


def test_a_version_whose_keys_do_not_fit_the_stream_is_not_used(tmp_path: Path) -> None:
    path, heard, clock = tmp_path / "t.csv", list[Any](), ManualClock()
    path.write_text("n,name\n1,one\n2,two\n")

    def numbers() -> Any:
        yield 1
        replace(path, "n,name\n1.5,more\n")
        clock.advance(5.0)
        yield 2

    flow, out = tw.Flow("f", "total"), list[Any]()
    source = flow.source("s", tw.items(numbers), fields={"n": int})
    table = table_file(path, fields={"n": float, "name": str})
    source.join(table, on="n").sink("out", tw.collect(out))
    flow.run(on=tw.Inline(block_rows=1, clock=clock), listen=heard.append)
    assert [tuple(t) for t in out] == [(1, "one"), (2, "two")]
    assert any("is not used, the one before is" in getattr(e, "text", "") for e in heard)
