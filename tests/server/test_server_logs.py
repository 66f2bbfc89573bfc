"""A log stays small, and who reads on misses nothing that is still there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import UsageError
from thalweg.server.logs import Place, append, read_on, rotate


def test_a_log_begins_anew_and_the_older_part_stays_once(tmp_path: Path) -> None:
    log, writer = tmp_path / "log", append(tmp_path / "log")
    for number in range(100):
        os.write(writer, f"line {number}\n".encode())
        rotate(log, most=80)
    os.close(writer)
    assert log.stat().st_size <= 90
    assert (tmp_path / "log.1").stat().st_size <= 90
    kept = (tmp_path / "log.1").read_text() + log.read_text()
    assert kept.endswith("line 98\nline 99\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]


def test_a_line_is_given_when_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\ntw")
    text, place = read_on(tmp_path / "log", None)
    assert text == "one\n"
    (tmp_path / "log").write_text("one\ntwo\n")
    assert read_on(tmp_path / "log", place)[0] == "two\n"


def test_there_may_be_no_log_yet(tmp_path: Path) -> None:
    assert read_on(tmp_path / "log", None) == ("", Place(0, 0))


LONG = "9" * 5000


@pytest.mark.parametrize("text", ["", "3", "a-b", "1--2", "-1-2", f"{LONG}-0", f"0-{LONG}"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="BEGAN-OFFSET"):
        Place.read(text)


def test_a_place_far_behind_the_end_is_the_end(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\n")
    (tmp_path / "log.1").write_text("zero\n")
    far = Place.read(f"1-{'9' * 19}")
    assert read_on(tmp_path / "log", far)[0] == "one\n"  # the older one was read to its end


@given(st.lists(st.sampled_from(["write", "write", "write", "rotate", "read"]), max_size=40))
def test_a_reader_who_looks_between_two_beginnings_misses_nothing(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        writer, written, read = append(log), "", ""
        place, unread = Place(0, 0), 0
        for number, step in enumerate([*steps, "read", "read", "read"]):
            if step == "write":
                line = f"line {number}\n"
                os.write(writer, line.encode())
                written += line
            elif step == "rotate" and not unread:
                unread = rotate(log, most=0)
            elif step == "read":
                text, place = read_on(log, place)
                read += text
                unread = 0 if not text else unread
        os.close(writer)
    assert read == written
