"""Places on the hosts of a cluster: whether they stay, whether they come back, what a host brings.

The cluster is that of ``scripts/cluster``: a Spark standalone cluster whose hosts are namespaces of
this machine, with links of 200 Mbit/s. All hosts share the machine's cores, so what a third host
brings is measured with an operator that waits instead of computing.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.bench.measuring import cluster_class, environment
from thalweg.components import BlockBolt, BlockSpout
from thalweg.contexts import TaskContext
from thalweg.errors import ThalwegError, explain
from thalweg.events import Event, Progress
from thalweg.flow import Flow
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.runtimes.spark.runtime import Spark
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests
from thalweg.statelog.requests import Request, Requests

PLACES, KEYS = 6, 1_000
#: Batches in which places must be back on their hosts after one has come or gone.
SOON = 5


@dataclass(frozen=True)
class Sizes:
    """How many batches each part has, and how many rows a batch."""

    sticky: int = 50
    after: int = 10
    rows: int = 2_000
    load: int = 8
    load_rows: int = 600
    #: Seconds that the waiting operator takes for a row.
    wait: float = 0.01


QUICK = Sizes(sticky=10, after=6, load=4, load_rows=300)


class Pairs(BlockSpout):
    """Pairs of random keys, a block per batch."""

    outputs = MappingProxyType({"k1": int, "k2": int})

    def __init__(self, batches: int, rows: int) -> None:
        self.batches, self.rows = batches, rows

    def prepare(self, context: TaskContext) -> None:
        """Begin."""
        self.given = 0

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give the next block."""
        if self.given == self.batches:
            self.finish()
            return None
        self.given += 1
        return pairs(self.given, self.rows)


def pairs(number: int, rows: int) -> pa.RecordBatch:
    """Make the block of a number, the same each time."""
    k1, k2 = np.random.default_rng(number).integers(0, KEYS, (2, rows))
    return pa.record_batch({"k1": k1, "k2": k2})


class Wait(BlockBolt):
    """Takes its time over each row, and passes it on."""

    outputs = MappingProxyType({"k1": int, "k2": int})

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Wait; this is the work."""
        time.sleep(self.seconds * batch.num_rows)
        return batch


@dataclass
class Course:
    """What happens after which batch, and how each batch went."""

    state: Path
    happens: dict[int, Callable[[], Any]]
    ends: list[float] = field(default_factory=list)
    stickiness: list[float] = field(default_factory=list)
    shares: list[dict[str, int]] = field(default_factory=list)
    session: Any = None

    def listen(self, event: Event) -> None:
        """Note the batch; then let happen what is due."""
        if not isinstance(event, Progress):
            return
        self.ends.append(time.perf_counter())
        self.stickiness.append(event.snapshot.stickiness or 0.0)
        last = Manifests(Location.of(self.state)).latest()
        self.shares.append(dict(Counter(last.hosts if last else [])))
        action = self.happens.get(len(self.ends))
        if action is not None:
            action()

    def seconds(self, first: int, last: int) -> float:
        """Give the median seconds of these batches, both inclusive, counted from 1."""
        return statistics.median(np.diff(self.ends)[first - 2 : last - 1])


def spark_cluster(quick: bool, report: Callable[[str], None]) -> dict[str, Any]:
    """Places on hosts that are killed, added and removed, and the throughput of 2 and 3 hosts."""
    sizes = QUICK if quick else Sizes()
    cluster = cluster_class("spark-cluster")
    results = {"hosts": _hosts(cluster, sizes, report), "load": _load(cluster, sizes, report)}
    return {
        "name": "spark-cluster",
        "environment": environment() | {"pyspark": version("pyspark"), "quick": quick},
        "results": results,
        "summary": {**results["hosts"]["summary"], **results["load"]["summary"]},
    }


def _hosts(cluster: Any, sizes: Sizes, report: Callable[[str], None]) -> dict[str, Any]:
    """Run on three hosts; one is killed, and later one is added."""
    with cluster(hosts=3) as here:
        state = here.shared / "hosts"
        killed, added = sizes.sticky, sizes.sticky + sizes.after
        victim = sorted(here.hosts())[0]
        course = Course(state, {killed: partial(here.kill, victim)})

        def add() -> None:
            here.add()
            here.await_executors(course.session)  # batches are counted from when it is there

        course.happens[added] = add
        _run(here, course, added + sizes.after, sizes.rows)
    calm = statistics.mean(course.stickiness[1:killed])
    report(f"{calm:.1%} of place-runs on their host over {killed} batches")
    return {
        "stickiness": course.stickiness,
        "shares": course.shares,
        "summary": {
            "stickiness": calm,
            "batches_after_kill": _until_sticky(course.stickiness[killed:added]),
            "batches_after_add": _until_sticky(course.stickiness[added:]),
            "hosts_after_kill": len(course.shares[added - 1]),
            "hosts_after_add": len(course.shares[-1]),
        },
    }


def _load(cluster: Any, sizes: Sizes, report: Callable[[str], None]) -> dict[str, Any]:
    """Run on two hosts, on three, and on two again, with an operator that waits."""
    n = sizes.load
    with cluster(hosts=2) as here:
        state = here.shared / "load"
        new: list[str] = []

        def leave() -> None:
            Requests(Location.of(state)).ask(Request(avoid=(_address(here, new[0]),)))

        happens: dict[int, Callable[[], Any]] = {
            n: lambda: new.append(here.add()),
            2 * n + SOON: leave,
            2 * n + 2 * SOON: lambda: here.remove(new[0]),
        }
        total = 3 * n + 2 * SOON
        course = Course(state, happens)
        _run(here, course, total, sizes.load_rows, sizes.wait)
        added = sorted(set().union(*course.shares) - course.shares[0].keys())
    two, three = course.seconds(3, n), course.seconds(n + SOON + 1, 2 * n + SOON)
    back = course.seconds(2 * n + 2 * SOON + 2, total)
    report(f"{two:.2f} s per batch on 2 hosts, {three:.2f} s on 3, {back:.2f} s on 2 again")
    joined = next((i for i, s in enumerate(course.shares[n:], 1) if len(s) == 3), None)
    left = course.shares[2 * n + 2 * SOON - 1]
    return {
        "batch_seconds": np.diff(course.ends).tolist(),
        "shares": course.shares,
        "added": added,
        "summary": {
            # Against the better of both: what runs for the first time is slower.
            "speed_of_3_vs_2": min(two, back) / three,
            "speed_of_2_again": two / back,
            "batches_until_share": joined,
            "places_on_leaving_host": sum(left.get(host, 0) for host in added),
        },
    }


def _address(cluster: Any, name: str) -> str:
    return next(h["address"] for h in cluster.status()["hosts"] if h["name"] == name)


def _run(cluster: Any, course: Course, batches: int, rows: int, wait: float = 0.0) -> None:
    """Run the topology, and make sure that its results are right."""
    flow = Flow("cluster")
    stream = flow.source("pairs", Pairs(batches, rows))
    if wait:
        stream = stream.key_by("k1").through("wait", Wait(wait))
    stream.tally("by_k1", key="k1").tally("by_k2", key="k2")
    course.session = cluster.session(**{"spark.executor.memory": "512m"})
    cluster.await_executors(course.session)
    runtime = Spark(
        course.session,
        places=PLACES,
        state=str(course.state),
        shorten=False,
        pump=PumpSettings(rows=1, pending_entries=1),
    )
    result = flow.run(on=runtime, listen=course.listen)
    blocks = [pairs(number, rows) for number in range(1, batches + 1)]
    for table, key in (("by_k1", "k1"), ("by_k2", "k2")):
        expected = Counter(value for block in blocks for value in block.column(key).to_pylist())
        if result.table(table) != dict(expected):
            raise ThalwegError(explain(f"table {table!r}", "", "that of an undisturbed run"))


def _until_sticky(stickiness: Sequence[float]) -> int | None:
    """Count the batches up to the first with at least 95 % of its places on their hosts."""
    return next((i for i, share in enumerate(stickiness, 1) if share >= 0.95), None)
