"""Something fails in a batch, and the batch is run again: it counts once."""

from __future__ import annotations

from pathlib import Path

import pytest
from killing import arm, check, failures
from program import Job, run

from sparksession import spark_session
from thalweg.statelog import Location, Manifests

POINTS = ["stage 0", "stage 1", "stage 2", "after objects", "during catch-up"]


def test_a_run_that_nobody_disturbs_comes_to_what_is_expected(tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), rows=120, batch=30)
    check(job, run(job, spark_session()))


@pytest.mark.parametrize("point", POINTS)
def test_a_task_that_fails_is_run_again_with_its_whole_batch(point: str, failing: Path) -> None:
    job = Job(folder=str(failing), rows=180, batch=30)
    arm(job, f"{point}=kill@2,5,6")
    tables = run(job, spark_session())
    assert failures(job) == {f"{point} {count}: kill" for count in (2, 5, 6)}
    check(job, tables)


def test_what_a_task_raises_makes_the_batch_run_again(failing: Path) -> None:
    job = Job(folder=str(failing), rows=90, batch=30)
    arm(job, "stage 1=raise@2,5,6")
    check(job, run(job, spark_session()))
    assert len(failures(job)) == 3


def test_runs_that_could_not_be_merged_are_merged_later(failing: Path) -> None:
    job = Job(folder=str(failing), rows=300, batch=30, runs=2)
    arm(job, "during compaction=raise@1,3,5")
    check(job, run(job, spark_session()))
    assert len(failures(job)) == 3
    last = Manifests(Location.of(failing / "state")).latest()
    assert last is not None
    assert any(ref.first < ref.last for refs in last.runs for ref in refs)
