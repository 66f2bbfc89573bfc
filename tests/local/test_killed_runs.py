"""Runs are killed at named moments and at any moment: what they come to is the same."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from killed_program import Job, link, row

import thalweg as tw
from attempts import make_attempts
from thalweg.statelog.garbage import needed
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests

#: Moments, and the times that the process is killed when it comes to one.
POINTS = {
    "before run": (2, 5, 9),
    "after run": (2, 5, 9),
    "before manifest": (2, 5, 9),
    "after manifest": (2, 5, 9),
    "before delivery mark": (2, 5, 9),
    "during compaction": (1, 2, 3),
}


def run(job: Job, *armed: str) -> int:
    """Let a job be killed until it comes to its end; gives how often it was."""
    make_attempts(Path(__file__).with_name("killed_program.py"), job, armed)
    return int(Path(job.folder, "kills").read_text())


def failures(job: Job) -> set[str]:
    """Name the failures that have happened."""
    return {path.name for path in Path(job.folder, "failpoints").iterdir() if ":" in path.name}


def expected(rows: int) -> list[tuple[int, str, int]]:
    """Compute the chain of each word without Thalweg."""
    values: Counter[str] = Counter()
    found = []
    for n, word, _ in map(row, range(rows)):
        values[word] = link(values[word], n)
        found.append((n, word, values[word]))
    return found


def check(job: Job) -> None:
    """Compare the table of the run, the table sink, and the file with those of a serial loop."""
    rows = expected(job.rows)
    tables: dict[str, int] = json.loads(Path(job.folder, "tables.json").read_text())
    assert tables == {word: value for _, word, value in rows}
    kept = tw.read_table(Path(job.folder, "kept"), verify=True).to_table().to_pylist()
    assert sorted(tuple(found.values()) for found in kept) == rows
    assert set(written(job)) == set(rows)  # a line may have come again, the same


def written(job: Job) -> list[tuple[Any, ...]]:
    """Read what the sink that is no table has written."""
    lines = Path(job.folder, "out.jsonl").read_text().splitlines()
    return [tuple(json.loads(line)) for line in lines]


def nothing_is_left(job: Job) -> bool:
    """Say whether all that is at the checkpoint, and in the table, is needed."""
    kept = set(Path(job.folder, "kept", "data").rglob("*.parquet"))
    named = {Path(name) for name in tw.read_table(Path(job.folder, "kept")).files}
    state = Path(job.folder, "checkpoint", "state")
    needed_names = needed(Manifests(Location.of(state)).older(1 << 40))
    assert list(state.rglob(".*")) == []
    found = [*(state / "runs").iterdir(), *state.glob("arrangements/*")]
    needed_names = {name for name in needed_names if not name.startswith("@")}
    return kept == named and {f"{path.parent.name}/{path.name}" for path in found} == needed_names


@pytest.mark.parametrize("settings", [{}, {"assigning": "executors"}], ids=["workers", "executors"])
def test_a_run_killed_at_named_moments_goes_on(settings: dict[str, Any], tmp_path: Path) -> None:
    often = {
        "block_rows": 20,
        "most_block_rows": 20,
        "snapshot_every": 0,
    }  # so that runs are merged
    job = Job(folder=str(tmp_path), rows=24_000, settings=settings | often)
    armed = [f"{p}=kill@{','.join(map(str, counts))}" for p, counts in POINTS.items()]
    kills = run(job, *armed)
    assert kills == 18
    assert failures(job) == {f"{p} {c}: kill" for p, counts in POINTS.items() for c in counts}
    check(job)
    assert nothing_is_left(job)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_killed_at_any_moment_goes_on(seed: int, tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), rows=30_000, seed=seed, kills=10)
    assert run(job) == 10
    check(job)
    assert nothing_is_left(job)


def test_state_in_processes_survives(tmp_path: Path) -> None:
    small = {"block_rows": 100, "most_block_rows": 100, "snapshot_every": 0}
    job = Job(folder=str(tmp_path), rows=6_000, isolation="process", settings=small)
    kills = run(job, "before manifest=kill@3", "after manifest=kill@4")
    assert kills == 2
    check(job)


def test_degrees_and_tables_survive(tmp_path: Path) -> None:
    small = {"block_rows": 20, "most_block_rows": 20, "snapshot_every": 0}
    job = Job(folder=str(tmp_path), rows=5_000, changing=True, settings=small)
    kills = run(job, "before manifest=kill@3,6,9", "after manifest=kill@4,7", "after run=kill@8")
    assert kills == 6
    check(job)
    begun = (tmp_path / "begun").read_text().split()
    assert len(begun) == 7
    assert set(begun) - {"2"}  # that of the topology
    assert nothing_is_left(job)


def test_rows_that_are_acknowledged_are_not_lost(tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), rows=6_000, queue=True)
    kills = run(job, "after log=kill@5,20", "before manifest=kill@3,5", "after manifest=kill@2")
    assert kills == 5
    assert {found[0] for found in written(job)} == set(range(job.rows))
    kept = tw.read_table(tmp_path / "kept", verify=True).to_table().to_pylist()
    # Those that were not acknowledged when the process was killed come again.
    assert {found["n"] for found in kept} == set(range(job.rows))
