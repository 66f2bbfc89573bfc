"""The driver is killed at moments chosen by chance, and between two commits."""

from __future__ import annotations

import random

import pytest
from killing import Finished, check, failures, finish, tables_of
from program import Job

SEEDS = [1]
FRAME = "Structured Streaming"


@pytest.fixture(scope="module")
def finished(java: str, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Let all drivers be killed, by what happens to them."""

    def job(rows: int, frame: bool = False) -> Job:
        folder = str(tmp_path_factory.mktemp("killed"))
        return Job(folder=folder, rows=rows, batch=30, frame=frame, java=java)

    made = {seed: (job(360), at_any_moment(seed)) for seed in SEEDS}
    between = ["after manifest=kill driver@2,4,6", "after objects=kill driver@5"]
    return finish({**made, FRAME: (job(240, frame=True), between)})


def at_any_moment(seed: int) -> list[str]:
    """Choose three moments at which the driver is killed, and three for a worker."""
    rng = random.Random(seed)
    driver, worker = (sorted(rng.sample(range(5, 80), 3)) for _ in range(2))
    counts = ",".join(map(str, driver)), ",".join(map(str, worker))
    return [f"any=kill driver@{counts[0]}", f"stage 1=kill@{counts[1]}"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_driver_killed_at_any_moment_goes_on_where_it_was(seed: int, finished: Finished) -> None:
    job, kills = finished[seed]
    assert kills.result() >= 1
    assert len(failures(job)) >= 3
    check(job, tables_of(job), repeated=None)


def test_structured_streaming_repeats_a_batch_that_is_committed_here_but_not_there(
    finished: Finished,
) -> None:
    job, kills = finished[FRAME]
    assert kills.result() >= 3
    assert len(failures(job)) == 4
    check(job, tables_of(job))
