"""Recordings that do not grow for ever: what goes first, and what stays."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recording.runs import Hand, recorded, snapshot, words
from thalweg.events import (
    Activated,
    Decided,
    Event,
    Noticed,
    Progress,
    Reconfigured,
    RunFinished,
    RunStarted,
    TupleRefused,
)
from thalweg.recording import files
from thalweg.recording.floods import BETWEEN
from thalweg.recording.reading import Recording
from thalweg.recording.recorder import MOST_BYTES, Recorder
from thalweg.recording.records import record_of, topology_record

MOST = 128 << 10


@pytest.mark.parametrize("many", ["looks", "notices"])
def test_a_recording_stays_small_and_has_the_whole_run_still(tmp_path: Path, many: str) -> None:
    path, hand = tmp_path / "run.sqlite", Hand()
    bounds = hand.settings(room=8, every=0.01, widest=0.0, most_bytes=MOST)
    with Recorder(path, words(), "inline", settings=bounds) as recorder:
        recorder.listen(RunStarted("words", "inline"))
        for number in range(2_000):
            hand.now += 1.0
            looks: Event = Progress(snapshot(float(number)))
            recorder.listen(
                looks if many == "looks" else Noticed(Random(number).randbytes(300).hex())
            )
            # Looks are left out when too many wait.
            while recorder.written < number - 4 and not recorder.failure:
                time.sleep(0)
    assert recorder.failure == ""
    assert path.stat().st_size < 2 * MOST
    with Recording.open(path) as recording:
        records = list(recording.records())
    assert [record["kind"] for record in records[:2]] == ["topology", "run_started"]
    assert records[-1]["n"] == 2_002
    times = [record["at"] for record in records[2:]]
    assert times == sorted(times)
    assert 10 < len(times) < 1_000
    if many == "looks":  # the beginning is still there, at wider intervals
        assert times[0] < 500


def test_a_file_that_was_made_smaller_goes_on_with_a_few_refused_tuples(tmp_path: Path) -> None:
    hand = Hand()
    bounds = hand.settings(every=0.001, many=2, most_bytes=1)
    recorder = Recorder(tmp_path / "run.sqlite", words(), "inline", settings=bounds)
    refused = TupleRefused("counts", 0, "to", "no")
    for _ in range(5):  # it does not write before it is entered
        recorder.listen(refused)
    assert recorder.more == 3
    with recorder:
        until(recorder, 3)  # the first write, after which the file is too large
        recorder.listen(refused)
        hand.now += BETWEEN
        recorder.listen(refused)
    # Of seven there are two: three and one were not taken, and one went with the room.
    assert (recorder.failure, recorder.more, recorder.written, recorder.kept) == ("", 5, 5, 4)
    with Recording.open(tmp_path / "run.sqlite") as recording:
        assert (len(list(recording.records())), recording.summary().more) == (4, 5)


def until(recorder: Recorder, written: int) -> None:
    while recorder.written < written and not recorder.failure:
        time.sleep(0)


def test_what_is_refused_drives_out_neither_what_was_said_nor_what_was_carried_out(
    tmp_path: Path,
) -> None:
    done = Decided("counts 1 -> 2", "ds2", 0.0, {"counts": (1, 2)})
    few: list[Event] = [Noticed("begun"), *[done, Reconfigured("epoch 1", {"epoch": 1})] * 300]
    refused = [TupleRefused("counts", 0, f"{Random(n).randbytes(300)!r}", "no") for n in range(999)]
    file = files.create(tmp_path / "run.sqlite")
    records = [record_of(event, n, float(n), 0.0) for n, event in enumerate([*few, *refused], 2)]
    files.add(file, [topology_record(words(), "inline"), *records])
    for _ in range(3):
        files.thin(file)
    files.finish(file)
    with Recording.open(tmp_path / "run.sqlite") as recording:
        left = [record["n"] for record in recording.records()]
    assert left[:602] == list(range(1, 603))
    assert left[602:] == list(range(1602 - len(left[602:]), 1602))
    assert 100 < len(left[602:]) < 130


def test_a_recording_is_bounded_if_nothing_else_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thinned: list[object] = []
    monkeypatch.setattr(files, "size", lambda _file: MOST_BYTES + 1)
    monkeypatch.setattr(files, "thin", lambda file: len(thinned.append(file) or ()))
    with Recorder(tmp_path / "run.sqlite", words(), "inline") as recorder:
        recorder.listen(Noticed("begun"))
    assert recorder.failure == ""
    assert thinned


def test_so_many_looks_are_read_over_the_whole_run_the_last_among_them(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    looks = [(float(n), Progress(snapshot(float(n)))) for n in range(0, 1_000, 5)]
    recorded(path, [*looks, (1_000.0, RunFinished(snapshot(1_000.0), stopped=False))])
    with Recording.open(path) as recording:
        times = [record["at"] for record in recording.snapshots(50)]
        assert len(list(recording.snapshots(201))) == 201
        last = list(recording.spread(["progress"], 1))[-1]
        assert list(recording.spread(["keys"], 1)) == []
    assert 40 <= len(times) <= 50
    assert (times[-1], last["at"]) == (1_000.0, 995.0)
    assert max(later - before for before, later in pairwise([0.0, *times])) <= 30


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["look", "notice"]), max_size=30))
def test_half_goes_of_that_of_which_there_is_more(
    tmp_path_factory: pytest.TempPathFactory, given_: list[str]
) -> None:
    file = files.create(tmp_path_factory.mktemp("thin") / "run.sqlite")
    events: list[Event] = [
        Progress(snapshot()) if each == "look" else Noticed("x" * 1500) for each in given_
    ]
    records = [record_of(event, n, float(n), 0.0) for n, event in enumerate(events, 2)]
    files.add(file, [topology_record(words(), "inline"), *records])
    sizes = dict(file.execute("SELECT kind, SUM(LENGTH(fields)) FROM records GROUP BY kind"))
    files.thin(file)
    left = [row[0] for row in file.execute("SELECT n FROM records ORDER BY n")]
    file.close()
    looks = [record["n"] for record in records if record["kind"] == "progress"]
    others = [record["n"] for record in records if record["kind"] != "progress"]
    stay = [n for n in left if n in looks]
    if sizes.get("progress", 0) >= sum(sizes.values()) - sizes.get("progress", 0):
        assert stay[-1:] == looks[-1:]
        assert len(stay) <= len(looks) // 2 + 2
    else:
        assert stay == looks
        others = others[(len(others) + 1) // 2 :]
    assert left == sorted([1, *stay, *others])


def test_what_says_how_things_are_stays_however_often_a_file_is_made_smaller(
    tmp_path: Path,
) -> None:
    led = Decided("as asked", "ds2", 0.0, {}, replaces="static")
    moved = Reconfigured("epoch 1", {"epoch": 1})
    done = Decided("counts 1 -> 2", "ds2", 0.0, {"counts": (1, 2)})
    looks = [Decided("", "ds2", 0.0, {"counts": (2, 2)})] * 300
    notices = [Noticed(f"notice {number}") for number in range(300)]
    events: list[Event] = [led, Activated(False), moved, done, *looks, *notices]
    file = files.create(tmp_path / "run.sqlite")
    records = [record_of(event, n, float(n), 0.0) for n, event in enumerate(events, 2)]
    files.add(file, [topology_record(words(), "inline"), *records])
    for _ in range(20):
        files.thin(file)
    files.finish(file)
    with Recording.open(tmp_path / "run.sqlite") as recording:
        left = [record["n"] for record in recording.records()]
    first_notice = 1 + len(events) - 300 + 1
    assert left == [1, 2, 3, 4, 5, *range(first_notice - 100, first_notice)]
