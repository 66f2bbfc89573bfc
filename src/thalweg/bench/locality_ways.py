"""Ways of routing the application of the experiments, one against the other.

By hash, at worst, locality-aware, and locality-aware with fused delivery. Each way gets the same
tuples, with durable state and statistics on; tables are learnt in the run that uses them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from thalweg.bench.locality_app import (
    AWARE,
    HASH,
    WORST,
    Batch,
    Setting,
    run_phases,
    summary,
)
from thalweg.errors import UsageError, explain
from thalweg.workloads.two_keys import TwoKeys

Report = Callable[[str], None]
LOCAL, SHUFFLED = SOURCES = ("local", "shuffled")
FUSED = "fused"
WAYS = (HASH, WORST, AWARE, FUSED)
#: Keys for each place: by hash, places then get about the same.
KEYS = 100
#: Bytes that stand for what a tuple costs without its padding.
_TUPLE = 40
#: Batches of a few tuples, and those that are left out before them.
_BARE, _BARE_WARM = 8, 3
#: Batches by hash before tables are made: one to make them from, one to judge them by.
_LEARNING = 2


@dataclass(frozen=True)
class Sizes:
    """How large batches are, and how many there are of each way."""

    #: Bytes for each place in a batch, by source.
    bytes: Mapping[str, int]
    #: The same for fused delivery, where it is so fast that it needs more.
    fused_bytes: Mapping[str, int] = field(default_factory=dict)
    warm: int = 1
    batches: int = 3
    #: Batches before and after the reconfiguration of a timeline.
    half: int = 8


#: The fixed cost of a batch is to be under a quarter of its time, for every way.
WHOLE = Sizes({LOCAL: 192 << 20, SHUFFLED: 64 << 20})
SWEEP = Sizes({LOCAL: 32 << 20, SHUFFLED: 32 << 20}, WHOLE.bytes, batches=2)
QUICK = Sizes({LOCAL: 2 << 20, SHUFFLED: 2 << 20}, batches=2, half=3)


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    padding: int = 4000
    locality: float = 0.8
    #: "local": partition i has keys of its own; "shuffled": any key anywhere; or "both".
    source: str = "both"
    #: A folder for pictures.
    plots: str = ""

    def __post_init__(self) -> None:
        if self.source not in (*SOURCES, "both"):
            expected = f"one of {', '.join(SOURCES)}, both"
            raise UsageError(explain("source", "", expected, self.source))

    @property
    def sources(self) -> tuple[str, ...]:
        """The chosen sources."""
        return SOURCES if self.source == "both" else (self.source,)


@dataclass(frozen=True)
class Shape:
    """What is measured, and with batches of which size."""

    places: int
    padding: int
    locality: float
    sizes: Sizes

    def setting(self, source: str, fuse: bool) -> Setting:
        """Make the configuration for a source.

        >>> shape = Shape(places=3, padding=4000, locality=0.8, sizes=SWEEP)
        >>> [shape.setting("local", fuse).rows for fuse in (False, True)]
        [24915, 149499]
        """
        sizes = self.sizes
        size = (fuse and sizes.fused_bytes.get(source)) or sizes.bytes[source]
        partitions = self.places if source == LOCAL else None
        tuples = TwoKeys(KEYS * self.places, self.locality, self.padding, partitions)
        rows = size // (self.padding + _TUPLE) * self.places
        return Setting(self.places, tuples, rows, fuse, sizes.warm)


@dataclass
class Stand:
    """Where measurements are made: a session, and a folder that its hosts share."""

    session: Any
    root: Path
    report: Report
    runs: int = 0
    #: Seconds of a batch with next to no tuples, and of its job alone, by places.
    fixed: dict[int, dict[str, float]] = field(default_factory=dict)

    def run(self, setting: Setting, batches: Mapping[str, int]) -> list[Batch]:
        """Run the application, in a folder of its own."""
        self.runs += 1
        return run_phases(self.session, setting, batches, str(self.root / f"run-{self.runs}"))

    def warm_up(self, places: int) -> list[Batch]:
        """Run batches with next to no tuples; the first ones after a start are slow."""
        few = Setting(places, TwoKeys(KEYS, 1.0, 0), places, False, warm=_BARE_WARM)
        return self.run(few, {HASH: _BARE_WARM + _BARE})

    def fixed_cost(self, places: int) -> dict[str, float]:
        """Measure what a batch costs without tuples, once; to be asked when all is warm."""
        if places not in self.fixed:
            found = [batch for batch in self.warm_up(places) if batch.counts]
            median = statistics.median
            self.fixed[places] = {
                "seconds": median(batch.seconds for batch in found),
                "job_seconds": median(batch.job for batch in found),
            }
        return self.fixed[places]


def measure(stand: Stand, shape: Shape, source: str) -> dict[str, Any]:
    """Measure all ways of routing with one source."""
    each = shape.sizes.warm + shape.sizes.batches
    plain, fused = shape.setting(source, False), shape.setting(source, True)
    found = stand.run(plain, {HASH: each, AWARE: each, WORST: each})
    ways = {way: summary(found, way, plain.rows) for way in (HASH, WORST, AWARE)}
    ways[FUSED] = summary(stand.run(fused, {HASH: _LEARNING, AWARE: each}), AWARE, fused.rows)
    fixed = stand.fixed_cost(shape.places)
    for name, way in ways.items():
        way["fixed_share"] = fixed["seconds"] / statistics.median(way["seconds"])
        stand.report(_line(f"{source}, {name}", way))
    return ways


def _line(name: str, way: Mapping[str, Any]) -> str:
    return (
        f"{name}: {way['tuples_per_second']:,.0f} tuples/s, remote "
        f"{way['remote_bytes_per_tuple']:,.0f} bytes per tuple, local "
        f"{way['local_bytes_per_tuple']:,.0f}; {way['fixed_share']:.0%} of the time is fixed, "
        f"{way['statistics_share']:.1%} of the work statistics"
    )


def timeline(stand: Stand, shape: Shape, source: str) -> dict[str, Any]:
    """Run by hash, and with tables from the middle on; tell of each batch."""
    half = shape.sizes.half
    setting = replace(shape.setting(source, False), fuse=True)
    found = stand.run(setting, {HASH: half, AWARE: half})
    batches = [_moment(batch, setting.rows) for batch in found]
    before, after = (summary(found, way, setting.rows) for way in (HASH, AWARE))
    ratio = after["tuples_per_second"] / before["tuples_per_second"]
    moved = max(found, key=lambda batch: batch.moved)
    stand.report(f"{source}: {ratio:.2f} times as fast from {moved.at:.0f} s on")
    return {
        "rows": setting.rows,
        "batches": batches,
        "after_vs_before": ratio,
        "moving_batch_vs_before": moved.seconds / statistics.median(before["seconds"]),
    }


def _moment(batch: Batch, rows: int) -> dict[str, Any]:
    return {
        "way": batch.way,
        "at_seconds": batch.at,
        "tuples_per_second": rows / batch.seconds,
        "remote_bytes_per_tuple": batch.remote / rows,
        "moved_keys": batch.moved,
    }


def ratio(ways: Mapping[str, Mapping[str, Any]], way: str) -> float:
    """Give the throughput of a way against that of routing by hash."""
    return float(ways[way]["tuples_per_second"] / ways[HASH]["tuples_per_second"])
