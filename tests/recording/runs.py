"""Snapshots and topologies that the tests of recordings share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import thalweg as tw
from thalweg.metrics import ComponentMetrics, Latency, Snapshot
from thalweg.recording.recorder import Recorder, RecorderSettings
from thalweg.stats import WINDOWS, Stats
from thalweg.topology import Topology

HOSTILE = "<img src=x onerror=alert(1)>\u202e\u0000&\"'" + "x" * 10_000


def words() -> Topology:
    flow = tw.Flow("words")
    source = flow.source("words", tw.items(["to", "be", "to"]), fields={"word": str})
    source.tally("counts", key="word")
    return flow.build()


def metrics(component: str, **given: Any) -> ComponentMetrics:
    stats = Stats(10.0, 40, 38, 30, 20, 1, 0.002, 0.004, 0.5, 0.25)
    windows = dict.fromkeys(WINDOWS, stats)
    plain: dict[str, Any] = {
        "degree": 2,
        "received": 30,
        "emitted": 40,
        "errors": 1,
        "busy": 0.5,
        "per_task": (10, 20),
        "stats": windows,
        "task_stats": (windows, windows),
    }
    return ComponentMetrics(component, **plain | given)


def snapshot(elapsed: float = 1.0, **given: Any) -> Snapshot:
    plain: dict[str, Any] = {
        "components": (metrics("words", received=0), metrics("counts", waiting=3)),
        "tuples_in": round(100 * elapsed),
        "tuples_out": round(90 * elapsed),
        "errors": 1,
        "latency": Latency(0.001, 0.002, 0.003, 10),
        "recent": Latency(0.5, 0.6, 0.7, 4, over=15.0),
    }
    return Snapshot(elapsed, **plain | given)


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def steady(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1000.0 + self.now

    def settings(self, **given: Any) -> RecorderSettings:
        return RecorderSettings(steady=self.steady, wall=self.wall, **given)


def recorded(path: Path, events: list[tuple[float, Any]], **given: Any) -> Recorder:
    """Record events, each at its time."""
    clock = Hand()
    with Recorder(path, words(), "inline", settings=clock.settings(**given)) as recorder:
        for clock.now, event in events:
            recorder.listen(event)
    return recorder
