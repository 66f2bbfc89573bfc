"""A stage while it runs: its tasks, what waits for them, and what they did in a period."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from thalweg.control.scaling.values import Sample, TaskLoad
from thalweg.routing.load_aware import OsgSettings
from thalweg.runtimes.simulator.balancing import make_balancer
from thalweg.runtimes.simulator.fifo import (
    Flags,
    Floats,
    Ints,
    admitted,
    in_time,
    overflowing,
    starts,
)
from thalweg.runtimes.simulator.rows import Rows, joined
from thalweg.workloads.stages import Stage


@dataclass(frozen=True, eq=False)
class Served:
    """The tuples that a stage began to process in a period, in the order of tasks and time."""

    rows: Rows
    #: When each ends, and the seconds that it took.
    ends: Floats
    seconds: Floats
    #: Tuples that nobody will process: they found a full queue, or were late.
    dropped: Rows


@dataclass(frozen=True, eq=False)
class Rules:
    """What becomes of tuples that cannot be processed soon."""

    #: Tuples that may wait at a task; None for no limit.
    limit: int | None = None
    #: Seconds after its birth until which a tuple of the source may start at a stage; None for
    #: always. And when each was born.
    skip: float | None = None
    born: Floats = field(default_factory=lambda: np.empty(0))


class Station:
    """One stage; ``values`` is how many values tuples have."""

    def __init__(self, stage: Stage, degree: int, values: int, osg: OsgSettings) -> None:
        self.stage = stage
        self.degree = degree
        self.balancer = make_balancer(stage.grouping, degree, values, osg)
        self._costs = np.broadcast_to(np.array(stage.seconds), values)
        #: What waits, in the order of tasks and time, and behind it what came in later periods.
        self._queue = Rows.none()
        self._coming: list[Rows] = []
        #: For each task: when it has ended what it had, its unit and machine, and the share of the
        #: unit that it asks for.
        self._free = np.zeros(degree)
        self.units: Ints = np.zeros(degree, np.int64)
        self.machines: Ints = np.zeros(degree, np.int64)
        self.demand: Floats = np.zeros(degree)
        self._received = 0
        self._served = Served(self._queue, self._free[:0], self._free[:0], self._queue)

    @property
    def pending(self) -> int:
        """Tuples that wait."""
        return len(self._queue)

    def deliver(self, rows: Rows) -> None:
        """Take in tuples that arrive at their times."""
        self._coming.append(rows)

    def serve(self, end: float, shares: Floats, rules: Rules) -> Served:
        """Process what can start before a time."""
        rows = joined([self._queue, *self._coming])
        later = rows.times >= end
        self._coming = [rows.take(later)]
        rows = rows.take(~later)
        self._received = len(rows) - len(self._queue)
        rows = rows.take(np.lexsort((rows.times, rows.tasks)))
        rows, full = self._admitted(rows, shares, rules.limit)
        rows, late = self._in_time(rows, shares, rules, end)
        seconds = self._seconds(rows, shares)
        begin = starts(rows.tasks, rows.times, seconds, self._free)
        now = begin < end
        self._queue = rows.take(~now)
        done, took = rows.take(now), seconds[now]
        np.maximum.at(self._free, done.tasks, begin[now] + took)
        self._served = Served(done, begin[now] + took, took, joined([full, late]))
        self.balancer.executed(done.tasks, done.values, took)
        return self._served

    def _seconds(self, rows: Rows, shares: Floats) -> Floats:
        """Give what tuples take: longer where others leave less of the core than a task burns."""
        stretch = np.maximum(1.0, self.stage.used.cpu / shares)
        return self._costs[rows.values] * stretch[rows.tasks]

    def _admitted(self, rows: Rows, shares: Floats, limit: int | None) -> tuple[Rows, Rows]:
        """Turn away what finds a full queue."""
        if limit is None or len(rows) <= limit:
            return rows, Rows.none()
        seconds = self._seconds(rows, shares)
        begin = starts(rows.tasks, rows.times, seconds, self._free)
        over = overflowing(rows.tasks, rows.times, begin, limit)

        def choose(own: slice, free: float) -> Flags:
            return admitted(rows.times[own], seconds[own], free, limit)

        return self._chosen(rows, over, choose)

    def _in_time(self, rows: Rows, shares: Floats, rules: Rules, end: float) -> tuple[Rows, Rows]:
        """Skip what would start when it is late already."""
        if rules.skip is None:
            return rows, Rows.none()
        seconds, due = self._seconds(rows, shares), rules.born[rows.roots] + rules.skip
        begin = starts(rows.tasks, rows.times, seconds, self._free)

        def choose(own: slice, free: float) -> Flags:
            return in_time(rows.times[own], seconds[own], due[own], free, end)

        return self._chosen(rows, (begin > due) & (due < end), choose)

    def _chosen(
        self, rows: Rows, doubtful: Flags, choose: Callable[[slice, float], Flags]
    ) -> tuple[Rows, Rows]:
        """Go through the tuples of those tasks that cannot take them all, one by one."""
        kept = np.ones(len(rows), np.bool_)
        for task in np.unique(rows.tasks[doubtful]).tolist():
            own = slice(*np.searchsorted(rows.tasks, [task, task + 1]).tolist())
            kept[own] = choose(own, float(self._free[task]))
        return rows.take(kept), rows.take(~kept)

    def rescale(self, degree: int, now: float, pause: float, spread: bool) -> None:
        """Have another degree from now on, after a pause; what waits is spread, or stays."""
        rows = joined([self._queue, *self._coming])
        rows = rows.take(np.lexsort((rows.roots, rows.times)))
        self.balancer.resize(degree, rows.tasks, rows.values)
        moves = (
            np.ones(len(rows), np.bool_) if spread else ~self.balancer.keep(rows.tasks, rows.values)
        )
        tasks = rows.tasks.copy()
        tasks[moves] = self.balancer.assign(rows.values[moves])
        rows = Rows(rows.times, rows.roots, rows.values, tasks)
        waits = rows.times < now
        waiting = rows.take(waits)
        self._queue = waiting.take(np.argsort(waiting.tasks, kind="stable"))
        self._coming = [rows.take(~waits)]
        fresh = degree - self.degree
        mean = float(self.demand.mean()) * self.degree / degree
        self.demand = np.full(degree, min(mean, 1.0))
        self._free = np.maximum(np.pad(self._free, (0, max(fresh, 0)))[:degree], now + pause)
        self.degree = degree

    def rest(self, tasks: Collection[int], until: float) -> None:
        """Let tasks begin with nothing before a time, since they move."""
        moving = list(tasks)
        self._free[moving] = np.maximum(self._free[moving], until)

    def sample(
        self, time: float, emitted: Mapping[str, int], loads: tuple[TaskLoad, ...]
    ) -> Sample:
        """Say what happened in the period that ends now."""
        done, degree = self._served, self.degree
        counts = np.bincount(done.rows.tasks, minlength=degree)
        spent = np.bincount(done.rows.tasks, done.seconds, degree)
        means = spent[counts > 0] / counts[counts > 0]
        return Sample(
            self.stage.name,
            time,
            degree,
            received=self._received,
            processed=len(done.rows),
            emitted=emitted,
            pending=self.pending,
            latency_mean=float(means.mean()) if len(means) else None,
            latency_max=float(means.max()) if len(means) else None,
            busy=float(spent.sum()),
            tasks=loads,
            lost=len(done.dropped),
        )

    def measure(self, period: float) -> Floats:
        """Give the CPU that each task used in the period; and note what it asks for from now on."""
        burns = self.stage.used.cpu / period
        used = self._work(self._served.rows) * burns
        waiting = self._work(self._queue) * burns
        self.demand = np.minimum(used + waiting, self.stage.used.cpu)
        return np.minimum(used, 1.0)

    def _work(self, rows: Rows) -> Floats:
        return np.bincount(rows.tasks, self._costs[rows.values], self.degree).astype(np.float64)
