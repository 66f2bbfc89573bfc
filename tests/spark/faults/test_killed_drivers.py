"""The driver is killed at named moments and started again: nothing is lost, nothing comes twice."""

from __future__ import annotations

import random
from concurrent.futures import Future, ThreadPoolExecutor

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
SEEDS = [1]
FRAME = "Structured Streaming"
#: Drivers at a time: one that starts does not keep two cores busy.
AT_ONCE = 2
Finished = dict[str | int, tuple[Job, Future[int]]]


@pytest.fixture(scope="module")
def finished(java: str, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Let all drivers be killed, by what happens to them: a job, and how often it was killed."""
    lines: dict[str | int, list[str]] = {
        name: [f"{point}=kill driver@2,4,6" for point in points] for name, points in POINTS.items()
    }
    lines |= {seed: at_any_moment(seed) for seed in SEEDS}
    lines[FRAME] = ["after manifest=kill driver@2,4,6", "after objects=kill driver@5"]
    found: Finished = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, armed in lines.items():
            folder = tmp_path_factory.mktemp("killed")
            frame = name == FRAME
            rows = 240 if frame else 360
            job = Job(folder=str(folder), rows=rows, batch=30, frame=frame, java=java)
            arm(job, *armed)
            found[name] = job, pool.submit(run_until_done, job)
    return found


def at_any_moment(seed: int) -> list[str]:
    """Choose three moments at which the driver is killed, and three for a worker."""
    rng = random.Random(seed)
    driver, worker = (sorted(rng.sample(range(5, 80), 3)) for _ in range(2))
    counts = ",".join(map(str, driver)), ",".join(map(str, worker))
    return [f"any=kill driver@{counts[0]}", f"stage 1=kill@{counts[1]}"]


@pytest.mark.parametrize("name", POINTS)
def test_a_killed_driver_goes_on_where_it_was(name: str, finished: Finished) -> None:
    (job, kills), points = finished[name], POINTS[name]
    assert kills.result() >= 3  # two workers may kill one driver
    assert failures(job) == {f"{p} {count}: kill driver" for p in points for count in (2, 4, 6)}
    # Runs are merged beside the batches: a driver that is killed then may be delivering.
    any_number = "during compaction" in points
    again = 90 if "before delivery mark" in points else 0
    check(job, tables_of(job), repeated=None if any_number else again)


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
