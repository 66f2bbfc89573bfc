"""What files of each format give."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thalweg as tw
from connectors.running import read

POSTS = [("eu", 3), ("us", 4)]
FIELDS = {"region": str, "n": int}


def test_json_lines_give_the_declared_fields_and_ignore_others(tmp_path: Path) -> None:
    (tmp_path / "posts.jsonl").write_text(
        '{"region":"eu","n":3,"more":[1]}\n{"n":4,"region":"us"}\n'
    )
    assert read(tw.files(tmp_path / "posts.jsonl"), FIELDS).rows == POSTS


def test_json_fields_without_types_take_the_type_of_the_first_values(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"v":1.5}\n{"v":2}\n')
    assert read(tw.files(tmp_path / "a.ndjson"), ["v"]).values == [1.5, 2.0]


def test_blank_lines_between_json_records_are_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"n":1}\r\n\r\n  \n{"n":2}\n\n')
    assert read(tw.files(tmp_path / "a.json"), {"n": int}).values == [1, 2]


def test_json_knows_dates_bytes_lists_maps_and_null(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"at":"2024-05-06T07:08:09","raw":"/w==","tags":["x",null],"by":{"k":1},"none":null}\n'
    )
    fields = {
        "at": dt.datetime,
        "raw": bytes,
        "tags": list[str],
        "by": dict[str, int],
        "none": int,
    }
    assert read(tw.files(tmp_path / "a.jsonl"), fields).rows == [
        (dt.datetime.fromisoformat("2024-05-06T07:08:09"), b"\xff", ["x", None], [("k", 1)], None)
    ]


def test_csv_columns_are_found_by_the_header_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("n,more,region\n3,x,eu\n4,y,us\n")
    assert read(tw.files(tmp_path / "posts.csv"), FIELDS).rows == POSTS


HEADER = ["", "2024", "class", "unit price", "m²", "%"]
CHANGED = ("column_1", "c2024", "class_", "unit_price", "m", "column_6")


def test_names_of_csv_columns_become_such_that_python_accepts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",".join(HEADER) + "\n1,2,3,4,5,6\n", encoding="utf-8")
    flow = tw.Flow("names")
    assert flow.source("a", tw.files(tmp_path / "a.csv")).fields.names == CHANGED
    assert read(tw.files(tmp_path / "a.csv")).rows == [tuple("123456")]
    assert read(tw.files(tmp_path / "a.csv"), {"class_": int, "column_1": int}).rows == [(3, 1)]


def test_names_of_parquet_columns_become_such_that_python_accepts(tmp_path: Path) -> None:
    table = pa.table([[n] for n in range(6)], HEADER)
    pq.write_table(table, tmp_path / "a.parquet")
    assert tw.Flow("names").source("a", tw.files(tmp_path / "a.parquet")).fields.names == CHANGED
    assert read(tw.files(tmp_path / "a.parquet")).rows == [tuple(range(6))]


def test_a_column_without_a_name_gets_a_number_that_no_column_has(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("column_3,b,,?\n1,2,3,4\n")
    names = ("column_3", "b", "column_4", "column_5")
    assert tw.Flow("names").source("a", tw.files(tmp_path / "a.csv")).fields.names == names
    assert read(tw.files(tmp_path / "a.csv")).rows == [tuple("1234")]
    assert read(tw.files(tmp_path / "a.csv"), {"column_4": int, "column_3": int}).rows == [(3, 1)]


def test_two_columns_that_become_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("unit price,unit-price\n1,2\n")
    tells = "column 'unit-price': expected a field of its own, got 'unit_price', as 'unit price'"
    with pytest.raises(tw.RecordError, match=tells):
        read(tw.files(tmp_path / "a.csv"))


def test_csv_without_declared_fields_gives_all_columns_as_text(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("region,n\neu,3\nus,4\n")
    assert read(tw.files(tmp_path / "posts.csv")).rows == [("eu", "3"), ("us", "4")]


def test_a_csv_column_with_spaces_is_a_field_with_underscores(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("session ID;page 1 (main)\n7;x\n")
    outcome = read(tw.files(tmp_path / "a.csv", delimiter=";"))
    assert outcome.rows == [("7", "x")]
    assert read(tw.files(tmp_path / "a.csv", delimiter=";"), {"page_1_main": str}).values == ["x"]


def test_csv_cells_may_hold_delimiters_quotes_and_newlines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,n\n"a,b",1\n"say ""hi""",2\n"two\nlines",3\n')
    rows = read(tw.files(tmp_path / "a.csv"), {"text": str, "n": int}).rows
    assert rows == [("a,b", 1), ('say "hi"', 2), ("two\nlines", 3)]


def test_an_empty_csv_cell_is_none_and_a_quoted_one_is_empty_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b,n\n,"",1\n"","",\n')
    rows = read(tw.files(tmp_path / "a.csv"), {"a": str, "b": str, "n": int}).rows
    assert rows == [(None, "", 1), ("", "", None)]


def test_csv_cells_become_the_declared_types(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        'i,f,b,t,d,l,m,x\n 7 ,1e3,TRUE,2024-05-06 07:08:09,2024-05-06,"[1,2]",01:02:03,eA==\n'
    )
    fields = {
        "i": int,
        "f": float,
        "b": bool,
        "t": dt.datetime,
        "d": dt.date,
        "l": list[int],
        "m": dt.time,
        "x": bytes,
    }
    when = dt.datetime.fromisoformat("2024-05-06T07:08:09")
    assert read(tw.files(tmp_path / "a.csv"), fields).rows == [
        (7, 1000.0, True, when, when.date(), [1, 2], dt.time(1, 2, 3), b"x")
    ]


def test_tab_separated_values_have_a_format_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("region\tn\neu\t3\nus\t4\n")
    assert read(tw.files(tmp_path / "a.tsv"), FIELDS).rows == POSTS


def test_parquet_gives_its_own_fields_and_types(tmp_path: Path) -> None:
    table = pa.table({"region": ["eu", "us"], "n": pa.array([3, 4], pa.int32()), "x": [0.5, 1.5]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read(tw.files(tmp_path / "a.parquet")).rows == [("eu", 3, 0.5), ("us", 4, 1.5)]


def test_parquet_gives_only_declared_fields_in_the_declared_type(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([3, 4], pa.int32()), "region": ["eu", "us"], "x": [0.5, 1.5]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read(tw.files(tmp_path / "a.parquet"), FIELDS).rows == POSTS


def test_parquet_is_read_in_blocks_across_row_groups(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": range(1000)}), tmp_path / "a.parquet", row_group_size=64)
    outcome = read(tw.files(tmp_path / "a.parquet"), block_rows=10)
    assert outcome.values == list(range(1000))


def test_plain_text_has_the_field_line(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_bytes(b"one\r\n\ntwo, \xe2\x82\xac\nno newline")
    assert read(tw.files(tmp_path / "app.log")).values == ["one", "", "two, €", "no newline"]


def test_plain_text_has_one_field_only(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    with pytest.raises(tw.UsageError, match=r"one field.*got \['a', 'b'\]"):
        read(tw.files(tmp_path / "a.txt"), ["a", "b"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv.gz", b"region,n\neu,3\nus,4\n"),
        ("a.jsonl.gz", b'{"region":"eu","n":3}\n{"region":"us","n":4}\n'),
    ],
)
def test_packed_text_is_unpacked(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(gzip.compress(content))
    assert read(tw.files(tmp_path / name), FIELDS).rows == POSTS


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfregion,n\neu,3\nus,4\n")
    assert read(tw.files(tmp_path / "a.csv"), FIELDS).rows == POSTS
    assert read(tw.files(tmp_path / "a.csv")).rows == [("eu", "3"), ("us", "4")]


def test_the_format_can_be_told_where_the_name_does_not(tmp_path: Path) -> None:
    (tmp_path / "posts").write_text('{"region":"eu","n":3}\n{"region":"us","n":4}\n')
    assert read(tw.files(tmp_path / "posts", format="jsonl"), FIELDS).rows == POSTS


def test_an_unknown_name_says_which_ones_are_known(tmp_path: Path) -> None:
    (tmp_path / "posts.xyz").write_text("")
    with pytest.raises(tw.UsageError, match=r"posts\.xyz.*\.csv.*format='csv'"):
        read(tw.files(tmp_path / "posts.xyz"), FIELDS)


def test_an_unknown_format_is_refused_at_once() -> None:
    with pytest.raises(tw.UsageError, match=r"one of .*'parquet'.*got 'avro'"):
        tw.files("a.csv", format="avro")


def test_empty_files_give_nothing(tmp_path: Path) -> None:
    for name in ("a.csv", "a.jsonl", "a.txt"):
        (tmp_path / name).write_text("")
        assert read(tw.files(tmp_path / name), ["line"]).rows == []


def test_json_lines_cannot_tell_their_fields(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n":1}\n')
    with pytest.raises(tw.TopologyError, match="fields="):
        read(tw.files(tmp_path / "a.jsonl"))


def test_blocks_are_never_larger_than_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n" + "".join(f"{i}\n" for i in range(100)))
    sizes: list[int] = []

    def note(batch: pa.RecordBatch) -> pa.RecordBatch:
        sizes.append(batch.num_rows)
        return batch

    flow = tw.Flow("blocks")
    numbers = flow.source("numbers", tw.files(tmp_path / "a.csv"), fields={"n": int})
    numbers.map_block(note).sink("out", tw.collect([]))
    flow.run(tw.Inline(block_rows=7))
    assert sum(sizes) == 100
    assert max(sizes) == 7
