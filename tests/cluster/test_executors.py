"""Hosts with two executors each, of which one is slow: tasks run twice, results stay the same."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparkcluster.cluster import Cluster, NotPermitted
from thalweg.events import Event, Progress
from thalweg.runtimes.spark.anchoring import executors_on_hosts
from thalweg.runtimes.spark.exchange import processes
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import source

pytestmark = pytest.mark.cluster

#: Seconds after which the fixture says that executors do not come.
WATCHDOG = 120.0
WORDS = [f"w{n * 7919 % 31}" for n in range(300)]
CONFIG = {"spark.executor.cores": "1", "spark.executor.memory": "512m"}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.minTaskRuntime": "50ms",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    try:
        with Cluster(hosts=2, cores=2, memory="1200m") as here:
            yield here
    except NotPermitted as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def failpoints(cluster: Cluster) -> Path:
    folder = cluster.shared / "failpoints"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Any:
    return started(cluster)


@pytest.fixture(scope="module")
def speculating(cluster: Cluster, session: Any, failpoints: Path) -> Any:
    """Give a session that runs slow tasks twice; the one before is ended for it."""
    armed = {"spark.executorEnv.THALWEG_FAILPOINTS": str(failpoints)}
    return started(cluster, **SPECULATION, **armed)


def started(cluster: Cluster, **more: str) -> Any:
    session = cluster.session(**CONFIG, **more)
    until = time.monotonic() + WATCHDOG
    while sum(executors(session).values()) < 4:
        assert time.monotonic() < until, f"too few executors: {executors(session)}"
    return session


def executors(session: Any) -> dict[str, int]:
    context = session.sparkContext
    return executors_on_hosts(processes(context), context.getConf().get("spark.driver.host"))


def run(session: Any, state: Path, stickiness: list[float]) -> dict[str, int]:
    flow = tw.Flow("counting")
    words = flow.source("words", source(WORDS), fields={"word": str})
    words.key_by("word").running_count(into="nth").tally("counts", key="word")

    def listen(event: Event) -> None:
        if isinstance(event, Progress):
            stickiness.append(event.snapshot.stickiness or 0.0)

    pump = PumpSettings(rows=30, block_rows=30)
    on = tw.Spark(session, places=4, state=str(state), pump=pump)
    return flow.run(on=on, listen=listen).table("counts")


def test_places_stay_on_a_host_with_two_executors(cluster: Cluster, session: Any) -> None:
    assert sorted(executors(session).values()) == [2, 2]
    stickiness: list[float] = []
    assert run(session, cluster.shared / "sticky", stickiness) == dict(Counter(WORDS))
    assert sum(stickiness[1:]) / len(stickiness[1:]) >= 0.95


def test_a_task_that_stands_still_is_run_elsewhere(
    cluster: Cluster, speculating: Any, failpoints: Path
) -> None:
    (failpoints / "armed").write_text("stage 1=wait@6,17\nstage 2=wait@9,20")
    try:
        assert run(speculating, cluster.shared / "slow", []) == dict(Counter(WORDS))
    finally:
        (failpoints / "go").touch()
    assert len([file for file in failpoints.iterdir() if file.name.endswith("wait")]) == 4
