"""Something fails in a batch, and the batch is run again: it counts once."""

from __future__ import annotations

from pathlib import Path

import pytest
from killing import arm, check, failures
from program import Job, run

from sparksession import spark_session
from thalweg.runtimes.spark.failpoints import FailpointReached

IN_WORKERS = ["stage 0", "stage 1", "stage 2", "after objects", "during catch-up"]
BESIDE_DRIVER = ["after segment", "before manifest", "after manifest", "before delivery mark"]


def job_in(folder: Path) -> Job:
    return Job(folder=str(folder), rows=240, batch=30)


@pytest.mark.parametrize("action", ["raise", "kill"])
@pytest.mark.parametrize("point", IN_WORKERS)
def test_a_task_that_fails_is_run_again_with_its_whole_batch(
    point: str, action: str, failing: Path
) -> None:
    job = job_in(failing)
    arm(job, f"{point}={action}@2,5,6")
    tables = run(job, spark_session())
    assert failures(job) == {f"{point} {count}: {action}" for count in (2, 5, 6)}
    check(job, tables)


def test_runs_that_could_not_be_merged_are_merged_later(failing: Path) -> None:
    job = job_in(failing)
    arm(job, "during compaction=raise@1,2", "during compaction=kill@5")
    tables = run(job, spark_session())
    assert len(failures(job)) == 3
    check(job, tables)


@pytest.mark.parametrize("point", BESIDE_DRIVER)
def test_a_run_that_failed_beside_the_driver_goes_on_where_it_was(
    point: str, failing: Path
) -> None:
    job = job_in(failing)
    arm(job, f"{point}=raise@1,3,7")
    for _ in range(3):
        with pytest.raises(FailpointReached):
            run(job, spark_session())
    tables = run(job, spark_session())
    check(job, tables, repeated=90 if point == "before delivery mark" else 0)
