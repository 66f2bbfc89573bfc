"""What a person sees."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from connectors.running import write
from thalweg.connectors.printing import show

ROWS = [("eu", "#rain", 3), ("america", "#sun", 12)]
FIELDS = {"region": str, "hashtag": str, "count": int}


def test_text_stands_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    write(tw.stdout(), ROWS, FIELDS)
    assert capsys.readouterr().out == (
        "region=eu       hashtag=#rain  count=3\nregion=america  hashtag=#sun   count=12\n"
    )


def test_columns_stay_as_wide_as_earlier_blocks_were(capsys: pytest.CaptureFixture[str]) -> None:
    write(tw.stdout(), reversed(ROWS), FIELDS, block_rows=1)
    assert capsys.readouterr().out.splitlines()[1] == "region=eu       hashtag=#rain  count=3"


def test_json_lines_can_be_read_by_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    write(tw.stdout("jsonl"), ROWS, FIELDS)
    read = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert read == [dict(zip(FIELDS, row, strict=True)) for row in ROWS]


def test_csv_has_one_header(capsys: pytest.CaptureFixture[str]) -> None:
    write(tw.stdout("csv", limit=2), [*ROWS, ROWS[0]], FIELDS, block_rows=1)
    read = list(csv.reader(capsys.readouterr().out.splitlines()))
    assert read == [list(FIELDS), *([*map(str, row)] for row in ROWS)]


def test_a_table_has_a_head_and_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    write(tw.stdout("table"), ROWS, FIELDS)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [line.split() for line in lines if "─" not in line] == [
        ["region", "hashtag", "count"],
        ["eu", "#rain", "3"],
        ["america", "#sun", "12"],
    ]
    assert lines[-1].endswith("12")
    assert lines[-2].index("3") == lines[-1].index("12") + 1


def test_a_limit_says_how_much_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    write(tw.stdout(limit=2), range(10), {"n": int}, block_rows=3)
    assert capsys.readouterr().out == "n=0\nn=1\n... and 8 more\n"


def test_wide_characters_do_not_disturb_the_columns(capsys: pytest.CaptureFixture[str]) -> None:
    write(tw.stdout(), [("日本", 1), ("abcd", 2)], {"s": str, "n": int})
    assert capsys.readouterr().out == "s=日本  n=1\ns=abcd  n=2\n"


@settings(deadline=None)
@given(st.text())
def test_text_never_leaves_its_line_nor_controls_the_terminal(text: str) -> None:
    assert show(text).isprintable()


def test_values_are_written_for_people() -> None:
    shown = [show(value) for value in (None, 2.0, 1234567.25, True, b"x", {"a": [1]}, "a\x1b[1m")]
    assert shown == ["-", "2", "1234567.25", "True", "eA==", '{"a":[1]}', "a\\x1b[1m"]


def test_a_stdout_without_the_characters_gets_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii"))
    write(tw.stdout(), ["10 €"], {"s": str})
    assert raw.getvalue() == b"s=10 \\u20ac\n"


@pytest.mark.parametrize("closed", [True, False])
def test_a_closed_stdout_is_no_error(monkeypatch: pytest.MonkeyPatch, closed: bool) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stdout", stream if closed else None)
    write(tw.stdout(), ROWS, FIELDS)


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    program = (
        "import thalweg as tw\n"
        "flow = tw.Flow('f')\n"
        "flow.source('n', tw.items(range(100_000)), fields=['n']).sink('out', tw.stdout())\n"
        "flow.run('inline')\n"
    )
    process = subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"n=0\n"
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (0, b"")


def test_unknown_formats_and_limits_are_refused() -> None:
    with pytest.raises(tw.UsageError, match="'text', 'jsonl', 'csv', 'table'"):
        tw.stdout("xml")  # type: ignore[arg-type]
    with pytest.raises(tw.UsageError, match="0 or more"):
        tw.stdout(limit=-1)
