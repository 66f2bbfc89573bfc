"""What a run tells: progress now and then, and its metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from thalweg.clock import Clock
from thalweg.events import Event, Progress
from thalweg.execution import Run
from thalweg.metrics import ComponentMetrics, LatencySketch, Snapshot
from thalweg.runtimes.following import last_bolts
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.statistics import looked
from thalweg.runtimes.reporting import Reporting
from thalweg.runtimes.tracking import Tracker

# How often listeners hear of progress, in seconds.
_PROGRESS_EVERY = 0.2


class Telling:
    """Counts, and speaks to the listener of a run."""

    def __init__(self, built: Built, tracker: Tracker, clock: Clock, run: Run) -> None:
        self._built, self._tracker, self._clock = built, tracker, clock
        self.listen = run.listen
        self._reporting = Reporting(run, built.topology.name, clock, lambda: looked(built))
        self.start = self._shown = clock.now()
        self.latency = LatencySketch(clock)
        #: Puts onto metrics how far event time has come.
        self.timed: Callable[[Iterable[ComponentMetrics]], tuple[ComponentMetrics, ...]] = tuple

    def abandon(self) -> None:
        """Let go of what complains when a stuck thread keeps it until the program ends."""
        del self.latency

    def begin(self) -> None:
        """Let those get ready who will be told metrics."""
        self._reporting.begin()

    def end(self) -> None:
        """Tell the last metrics; raises what went wrong in the background."""
        self._reporting.end()

    def give_up(self, error: BaseException) -> None:
        """End after an error."""
        self._reporting.give_up(error)

    def show_progress(self, choices: Mapping[str, int]) -> None:
        """Tell how far the run is, if the last time was long enough ago."""
        self._reporting.step()
        now = self._clock.now()
        if now - self._shown >= _PROGRESS_EVERY:
            self._shown = now
            self.listen(Progress(self.snapshot(choices)))

    def snapshot(self, choices: Mapping[str, int], last: bool = False) -> Snapshot:
        """Give all metrics; ``choices`` says how often workers chose each component."""
        components = self.timed(self._reporting.onto(self._built.metrics(choices), last))
        by_name = {metrics.component: metrics for metrics in components}
        topology = self._built.topology
        return Snapshot(
            elapsed=self._clock.now() - self.start,
            components=components,
            tuples_in=sum(by_name[c.name].emitted for c in topology.spouts),
            tuples_out=sum(by_name[c.name].received for c in last_bolts(topology)),
            errors=sum(metrics.errors for metrics in components),
            latency=self.latency.freeze(),
            recent=self.latency.recent(),
            acked=self._tracker.acked,
            failed=self._tracker.failed,
            pending=sum(o.worklist.rows for o in self._built.operators),
        )


def one_at_a_time(listen: Callable[[Event], None]) -> Callable[[Event], None]:
    """Let only one thread at a time speak to a listener."""
    lock = threading.RLock()

    def tell(event: Event) -> None:
        with lock:
            listen(event)

    return tell
