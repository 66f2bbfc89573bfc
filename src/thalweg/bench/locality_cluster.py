"""What locality brings on the hosts of a cluster (``scripts/cluster``), or on this machine alone.

One setting, sweeps over several of them, and a reconfiguration in the middle of a run. All hosts
share the cores of this machine; their links have a given rate.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

from thalweg.bench.locality_app import AWARE, HASH, WORST
from thalweg.bench.locality_plots import pictures
from thalweg.bench.locality_ways import (
    FUSED,
    QUICK,
    SWEEP,
    WHOLE,
    Options,
    Report,
    Shape,
    Sizes,
    Stand,
    measure,
    ratio,
    timeline,
)
from thalweg.bench.measuring import cluster_class, environment
from thalweg.bench.plotting import write_pictures
from thalweg.bench.spark_session import bench_session
from thalweg.errors import UsageError, explain

#: What is varied, one option at a time; the others are as given.
SWEEPS: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "hosts": (2, 3, 4, 6),
        "padding": (0, 400, 4000, 12_000, 20_000),
        "locality": (0.6, 0.8, 1.0),
        "rate": ("100mbit", "200mbit", "400mbit", "1gbit"),
    }
)
TIMELINE, ALL = "timeline", "all"
#: Values of a sweep that a quick run takes.
_FEW = 2


@dataclass(frozen=True)
class ClusterOptions(Options):
    """What can be chosen, with hosts."""

    hosts: int = 3
    rate: str = "200mbit"
    #: What to vary, "timeline", or "all" for everything; nothing for the one setting alone.
    sweep: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        known = (*SWEEPS, TIMELINE, ALL)
        if self.sweep and self.sweep not in known:
            raise UsageError(explain("sweep", "", f"one of {', '.join(known)}", self.sweep))

    def asks_for(self, part: str) -> bool:
        """Say whether a part is to be measured; the one setting has no name."""
        return self.sweep in (part, ALL)


@dataclass(frozen=True)
class LocalOptions(Options):
    """What can be chosen, without."""

    places: int = 2


def locality_cluster(quick: bool, report: Report, options: ClusterOptions) -> dict[str, Any]:
    """Throughput of two keyed counts on a cluster: by hash, at worst, locality-aware, fused."""
    results: dict[str, Any] = {}
    if options.asks_for(""):
        results |= _setting(options, QUICK if quick else WHOLE, report)
    for name in SWEEPS:
        if options.asks_for(name):
            results[name] = sweep(name, options, quick, report)
    if options.asks_for(TIMELINE):
        results[TIMELINE] = _timeline(options, QUICK if quick else SWEEP, report)
    return _found("locality-cluster", results, options, quick)


def locality_local(quick: bool, report: Report, options: LocalOptions) -> dict[str, Any]:
    """Throughput of two keyed counts in processes of this machine; no network is saved."""
    sizes = QUICK if quick else WHOLE
    shape = Shape(options.places, options.padding, options.locality, sizes)
    with bench_session("locality-local") as session, _temporary() as folder:
        stand = Stand(session, folder, report)
        stand.warm_up(options.places)
        results = _ways(stand, shape, options)
    return _found("locality-local", results, options, quick)


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="thalweg-") as folder:
        yield Path(folder)


@contextmanager
def _stand(options: ClusterOptions, report: Report) -> Iterator[Stand]:
    """Start a cluster with one session, and warm it up."""
    cluster = cluster_class("locality-cluster")
    with cluster(hosts=options.hosts, rate=options.rate) as here:
        session = here.session(**{"spark.executor.memory": "768m"})
        stand = Stand(session, here.shared, report)
        stand.warm_up(options.hosts)
        yield stand


def _shape(options: ClusterOptions, sizes: Sizes) -> Shape:
    return Shape(options.hosts, options.padding, options.locality, sizes)


def _ways(stand: Stand, shape: Shape, options: Options) -> dict[str, Any]:
    ways = {source: measure(stand, shape, source) for source in options.sources}
    return {"ways": ways, "fixed": stand.fixed_cost(shape.places)}


def _setting(options: ClusterOptions, sizes: Sizes, report: Report) -> dict[str, Any]:
    with _stand(options, report) as stand:
        return _ways(stand, _shape(options, sizes), options)


def _timeline(options: ClusterOptions, sizes: Sizes, report: Report) -> dict[str, Any]:
    with _stand(options, report) as stand:
        shape = _shape(options, sizes)
        return {source: timeline(stand, shape, source) for source in options.sources}


def sweep(name: str, options: ClusterOptions, quick: bool, report: Report) -> list[dict[str, Any]]:
    """Measure all ways for each value of an option; settings of one cluster share it."""
    values = SWEEPS[name][:_FEW] if quick else SWEEPS[name]
    points = [replace(options, **{name: value}) for value in values]
    found = []
    for _, alike in groupby(points, key=lambda point: (point.hosts, point.rate)):
        first, *rest = alike
        with _stand(first, report) as stand:
            for point in (first, *rest):
                report(f"{name} {getattr(point, name)}:")
                ways = _ways(stand, _shape(point, QUICK if quick else SWEEP), point)
                found.append({name: getattr(point, name), **ways})
    return found


# --- results --------------------------------------------------------------------------------------


def _found(name: str, results: Mapping[str, Any], options: Options, quick: bool) -> dict[str, Any]:
    if options.plots:
        write_pictures(Path(options.plots), pictures(results))
    about = {"pyspark": version("pyspark"), "quick": quick, **asdict(options)}
    # Where pictures were put is nobody's business.
    about.pop("plots")
    return {
        "name": name,
        "environment": environment() | about,
        "results": dict(results),
        "summary": summarised(results),
    }


def summarised(results: Mapping[str, Any]) -> dict[str, float]:
    """Give the figures that are asked for."""
    found: dict[str, float] = {}
    for source, ways in results.get("ways", {}).items():
        for way in (AWARE, FUSED, WORST):
            found[f"{way}_vs_hash_{source}"] = ratio(ways, way)
        for way in ways:
            found[f"remote_bytes_{way}_{source}"] = ways[way]["remote_bytes_per_tuple"]
    for name in SWEEPS:
        for row in results.get(name, ()):
            found |= _of_point(
                f"{row[name]}_hosts" if name == "hosts" else f"{name}_{row[name]}", row
            )
    for source, course in results.get(TIMELINE, {}).items():
        found[f"after_vs_before_{source}"] = course["after_vs_before"]
    every = [ways for row in _rows(results) for ways in row["ways"].values()]
    if every:
        learnt = [ways[way]["statistics_share"] for ways in every for way in (AWARE, FUSED)]
        found["statistics_share"] = max(learnt)
        found["fixed_share"] = max(way["fixed_share"] for ways in every for way in ways.values())
    return found


def _of_point(label: str, row: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for source, ways in row["ways"].items():
        found[f"fused_vs_hash_{source}_{label}"] = ratio(ways, FUSED)
        for way in (HASH, FUSED):
            found[f"remote_bytes_{way}_{source}_{label}"] = ways[way]["remote_bytes_per_tuple"]
    return found


def _rows(results: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Give all that was measured by ways: the one setting, and each point of a sweep."""
    if "ways" in results:
        yield results
    for name in SWEEPS:
        yield from results.get(name, ())
