"""The driver is killed at named moments and started again: nothing is lost, nothing comes twice."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import killing
import pytest
from killing import Finished, check, failures, finish, tables_of
from program import Job

#: Moments at which a driver is killed three times each; some are reached in a worker, which goes
#: on without its driver and writes what nobody waits for.
POINTS = {
    "before the commit": ["after segment", "stage 1", "before manifest"],
    "with objects written": ["stage 2", "after objects"],
    "after the commit": ["after manifest", "before delivery mark"],
    "beside the batches": ["during compaction", "during catch-up"],
}
#: What is done beside each other, and takes about the same time.
PAIRS = [("before the commit", "with objects written"), ("after the commit", "beside the batches")]


@pytest.fixture(scope="module", params=PAIRS, ids=["before", "after"])
def finished(
    request: pytest.FixtureRequest, java: str, tmp_path_factory: pytest.TempPathFactory
) -> Finished:
    """Let the drivers of two jobs be killed, by what happens to them."""
    made = {}
    for name in request.param:
        folder = str(tmp_path_factory.mktemp("killed"))
        lines = [f"{point}=kill driver@2,4,6" for point in POINTS[name]]
        made[name] = Job(folder=folder, rows=360, batch=30, java=java), lines
    return finish(made)


def test_a_killed_driver_goes_on_where_it_was(finished: Finished) -> None:
    for name, (job, kills) in finished.items():
        points = POINTS[name]
        assert kills.result() >= 3  # two workers may kill one driver
        assert failures(job) == {f"{p} {count}: kill driver" for p in points for count in (2, 4, 6)}
        # Runs are merged beside the batches: a driver that is killed then may be delivering.
        any_number = "during compaction" in points
        again = 90 if "before delivery mark" in points else 0
        check(job, tables_of(job), repeated=None if any_number else again)


def test_a_driver_that_hangs_does_not_stay(
    java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time at all, every driver counts as one that hangs."""
    monkeypatch.setattr(killing, "WATCHDOG", 0)
    before = multiprocessing.active_children()
    with pytest.raises(AssertionError):
        killing.start(Job(folder=str(tmp_path), rows=30, java=java))
    assert set(multiprocessing.active_children()) <= set(before)
