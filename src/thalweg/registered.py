"""Metrics that components register, and those who are told of them at intervals.

In ``prepare``, ``context.metric(name, kind)`` gives one of the metrics below. Any thread may use
it. What was noted since the last time goes to the consumers of the run.

>>> registry = Registry()
>>> sizes = registry.register(("split", 0), "sizes", "mean")
>>> sizes.update(2)
>>> sizes.update(4)
>>> [point for _, points in registry.collect(now=60.0, of_run=True).items() for point in points]
[DataPoint(name='sizes', value=3.0)]
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from thalweg.errors import UsageError, explain

MetricKind = Literal["count", "multi-count", "mean", "gauge"]
#: A component, and the index of one of its tasks.
TaskKey = tuple[str, int]


@dataclass(frozen=True)
class DataPoint:
    """The value of a metric, for the time since the one before."""

    name: str
    value: Any


@dataclass(frozen=True)
class TaskInfo:
    """Whose points they are."""

    topology: str
    component: str
    task: int
    #: Time by the clock of the run, and seconds since the points before.
    time: float
    interval: float


class Metric:
    """Something that is noted while tuples flow; see the kinds below."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def value(self, raw: Any) -> Any:
        """Make what people see of what :meth:`take` gave."""
        return raw

    def take(self) -> Any:
        """Give what was noted since the last time, as a plain value, and begin anew."""
        raise NotImplementedError

    def merge(self, raw: Any) -> None:
        """Add what another one has noted."""
        raise NotImplementedError


class CountMetric(Metric):
    """A number that goes up."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def incr(self, by: int = 1) -> None:
        """Count."""
        with self._lock:
            self._count += by

    def merge(self, raw: int) -> None:
        """Add another count."""
        self.incr(raw)

    def take(self) -> int:
        """Give the count, and begin anew."""
        with self._lock:
            count, self._count = self._count, 0
            return count


class MultiCountMetric(Metric):
    """A number for each of several names."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}

    def incr(self, name: str, by: int = 1) -> None:
        """Count for a name."""
        with self._lock:
            self._counts[name] = self._counts.get(name, 0) + by

    def take(self) -> dict[str, int]:
        """Give the counts, and begin anew; names stay."""
        with self._lock:
            counts, self._counts = self._counts, dict.fromkeys(self._counts, 0)
            return counts

    def merge(self, raw: Mapping[str, int]) -> None:
        """Add other counts."""
        for name, count in raw.items():
            self.incr(name, count)


class MeanMetric(Metric):
    """The mean of values; None when there was none."""

    def __init__(self) -> None:
        super().__init__()
        self._sum, self._number = 0.0, 0

    def update(self, value: float) -> None:
        """Take in a value."""
        self.merge((value, 1))

    def take(self) -> tuple[float, int]:
        """Give sum and number, and begin anew."""
        with self._lock:
            taken, (self._sum, self._number) = (self._sum, self._number), (0.0, 0)
            return taken

    def merge(self, raw: tuple[float, int]) -> None:
        """Add another sum and number."""
        with self._lock:
            self._sum, self._number = self._sum + raw[0], self._number + raw[1]

    def value(self, raw: tuple[float, int]) -> float | None:
        """Divide."""
        return raw[0] / raw[1] if raw[1] else None


class GaugeMetric(Metric):
    """The last value that was set; it stays until there is another one."""

    def __init__(self) -> None:
        super().__init__()
        self._value: Any = None

    def set(self, value: Any) -> None:
        """Set the value; a plain one (numbers, text, lists, dictionaries of those)."""
        self._value = value

    def take(self) -> Any:
        """Give the value."""
        return self._value

    def merge(self, raw: Any) -> None:
        """Take over a value."""
        self._value = raw


KINDS: Mapping[str, type[Metric]] = {
    "count": CountMetric,
    "multi-count": MultiCountMetric,
    "mean": MeanMetric,
    "gauge": GaugeMetric,
}


def make_metric(name: str, kind: str) -> Metric:
    """Make a metric that nobody collects."""
    if kind not in KINDS:
        expected = f"one of {tuple(KINDS)}"
        raise UsageError(explain(f"kind of metric {name!r}", "", expected, repr(kind)))
    return KINDS[kind]()


@dataclass
class Registered:
    """A metric of a task, and when it is told next."""

    kind: str
    metric: Metric
    #: Seconds between two points, None for those of the run; and when the last one was told.
    every: float | None
    told: float

    @property
    def due(self) -> float:
        """When it is to be told next, if it has an interval of its own."""
        return inf if self.every is None else self.told + self.every


class Registry:
    """The metrics of a run. Tasks that people take for one share a metric."""

    def __init__(self, start: float = 0.0) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._tasks: dict[TaskKey, dict[str, Registered]] = {}

    def register(
        self, task: TaskKey, name: str, kind: str = "count", every: float | None = None
    ) -> Metric:
        """Give the metric of a task; the one that is there, if it has registered it before."""
        made = Registered(kind, make_metric(name, kind), every, self._start)
        with self._lock:
            found = self._tasks.setdefault(task, {}).setdefault(name, made)
        if found.kind != kind:
            where = f"component {task[0]!r}"
            expected = f"a {found.kind}, as before"
            raise UsageError(explain(f"metric {name!r}", where, expected, f"a {kind}"))
        return found.metric

    def collect(
        self, now: float, of_run: bool, last: bool = False
    ) -> dict[tuple[TaskKey, float | None], list[DataPoint]]:
        """Give the points that are due: those of the run's interval, those of their own, or all.

        With each task stands how many seconds its points are for; None for the run's interval.
        """
        with self._lock:
            tasks = {task: dict(metrics) for task, metrics in self._tasks.items()}
        found: dict[tuple[TaskKey, float | None], list[DataPoint]] = {}
        for task, metrics in tasks.items():
            for name, one in metrics.items():
                if last or (of_run if one.every is None else one.due <= now):
                    passed = None if one.every is None else now - one.told
                    one.told = now
                    point = DataPoint(name, one.metric.value(one.metric.take()))
                    found.setdefault((task, passed), []).append(point)
        return found

    @property
    def due(self) -> float:
        """When a metric with an interval of its own is to be told next."""
        with self._lock:
            found = [one for metrics in self._tasks.values() for one in metrics.values()]
        return min((one.due for one in found), default=inf)

    def take(self) -> dict[str, tuple[str, Any, float | None]]:
        """Give what the one task of a process has noted, for the process that has the consumers."""
        with self._lock:
            metrics = [pair for each in self._tasks.values() for pair in each.items()]
        return {name: (one.kind, one.metric.take(), one.every) for name, one in metrics}

    def merge(self, task: TaskKey, taken: Mapping[str, tuple[str, Any, float | None]]) -> None:
        """Add what a task in a process has noted."""
        for name, (kind, raw, every) in taken.items():
            self.register(task, name, kind, every).merge(raw)

    def __len__(self) -> int:
        return len(self._tasks)
