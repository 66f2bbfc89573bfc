"""Whether batches stay as quick, and everything as small, when state and time grow."""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.bench.measuring import environment
from thalweg.bench.spark_session import PLACES, bench_session
from thalweg.components import BlockSpout
from thalweg.contexts import TaskContext
from thalweg.events import Event, Progress
from thalweg.flow import Flow
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.runtimes.spark.runtime import Spark

_FILL_ROWS = 200_000


@dataclass(frozen=True)
class Sizes:
    """How much is run."""

    few_keys: int = 10_000
    many_keys: int = 1_000_000
    #: Keys that a batch changes, each once: the same number, however many there are.
    rows: int = 8_000
    batches: int = 60
    restart_keys: int = 5_000_000
    long_batches: int = 2_000
    long_rows: int = 500


FULL = Sizes()
QUICK = Sizes(many_keys=200_000, batches=15, restart_keys=400_000, long_batches=60)


class Keys(BlockSpout):
    """First every key once, in large blocks, then batches of random keys."""

    outputs = MappingProxyType({"key": int})

    def __init__(self, keys: int, batches: int, rows: int) -> None:
        self.keys, self.batches, self.rows = keys, batches, rows

    def prepare(self, context: TaskContext) -> None:
        """Begin."""
        self.given = 0
        self.left = self.batches
        self.random = np.random.default_rng(0)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give the next keys; the pump's limits make one batch of each block."""
        if self.given < self.keys:
            stop = min(self.given + _FILL_ROWS, self.keys)
            block = np.arange(self.given, stop)
            self.given = stop
            return pa.record_batch({"key": block})
        if not self.left:
            self.finish()
            return None
        self.left -= 1
        keys = self.random.choice(self.keys, self.rows, replace=False, shuffle=False)
        return pa.record_batch({"key": keys})


@dataclass
class Watch:
    """Notes when batches end, and how much there is of everything."""

    state: Path
    java: Callable[[], float]
    every: int = 0
    #: After so many batches the run is stopped.
    last: int | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    ends: list[float] = field(default_factory=list)
    seen: list[dict[str, float]] = field(default_factory=list)

    def listen(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, Progress):
            self.ends.append(time.perf_counter())
            if len(self.ends) == self.last:
                self.stop.set()
            if self.every and len(self.ends) % self.every == 0:
                self.seen.append(self.look(len(self.ends)))

    def look(self, batch: int) -> dict[str, float]:
        """Measure disk, heap and resident memory."""
        sizes = [_size(path) for path in self.state.rglob("*")]
        return {
            "batch": batch,
            "objects": len([size for size in sizes if size]),
            "disk_mb": sum(sizes) / 1e6,
            "heap_mb": self.java(),
            "rss_mb": _resident() / 1e6,
        }


def spark_growth(quick: bool, report: Callable[[str], None]) -> dict[str, Any]:
    """Measure batches over a growing state, a restart with a large one, and a long run."""
    sizes = QUICK if quick else FULL
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="thalweg-") as name:
        folder = Path(name)
        for label, keys in (("few_keys", sizes.few_keys), ("many_keys", sizes.many_keys)):
            results[label] = _batches(folder / label, keys, sizes)
            report(f"{keys:,} keys: {results[label]['median'] * 1000:.0f} ms per batch")
        results["restart"] = _restart(folder / "restart", sizes)
        report(f"restart: first batch after {results['restart']['seconds']:.1f} s")
        results["long"] = _long(folder / "long", sizes)
        report(f"{sizes.long_batches} batches: {results['long']['last']}")
    return {
        "name": "spark-growth",
        "environment": environment() | {"pyspark": version("pyspark"), "quick": quick},
        "results": results,
        "summary": _summary(results),
    }


def _summary(results: dict[str, Any]) -> dict[str, float]:
    few, many, long = results["few_keys"], results["many_keys"], results["long"]
    return {
        "growth_ratio": many["median"] / few["median"],
        "worst_batch_ratio": max(many["worst_ratio"], few["worst_ratio"]),
        "restart_seconds": results["restart"]["seconds"],
        "disk_ratio": long["last"]["disk_mb"] / long["first"]["disk_mb"],
        "heap_ratio": long["last"]["heap_mb"] / long["first"]["heap_mb"],
        "rss_ratio": long["last"]["rss_mb"] / long["first"]["rss_mb"],
        "objects_per_place": long["last"]["objects"] / PLACES,
    }


def _run(state: Path, source: Keys, watch: Watch, session: Any) -> None:
    flow = Flow("growth")
    flow.source("keys", source).tally("counts", key="key")
    runtime = Spark(
        session, places=PLACES, state=str(state), pump=PumpSettings(rows=1, pending_entries=1)
    )
    flow.run(on=runtime, listen=watch.listen, stop=watch.stop)


def _batches(state: Path, keys: int, sizes: Sizes) -> dict[str, Any]:
    with bench_session("growth") as session:
        watch = Watch(state, _heap(session))
        _run(state, Keys(keys, sizes.batches, sizes.rows), watch, session)
    seconds = np.diff(watch.ends)[-sizes.batches - 1 : -1]
    warm = seconds[len(seconds) // 3 :]
    median = statistics.median(warm)
    return {
        "keys": keys,
        "batch_seconds": seconds.tolist(),
        "median": median,
        "best": float(warm.min()),
        "worst_ratio": float(warm.max()) / median,
    }


def _restart(state: Path, sizes: Sizes) -> dict[str, Any]:
    """Fill a large state, stop as Ctrl-C would, and start again in a new JVM."""
    filled = -(-sizes.restart_keys // _FILL_ROWS) + 1
    with bench_session("growth") as session:
        watch = Watch(state, _heap(session), last=filled)
        _run(state, Keys(sizes.restart_keys, sizes.batches, sizes.rows), watch, session)
    begin = time.perf_counter()
    with bench_session("growth") as session:
        up = time.perf_counter() - begin
        watch = Watch(state, _heap(session))
        _run(state, Again(sizes.restart_keys, 1, sizes.rows), watch, session)
    return {
        "keys": sizes.restart_keys,
        "session_seconds": up,
        "seconds": watch.ends[0] - begin,
    }


class Again(Keys):
    """Goes on behind what an earlier run has given."""

    def resume(self, rows: int) -> None:
        """Count all keys as given."""
        self.given = self.keys


def _long(state: Path, sizes: Sizes) -> dict[str, Any]:
    with bench_session("growth") as session:
        watch = Watch(state, _heap(session), every=max(1, sizes.long_batches // 20))
        _run(state, Keys(sizes.few_keys, sizes.long_batches, sizes.long_rows), watch, session)
    return {"seen": watch.seen, "first": watch.seen[1], "last": watch.seen[-1]}


def _size(path: Path) -> int:
    """Give the size of a file; nothing for folders, and for files deleted meanwhile."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def _heap(session: Any) -> Callable[[], float]:
    """Give what is used of the driver's heap after a collection, in MB."""
    runtime = session.sparkContext._jvm.java.lang.Runtime.getRuntime()

    def used() -> float:
        runtime.gc()
        return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6

    return used


def _resident() -> float:
    """Add up the resident memory of this process and all that it has started."""
    page = resource.getpagesize()
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
                pages = Path(f"/proc/{entry}/statm").read_text(encoding="utf-8").split()[1]
            except OSError:  # it has ended meanwhile
                continue
            parents[int(entry)] = int(text.rpartition(")")[2].split()[1]), int(pages) * page
    mine, total = {os.getpid()}, 0
    for pid in sorted(parents):
        parent, size = parents[pid]
        if pid in mine or parent in mine:
            mine.add(pid)
            total += size
    return total
