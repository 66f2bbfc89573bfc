"""Hosts with two executors each, of which some are slow: tasks run twice, results stay the same."""

from __future__ import annotations

import base64
import random
import threading
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

#: With this rate half a batch takes minutes, and what Spark says to executors takes seconds.
SLOW = "32kbit"
#: No session of these tests has more stages.
STAGES = 300
#: Texts that cannot be compressed.
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
    found = [store.speculationSummary(stage, 0) for stage in range(STAGES)]
    return sum(summary.get().numTasks() for summary in found if summary.isDefined())


class SlowLink:
    """Makes the link towards a host slow until a task was held back and begun a second time.

    Spark begins a task again when half of its stage have ended and it takes longer than they did.
    Those on the other host must be able to end, so the link is slow one way only: with both ways
    all tasks of a stage wait for it, and end at the same time or one by one, as it happens.
    """

    def __init__(self, cluster: Cluster, session: Any, host: str) -> None:
        self.cluster, self.session, self.host = cluster, session, host
        self.waited = self.twice = 0
        self._before = 0, 0
        self._released: threading.Thread | None = None

    def begin(self, event: Event) -> None:
        """Slow it down after the first batch."""
        if isinstance(event, Progress) and self._released is None:
            self._before = held_back(self.cluster, self.host), run_twice(self.session)
            self.cluster.slow(self.host, SLOW, towards=True)
            self._released = threading.Thread(target=self._release)
            self._released.start()

    def _release(self) -> None:
        try:
            until(self._seen, "a task that waits for the link, and one that is begun again")
        finally:
            self.cluster.slow(self.host, "200mbit")

    def _seen(self) -> bool:
        self.twice = run_twice(self.session) - self._before[1]
        if self.twice:
            self.waited = held_back(self.cluster, self.host) - self._before[0]
        return self.waited > 0

    def end(self) -> None:
        """Wait until it is as it was."""
        if self._released is not None:
            self._released.join()


def test_tasks_that_wait_for_a_slow_link_are_run_on_the_other_side(
    cluster: Cluster, speculating: Any
) -> None:
    flow = tw.Flow("checksums")
    texts = flow.source("texts", source(TEXTS), fields={"word": str, "text": str})
    counted = texts.key_by("word").running_count(into="nth").key_by("word")
    counted.fold("sums", 0, added, order="key")
    link = SlowLink(cluster, speculating, "h2")
    # Several blocks of a batch: a stage with a single task is never run twice.
    pump = PumpSettings(rows=40, block_rows=10)
    on = tw.Spark(speculating, places=4, state=str(cluster.shared / "slow link"), pump=pump)
    try:
        assert flow.run(on=on, listen=link.begin).table("sums") == undisturbed()
    finally:
        link.end()
    assert link.waited > 0
    assert link.twice > 0
