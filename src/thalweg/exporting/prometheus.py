"""A snapshot as text for Prometheus.

The labels are bounded: names of components, which a topology fixes, and the numbers of tasks, up to
:data:`MOST_TASKS`; no key and no tuple is ever one.

>>> from thalweg.metrics import Snapshot
>>> text = prometheus_text(Snapshot(2.0, (), 10, 4, 0, latency=None), "words")
>>> print(text.splitlines()[2])
thalweg_tuples_in_total{topology="words"} 10.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from thalweg.metrics import ComponentMetrics, Latency, Snapshot
from thalweg.stats import Stats

#: What the answer to a scrape is.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Tasks of a component that have figures of their own; the others are in the component's.
MOST_TASKS = 64
#: The window that latencies and capacity are of.
WINDOW = "10 min"

Value = float | int | None

_RUN_COUNTERS: tuple[tuple[str, str, Callable[[Snapshot], Value]], ...] = (
    ("tuples_in", "Tuples from sources.", lambda s: s.tuples_in),
    ("tuples_out", "Tuples into sinks, or into the last bolts.", lambda s: s.tuples_out),
    ("errors", "Tuples that were refused after an error.", lambda s: s.errors),
    ("acked", "Source tuples that were acknowledged.", lambda s: s.acked),
    ("failed", "Source tuples that failed.", lambda s: s.failed),
    ("batches", "Committed micro-batches.", lambda s: s.batches),
)
_RUN_GAUGES: tuple[tuple[str, str, Callable[[Snapshot], Value]], ...] = (
    ("elapsed_seconds", "Seconds since the run began.", lambda s: s.elapsed),
    ("pending_tuples", "Tuples that wait to be processed.", lambda s: s.pending),
    ("stickiness_ratio", "Share of tasks where their places are wanted.", lambda s: s.stickiness),
)
_COUNTERS: tuple[tuple[str, str, Callable[[ComponentMetrics], Value]], ...] = (
    ("received", "Tuples taken in.", lambda c: c.received),
    ("emitted", "Tuples sent.", lambda c: c.emitted),
    ("errors", "Tuples refused after an error.", lambda c: c.errors),
    ("dropped", "Tuples dropped because too many waited.", lambda c: c.dropped),
    ("late", "Tuples that came too late.", lambda c: c.late),
    ("busy_seconds", "Seconds spent inside the component.", lambda c: c.busy),
    ("shuffled", "Tuples sent to other places.", lambda c: c.shuffled),
    ("shuffled_bytes", "Bytes sent to other places.", lambda c: c.shuffled_bytes),
    ("local", "Tuples that stayed at their place.", lambda c: c.local),
    ("chosen", "How often a worker has chosen it.", lambda c: c.chosen),
    ("blocked_seconds", "Seconds that its tasks were back-pressured.", lambda c: c.blocked),
    ("reordered", "Blocks that had to wait for earlier ones.", lambda c: c.reordered),
    ("reorder_seconds", "Seconds that those blocks have waited.", lambda c: c.reorder_seconds),
)
_GAUGES: tuple[tuple[str, str, Callable[[ComponentMetrics], Value]], ...] = (
    ("degree", "Number of tasks.", lambda c: c.degree),
    ("state_keys", "Keys in its state.", lambda c: c.state_keys),
    ("state_bytes", "Bytes of its state.", lambda c: c.state_bytes),
    ("waiting_tuples", "Tuples that wait for it.", lambda c: c.waiting),
    ("reordering_blocks", "Blocks that wait for earlier ones.", lambda c: c.reordering),
    ("watermark_seconds", "Event time that it has come to, as Unix time.", lambda c: c.watermark),
    ("watermark_behind_seconds", "By how much the newest tuple is ahead.", lambda c: c.behind),
    ("head_wait_seconds", "How long the first of those has waited.", lambda c: c.head_wait),
)
_STATS: tuple[tuple[str, str, Callable[[Stats], Value]], ...] = (
    ("execute_latency_seconds", "Mean seconds inside, per tuple.", lambda s: s.execute_latency),
    ("process_latency_seconds", "Mean seconds until acknowledged.", lambda s: s.process_latency),
    ("complete_latency_seconds", "Mean seconds until all is done.", lambda s: s.complete_latency),
    ("capacity_ratio", "Share of the time that its busiest task worked.", lambda s: s.capacity),
)


@dataclass(frozen=True)
class Life:
    """How a topology is, also where it has no metrics: one that dies again and again, say."""

    #: Whether its process runs and its tuples can flow, and whether its sources are not asked.
    up: bool
    paused: bool
    #: Where a server starts it again: how often it has died since it last went well for long.
    deaths: int | None = None


def prometheus_text(snapshot: Snapshot | None, topology: str, life: Life | None = None) -> str:
    """Write what is known of the run of a topology in Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(snapshot, topology, life))
    return generate_latest(registry).decode()


def _quantiles(latency: Latency) -> Iterator[tuple[str, float]]:
    yield from (("0.5", latency.p50), ("0.95", latency.p95), ("0.99", latency.p99))


def process_text() -> str:
    """Write how much memory and processor time this process has taken, where the system says so."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    return generate_latest(registry).decode()


@dataclass(frozen=True, eq=False)  # registries look collectors up by what they are
class _Families(Collector):
    snapshot: Snapshot | None
    topology: str
    life: Life | None

    def collect(self) -> Iterator[Metric]:
        """Give all families; what a runtime does not have is left out."""
        if self.life is not None:
            yield from self._of_life(self.life)
        if self.snapshot is not None:
            yield from self._of_run(self.snapshot)

    def _of_life(self, life: Life) -> Iterator[Metric]:
        yield from self._family("topology_up", "Whether it runs.", [((), life.up)])
        text = "Whether its sources are not asked."
        yield from self._family("topology_paused", text, [((), life.paused)])
        text = "How often it has died since it last went well for long."
        yield from self._family("topology_deaths", text, [((), life.deaths)], counter=True)

    def _of_run(self, run: Snapshot) -> Iterator[Metric]:
        components = run.components
        for name, text, of_run in _RUN_COUNTERS:
            yield from self._family(name, text, [((), of_run(run))], counter=True)
        for name, text, of_run in _RUN_GAUGES:
            yield from self._family(name, text, [((), of_run(run))])
        yield from self._latency(run)
        for name, text, of in _COUNTERS:
            values = [((c.component,), of(c)) for c in components]
            yield from self._family(f"component_{name}", text, values, ("component",), counter=True)
        for name, text, of in _GAUGES:
            values = [((c.component,), of(c)) for c in components]
            yield from self._family(f"component_{name}", text, values, ("component",))
        for name, text, of_stats in _STATS:
            known = ((c.component, c.stats.get(WINDOW)) for c in components)
            values = [((component,), of_stats(stats)) for component, stats in known if stats]
            yield from self._family(
                f"component_{name}", f"{text} Of the last {WINDOW}.", values, ("component",)
            )
        yield from self._tasks(components)

    def _latency(self, run: Snapshot) -> Iterator[Metric]:
        text = "Seconds from a block's arrival to its end, or of batches"
        if (latency := run.latency) is not None:
            shares = [((share,), value) for share, value in _quantiles(latency)]
            said = f"{text}, since the run began."
            yield from self._family("latency_seconds", said, shares, ("quantile",))
        if (recent := run.recent) is not None:
            window = f"{recent.over:.0f} s"
            of_window = [((share, window), value) for share, value in _quantiles(recent)]
            said, labels = f"{text}, in the last seconds (window).", ("quantile", "window")
            yield from self._family("recent_latency_seconds", said, of_window, labels)

    def _tasks(self, components: Iterable[ComponentMetrics]) -> Iterator[Metric]:
        values = [
            ((c.component, str(task)), received)
            for c in components
            for task, received in enumerate(c.per_task[:MOST_TASKS])
        ]
        text = f"Tuples taken in by each of the first {MOST_TASKS} tasks."
        yield from self._family("task_received", text, values, ("component", "task"), counter=True)

    def _family(
        self,
        name: str,
        text: str,
        values: Iterable[tuple[tuple[str, ...], Value]],
        labels: tuple[str, ...] = (),
        counter: bool = False,
    ) -> Iterator[Metric]:
        kind = CounterMetricFamily if counter else GaugeMetricFamily
        family = kind(f"thalweg_{name}", text, labels=["topology", *labels])
        known = [(of, value) for of, value in values if value is not None]
        for of, value in known:
            family.add_metric([self.topology, *of], float(value))
        if known:
            yield family
