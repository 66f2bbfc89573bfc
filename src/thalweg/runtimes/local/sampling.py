"""Samples of a run on this machine, for whoever decides about degrees."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Node, Sample, Stream, TaskLoad
from thalweg.metrics import Counter
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.isolation import RemoteTask
from thalweg.runtimes.local.links import Streams
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.rescaling import fixed
from thalweg.runtimes.spout_tasks import AnySpoutTask

#: A sample stands for a period if the time since the last one is within this part of it.
_LEAST, _MOST = 0.5, 1.5


@dataclass(frozen=True)
class Spent:
    """What one task has done so far, or within a period."""

    rows: int
    busy: float
    cpu: float


@dataclass(frozen=True)
class Mark:
    """What a component has done so far."""

    #: Tuples that have come, that wait now, that were given up, and that were sent by stream.
    arrived: int
    waiting: int
    dropped: int
    sent: Mapping[str, int]
    #: Seconds for which tasks of a source were held back.
    held: float = 0.0
    counters: tuple[tuple[Counter, Spent], ...] = field(default=())


class Sampling:
    """Looks at the counters of a run, once per period."""

    def __init__(self, built: Built, period: float) -> None:
        self._built, self._period = built, period
        self._cores = len(os.sched_getaffinity(0))
        self._since = -math.inf
        self._marks: dict[str, Mark] = {}

    def restart(self) -> None:
        """Begin anew: streams have other readers, so what was counted has no sequel."""
        self._marks = {}

    def take(self, now: float) -> list[Sample]:
        """Say what each component did since the last call; nothing if that was no period ago."""
        took, self._since = now - self._since, now
        before, self._marks = self._marks, self._look()
        if not before or not _LEAST * self._period < took < _MOST * self._period:
            return []
        spent = {name: _since(before[name], mark) for name, mark in self._marks.items()}
        used = sum(task.cpu for tasks in spent.values() for task in tasks) / took
        found = [self._source(name, before[name], took, now) for name in self._built.spouts]
        for operator in self._built.operators:
            name = operator.component.name
            done = self._done(before[name], self._marks[name], took)
            tasks = spent[name]
            worked = [task for task in tasks if task.rows]
            found.append(
                Sample(
                    name,
                    now,
                    operator.degree,
                    done.arrived,
                    max(0, done.arrived - done.waiting),
                    done.sent,
                    self._marks[name].waiting,
                    _mean(worked),
                    max((task.busy / task.rows for task in worked), default=None),
                    sum(task.busy for task in tasks) * self._period / took,
                    self._loads(operator, [task.cpu / took for task in tasks], used),
                    done.dropped,
                )
            )
        return found

    def _source(self, name: str, before: Mark, took: float, now: float) -> Sample:
        done, tasks = self._done(before, self._marks[name], took), self._built.spouts[name]
        known = [self._left(task) for task in tasks]
        # Who says that there is nothing left was held back from nothing.
        held = (self._marks[name].held - before.held) / took / len(tasks) if any(known) else 0.0
        return Sample(
            name,
            now,
            len(tasks),
            done.arrived,
            done.arrived,
            done.sent,
            round(sum(rows for rows in known if rows < math.inf)),
            lost=done.dropped,
            held=min(1.0, held),
        )

    def _left(self, task: AnySpoutTask) -> float:
        """Give the rows that a source has and was not asked for; infinity if it does not know."""
        queue = self._built.overflows.get(task)
        tell = getattr(task.body, "backlog", None)
        known = None if tell is None or task.finished else task.call(tell)
        if queue is not None:
            return queue.rows + (known or 0)
        return 0 if task.finished else math.inf if known is None else known

    def _done(self, before: Mark, after: Mark, took: float) -> Mark:
        """Give what was done, as if exactly one period had passed."""
        part = self._period / took
        return Mark(
            round((after.arrived - before.arrived) * part),
            round((after.waiting - before.waiting) * part),
            round((after.dropped - before.dropped) * part),
            {name: round((n - before.sent[name]) * part) for name, n in after.sent.items()},
        )

    def _look(self) -> dict[str, Mark]:
        found = {}
        for name, streams in self._built.sources.items():
            counter = self._built.counters[name][0]
            held = self._built.holdings[name].seconds()
            found[name] = Mark(counter.emitted, 0, counter.dropped, _sent(streams), held)
        for operator in self._built.operators:
            links = operator.inputs
            found[operator.component.name] = Mark(
                sum(link.arrived for link in links),
                sum(link.waiting for link in links),
                0,
                _sent(operator.streams),
                0.0,
                tuple(_spent(operator, at) for at in range(len(operator.counters))),
            )
        return found

    def _loads(self, operator: Operator, cpu: list[float], used: float) -> tuple[TaskLoad, ...]:
        """Say what tasks leave to each other; threads share all cores, so each sees the mean."""
        threads = sum(o.degree for o in self._built.operators)
        others = max(0, math.ceil(threads / self._cores) - 1)
        return tuple(
            TaskLoad(own, 1.0, others, min(1.0, (used - own) / self._cores), _memory(operator, at))
            for at, own in enumerate(cpu[: operator.degree])
        )


def nodes_of(built: Built, how: Scaling) -> list[Node]:
    """Describe a topology to policies; what cannot change has equal bounds."""
    found = []
    for component in built.topology:
        inputs = tuple(Stream(each.component, each.stream) for each in component.inputs)
        if component.is_spout:
            found.append(Node(component.name, most=component.degree, least=component.degree))
            continue
        operator = built.operator(component.name)
        if operator.pooled or fixed(operator.component):
            least = most = operator.degree
        else:
            least, most = 1, how.limit(component.name, built.settings.most_workers)
        node = Node(component.name, inputs, least, most, priority=component.options.priority)
        found.append(how.windowed(node, component.window, component.bursts))
    return found


def _sent(streams: Streams) -> dict[str, int]:
    return {name: links[0].arrived for name, links in streams.items() if links}


def _spent(operator: Operator, at: int) -> tuple[Counter, Spent]:
    counter = operator.counters[at]
    # The thread of a task in a process of its own only waits for that.
    away = at < len(operator.tasks) and isinstance(operator.tasks[at], RemoteTask)
    return counter, Spent(counter.received, counter.busy, counter.busy if away else counter.cpu)


def _memory(operator: Operator, at: int) -> float:
    """Give the bytes of a task in a process of its own; 0 for threads, which share theirs."""
    task = operator.tasks[at] if at < len(operator.tasks) else None
    pid = task.pid if isinstance(task, RemoteTask) else None
    return 0.0 if pid is None else resident(pid)


def resident(pid: int) -> float:
    """Give the bytes of memory that a process has (Linux); 0 if it is gone.

    >>> resident(os.getpid()) > 1e6, resident(0)
    (True, 0.0)
    """
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0.0
    return float(pages) * os.sysconf("SC_PAGE_SIZE")


def _since(before: Mark, after: Mark) -> list[Spent]:
    """Give what each task did since then; counters that are new have begun at nothing."""
    found = []
    for at, (counter, now) in enumerate(after.counters):
        then = Spent(0, 0.0, 0.0)
        if at < len(before.counters) and before.counters[at][0] is counter:
            then = before.counters[at][1]
        found.append(Spent(now.rows - then.rows, now.busy - then.busy, now.cpu - then.cpu))
    return found


def _mean(tasks: list[Spent]) -> float | None:
    rows = sum(task.rows for task in tasks)
    return sum(task.busy for task in tasks) / rows if rows else None
