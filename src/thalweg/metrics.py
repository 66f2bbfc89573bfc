"""Counters of a run, and the immutable snapshots that everybody else sees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from datasketches import kll_doubles_sketch

# Rank error of about 1.3 % in a few kilobytes, however long the run.
_SKETCH_K = 200


@dataclass(frozen=True)
class ComponentMetrics:
    """What one component has done so far, over all its tasks."""

    component: str
    degree: int
    #: Tuples taken in, sent, and refused after an error.
    received: int
    emitted: int
    errors: int
    #: Seconds spent inside the component.
    busy: float
    #: Tuples received by each task.
    per_task: tuple[int, ...]
    #: Tuples and bytes that it sent to other places, and tuples that stayed where they were.
    shuffled: int = 0
    shuffled_bytes: int = 0
    local: int = 0
    #: Keys in its state, and their bytes.
    state_keys: int = 0
    state_bytes: int = 0
    #: Tuples of a source that were dropped because too many waited.
    dropped: int = 0
    #: Where the runtime has them: tuples that wait for it now, blocks of its output that wait for
    #: earlier ones, and how often a worker has chosen it.
    waiting: int | None = None
    reordering: int | None = None
    chosen: int | None = None


@dataclass(frozen=True)
class Latency:
    """Seconds from a block's arrival to the end of all that stems from it."""

    p50: float
    p95: float
    p99: float
    count: int


@dataclass(frozen=True)
class Snapshot:
    """All metrics of a run at one moment."""

    #: Seconds since the start.
    elapsed: float
    components: tuple[ComponentMetrics, ...]
    #: Tuples from sources, tuples into sinks (or into the last bolts where there are none).
    tuples_in: int
    tuples_out: int
    errors: int
    latency: Latency | None
    acked: int = 0
    failed: int = 0
    #: Tuples read from sources that wait to be processed.
    pending: int = 0
    #: Committed micro-batches, where the runtime has them.
    batches: int = 0
    #: Share of the tasks of the last micro-batch that ran on the hosts where their places are
    #: wanted; None before the first.
    stickiness: float | None = None

    @property
    def dropped(self) -> int:
        """Tuples of sources that were dropped because too many waited."""
        return sum(metrics.dropped for metrics in self.components)

    def component(self, name: str) -> ComponentMetrics:
        """Find the metrics of a component."""
        return next(metrics for metrics in self.components if metrics.component == name)


@dataclass
class Counter:
    """Counts of one component while it runs."""

    component: str
    degree: int
    emitted: int = 0
    errors: int = 0
    dropped: int = 0
    busy: float = 0.0
    per_task: list[int] = field(default_factory=list)
    #: Seconds of processor time, where the runtime looks.
    cpu: float = 0.0

    def __post_init__(self) -> None:
        self.per_task = [0] * self.degree

    @property
    def received(self) -> int:
        """Tuples taken in by all tasks."""
        return sum(self.per_task)

    def freeze(self) -> ComponentMetrics:
        """Copy the counts into an immutable value."""
        return ComponentMetrics(
            self.component,
            self.degree,
            self.received,
            self.emitted,
            self.errors,
            self.busy,
            tuple(self.per_task),
            dropped=self.dropped,
        )


class LatencySketch:
    """Percentiles of many values in bounded memory (KLL; Karnin, Lang, Liberty, 2016).

    >>> sketch = LatencySketch()
    >>> sketch.add([0.001] * 98 + [0.5] * 2)
    >>> sketch.freeze().p50, sketch.freeze().p99
    (0.001, 0.5)
    """

    def __init__(self) -> None:
        self._sketch = kll_doubles_sketch(_SKETCH_K)

    def add(self, seconds: Iterable[float]) -> None:
        """Take in latencies."""
        for value in seconds:
            self._sketch.update(value)

    def freeze(self) -> Latency | None:
        """Give the percentiles so far; None before the first value."""
        if self._sketch.is_empty():
            return None
        p50, p95, p99 = self._sketch.get_quantiles([0.50, 0.95, 0.99])
        return Latency(p50, p95, p99, self._sketch.n)
