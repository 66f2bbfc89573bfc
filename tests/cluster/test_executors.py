"""Hosts with two executors each, of which some are slow: tasks run twice, results stay the same."""

from __future__ import annotations

import base64
import random
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparkcluster.cluster import Cluster
from sparkcluster.machine import until
from thalweg.events import Event, Progress
from thalweg.runtimes.spark import exchange
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import source

pytestmark = pytest.mark.cluster

CLUSTER = {"hosts": 2, "cores": 2, "memory": "1200m"}
WORDS = [f"w{n * 7919 % 31}" for n in range(300)]
CONFIG = {"spark.executor.cores": "1", "spark.executor.memory": "512m"}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.0",
    # Less would be less than a worker takes to begin: tasks of a host that is new would run twice.
    "spark.speculation.minTaskRuntime": "1s",
}


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
    until(lambda: sum(executors(session).values()) == 4, "four executors")
    return session


def executors(session: Any) -> dict[str, int]:
    return dict(Counter(executor.host for executor in exchange.executors(session.sparkContext)))


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


# --- a host with a slow link ----------------------------------------------------------------------

#: Texts that cannot be compressed: half a batch takes seconds over the slow link, either way.
TEXTS = [
    (f"w{n * 7919 % 31}", base64.b85encode(random.Random(n).randbytes(20_000)).decode())
    for n in range(120)
]


def added(before: int, text: str, nth: int) -> int:
    return zlib.crc32(f"{text}{nth}".encode(), before)


def undisturbed() -> dict[str, int]:
    counts: Counter[str] = Counter()
    sums: dict[str, int] = {}
    for word, text in TEXTS:
        counts[word] += 1
        sums[word] = added(sums.get(word, 0), text, counts[word])
    return sums


def held_back(cluster: Cluster, host: str) -> int:
    """Say how often something had to wait at an end of a host's link."""
    return sum(end["overlimits"] for end in cluster.links()[host])


def run_twice(session: Any) -> int:
    """Say how many tasks Spark has begun a second time because the first took long."""
    store = session.sparkContext._jsc.sc().statusStore()
    found = [store.speculationSummary(stage, 0) for stage in range(1000)]
    return sum(summary.get().numTasks() for summary in found if summary.isDefined())


def test_tasks_that_wait_for_a_slow_link_are_run_on_the_other_side(
    cluster: Cluster, speculating: Any
) -> None:
    flow = tw.Flow("checksums")
    texts = flow.source("texts", source(TEXTS), fields={"word": str, "text": str})
    counted = texts.key_by("word").running_count(into="nth").key_by("word")
    counted.fold("sums", 0, added, order="key")
    before: list[int] = []

    def slow_down(event: Event) -> None:
        if isinstance(event, Progress) and not before:
            before.extend([held_back(cluster, "h2"), run_twice(speculating)])
            cluster.slow("h2", "1mbit")

    state, pump = str(cluster.shared / "slow link"), PumpSettings(rows=40, block_rows=40)
    on = tw.Spark(speculating, places=4, state=state, pump=pump)
    try:
        assert flow.run(on=on, listen=slow_down).table("sums") == undisturbed()
        after = [held_back(cluster, "h2"), run_twice(speculating)]
    finally:
        cluster.slow("h2", "200mbit")
    assert after[0] > before[0]
    assert after[1] > before[1]
