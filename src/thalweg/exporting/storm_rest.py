"""The figures of a run as Storm's REST API has them, for scripts that were written for Storm.

Names of fields are Storm's, with the value that we have; what only a Storm cluster has (workers and
their memory, links to logs) is left out or empty. Latencies are milliseconds, written as text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any
from urllib.parse import quote

from thalweg.errors import UsageError, explain
from thalweg.metrics import ComponentMetrics, Snapshot
from thalweg.recording.records import Record
from thalweg.stats import WINDOWS, Stats
from thalweg.version import __version__

Json = dict[str, Any]

ALL_TIME = ":all-time"
#: Our windows by Storm's names.
_WINDOWS: Mapping[str, str] = {
    ALL_TIME if length == inf else f"{length:.0f}": name for name, length in WINDOWS.items()
}
#: Kinds of records that Storm would call errors of a component.
ERRORS = ("tuple_refused", "record_refused", "run_failed")
_MOST_ERRORS = 100


@dataclass(frozen=True)
class Seen:
    """What is known of a run: its first record, its metrics, and how it is."""

    topology: Record
    snapshot: Snapshot
    #: Records of the kinds in :data:`ERRORS`, the oldest first.
    errors: Sequence[Record] = ()
    #: Storm's word for how it is: ACTIVE, INACTIVE, KILLED.
    status: str = "ACTIVE"
    #: The time, as Unix time.
    now: float = 0.0

    @property
    def id(self) -> str:
        """A name as Storm gives them: that of the topology, a number, and when it began."""
        return f"{self.topology['name']}-1-{self.topology['wall']:.0f}"

    @property
    def tasks(self) -> int:
        """Number of all tasks."""
        return sum(metrics.degree for metrics in self.snapshot.components)

    def about(self, component: str) -> Record:
        """Give what the first record says of a component."""
        for known in self.topology["components"]:
            if known["name"] == component:
                return known
        names = [known["name"] for known in self.topology["components"]]
        raise UsageError(explain(f"component {component!r}", "", f"one of {names}"))

    def is_spout(self, component: str) -> bool:
        """Whether a component is a source."""
        return self.about(component)["kind"] == "spout"


def cluster_summary(seen: Seen) -> Json:
    """``/api/v1/cluster/summary``: this machine, as a cluster of one topology."""
    cores = os.cpu_count() or 1
    counts = {"supervisors": 1, "slotsTotal": cores, "slotsUsed": 1, "slotsFree": cores - 1}
    return {
        "stormVersion": f"thalweg {__version__}",
        "nimbusUptime": uptime(seen.snapshot.elapsed),
        **counts,
        "topologies": 1,
        "executorsTotal": seen.tasks,
        "tasksTotal": seen.tasks,
        "schedulerDisplayResource": False,
    }


def topology_summary(seen: Seen) -> Json:
    """``/api/v1/topology/summary``: all topologies, which is this one."""
    return {"topologies": [_about(seen)], "schedulerDisplayResource": False}


def topology_page(seen: Seen, window: str = ALL_TIME) -> Json:
    """``/api/v1/topology/:id``: what the topology and its components did in a window."""
    checked = _checked(seen, window)
    components = seen.snapshot.components
    spouts = [m for m in components if seen.is_spout(m.component)]
    bolts = [m for m in components if not seen.is_spout(m.component)]
    return _about(seen) | {
        "window": window,
        "windowHint": _pretty(checked),
        "schedulerDisplayResource": False,
        "topologyStats": [
            _window(name) | _topology_stats(spouts, bolts, name, seen)
            for name in _known(seen).values()
        ],
        "spouts": [_spout(seen, metrics, checked) for metrics in spouts],
        "bolts": [_bolt(seen, metrics, checked) for metrics in bolts],
        "workers": [],
        "configuration": {},
        "replicationCount": 1,
    }


def component_page(seen: Seen, component: str, window: str = ALL_TIME) -> Json:
    """``/api/v1/topology/:id/component/:component``: its windows, streams, tasks and errors."""
    about, checked = seen.about(component), _checked(seen, window)
    metrics, spout = seen.snapshot.component(component), seen.is_spout(component)
    windows = [
        _window(name) | _figures(_stats(metrics, name, seen), spout)
        for name in _known(seen).values()
    ]
    return {
        "id": component,
        "encodedId": quote(component, safe=""),
        "name": seen.topology["name"],
        "componentType": "spout" if spout else "bolt",
        "topologyId": seen.id,
        "encodedTopologyId": quote(seen.id, safe=""),
        "topologyStatus": seen.status,
        "executors": metrics.degree,
        "tasks": metrics.degree,
        "window": window,
        "windowHint": _pretty(checked),
        "schedulerDisplayResource": False,
        "spoutSummary" if spout else "boltStats": windows,
        **({} if spout else {"inputStats": list(_inputs(seen, metrics, checked))}),
        "outputStats": _outputs(about, metrics, checked, seen),
        "executorStats": list(_executors(seen, metrics, checked)),
        "componentErrors": [_error(seen, record) for record in _errors(seen, component)],
    }


def uptime(seconds: float) -> str:
    """Write a duration as Storm does.

    >>> uptime(365), uptime(90_061), uptime(4)
    ('6m 5s', '1d 1h 1m 1s', '4s')
    """
    left, parts = int(seconds), list[str]()
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if left >= size or parts:
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join([*parts, f"{left}s"])


def _about(seen: Seen) -> Json:
    return {
        "id": seen.id,
        "encodedId": quote(seen.id, safe=""),
        "name": seen.topology["name"],
        "status": seen.status,
        "uptime": uptime(seen.snapshot.elapsed),
        "uptimeSeconds": int(seen.snapshot.elapsed),
        "tasksTotal": seen.tasks,
        "executorsTotal": seen.tasks,
        "workersTotal": 1,
    }


# --- windows --------------------------------------------------------------------------------------


def _known(seen: Seen) -> dict[str, str]:
    """Give our names of windows by Storm's; without windows, those that hold the whole run."""
    if all(metrics.stats for metrics in seen.snapshot.components):
        return dict(_WINDOWS)
    elapsed = seen.snapshot.elapsed
    return {storms: ours for storms, ours in _WINDOWS.items() if WINDOWS[ours] >= elapsed}


def _checked(seen: Seen, window: str) -> str:
    """Give our name of a window."""
    known = _known(seen)
    if window not in known:
        raise UsageError(explain("window", "", f"one of {list(known)}", repr(window[:40])))
    return known[window]


def _window(name: str) -> Json:
    storms = next(storm for storm, ours in _WINDOWS.items() if ours == name)
    return {"window": storms, "windowPretty": _pretty(name)}


def _pretty(name: str) -> str:
    return "All time" if WINDOWS[name] == inf else uptime(WINDOWS[name])


def _stats(metrics: ComponentMetrics, name: str, seen: Seen) -> Stats:
    """Give what a component did in a window; a runtime without windows knows the totals."""
    if name in metrics.stats:
        return metrics.stats[name]
    sent = (metrics.shuffled or 0) + (metrics.local or 0) or metrics.emitted
    latency = metrics.busy / metrics.received if metrics.received else None
    counts = (metrics.emitted, sent, metrics.received, 0, 0)
    return Stats(seen.snapshot.elapsed, *counts, execute_latency=latency)


# --- figures --------------------------------------------------------------------------------------


def _millis(seconds: float | None) -> str:
    return f"{1000 * (seconds or 0.0):.3f}"


def _figures(stats: Stats, spout: bool) -> Json:
    made: Json = {
        "emitted": stats.emitted,
        "transferred": stats.transferred,
        "acked": stats.acked,
        "failed": stats.failed,
    }
    if spout:
        return made | {"completeLatency": _millis(stats.complete_latency)}
    return made | {
        "executed": stats.executed,
        "executeLatency": _millis(stats.execute_latency),
        "processLatency": _millis(stats.process_latency),
        "capacity": f"{stats.capacity or 0.0:.3f}",
    }


def _topology_stats(
    spouts: Sequence[ComponentMetrics], bolts: Sequence[ComponentMetrics], name: str, seen: Seen
) -> Json:
    """Sum up: what all have sent, and what became of the tuples of spouts."""
    every = [_stats(metrics, name, seen) for metrics in (*spouts, *bolts)]
    roots = [_stats(metrics, name, seen) for metrics in spouts]
    acked = sum(stats.acked for stats in roots)
    waited = sum(stats.acked * (stats.complete_latency or 0.0) for stats in roots)
    return {
        "emitted": sum(stats.emitted for stats in every),
        "transferred": sum(stats.transferred for stats in every),
        "completeLatency": _millis(waited / acked if acked else None),
        "acked": acked,
        "failed": sum(stats.failed for stats in roots),
    }


def _spout(seen: Seen, metrics: ComponentMetrics, name: str) -> Json:
    return {"spoutId": metrics.component} | _component(seen, metrics, name, spout=True)


def _bolt(seen: Seen, metrics: ComponentMetrics, name: str) -> Json:
    return {"boltId": metrics.component} | _component(seen, metrics, name, spout=False)


def _component(seen: Seen, metrics: ComponentMetrics, name: str, spout: bool) -> Json:
    last = next(reversed(_errors(seen, metrics.component)), None)
    error = {"lastError": "", "errorTime": None, "errorLapsedSecs": None}
    if last is not None:
        told = _error(seen, last)
        error = {"lastError": told.pop("error")} | told
    return (
        {
            "encodedSpoutId" if spout else "encodedBoltId": quote(metrics.component, safe=""),
            "executors": metrics.degree,
            "tasks": metrics.degree,
        }
        | _figures(_stats(metrics, name, seen), spout)
        | {"errorHost": "", "errorPort": None, "errorWorkerLogLink": ""}
        | error
    )


def _inputs(seen: Seen, metrics: ComponentMetrics, name: str) -> Iterator[Json]:
    """Give the figures of each input; several are not told apart, and theirs are left out."""
    streams = [s for s in seen.topology["streams"] if s["to"] == metrics.component]
    stats = _stats(metrics, name, seen) if len(streams) == 1 else None
    for stream in streams:
        known = {"component": stream["from"], "stream": stream["stream"]}
        known["encodedComponentId"] = quote(stream["from"], safe="")
        figures = {} if stats is None else _figures(stats, spout=False)
        names = ("executeLatency", "processLatency", "executed", "acked", "failed")
        yield known | {figure: figures.get(figure) for figure in names}


def _outputs(about: Record, metrics: ComponentMetrics, name: str, seen: Seen) -> list[Json]:
    """Give the figures of each output stream, where there is only one; else only their names."""
    streams = list(about["fields"])
    stats = _stats(metrics, name, seen) if len(streams) == 1 else None
    spout = seen.is_spout(metrics.component)
    figures = _figures(stats, spout) if stats else {"emitted": None, "transferred": None}
    return [{"stream": stream} | figures for stream in streams]


def _executors(seen: Seen, metrics: ComponentMetrics, name: str) -> Iterator[Json]:
    spout = seen.is_spout(metrics.component)
    for task, windows in enumerate(metrics.task_stats):
        if name in windows:
            yield {
                "id": f"[{task}-{task}]",
                "host": "",
                "port": None,
                "uptime": uptime(seen.snapshot.elapsed),
                "uptimeSeconds": int(seen.snapshot.elapsed),
            } | _figures(windows[name], spout)


# --- errors ---------------------------------------------------------------------------------------


def _errors(seen: Seen, component: str) -> list[Record]:
    found = [record for record in seen.errors if record.get("component") == component]
    return found[-_MOST_ERRORS:]


def _error(seen: Seen, record: Record) -> Json:
    text = record.get("reason") or record.get("text") or ""
    tuple_text = record.get("tuple_text") or record.get("raw") or ""
    return {
        "error": f"{text}\n  {tuple_text}" if tuple_text else text,
        "errorTime": int(record["wall"]),
        "errorLapsedSecs": max(0, int(seen.now - record["wall"])),
        "errorHost": "",
        "errorPort": None,
        "errorWorkerLogLink": "",
    }
