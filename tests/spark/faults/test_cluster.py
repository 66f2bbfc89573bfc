"""A cluster of two hosts: executors are killed, tasks run twice, an attempt writes late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from killing import arm, check, failures, run_until_done, tables_of
from program import Job
from two_hosts import standalone

from thalweg.statelog import Location, Manifests, needed, version_of

CONFIG = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.minTaskRuntime": "50ms",
    # An attempt that nobody needs any more is left alone, as one that nobody can reach would be.
    "spark.python.task.killTimeout": "600s",
}


@pytest.fixture(scope="module")
def master(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster"), java) as address:
        yield address


def test_batches_survive_executors_that_are_killed(master: str, java: str, tmp_path: Path) -> None:
    job = Job(folder=str(tmp_path), rows=300, batch=30, master=master, config=CONFIG, java=java)
    arm(job, "stage 1=kill executor@3,8,13", "stage 2=kill executor@5,10,15")
    assert run_until_done(job) == 0
    assert len(failures(job)) == 6
    check(job, tables_of(job))


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_attempt_that_writes_when_another_has_won_changes_nothing(
    master: str, java: str, tmp_path: Path, version: int
) -> None:
    moment = f"before objects of version {version}"
    waiting = f"{moment} 1: wait"
    job = Job(
        folder=str(tmp_path),
        rows=180,
        batch=30,
        master=master,
        config=CONFIG | SPECULATION,
        java=java,
        release=waiting,
        runs=100,
        versions=100,
    )
    arm(job, f"{moment}=wait@1")
    assert run_until_done(job) == 0
    assert failures(job) == {waiting}
    check(job, tables_of(job))
    location = Location.of(tmp_path / "state")
    manifests = Manifests(location)
    last = manifests.latest()
    assert last is not None
    named = needed([last, *manifests.older(last.version)])
    late = {f"runs/{name}" for name in location.names("runs")} - named
    assert version in map(version_of, late)
