"""A source that watches a folder: new files, new lines, renamed and cut files."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from connectors.running import Outcome, ScriptedClock, read
from thalweg.connectors import tailing


def watch(
    pattern: Any,
    script: dict[float, Callable[[], object]],
    fields: Any = None,
    until: float = 30.0,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Outcome:
    """Run a source that looks every second while things happen to its files."""
    clock = ScriptedClock(script, until)
    source = tw.files(pattern, tail="1 s", format=format)
    return read(source, fields or ["line"], clock=clock, stop=clock.stop, **options)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_new_files_and_new_lines_are_found_at_the_interval(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("first\n")
    outcome = watch(
        f"{tmp_path}/*.log",
        {
            2.5: lambda: append(log, "second\n"),
            5.5: lambda: (tmp_path / "b.log").write_text("third\n"),
        },
    )
    assert outcome.values == ["first", "second", "third"]
    assert outcome.times == pytest.approx([0.0, 3.0, 6.0], abs=0.01)


def test_it_does_not_end_by_itself(tmp_path: Path) -> None:
    outcome = watch(tmp_path, {}, until=1000.0)
    assert outcome.result is not None
    assert outcome.result.stopped


def test_a_line_is_read_when_its_newline_has_arrived(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\ntw")
    outcome = watch(log, {3.5: lambda: append(log, "o"), 6.5: lambda: append(log, "!\nthr")})
    assert outcome.values == ["one", "two!"]
    assert outcome.times[1] == pytest.approx(7.0, abs=0.01)


def test_a_file_that_was_cut_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\ntwo\nhalf")
    outcome = watch(log, {3.5: lambda: log.write_text("anew\n")})
    assert outcome.values == ["one", "two", "anew"]


def test_a_file_that_was_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("old and quite long\n")

    def replace() -> None:
        (tmp_path / "new").write_text("anew, and longer than before\n")
        os.replace(tmp_path / "new", log)

    assert watch(log, {3.5: replace}).values == [
        "old and quite long",
        "anew, and longer than before",
    ]


def test_lines_written_just_before_a_rotation_are_not_lost(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\n")

    def rotate() -> None:
        append(log, "two\nthree without newline")
        log.rename(tmp_path / "a.log.1")
        log.write_text("four\n")

    assert sorted(watch(f"{tmp_path}/*.log", {3.5: rotate}).values) == [
        "four",
        "one",
        "three without newline",
        "two",
    ]


def test_a_rotated_file_is_read_as_long_as_somebody_writes_to_it(tmp_path: Path) -> None:
    log, rotated = tmp_path / "a.log", tmp_path / "a.log.1"
    log.write_text("one\n")

    def rotate() -> None:
        append(log, "two\nthr")
        log.rename(rotated)

    script = {
        3.5: rotate,
        4.5: lambda: append(rotated, "ee\nfo"),
        5.5: lambda: append(rotated, "ur"),
    }
    assert watch(f"{tmp_path}/*.log", script).values == ["one", "two", "three", "four"]


def test_a_renamed_file_that_still_matches_is_not_read_twice(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\n")

    def rotate() -> None:
        log.rename(tmp_path / "a.log.1")
        log.write_text("two\n")

    script = {3.5: rotate, 6.5: lambda: append(tmp_path / "a.log.1", "late\n")}
    outcome = watch(f"{tmp_path}/a.log*", script, format="text")
    assert sorted(outcome.values) == ["late", "one", "two"]


def test_a_deleted_file_is_forgotten_and_a_new_one_of_its_name_is_read(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\n")
    outcome = watch(
        f"{tmp_path}/*.log", {3.5: log.unlink, 8.5: lambda: log.write_text("a longer line\n")}
    )
    assert outcome.values == ["one", "a longer line"]


def test_growing_csv_keeps_its_header(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("n,s\n1,")
    outcome = watch(
        table,
        {2.5: lambda: append(table, 'x\n2,"two\n'), 5.5: lambda: append(table, 'lines"\n')},
        {"n": int, "s": str},
    )
    assert outcome.rows == [(1, "x"), (2, "two\nlines")]


def test_growing_json_lines_have_their_line_numbers(tmp_path: Path) -> None:
    posts = tmp_path / "a.jsonl"
    posts.write_text('{"n":1}\n')
    with pytest.raises(tw.RecordError, match=r"a\.jsonl, line 3"):
        watch(posts, {2.5: lambda: append(posts, '{"n":2}\noops\n')}, {"n": int})


def test_a_parquet_file_is_read_when_it_has_settled(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    begin = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": [1, 2]}), begin)
    content = begin.getvalue().to_pybytes()
    outcome = watch(
        f"{tmp_path}/*.parquet",
        {2.5: lambda: path.write_bytes(content[:20]), 3.5: lambda: path.write_bytes(content)},
        {"n": int},
    )
    assert outcome.values == [1, 2]
    assert outcome.times[0] == pytest.approx(5.0, abs=0.01)


def test_a_packed_file_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    outcome = watch(tmp_path, {2.5: lambda: path.write_bytes(gzip.compress(b"one\ntwo\n"))})
    assert outcome.values == ["one", "two"]


def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,s\n1,x\n")
    (tmp_path / "b.csv").write_text("other\n2\n")
    (tmp_path / "c.csv").write_text("n,s\n3,z\n")
    fields = {"n": int, "s": str}
    outcome = watch(
        f"{tmp_path}/*.csv",
        {3.5: lambda: append(tmp_path / "b.csv", "5\n")},
        fields,
        on_error="skip",
    )
    assert outcome.rows == [(1, "x"), (3, "z")]
    assert outcome.errors == 1


def test_a_new_file_of_unknown_format_is_refused_once(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\n")
    script = {
        2.5: lambda: (tmp_path / "notes.xyz").write_text("?"),
        9.5: lambda: append(log, "two\n"),
    }
    outcome = watch(tmp_path, script, on_error="skip")
    assert outcome.values == ["one", "two"]
    assert outcome.errors == 1


def test_a_folder_to_watch_has_to_exist(tmp_path: Path) -> None:
    with pytest.raises(tw.UsageError, match=f"a folder to watch, got {tmp_path}/nowhere"):
        watch(f"{tmp_path}/nowhere/*.log", {})


def test_tasks_share_watched_files(tmp_path: Path) -> None:
    for i in range(6):
        (tmp_path / f"{i}.log").write_text(f"{i}\n")
    outcome = watch(tmp_path, {2.5: lambda: append(tmp_path / "0.log", "more\n")}, degree=3)
    assert sorted(outcome.values) == ["0", "1", "2", "3", "4", "5", "more"]


def test_more_files_than_may_be_open_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tailing, "MAX_OPEN", 2)
    for i in range(5):
        (tmp_path / f"{i}.log").write_text(f"{i}\npart")

    def grow() -> None:
        for i in range(5):
            append(tmp_path / f"{i}.log", "ial\n")

    outcome = watch(tmp_path, {3.5: grow})
    assert sorted(outcome.values) == sorted(["0", "1", "2", "3", "4", *["partial"] * 5])


@settings(max_examples=50, deadline=None)
@given(st.text("ab\n\r,\u20ac", max_size=60), st.lists(st.integers(1, 9), max_size=12))
def test_however_a_file_grows_its_lines_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, text: str, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("tail") / "a.log"
    content = (text + "\n").encode()
    path.write_bytes(b"")
    pieces = []
    for cut in cuts:
        pieces.append(content[:cut])
        content = content[cut:]
    pieces.append(content)

    def grow(piece: bytes) -> Callable[[], object]:
        def act() -> None:
            with path.open("ab") as file:
                file.write(piece)

        return act

    script = {i + 0.5: grow(piece) for i, piece in enumerate(pieces)}
    outcome = watch(path, script, until=len(pieces) + 3.0)
    assert outcome.values == [line.removesuffix("\r") for line in text.split("\n")]
