"""State that was damaged between two runs: it is found out, and made good where that can be."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from killing import check, expected_tables, write_input, written_lines
from program import Job, build, run, runtime

import thalweg as tw
from sparksession import spark_session
from thalweg.events import Event, Noticed
from thalweg.statelog import Location, Manifest, Manifests


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def stopped_half_way(folder: Path, **options: Any) -> Job:
    """Run half of the input, as if the rest had not been written yet."""
    job = Job(folder=str(folder), rows=240, batch=30, **options)
    if job.frame:
        write_input(replace(job, rows=120))
        run(job, spark_session())
        write_input(job)
        return job
    seen: list[Event] = []
    stop = tw.execution.Run()

    def listen(event: Event) -> None:
        seen.append(event)
        if len(written_lines(job)) >= 120 if (folder / "out.jsonl").exists() else False:
            stop.stop.set()

    runtime(job, spark_session()).run(build(job).build(), replace(stop, listen=listen))
    assert 120 <= len(written_lines(job)) < 240
    return job


def latest(job: Job) -> Manifest:
    found = Manifests(Location.of(f"{job.folder}/state")).latest()
    assert found is not None
    return found


def newest_run(job: Job) -> Path:
    """Find a run that the newest version has and the one before it has not."""
    last = latest(job)
    names = [ref.name for refs in last.runs for ref in refs if ref.last == last.version]
    return Path(job.folder, "state", names[0])


@pytest.mark.parametrize("damage", [flip, truncate, Path.unlink])
def test_a_damaged_run_is_made_again_from_the_log(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    job = stopped_half_way(tmp_path)
    path = newest_run(job)
    damage(path)
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)

    result = build(job).run(on=runtime(job, spark_session()), listen=listen)
    check(job, {name: dict(result.table(name)) for name in ("by_word", "by_tag")})
    assert any(path.name in text and "going back to version" in text for text in told)


def test_a_damaged_run_of_a_dataframe_source_is_named(tmp_path: Path) -> None:
    job = stopped_half_way(tmp_path, frame=True)
    path = newest_run(job)
    flip(path)
    with pytest.raises(tw.StateError, match=path.name):
        run(job, spark_session())


@pytest.mark.parametrize("damage", [flip, truncate])
def test_a_damaged_manifest_is_named(damage: Callable[[Path], None], tmp_path: Path) -> None:
    job = stopped_half_way(tmp_path)
    path = Path(job.folder, "state", "manifests", f"{latest(job).version:012}.json")
    damage(path)
    with pytest.raises(tw.StateError, match=f"{path.name}.*damaged"):
        run(job, spark_session())


def test_the_pointer_to_the_newest_manifest_may_be_lost(tmp_path: Path) -> None:
    job = stopped_half_way(tmp_path)
    Path(job.folder, "state", "latest").unlink()
    check(job, run(job, spark_session()))


def test_an_entry_of_the_log_that_was_cut_off_is_asked_for_again(tmp_path: Path) -> None:
    job = stopped_half_way(tmp_path)
    entries = Path(job.folder, "state", "entries")
    newest = sorted(entries.iterdir())[-1]
    number = int(newest.stem) + 1
    (entries / f"{number:012}.arrow").write_bytes(newest.read_bytes()[:100])
    check(job, run(job, spark_session()))


def test_a_full_disk_is_told_and_nothing_is_committed_half(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    mounted = shutil.which("mount") and os.geteuid() == 0
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(state)]
    if not mounted or subprocess.run(mount, check=False, capture_output=True).returncode:  # noqa: S603 (a fixed command)
        pytest.skip("only root can mount a small file system")
    try:
        job = Job(folder=str(tmp_path), rows=24_000, batch=3_000)
        with pytest.raises(tw.StateError, match="disk is full"):
            run(job, spark_session())
        committed = [row for row, _ in enumerate(range(0))]
        assert committed == []
    finally:
        subprocess.run(["umount", "-l", str(state)], check=True)  # noqa: S603, S607 (a fixed command)


def test_a_state_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(tw.StateError, match="state"):
        run(Job(folder=str(tmp_path), rows=30), spark_session())


def test_nothing_of_a_version_that_went_wrong_is_left_in_the_tables(tmp_path: Path) -> None:
    job = stopped_half_way(tmp_path)
    state = tmp_path / "state"
    last = latest(job)
    stray = state / "runs" / f"{last.version:012}-0000-late.arrow"
    shutil.copy(newest_run(job), stray)  # as an attempt would write that Spark had given up
    tables = run(job, spark_session())
    assert tables == expected_tables(range(job.rows))
    assert not stray.exists()
