"""Input that cannot be read is refused record by record; good records around it arrive."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from connectors.running import dead_letters, read

FIELDS = {"n": int, "s": str}

BAD_JSON = [
    b"{",
    b"nonsense",
    b"[1]",
    b'{"n":"1","s":"x"}',
    b'{"n":1}',
    b'{"n":1.5,"s":"x"}',
    b'{"n":1,"s":"\xff"}',
    b'{"n":1,"s":"x"} trailing',
    b'{"n":99999999999999999999,"s":"x"}',
    b'{"n":1,"s":' + b"[" * 5000,
    b'{"n":1,"s":"' + b"x" * 5000 + b'"}',
]
BAD_CSV = [
    b"1",
    b"1,x,2",
    b"one,x",
    b"1.5,x",
    b'1,"x"y',
    b'1,"never closed',
    b'"never closed',
    b"1,\xff",
    b"99999999999999999999,x",
    b"1," + b"x" * 5000,
]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.none(), st.sampled_from(BAD_JSON)), max_size=40))
def test_good_json_lines_arrive_in_order_wherever_bad_ones_stand(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes | None]
) -> None:
    path = tmp_path_factory.mktemp("json") / "a.jsonl"
    good = [b'{"n":%d,"s":"x"}' % i if line is None else line for i, line in enumerate(lines)]
    path.write_bytes(b"\n".join(good))
    outcome = read(tw.files(path, max_record=4000), FIELDS, on_error="skip", block_rows=8)
    assert outcome.rows == [(i, "x") for i, line in enumerate(lines) if line is None]
    assert outcome.errors == sum(line is not None for line in lines)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.none(), st.sampled_from(BAD_CSV)), max_size=40))
def test_good_csv_records_arrive_in_order_wherever_bad_ones_stand(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes | None]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    good = [b"%d,x" % i if line is None else line for i, line in enumerate(lines)]
    path.write_bytes(b"\n".join([b"n,s", *good]))
    outcome = read(tw.files(path, max_record=4000), FIELDS, on_error="skip", block_rows=8)
    assert outcome.rows == [(i, "x") for i, line in enumerate(lines) if line is None]
    assert outcome.errors == sum(line is not None for line in lines)


def test_without_a_policy_a_bad_record_ends_the_run_and_says_where_it_stands(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.jsonl").write_text('{"n":1}\n{"n":"two"}\n')
    with pytest.raises(tw.RecordError, match=r"two.*a\.jsonl, line 2.*Expected `int.*on_error"):
        read(tw.files(tmp_path / "a.jsonl"), {"n": int})


def test_a_dead_letter_file_keeps_the_raw_record_and_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"n,s\n1,x\n2,caf\xe9\nthree,y\n4,z\n")
    kept = tmp_path / "bad" / "letters.jsonl"
    outcome = read(tw.files(tmp_path / "a.csv"), FIELDS, on_error=tw.dead_letter(kept))
    assert outcome.rows == [(1, "x"), (4, "z")]
    latin, word = dead_letters(kept)
    assert latin["raw"] == "2,caf\\xe9"
    assert "a.csv, line 3" in latin["reason"]
    assert "UTF-8" in latin["reason"]
    assert word["raw"] == "three,y"
    assert "a.csv, line 4: field 'n': expected int64, got 'three'" in word["reason"]


def test_a_csv_record_of_several_lines_is_refused_as_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,s\n1,"a\nb",extra\n2,x\n')
    kept = tmp_path / "letters.jsonl"
    outcome = read(tw.files(tmp_path / "a.csv"), FIELDS, on_error=tw.dead_letter(kept))
    assert outcome.rows == [(2, "x")]
    (letter,) = dead_letters(kept)
    assert letter["raw"] == '1,"a\nb",extra'
    assert "line 2: expected 2 columns, got 3" in letter["reason"]


def test_a_quote_that_is_never_closed_does_not_swallow_what_follows(tmp_path: Path) -> None:
    records = "".join(f"{i},x\n" for i in range(2000))
    (tmp_path / "a.csv").write_text('n,s\n7,"open\n' + records)
    outcome = read(
        tw.files(tmp_path / "a.csv", max_record=1000), FIELDS, on_error="skip", block_rows=10
    )
    assert [n for n, _ in outcome.rows] == list(range(2000))
    assert outcome.errors == 1


def test_a_csv_record_may_be_longer_than_a_block_has_lines(tmp_path: Path) -> None:
    text = "\n".join(f"line {i}" for i in range(500))
    (tmp_path / "a.csv").write_text(f'n,s\n1,"{text}"\n2,x\n')
    assert read(tw.files(tmp_path / "a.csv"), FIELDS, block_rows=4).rows == [(1, text), (2, "x")]


def test_a_record_that_is_too_long_is_shown_by_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("short\n" + "x" * 1_000_000 + "\nlast\n")
    kept = tmp_path / "letters.jsonl"
    source = tw.files(tmp_path / "a.txt", max_record=1000)
    assert read(source, on_error=tw.dead_letter(kept)).values == ["short", "last"]
    (letter,) = dead_letters(kept)
    assert letter["raw"] == "x" * 200
    assert "line 2: a record of 1000000 bytes where 1000 are allowed" in letter["reason"]


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\nbad \xff\ngood again\n")
    outcome = read(tw.files(tmp_path / "a.txt"), on_error="skip")
    assert outcome.values == ["good", "good again"]
    assert outcome.errors == 1


@pytest.mark.parametrize("policy", ["fail", "skip"])
def test_a_header_without_a_declared_field_is_an_error_whatever_the_policy(
    tmp_path: Path, policy: str
) -> None:
    (tmp_path / "a.csv").write_text("n,text\n1,x\n")
    with pytest.raises(tw.RecordError, match=r"a\.csv.*field 's'.*\['n', 'text'\]"):
        read(tw.files(tmp_path / "a.csv"), FIELDS, on_error=policy)


def test_a_parquet_file_without_a_declared_field_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    with pytest.raises(tw.RecordError, match=r"a\.parquet.*field 's'.*\['n'\]"):
        read(tw.files(tmp_path / "a.parquet"), FIELDS)


def test_one_file_among_others_that_lacks_a_field_is_refused_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,s\n1,x\n")
    (tmp_path / "b.csv").write_text("n\n2\n")
    (tmp_path / "c.csv").write_text("n,s\n3,z\n")
    outcome = read(tw.files(f"{tmp_path}/*.csv"), FIELDS, on_error="skip")
    assert outcome.rows == [(1, "x"), (3, "z")]
    assert outcome.errors == 1


def test_parquet_values_that_do_not_fit_are_refused_row_by_row(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1.0, 2.5, 3.0]}), tmp_path / "a.parquet")
    kept = tmp_path / "letters.jsonl"
    outcome = read(tw.files(tmp_path / "a.parquet"), {"n": int}, on_error=tw.dead_letter(kept))
    assert outcome.values == [1, 3]
    (letter,) = dead_letters(kept)
    assert letter["raw"] == "{'n': 2.5}"
    assert "a.parquet, row 2" in letter["reason"]


def test_a_file_that_is_no_parquet_is_refused_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but not really")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "b.parquet")
    outcome = read(tw.files(f"{tmp_path}/*.parquet"), {"n": int}, on_error="skip")
    assert outcome.values == [1]
    assert outcome.errors == 1
    with pytest.raises(tw.RecordError, match=r"a\.parquet.*expected Parquet"):
        read(tw.files(f"{tmp_path}/*.parquet"), {"n": int})


def test_a_packed_file_that_is_cut_off_gives_what_it_has_and_is_refused_once(
    tmp_path: Path,
) -> None:
    packed = gzip.compress(b"".join(b"line %d\n" % i for i in range(100_000)))
    (tmp_path / "a.txt.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "b.txt").write_text("next\n")
    outcome = read(tw.files([tmp_path / "a.txt.gz", tmp_path / "b.txt"]), on_error="skip")
    lines = outcome.values
    assert lines[-1] == "next"
    assert len(lines) > 1000
    assert lines[:-1] == [f"line {i}" for i in range(len(lines) - 1)]
    assert outcome.errors == 1


def test_a_file_that_is_not_packed_but_says_so_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_text("n\n1\n")
    with pytest.raises(tw.RecordError, match=r"a\.csv\.gz.*[Gg]zip"):
        read(tw.files(tmp_path / "a.csv.gz"), {"n": int})


def test_a_broken_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,"s\n1,x\n')
    with pytest.raises(tw.RecordError, match=r"a\.csv.*header.*names of the columns"):
        read(tw.files(tmp_path / "a.csv"), FIELDS)
