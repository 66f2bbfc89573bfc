"""Built-in metrics of a run over windows, and all metrics to those who want to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from thalweg.clock import Clock, seconds
from thalweg.events import Noticed
from thalweg.execution import Run
from thalweg.metrics import ComponentMetrics
from thalweg.registered import DataPoint, TaskInfo, TaskKey
from thalweg.runtimes.delivering import Delivering, Points
from thalweg.runtimes.services import Services
from thalweg.stats import WINDOWS, Stats, Totals, Windows, together

# How long windows are good for, and how often the registry is asked what is due, in seconds.
_FRESH = 1.0
_CAPACITY_WINDOW = "10 min"
_MILLIS = 1000.0


@dataclass(frozen=True)
class Look:
    """What is seen of all tasks at one moment."""

    totals: Mapping[TaskKey, Totals]
    #: Tuples that wait for each task of a bolt.
    waiting: Mapping[TaskKey, int]


#: By component: what it did in each window, and what its tasks did.
AllStats = dict[str, tuple[dict[str, Stats], tuple[dict[str, Stats], ...]]]


class Reporting:
    """Looks at the tasks of a run at intervals; for the thread that runs the topology."""

    def __init__(
        self,
        run: Run,
        topology: str,
        clock: Clock,
        look: Callable[[], Look],
        threaded: bool = True,
    ) -> None:
        self._services: Services = run.services
        self._topology, self._clock, self._look = topology, clock, look
        self._every = seconds(run.metrics_every)
        self._begin_at(clock.now())
        self._before: Mapping[TaskKey, Totals] = {}
        self._made: tuple[float, AllStats] | None = None
        self._delivering = Delivering(run.consumers, lambda t: run.listen(Noticed(t)), threaded)

    def begin(self) -> None:
        """Let consumers get ready: tuples are about to flow."""
        self._delivering.begin(self._topology)
        self._begin_at(self._clock.now())

    def _begin_at(self, now: float) -> None:
        self._told = self._next = now
        self._windows: Windows[TaskKey] = Windows(now)

    def step(self) -> None:
        """Look, and tell, where it is time; raises what went wrong in the background."""
        self._services.pool.check()
        now = self._clock.now()
        if now < self._next:
            return
        self._delivering.check()
        if now >= self._windows.due:
            self._windows.look(now, self._look().totals)
        registry, due = self._services.registry, self._told + self._every
        self._next = now + _FRESH
        if self._delivering.ready:
            if now >= due or now >= registry.due:
                self._tell(now, of_run=now >= due)
            self._next = min(self._next, registry.due, self._told + self._every)

    def _tell(self, now: float, of_run: bool, last: bool = False) -> None:
        """Tell what is due; what the runtime counts comes with the interval of the run."""
        since = now - self._told
        points = self._services.registry.collect(now, of_run, last)
        if of_run or last:
            for key, counted in self._built_in(now).items():
                points.setdefault((key, None), []).extend(counted)
            self._told = now
        told: Points = []
        for key, passed in sorted(points, key=lambda found: (found[0], found[1] or 0.0)):
            info = TaskInfo(self._topology, *key, now, since if passed is None else passed)
            told.append((info, points[key, passed]))
        self._delivering.give(told)

    def _built_in(self, now: float) -> dict[TaskKey, list[DataPoint]]:
        """Give what has been counted since the last time, under Storm's names."""
        look, looked_at = self._look(), self._clock.now()  # workers have gone on since ``now``
        seconds, lately = self._windows.since(_CAPACITY_WINDOW, looked_at, look.totals)
        found = {}
        for key, totals in look.totals.items():
            new = totals.minus(self._before.get(key, Totals()))
            bolt = key in look.waiting
            points = _points(Stats.of(new, now - self._told), bolt)
            if bolt:
                points.append(DataPoint("__receive", {"population": look.waiting[key]}))
                share = Stats.of(lately[key], seconds).capacity
                points.append(DataPoint("__capacity", share or 0.0))
            found[key] = points
        self._before = look.totals
        return found

    def stats(self, fresh: bool = False) -> AllStats:
        """Give what all components did in each window; those of a moment ago will do as a rule."""
        now = self._clock.now()
        if self._made is None or fresh or now - self._made[0] >= _FRESH:
            self._made = now, self._stats(now)
        return self._made[1]

    def _stats(self, now: float) -> AllStats:
        totals = self._look().totals
        found: AllStats = {}
        for window in WINDOWS:
            seconds, lately = self._windows.since(window, now, totals)
            tasks: dict[str, list[Totals]] = {}
            for (component, _), each in sorted(lately.items()):
                tasks.setdefault(component, []).append(each)
            for component, of_tasks in tasks.items():
                whole, single = found.setdefault(component, ({}, tuple({} for _ in of_tasks)))
                whole[window] = together((each, seconds) for each in of_tasks)
                for stats, each in zip(single, of_tasks, strict=True):
                    stats[window] = Stats.of(each, seconds)
        return found

    def onto(
        self, components: Iterable[ComponentMetrics], fresh: bool = False
    ) -> tuple[ComponentMetrics, ...]:
        """Put what each component did in each window beside its other metrics."""
        stats = self.stats(fresh)
        pairs = ((metrics, stats.get(metrics.component, ({}, ()))) for metrics in components)
        return tuple(replace(m, stats=whole, task_stats=tasks) for m, (whole, tasks) in pairs)

    def end(self) -> None:
        """Finish what is in the background, and tell the last points; raises what went wrong."""
        self._services.pool.close()
        self._services.pool.check()
        if self._delivering.wanted:
            self._tell(self._clock.now(), of_run=True, last=True)
        self._delivering.close()
        self._delivering.check()

    def give_up(self, error: BaseException) -> None:
        """End after an error; who interrupts a run does not wait for what may be stuck."""
        patient = not isinstance(error, KeyboardInterrupt)
        self._services.pool.close(finish=False, wait=patient)
        self._delivering.close(patient)


def _points(stats: Stats, bolt: bool) -> list[DataPoint]:
    """Write stats as Storm does: latencies in milliseconds."""
    counts = {
        "__emit-count": stats.emitted,
        "__transfer-count": stats.transferred,
        "__ack-count": stats.acked,
        "__fail-count": stats.failed,
    }
    counts |= {"__execute-count": stats.executed} if bolt else {}
    latencies = {
        "__execute-latency": stats.execute_latency,
        "__process-latency": stats.process_latency,
        "__complete-latency": stats.complete_latency,
    }
    points = [DataPoint(name, count) for name, count in counts.items()]
    known = ((name, value) for name, value in latencies.items() if value is not None)
    return points + [DataPoint(name, _MILLIS * value) for name, value in known]
