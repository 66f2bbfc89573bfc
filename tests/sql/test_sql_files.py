"""What the command knows of the fields of files, and what it is told."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from docs.markdown import PAGES, fenced_blocks
from thalweg.cli.app import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(*arguments: str) -> list[str]:
    shown = CliRunner().invoke(app, ["sql", *arguments, "-q"])
    assert shown.exit_code == 0, shown.output
    return [" ".join(line.split()) for line in shown.output.splitlines()]


def told(*arguments: str) -> str:
    shown = CliRunner().invoke(app, ["sql", *arguments, "-q"])
    assert shown.exit_code != 0, shown.output
    return " ".join(shown.output.split())


def write(path: str, *records: Any) -> None:
    lines = (r if isinstance(r, str) else json.dumps(r) for r in records)
    Path(path).write_text("".join(f"{line}\n" for line in lines))


POSTS: list[dict[str, Any]] = [
    {"at": 10, "region": "eu", "hashtag": "jazz", "likes": 3},
    {"at": 20, "region": "eu", "hashtag": "jazz", "likes": 4.5},
    {"at": 3700, "region": "us", "hashtag": "chess"},
]


def test_the_first_command_of_the_page_runs_as_it_stands() -> None:
    Path("posts").mkdir()
    write("posts/a.jsonl", *POSTS[:1])
    write("posts/b.jsonl", *POSTS[1:])
    page = PAGES["docs/sql.md"].read_text(encoding="utf-8")
    block = next(b for b in fenced_blocks(page) if b.language == "bash")
    program, command, *arguments = shlex.split(block.text.replace("\\\n", " "))
    assert (program, command) == ("thalweg", "sql")
    assert printed(*arguments) == ["region=eu hashtag=jazz n=2", "region=us hashtag=chess n=1"]


def test_lines_of_json_tell_their_fields() -> None:
    write("posts.jsonl", *POSTS)
    query = "SELECT at + 1 AS at, likes, upper(region) AS region FROM posts WHERE at < 3700"
    assert printed(query, "--source", "posts=posts.jsonl") == [
        "at=11 likes=3 region=EU",
        "at=21 likes=4.5 region=EU",
    ]


def test_what_a_line_of_json_lacks_has_no_value() -> None:
    write("posts.jsonl", *POSTS)
    query = "SELECT at FROM posts WHERE likes IS NULL"
    assert printed(query, "--source", "posts=posts.jsonl") == ["at=3700"]


def test_types_go_before_what_lines_of_json_tell() -> None:
    write("posts.jsonl", {"at": "2026-01-01T00:00:10", "n": 1}, {"at": "2026-01-01T00:01:10"})
    query = "SELECT sum(n) / 2 AS n, window_start FROM posts WINDOW TUMBLING 1 MINUTE"
    arguments = ("--source", "posts=posts.jsonl", "--types", "at:timestamp,n:float", "--time", "at")
    assert printed(query, *arguments) == [
        "n=0.5 window_start=2026-01-01 00:00:00",
        "n=- window_start=2026-01-01 00:01:00",
    ]


def test_a_field_that_occurs_late_is_added_by_its_full_name() -> None:
    write("posts.jsonl", *[{"n": 1}] * 1000, {"n": 1, "late": 7})
    query = "SELECT late FROM posts WHERE late IS NOT NULL"
    assert "none of that name" in told(query, "--source", "posts=posts.jsonl")
    found = printed(query, "--source", "posts=posts.jsonl", "--types", "posts.late:int")
    assert found == ["late=7"]


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        ("jsonl", ['{"at":10,"likes":3.0}', '{"at":3700,"likes":null}']),
        ("csv", ["at,likes", "10,3", "3700,"]),
        ("text", ["at=10 likes=3", "at=3700 likes=-"]),
    ],
)
def test_results_are_printed_in_the_format_that_was_asked_for(
    format_: str, expected: list[str]
) -> None:
    write("posts.jsonl", *POSTS)
    query = "SELECT at, likes FROM posts WHERE at <> 20"
    assert printed(query, "--source", "posts=posts.jsonl", "--format", format_) == expected


def test_tables_of_json_tell_their_fields() -> None:
    write("posts.jsonl", *POSTS)
    write("regions.jsonl", {"code": "eu", "title": "Europe", "people": 450}, {"code": "us"})
    query = (
        "SELECT at, title, people * 2 AS people FROM posts JOIN regions r ON region = r.code "
        "WHERE at > 10"
    )
    arguments = ("--source", "posts=posts.jsonl", "--table", "regions=regions.jsonl")
    assert printed(query, *arguments) == [
        "at=20 title=Europe people=900",
        "at=3700 title=- people=-",
    ]
    assert printed(query, *arguments, "--types", "people:float")[0].endswith("people=900")


def test_without_records_the_types_are_the_fields() -> None:
    write("posts.jsonl")
    query = "SELECT sum(likes) AS n FROM posts"
    assert told(query, "--source", "posts=posts.jsonl") == (
        "error: fields of 'posts': expected records that tell them, or --types FIELD:TYPE,..., "
        "got neither"
    )
    assert printed(query, "--source", "posts=posts.jsonl", "--types", "likes:int") == []
    none_yet = told(query, "--source", "posts=none*.jsonl", "--tail", "1 s")
    assert "--types FIELD:TYPE" in none_yet


@pytest.mark.parametrize(
    "query",
    ["SELECT sum(likes) FROM posts", "SELECT likes FROM posts WHERE likes > 3"],
)
def test_cells_of_csv_are_no_numbers_unless_types_say_so(query: str) -> None:
    write("posts.csv", "likes", "3", "4")
    said = told(query, "--source", "posts=posts.csv")
    assert said.endswith("CAST(likes AS INT), or --types likes:int, makes numbers of it)")
    assert printed(query, "--source", "posts=posts.csv", "--types", "likes:int")


def test_types_of_some_columns_leave_those_of_parquet_as_they_are() -> None:
    write("posts.jsonl", *POSTS)
    pq.write_table(pa.table({"code": ["eu"], "people": [450], "area": [4]}), "regions.parquet")
    query = "SELECT people + area AS x FROM posts JOIN regions r ON region = r.code WHERE at = 10"
    arguments = ("--source", "posts=posts.jsonl", "--table", "regions=regions.parquet")
    assert printed(query, *arguments, "--types", "area:float") == ["x=454"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT at AS b FROM t WHERE n = 1", "b=1969-12-31T19:00:00.000000001-05:00"),
        ("SELECT max(plain) AS m FROM t", "m=1970-01-01T00:00:01.000000001"),
        ("SELECT n FROM t WHERE at >= TIMESTAMPTZ '1970-01-01 00:00:01Z'", "n=2"),
        (
            "SELECT n FROM t WHERE at NOT BETWEEN TIMESTAMPTZ '1970-01-01 00:00:00Z' "
            "AND TIMESTAMPTZ '1970-01-01 00:00:01Z'",
            "n=2",
        ),
        ("SELECT n FROM t WHERE at NOT IN (TIMESTAMPTZ '1970-01-01 00:00:01Z') AND n > 1", "n=2"),
    ],
)
def test_times_with_nanoseconds_stay_as_they_are(query: str, expected: str) -> None:
    values = [1, 1_000_000_001]
    zoned = pa.array(values, pa.timestamp("ns", "America/New_York"))
    table = {"n": [1, 2], "at": zoned, "plain": pa.array(values, pa.timestamp("ns"))}
    pq.write_table(pa.table(table), "t.parquet")
    assert printed(query, "--source", "t=t.parquet") == [expected]


def test_lines_that_are_no_json_are_told_by_the_run() -> None:
    write("posts.jsonl", *POSTS, "no JSON")
    assert "line 4" in told("SELECT at FROM posts", "--source", "posts=posts.jsonl")


@pytest.mark.parametrize("on", ["inline", "local"])
@pytest.mark.parametrize("policy", ["skip", "kept/bad.jsonl"])
def test_what_cannot_be_read_or_computed_is_left_out_where_that_is_wanted(
    on: str, policy: str
) -> None:
    write("p.jsonl", {"n": 1, "s": "1"}, "no JSON", {"n": 2, "s": "x"}, {"n": 3, "s": "30"})
    query = "SELECT n, CAST(s AS INT) AS i FROM p WHERE round(n) > 0"
    arguments = ["sql", query, "--source", "p=p.jsonl", "--on", on, "--on-error", policy]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert [line.split() for line in shown.stdout.splitlines()] == [["n=1", "i=1"], ["n=3", "i=30"]]
    assert "refused by 'p': 1 in all" in shown.stderr
    assert "refused by 'extend-1': 1 in all" in shown.stderr
    assert ", 2 errors" in shown.stderr
    if policy != "skip":
        letters = [json.loads(line) for line in Path(policy).read_text().splitlines()]
        kept = sorted((letter["component"], letter.get("raw")) for letter in letters)
        assert kept == [("extend-1", None), ("p", "no JSON")]


def test_without_a_policy_what_cannot_be_read_ends_the_query_and_names_the_option() -> None:
    write("p.jsonl", {"n": 1}, "no JSON")
    assert told("SELECT n FROM p", "--source", "p=p.jsonl").endswith("--on-error skip)")


@pytest.mark.parametrize(("policy", "hint"), [("skp", " (did you mean 'skip'?)"), ("a.csv", "")])
def test_a_policy_that_is_none_is_refused(policy: str, hint: str) -> None:
    write("p.jsonl", {"n": 1})
    said = told("SELECT n FROM p", "--source", "p=p.jsonl", "--on-error", policy)
    expected = f"expected one of ('fail', 'skip') or FILE.jsonl, got {policy!r}{hint}"
    assert said == f"error: --on-error: {expected}"


_KNOWN = "expected one of ['at', 'region', 'likes'], got a name nobody declared"
_NO_TIME = 'say --time FIELD, in a program time="FIELD" where the stream begins'


@pytest.mark.parametrize(
    ("options", "tells"),
    [
        ("", f"WINDOW on 'p': expected to know when something happened ({_NO_TIME})"),
        ("--time when", f"field 'when' in --time: {_KNOWN}"),
        ("--time p=when", f"field 'when' in --time: {_KNOWN}"),
        (
            "--time foo=at",
            "source 'foo' in --time: expected one of ['p', 'q'], got a name nobody declared",
        ),
        (
            "--time region",
            "field 'region' of 'p' in --time: expected a timestamp, a date or a number, got string "
            "(--types region:timestamp reads text)",
        ),
        ("--time at --time likes", "--time: expected one field for all sources, got at, likes"),
        ("--time p=at --time p=likes", "--time: expected one field for 'p', got at, likes"),
        ("--delay 1s", "--delay: expected --time FIELD beside it, got none"),
        ("--idle 1s", "--idle: expected --time FIELD beside it, got none"),
        ("--unit s", "--unit: expected --time FIELD beside it, got none"),
        ("--types likez:int", f"field 'likez' in --types: {_KNOWN} (did you mean 'likes'?)"),
        ("--types p.wen:int", f"field 'wen' in --types: {_KNOWN}"),
        (
            "--types x.at:int",
            "source 'x' in --types: expected one of ['p', 'q', 't'], got a name nobody declared",
        ),
    ],
)
def test_names_and_times_that_are_not_there_are_refused(options: str, tells: str) -> None:
    for name in "pqt":
        write(f"{name}.csv", "at,region,likes", "1,eu,3")
    query = "SELECT count(*) AS n FROM p WINDOW TUMBLING 1 MINUTE"
    arguments = ("--source", "p=p.csv", "--source", "q=q.csv", "--table", "t=t.csv")
    assert told(query, *arguments, *options.split()) == f"error: {tells}"


@pytest.mark.parametrize("second", ["source", "table"])
def test_two_sources_of_one_name_are_refused(second: str) -> None:
    write("p.csv", "n", "1")
    write("q.csv", "n", "2")
    arguments = ("--source", "p=p.csv", f"--{second}", "p=q.csv")
    tells = f"error: --{second}: expected one source or table 'p', got p.csv, q.csv"
    assert told("SELECT n FROM p", *arguments) == tells


def test_a_time_of_all_is_that_of_sources_that_have_it() -> None:
    write("p.csv", "at,n", "1,1", "70,2")
    write("q.csv", "n", "1")
    query = "SELECT sum(n) AS n FROM p WINDOW TUMBLING 1 MINUTE"
    arguments = ("--source", "p=p.csv", "--source", "q=q.csv", "--types", "at:int,n:int")
    assert printed(query, *arguments, "--time", "at") == ["n=1", "n=2"]
