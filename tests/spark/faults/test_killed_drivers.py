"""The driver is killed at named moments and started again: nothing is lost, nothing comes twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from killing import arm, check, failures, run_until_done, tables_of
from program import Job

#: Moments at which a driver is killed three times each; some are reached in a worker, which goes
#: on without its driver and writes what nobody waits for.
POINTS = {
    "before the commit": ["after segment", "stage 1", "before manifest"],
    "with objects written": ["stage 2", "after objects"],
    "after the commit": ["after manifest", "before delivery mark"],
    "beside the batches": ["during compaction", "during catch-up"],
}


@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS)
def test_a_killed_driver_goes_on_where_it_was(points: list[str], tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), rows=360, batch=30)
    arm(job, *(f"{point}=kill driver@2,4,6" for point in points))
    kills = run_until_done(job)
    assert failures(job) == {f"{p} {count}: kill driver" for p in points for count in (2, 4, 6)}
    assert kills >= 3  # two workers may kill one driver
    check(job, tables_of(job), repeated=90 if "before delivery mark" in points else 0)


@pytest.mark.parametrize("seed", [1])
def test_a_driver_killed_at_any_moment_goes_on_where_it_was(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    job = Job(folder=str(tmp_path), rows=300, batch=30)
    driver = sorted(rng.sample(range(5, 80), 3))
    worker = sorted(rng.sample(range(5, 80), 3))
    counts = ",".join(map(str, driver)), ",".join(map(str, worker))
    arm(job, f"any=kill driver@{counts[0]}", f"stage 1=kill@{counts[1]}")
    run_until_done(job)
    assert len(failures(job)) >= 3
    check(job, tables_of(job), repeated=None)


def test_structured_streaming_repeats_a_batch_that_is_committed_here_but_not_there(
    tmp_path: Path,
) -> None:
    job = Job(folder=str(tmp_path), rows=240, batch=30, frame=True)
    arm(job, "after manifest=kill driver@2,4,6", "after objects=kill driver@5")
    assert run_until_done(job) >= 3
    assert len(failures(job)) == 4
    check(job, tables_of(job))
