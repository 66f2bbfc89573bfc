"""Recording a run, and reading what was recorded."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from recording.runs import HOSTILE, Hand, recorded, snapshot, words
from thalweg.errors import UsageError
from thalweg.events import Noticed, Progress, RunFinished, RunStarted, TupleRefused
from thalweg.recording import files
from thalweg.recording.reading import Recording
from thalweg.recording.recorder import CLOSEST, WIDEST, Recorder, spacing


def kinds(path: Path) -> list[str]:
    with Recording.open(path) as recording:
        return [record["kind"] for record in recording.records()]


def test_what_was_heard_can_be_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    events = [RunStarted("words", "inline"), Progress(snapshot()), RunFinished(snapshot(), False)]
    recorder = recorded(path, [(float(i), event) for i, event in enumerate(events)])
    assert (recorder.written, recorder.lost, recorder.failure) == (4, 0, "")
    with Recording.open(path) as recording:
        records = list(recording.records())
        assert [record["n"] for record in records] == [1, 2, 3, 4]
        assert [record["at"] for record in records] == [0.0, 0.0, 1.0, 2.0]
        assert [record["wall"] for record in records] == [1000.0, 1000.0, 1001.0, 1002.0]
        assert [record["n"] for record in recording.records(after=2)] == [3, 4]
        assert [record["n"] for record in recording.records(after=1, most=1)] == [2]
        assert [r["n"] for r in recording.records(kinds=["progress", "topology"])] == [1, 3]


def test_a_real_run_is_recorded(tmp_path: Path) -> None:
    path, topology = tmp_path / "run.sqlite", words()
    with Recorder(path, topology, "inline") as recorder:
        topology.run(on="inline", listen=recorder.listen)
    with Recording.open(path) as recording:
        summary = recording.summary()
    assert (summary.topology, summary.runtime, summary.end) == ("words", "inline", "ended")
    assert summary.snapshot is not None
    assert summary.snapshot["tuples_in"] == 3
    assert summary.rate > 0


def test_only_the_owner_can_read_it_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    recorded(path, [])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["run.sqlite"]


def test_it_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path, clock = tmp_path / "run.sqlite", Hand()
    settings = clock.settings(every=0.001)
    with Recorder(path, words(), "inline", settings=settings) as recorder:
        recorder.listen(Noticed("first"))
        until(lambda: recorder.written == 2)
        assert kinds(path) == ["topology", "noticed"]
        with Recording.open(path) as recording:
            assert recording.summary().end == "open"


def test_who_reads_at_the_end_does_not_spoil_it(tmp_path: Path) -> None:
    path, clock = tmp_path / "run.sqlite", Hand()
    settings = clock.settings(every=0.001)
    with Recorder(path, words(), "inline", settings=settings) as recorder:
        until(lambda: recorder.written == 1)
        recording = Recording.open(path)
        assert [record["kind"] for record in recording.records()] == ["topology"]
        recorder.listen(Noticed("later"))
    assert recorder.failure == ""
    # All is in the file itself, not in the log beside it.
    (tmp_path / "alone").mkdir()
    alone = shutil.copy(path, tmp_path / "alone" / "run.sqlite")
    assert kinds(alone) == ["topology", "noticed"]
    assert [record["kind"] for record in recording.records()] == ["topology", "noticed"]
    recording.close()


def until(done: Callable[[], bool]) -> None:
    while not done():
        threading.Event().wait(0.001)


def test_how_things_were_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    looks = [(float(i), Progress(snapshot(float(i)))) for i in (1, 2, 3)]
    recorded(path, [*looks, (2.5, Noticed("later"))])
    with Recording.open(path) as recording:
        assert recording.at(0.5) is None
        found = [recording.at(time) for time in (1.0, 1.9, 2.0, 99.0)]
        assert [record and record["snapshot"]["elapsed"] for record in found] == [1, 1, 2, 3]


def test_looks_are_lost_when_too_much_waits_and_all_else_is_kept(tmp_path: Path) -> None:
    path, clock, room = tmp_path / "run.sqlite", Hand(), 4
    recorder = Recorder(path, words(), "inline", settings=clock.settings(room=room))
    # It does not write before it is entered.
    for i in range(1, 9):
        clock.now = 10.0 * i
        recorder.listen(Progress(snapshot(clock.now)))
    waits = threading.Thread(target=recorder.listen, args=(Noticed("kept"),))
    waits.start()
    with recorder:
        waits.join()
    assert recorder.lost == 4
    assert kinds(path) == ["topology", *["progress"] * room, "noticed", "lost"]
    with Recording.open(path) as recording:
        assert recording.summary().lost == 4


def test_a_run_that_failed_says_with_what(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    topology = failing()
    with pytest.raises(tw.ComponentError), Recorder(path, topology, "inline") as recorder:
        topology.run(on="inline", listen=recorder.listen)
    with Recording.open(path) as recording:
        summary = recording.summary()
        (record,) = recording.records(kinds=["run_failed"])
    assert summary.end == "failed"
    assert "division" in summary.error
    assert (record["component"], record["task"]) == ("halves", 0)
    assert "0" in record["tuple_text"]


def failing() -> Any:
    flow = tw.Flow("failing")
    flow.source("numbers", tw.items([0]), fields={"n": int}).map(lambda n: 1 // n, name="halves")
    return flow.build()


def test_a_file_that_exists_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    path.write_text("mine")
    with pytest.raises(UsageError, match="expected a new file, got one that exists"):
        Recorder(path, words(), "inline")
    assert path.read_text() == "mine"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected to be written, got No such file"):
        Recorder(tmp_path / "none" / "run.sqlite", words(), "inline")


def test_a_disk_that_fails_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: object) -> None:
        text = "database or disk is full"
        raise sqlite3.OperationalError(text)

    monkeypatch.setattr(files, "add", full)
    recorder = recorded(tmp_path / "run.sqlite", [(1.0, Noticed("x"))] * 20, room=2)
    assert recorder.failure == "database or disk is full"


def other_version(path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute(f"PRAGMA user_version = {files.VERSION + 1}")
    file.close()


def no_recording(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE records (n INTEGER)")
    file.close()


def no_database(path: Path) -> None:
    path.write_text("hello" * 1000)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (empty, "got an empty file"),
        (other_version, "got version 2"),
        (no_recording, "got another SQLite file"),
        (no_database, "file is not a database"),
        (Path.unlink, "expected a file, got none"),
    ],
)
def test_what_is_no_recording_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], text: str
) -> None:
    path = tmp_path / "run.sqlite"
    recorded(path, [])
    spoil(path)
    with pytest.raises(UsageError, match=text):
        Recording.open(path)


def test_a_file_that_cannot_be_opened_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(*_given: object, **_named: object) -> None:
        text = "unable to open database file"
        raise sqlite3.OperationalError(text)

    path = tmp_path / "run.sqlite"
    recorded(path, [])
    monkeypatch.setattr(sqlite3, "connect", unable)
    with pytest.raises(UsageError, match=r"run\.sqlite.*unable to open"):
        Recording.open(path)
    with pytest.raises(UsageError, match=r"new\.sqlite.*unable to open"):
        files.create(tmp_path / "new.sqlite")


def test_a_record_that_unpacks_to_any_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.sqlite"
    recorded(path, [(1.0, TupleRefused("count", 0, HOSTILE, "no"))])
    monkeypatch.setattr(files, "LARGEST", 100)
    with Recording.open(path) as recording, pytest.raises(UsageError, match="more than 100 bytes"):
        list(recording.records())


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    recorded(path, [(1.0, Noticed("x"))])
    with sqlite3.connect(path) as file:
        file.execute("UPDATE records SET fields = x'00' WHERE n = 2")
    file.close()
    expected = "record 2 is damaged.*record another run"
    with Recording.open(path) as recording, pytest.raises(UsageError, match=expected):
        list(recording.records())


@given(st.lists(st.floats(0.0, 20_000.0), max_size=60).map(sorted))
def test_looks_become_rarer_and_their_number_is_bounded(times: list[float]) -> None:
    assert all(CLOSEST <= spacing(at) <= WIDEST for at in times)
    kept = [0.0]
    for at in times:
        if at - kept[-1] >= spacing(at):
            kept.append(at)
    gaps = pairwise(kept)
    assert all(later - before >= spacing(later) for before, later in gaps)


def test_of_what_comes_with_every_tuple_the_first_are_kept_and_then_a_few(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    many = [(1.0, TupleRefused("count", 0, f"tuple {i}", "no")) for i in range(10)]
    later = [(1.0 + 0.15 * i, TupleRefused("count", 0, "later", "no")) for i in range(1, 5)]
    recorder = recorded(path, [*many, *later, (2.0, Noticed("and on"))], many=4)
    assert (recorder.lost, recorder.more) == (0, 8)
    assert kinds(path) == ["topology", *["tuple_refused"] * 6, "noticed", "lost"]
    with Recording.open(path) as recording:
        assert recording.summary().more == 8
        refused = recording.records(kinds=["tuple_refused"])
        assert [record.get("left_out", 0) for record in refused] == [0, 0, 0, 0, 7, 8]
