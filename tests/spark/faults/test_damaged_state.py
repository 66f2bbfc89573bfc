"""State that was damaged between two runs: it is found out, and made good where that can be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from killing import check, start, written_lines
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


@pytest.fixture(scope="module")
def half_way(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Run half of the input, as if the rest had not been written yet."""
    folder = tmp_path_factory.mktemp("half")
    job = Job(folder=str(folder), rows=240, batch=30)
    told = tw.execution.Run()

    def listen(_event: Event) -> None:
        if (folder / "out.jsonl").exists() and len(written_lines(job)) >= 120:
            told.stop.set()

    runtime(job, spark_session()).run(build(job).build(), replace(told, listen=listen))
    assert 120 <= len(written_lines(job)) < 240
    return job


@pytest.fixture
def stopped(half_way: Job, tmp_path: Path) -> Job:
    """Give a copy of all that a run has left that was stopped half way."""
    shutil.copytree(half_way.folder, tmp_path, dirs_exist_ok=True)
    return replace(half_way, folder=str(tmp_path))


def latest(job: Job) -> Manifest:
    found = Manifests(Location.of(f"{job.folder}/state")).latest()
    assert found is not None
    return found


def newest_run(job: Job) -> Path:
    """Find the run that was written last."""
    refs = [ref for refs in latest(job).runs for ref in refs]
    return Path(job.folder, "state", max(refs, key=lambda ref: ref.last).name)


@pytest.mark.parametrize("damage", [flip, truncate, Path.unlink])
def test_a_damaged_run_is_made_again_from_the_log(
    damage: Callable[[Path], None], stopped: Job
) -> None:
    path = newest_run(stopped)
    damage(path)
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)

    result = build(stopped).run(on=runtime(stopped, spark_session()), listen=listen)
    check(stopped, {name: dict(result.table(name)) for name in ("by_word", "by_tag")})
    assert any(path.name in text and "going back to version" in text for text in told)


def test_a_damaged_run_of_a_dataframe_source_is_named(java: str, tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), rows=60, batch=30, frame=True, java=java)
    assert start(job) == 0
    path = newest_run(job)
    flip(path)
    assert start(replace(job, rows=90)) == 1
    errors = re.findall(r"^thalweg\.\S+: .*", (tmp_path / "log").read_text(), re.MULTILINE)
    assert "CorruptRun" in errors[-1]
    assert path.name in errors[-1]


@pytest.mark.parametrize("damage", [flip, truncate])
def test_a_damaged_manifest_is_named(damage: Callable[[Path], None], stopped: Job) -> None:
    path = Path(stopped.folder, "state", "manifests", f"{latest(stopped).version:012}.json")
    damage(path)
    with pytest.raises(tw.StateError, match=f"{path.name}.*damaged"):
        run(stopped, spark_session())


def test_the_pointer_to_the_newest_manifest_may_be_lost(stopped: Job) -> None:
    Path(stopped.folder, "state", "latest").unlink()
    check(stopped, run(stopped, spark_session()))


def test_an_entry_of_the_log_that_was_cut_off_is_asked_for_again(stopped: Job) -> None:
    entries = Path(stopped.folder, "state", "entries")
    newest = sorted(entries.iterdir())[-1]
    number = int(newest.stem) + 1
    (entries / f"{number:012}.arrow").write_bytes(newest.read_bytes()[:100])
    check(stopped, run(stopped, spark_session()))


def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_space(tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), rows=12_000, batch=3_000)
    with small_disk(tmp_path / "state") as grow:
        with pytest.raises(tw.StateError, match="disk is full"):
            run(job, spark_session())
        grow()
        check(job, run(job, spark_session()))


@contextmanager
def small_disk(folder: Path) -> Iterator[Callable[[], None]]:
    """Mount a file system with little space; gives a function that gives it more."""
    folder.mkdir()
    tmpfs = ["-t", "tmpfs", "none", str(folder)]
    if os.geteuid() != 0 or not shutil.which("mount") or not mount("size=256k", *tmpfs):
        pytest.skip("only root can mount a small file system")
    try:
        yield lambda: None if mount("remount,size=256m", str(folder)) else pytest.fail("remount")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S603, S607 (as root)


def mount(options: str, *words: str) -> bool:
    command = ["mount", "-o", options, *words]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603 (as root)


def test_a_state_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(tw.StateError, match="state"):
        run(Job(folder=str(tmp_path), rows=30), spark_session())


def test_objects_that_an_attempt_wrote_late_count_for_nothing(stopped: Job) -> None:
    late = f"runs/{latest(stopped).version:012}-0000-late.arrow"
    stray = Path(stopped.folder, "state", late)
    shutil.copy(newest_run(stopped), stray)  # as an attempt would write that Spark had given up
    check(stopped, run(stopped, spark_session()))
    assert not stray.exists()
