"""What locality brings: the application of the experiments, by hash, at worst, aware, and fused.

On hosts of a cluster (``scripts/cluster``), with links of a given rate, or on this machine alone.
Each way of routing runs the same tuples, with durable state and statistics on; the tables of
"aware" are learnt while it runs. All hosts share the cores of this machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from thalweg.bench.locality_app import AWARE, HASH, WORST, Setting, run_phases
from thalweg.bench.measuring import cluster_class, environment
from thalweg.bench.spark_session import bench_session
from thalweg.errors import UsageError, explain
from thalweg.workloads.two_keys import TwoKeys

SOURCES = ("local", "shuffled")
#: Keys for each place: by hash, places then get about the same.
KEYS = 100
Report = Callable[[str], None]


@dataclass(frozen=True)
class Shape:
    """What is measured."""

    places: int
    padding: int
    locality: float
    #: Bytes of padding per batch, at least so many tuples.
    batch_bytes: int = 96 << 20
    batch_rows: int = 24_000
    warm: int = 2
    batches: int = 5

    def setting(self, source: str, fuse: bool) -> Setting:
        """Make the configuration for a source."""
        partitions = self.places if source == "local" else None
        made = TwoKeys(KEYS * self.places, self.locality, self.padding, partitions)
        rows = max(self.batch_rows, self.batch_bytes // max(1, self.padding))
        if not self.padding:
            rows = self.batch_rows * 20
        return Setting(self.places, made, rows, fuse, self.warm, self.batches)


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    padding: int = 4000
    locality: float = 0.8
    #: "local": partition i has keys of its own; "shuffled": any key anywhere; or "both".
    source: str = "both"

    def __post_init__(self) -> None:
        if self.source not in (*SOURCES, "both"):
            expected = f"one of {', '.join(SOURCES)}, both"
            raise UsageError(explain("source", "", expected, self.source))

    @property
    def sources(self) -> tuple[str, ...]:
        """The chosen sources."""
        return SOURCES if self.source == "both" else (self.source,)


@dataclass(frozen=True)
class ClusterOptions(Options):
    """What can be chosen, with hosts."""

    hosts: int = 3
    rate: str = "200mbit"


@dataclass(frozen=True)
class LocalOptions(Options):
    """What can be chosen, without."""

    places: int = 2


def locality_cluster(quick: bool, report: Report, options: ClusterOptions) -> dict[str, Any]:
    """Throughput of two keyed counts on a cluster: by hash, at worst, locality-aware, fused."""
    shape = _quick(Shape(options.hosts, options.padding, options.locality), quick)
    cluster = cluster_class("locality-cluster")
    with cluster(hosts=options.hosts, rate=options.rate) as here:
        session = here.session(**{"spark.executor.memory": "768m"})
        results = _sources(session, shape, options, here.shared, report)
    return _found("locality-cluster", results, options, quick)


def locality_local(quick: bool, report: Report, options: LocalOptions) -> dict[str, Any]:
    """Throughput of two keyed counts in processes of this machine; no network is saved."""
    shape = _quick(Shape(options.places, options.padding, options.locality), quick)
    with bench_session("locality-local") as session, _temporary() as folder:
        results = _sources(session, shape, options, folder, report)
    return _found("locality-local", results, options, quick)


def _quick(shape: Shape, quick: bool) -> Shape:
    if not quick:
        return shape
    return replace(shape, batch_bytes=8 << 20, batch_rows=2_000, warm=1, batches=2)


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="thalweg-") as folder:
        yield Path(folder)


@dataclass
class _Folders:
    """Gives each run a folder of its own."""

    root: Path
    given: int = 0

    def next(self) -> str:
        """Give one that nobody has."""
        self.given += 1
        return str(self.root / f"run-{self.given}")


def _sources(
    session: Any, shape: Shape, options: Options, root: Path, report: Report
) -> dict[str, Any]:
    folders = _Folders(root)
    return {source: _ways(session, shape, source, folders, report) for source in options.sources}


def _ways(
    session: Any, shape: Shape, source: str, folders: _Folders, report: Report
) -> dict[str, Any]:
    """Measure all ways of routing with one source."""
    plain, fused = shape.setting(source, False), shape.setting(source, True)
    found = run_phases(session, plain, [HASH, AWARE, WORST], folders.next())
    # What is fused begins by hash as well: its tables are learnt.
    both = run_phases(session, fused, [HASH, AWARE], folders.next())
    small = replace(plain, rows=plain.places, warm=2, batches=5)
    bare = run_phases(session, small, [HASH], folders.next())[HASH].summary(1)
    ways = {name: phase.summary(plain.rows) for name, phase in found.items()}
    ways["fused"] = both[AWARE].summary(fused.rows)
    for name, way in ways.items():
        way["fixed_share"] = plain.rows and way["tuples_per_second"] / (
            plain.rows * bare["tuples_per_second"]
        )
        report(
            f"{source}, {name}: {way['tuples_per_second']:,.0f} tuples/s, remote "
            f"{way['remote_bytes_per_tuple']:,.0f} bytes per tuple, local "
            f"{way['local_bytes_per_tuple']:,.0f}; {way['fixed_share']:.0%} of it fixed"
        )
    return ways


def _found(name: str, results: Mapping[str, Any], options: Options, quick: bool) -> dict[str, Any]:
    summary: dict[str, float] = {}
    for source, ways in results.items():
        for way in (AWARE, "fused", WORST):
            ratio = ways[way]["tuples_per_second"] / ways[HASH]["tuples_per_second"]
            summary[f"{way}_vs_hash_{source}"] = ratio
        for way, found in ways.items():
            summary[f"remote_bytes_{way}_{source}"] = found["remote_bytes_per_tuple"]
    about = {"pyspark": version("pyspark"), "quick": quick, **asdict(options)}
    return {
        "name": name,
        "environment": environment() | about,
        "results": dict(results),
        "summary": summary,
    }
