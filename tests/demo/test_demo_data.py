"""The records of the demo, and what is said about files that will not do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg.demo.data import made_up, of_file
from thalweg.errors import UsageError

#: Rows that are surely more than one block of a file.
BLOCK = 5000


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.csv"
    file.write_text("customer,item,price\nada,tea,3\nbob,jam,4\nada,jam,4\n")
    return file


def test_the_two_columns_that_are_named_are_read_in_their_order(shop: Path) -> None:
    data = of_file(shop, "item, customer")
    assert data.keys == ("item", "customer")
    assert data.batch.to_pydict() == {
        "item": ["tea", "jam", "jam"],
        "customer": ["ada", "bob", "ada"],
    }
    assert "3 records of shop.csv" in data.about


def test_no_more_than_so_many_records_are_read(shop: Path) -> None:
    assert of_file(shop, "item,customer", most=2).batch.num_rows == 2


def test_json_lines_and_parquet_will_do(tmp_path: Path) -> None:
    lines = tmp_path / "calls.jsonl"
    lines.write_text('{"who": "ada", "zone": 3}\n{"who": "bob", "zone": 4}\n')
    assert of_file(lines, "who,zone").batch.column("zone").to_pylist() == [3, 4]
    table = tmp_path / "calls.parquet"
    pq.write_table(pa.table({"who": ["ada"], "zone": [3]}), table)
    assert of_file(table, "zone,who").batch.to_pylist() == [{"zone": 3, "who": "ada"}]


def test_a_column_that_is_not_there_is_refused_with_those_that_are(shop: Path) -> None:
    with pytest.raises(UsageError, match=r"column 'town' .*shop.csv has customer, item, price"):
        of_file(shop, "customer,town")


@pytest.mark.parametrize("keys", ["item,item", "item", "", "item,customer,price"])
def test_keys_are_two_different_columns(shop: Path, keys: str) -> None:
    expected = r"--keys: expected two different columns.*has customer, item, price"
    with pytest.raises(UsageError, match=expected):
        of_file(shop, keys)


def test_a_file_that_is_missing_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.csv': expected a file, got none"):
        of_file(tmp_path / "none.csv", "a,b")
    with pytest.raises(UsageError, match="expected a file, got a folder"):
        of_file(tmp_path, "a,b")


@pytest.mark.parametrize("text", ["", "[1, 2]\n", "no json\n"])
def test_lines_that_are_no_records_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"odd\.jsonl': expected CSV, JSON lines or Parquet"):
        of_file(file, "a,b")


ODD = {
    "odd.csv": "a,b\n1,2\n3\n4,5\n",
    "odd.jsonl": '{"a": 1, "b": 2}\nno json\n{"a": 4, "b": 5}\n',
}


@pytest.mark.parametrize("name", ODD)
def test_a_line_that_cannot_be_read_is_left_out_and_counted(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(ODD[name])
    data = of_file(tmp_path / name, "a,b")
    assert data.batch.num_rows == 2
    assert data.about == f"2 records of {name} (left out: 1 that cannot be read)"


def test_a_file_of_which_no_line_can_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("a,b\n1\n2\n")
    with pytest.raises(UsageError, match="got none, and 2 that cannot be read"):
        of_file(tmp_path / "odd.csv", "a,b")


def test_a_file_without_records_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.csv"
    file.write_text("a,b\n")
    with pytest.raises(UsageError, match="expected records, got none"):
        of_file(file, "a,b")


def test_a_column_may_begin_without_values(tmp_path: Path) -> None:
    file = tmp_path / "late.jsonl"
    lines = ['{"who": null, "zone": 3}\n'] * BLOCK + ['{"who": "ada", "zone": 4}\n']
    file.write_text("".join(lines))
    who = of_file(file, "who,zone").batch.column("who")
    assert (who.type, who.null_count, who[-1].as_py()) == (pa.string(), BLOCK, "ada")


@pytest.mark.parametrize(
    ("name", "text"),
    [("none.csv", "who,zone\n,3\n,4\n"), ("none.jsonl", '{"who": null, "zone": 3}\n')],
)
def test_a_column_without_any_value_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=r"column 'who' in --keys: expected values, got none in"):
        of_file(tmp_path / name, "who,zone")


def test_what_is_made_up_depends_on_the_seed_alone() -> None:
    assert made_up(500, seed=7).batch == made_up(500, seed=7).batch
    assert made_up(500, seed=7).batch != made_up(500, seed=8).batch
