"""Counters of a run, and the immutable snapshots that everybody else sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from datasketches import kll_doubles_sketch

from thalweg.clock import Clock
from thalweg.stats import Stats

# Rank error of about 1.3 % in a few kilobytes, however long the run.
_SKETCH_K = 200
#: Seconds that latencies of now are of; and the parts of it that are forgotten one by one.
RECENT = 15.0
_SPANS = 5


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
    #: Where the runtime counts them: tuples and bytes that it sent to other places, and tuples that
    #: stayed where they were.
    shuffled: int | None = None
    shuffled_bytes: int | None = None
    local: int | None = None
    #: Keys in its state, and their bytes, where the runtime counts them.
    state_keys: int | None = None
    state_bytes: int | None = None
    #: Tuples of a source that were dropped because too many waited.
    dropped: int = 0
    #: Tuples that came too late for all their windows, or for a join.
    late: int = 0
    #: Where the runtime has them: tuples that wait for it now, blocks of its output that wait for
    #: earlier ones, and how often a worker has chosen it.
    waiting: int | None = None
    reordering: int | None = None
    chosen: int | None = None
    #: Seconds of its tasks' time during which they could not go on, because too much waited behind
    #: them; None where nothing has to wait for room.
    blocked: float | None = None
    #: The order in which it takes tuples: ``total``, ``key``, or ``none`` (as they come).
    order: str | None = None
    #: Blocks of its output that had to wait for earlier ones, for how many seconds in all, and for
    #: how many by now the one that has waited longest of those that still do.
    reordered: int | None = None
    reorder_seconds: float | None = None
    head_wait: float | None = None
    #: Event time up to which it has seen everything, in seconds since 1970, and by how many seconds
    #: that is behind the newest time that the sources before it have given; None where nothing
    #: needs event time, or none has come.
    watermark: float | None = None
    behind: float | None = None
    #: What it did in each of :data:`thalweg.stats.WINDOWS`, and what each of its tasks did.
    stats: Mapping[str, Stats] = field(default_factory=dict)
    task_stats: tuple[Mapping[str, Stats], ...] = ()


@dataclass(frozen=True)
class Latency:
    """Seconds from a block's arrival to the end of all that stems from it."""

    p50: float
    p95: float
    p99: float
    count: int
    #: The last seconds that it is of; None for the whole run.
    over: float | None = None


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
    #: The latency of the last seconds; None where nothing has come to its end in them.
    recent: Latency | None = None

    @property
    def dropped(self) -> int:
        """Tuples of sources that were dropped because too many waited."""
        return sum(metrics.dropped for metrics in self.components)

    @property
    def late(self) -> int:
        """Tuples that came too late for windows and joins."""
        return sum(metrics.late for metrics in self.components)

    def component(self, name: str) -> ComponentMetrics:
        """Find the metrics of a component."""
        return next(metrics for metrics in self.components if metrics.component == name)


@dataclass(slots=True)
class Tally:
    """What is counted of one task: tuples that are acknowledged, and deliveries."""

    #: Tuples sent, and seconds at work, where no counter of its own has them.
    emitted: int = 0
    busy: float = 0.0
    #: Deliveries: a tuple counts once for each task that gets it.
    transferred: int = 0
    acked: int = 0
    failed: int = 0
    #: Seconds until they were acknowledged: of a spout's tuples, or those that a bolt settles.
    seconds: float = 0.0

    def settled(self, ok: bool) -> None:
        """Count a tuple that was acknowledged, or let fail, after the rest of its block."""
        if ok:
            self.acked += 1
        else:
            self.failed += 1


@dataclass
class Counter:
    """Counts of one component while it runs."""

    component: str
    degree: int
    emitted: int = 0
    errors: int = 0
    dropped: int = 0
    late: int = 0
    busy: float = 0.0
    per_task: list[int] = field(default_factory=list)
    #: Seconds of processor time, where the runtime looks.
    cpu: float = 0.0
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.per_task = [0] * self.degree

    @property
    def received(self) -> int:
        """Tuples taken in by all tasks."""
        return sum(self.per_task)

    def came_late(self, tuples: int) -> None:
        """Count tuples that came too late."""
        self.late += tuples

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
            late=self.late,
        )


class LatencySketch:
    """Percentiles of many values in bounded memory (KLL; Karnin, Lang, Liberty, 2016).

    It knows those of all values, and of the last ``seconds``: these tell what is wrong now, which
    is nothing beside all that went well before. The clock is asked once for each addition.

    >>> from thalweg.clock import ManualClock
    >>> clock = ManualClock()
    >>> sketch = LatencySketch(clock)
    >>> sketch.add([0.001] * 9999)
    >>> clock.advance(RECENT); sketch.add([0.5])
    >>> sketch.freeze().p99, sketch.recent().p99
    (0.001, 0.5)
    """

    def __init__(self, clock: Clock, seconds: float = RECENT) -> None:
        self._clock, self._seconds = clock, seconds
        self._all = kll_doubles_sketch(_SKETCH_K)
        #: Sketches of short spans, by number, oldest first. It is replaced and never changed:
        #: others read while one adds.
        self._spans: tuple[tuple[int, kll_doubles_sketch], ...] = ()
        self._begin_span()

    def add(self, seconds: Iterable[float]) -> None:
        """Take in latencies."""
        if self._clock.now() >= self._until:
            self._begin_span()
        for value in seconds:
            self._all.update(value)
            self._newest.update(value)

    def freeze(self) -> Latency | None:
        """Give the percentiles so far; None before the first value."""
        return _percentiles(self._all)

    def recent(self) -> Latency | None:
        """Give the percentiles of the last seconds; None where nothing came in them."""
        merged = kll_doubles_sketch(_SKETCH_K)
        for _, sketch in self._known(self._span()):
            merged.merge(sketch)
        return _percentiles(merged, self._seconds)

    def _begin_span(self) -> None:
        span = self._span()
        self._newest = kll_doubles_sketch(_SKETCH_K)
        self._spans = (*self._known(span), (span, self._newest))
        self._until = (span + 1) * self._seconds / _SPANS

    def _span(self) -> int:
        return int(self._clock.now() * _SPANS // self._seconds)

    def _known(self, span: int) -> tuple[tuple[int, kll_doubles_sketch], ...]:
        return tuple(each for each in self._spans if span - each[0] < _SPANS)


def _percentiles(sketch: kll_doubles_sketch, over: float | None = None) -> Latency | None:
    if sketch.is_empty():
        return None
    p50, p95, p99 = sketch.get_quantiles([0.50, 0.95, 0.99])
    return Latency(p50, p95, p99, sketch.n, over)
