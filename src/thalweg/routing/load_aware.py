"""Online shuffle grouping: each tuple to the task with the least estimated work.

Rivetti et al., Online scheduling for shuffle grouping, Middleware 2016. Two state machines without
I/O talk to each other. A task (:class:`TaskCosts`) sees what values cost and reports it when that
has become stable. The sender (:class:`Scheduler`) goes in turn until every task has reported; from
then on it adds up the estimated seconds that it has sent to each task, and sends to the lowest sum.
Estimates drift, so each new report is followed by one marker to each task, which answers with the
difference between its true seconds and the estimate. The first answer says where the task stands;
the later ones, by how much estimates have been wrong since.

Channels are first in, first out, so a marker need not be tied to a tuple: it says behind how many.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from itertools import pairwise

import numpy as np

from thalweg.errors import UsageError, explain
from thalweg.hashing import Hashes
from thalweg.routing.table import Places
from thalweg.sketches.costs import CostSketch, Floats


@dataclass(frozen=True)
class OsgSettings:
    """How exact estimates are, and how often they are renewed."""

    #: Share of all tuples that may be mixed into a cell, and how probably there are more.
    epsilon: float = 0.05
    delta: float = 0.1
    #: Tuples between two looks of a task at what values cost.
    every: int = 1024
    #: Relative change between two looks below which costs count as stable.
    stable: float = 0.05
    #: Whether what a task did before estimates were used counts, as in the document: it then gets
    #: nothing until the others have done as much, however idle it is.
    literal: bool = False

    def __post_init__(self) -> None:
        if self.every < 1 or not self.stable >= 0:
            got = f"every {self.every}, stable {self.stable}"
            raise UsageError(explain("load-aware grouping", "", "positive settings", got))

    def sketch(self) -> CostSketch:
        """Begin a sketch."""
        return CostSketch.empty(self.epsilon, self.delta)


@dataclass(frozen=True, eq=False)
class Report:
    """A task says what values cost."""

    task: int
    sketch: CostSketch


@dataclass(frozen=True)
class Marker:
    """The sender's estimate of a task's seconds, behind so many tuples that it has sent there."""

    task: int
    turn: int
    after: int
    estimate: float


@dataclass(frozen=True)
class Correction:
    """A task's answer to a marker: its true seconds less the estimate."""

    task: int
    turn: int
    difference: float


Answer = Report | Correction


class TaskCosts:
    """The receiving task's half.

    >>> costs = TaskCosts(0, OsgSettings(every=2))
    >>> hashes, seconds = np.array([7, 8], np.uint64), np.array([0.1, 0.2])
    >>> costs.executed(hashes, seconds), [a.sketch.mean for a in costs.executed(hashes, seconds)]
    ([], [0.15000000000000002])
    """

    def __init__(self, task: int, settings: OsgSettings, seconds: float = 0.0) -> None:
        self.task = task
        self._settings = settings
        self._sketch = settings.sketch()
        self._snapshot: Floats | None = None
        self._since = 0
        #: Tuples executed so far, and the seconds that they took. A task that joins later begins
        #: with the least that another has, else everything would be sent to it.
        self.count = 0
        self.seconds = seconds
        self._markers: deque[Marker] = deque()

    def mark(self, marker: Marker) -> None:
        """Take in a marker; it is answered when the tuples before it have been executed."""
        self._markers.append(marker)

    def forget_markers(self) -> None:
        """Answer none of the markers that have not been reached."""
        self._markers.clear()

    def executed(self, hashes: Hashes, seconds: Floats) -> list[Answer]:
        """Learn what tuples took, in the order of their arrival; gives what the sender hears."""
        answers: list[Answer] = self._corrections(self.seconds + np.cumsum(seconds))
        for start, stop in self._looks(len(hashes)):
            self._sketch = self._sketch.plus(hashes[start:stop], seconds[start:stop])
            self._since += stop - start
            if self._since == self._settings.every:
                self._since = 0
                answers += self._look()
        self.count += len(hashes)
        self.seconds += float(seconds.sum())
        return answers

    def _looks(self, tuples: int) -> list[tuple[int, int]]:
        """Cut tuples where a look is due."""
        every = self._settings.every
        cuts = [0, *range(every - self._since, tuples, every), tuples]
        return list(pairwise(cuts)) if tuples else []

    def _look(self) -> list[Answer]:
        now = self._sketch.ratios
        if self._snapshot is not None:
            change = float(np.abs(now - self._snapshot).sum())
            if change <= self._settings.stable * float(self._snapshot.sum()):
                report = Report(self.task, self._sketch)
                self._sketch, self._snapshot = self._settings.sketch(), None
                return [report]
        self._snapshot = now
        return []

    def _corrections(self, totals: Floats) -> list[Answer]:
        """Answer the markers that have been reached; ``totals`` are the seconds after each."""
        found: list[Answer] = []
        while self._markers and self._markers[0].after <= self.count + len(totals):
            marker = self._markers.popleft()
            row = marker.after - self.count - 1
            seconds = float(totals[row]) if row >= 0 else self.seconds
            found.append(Correction(self.task, marker.turn, seconds - marker.estimate))
        return found


class State(enum.Enum):
    """What the sender does."""

    #: Not every task has reported: in turn.
    ROUND_ROBIN = "round robin"
    #: By estimates; some tasks have not got a marker yet.
    SEND_ALL = "send all"
    #: By estimates; some corrections have not come yet.
    WAIT_ALL = "wait all"
    #: By estimates.
    RUN = "run"


@dataclass(frozen=True, eq=False)
class Assigned:
    """The task of each tuple, and the markers that go behind them."""

    tasks: Places
    markers: tuple[Marker, ...] = ()


@dataclass
class _Task:
    """What the sender knows of a task."""

    #: Tuples sent, and their estimated seconds.
    sent: int = 0
    seconds: float = 0.0
    sketch: CostSketch | None = None
    #: What its true seconds had ahead of the estimate when the first marker came back.
    ahead: float | None = None
    #: Whether it has to get a marker, and whether its answer is awaited.
    unmarked: bool = False
    waiting: bool = False


@dataclass
class Scheduler:
    """The sender's half; ``tasks`` is the number of receiving tasks."""

    tasks: int
    settings: OsgSettings = field(default_factory=OsgSettings)

    def __post_init__(self) -> None:
        if self.tasks < 1:
            raise UsageError(explain("load-aware grouping", "", "1 task or more", str(self.tasks)))
        self._known = [_Task() for _ in range(self.tasks)]
        self._next = 0
        self._turn = 0
        #: Once every task has reported, there is no way back to round robin.
        self._reported = False
        #: All reports of the tasks together: for those that have not made one of their own.
        self._common = self.settings.sketch()

    @property
    def state(self) -> State:
        """What it does now."""
        if not self._reported:
            return State.ROUND_ROBIN
        if any(task.unmarked for task in self._known):
            return State.SEND_ALL
        return State.WAIT_ALL if any(task.waiting for task in self._known) else State.RUN

    @property
    def loads(self) -> tuple[float, ...]:
        """Estimated seconds sent to each task."""
        return tuple(task.seconds for task in self._known)

    def assign(self, hashes: Hashes) -> Assigned:
        """Give each tuple, by the hash of its value, a task."""
        if self._reported:
            tasks = self._least_loaded(hashes)
        else:
            tasks = (self._next + np.arange(len(hashes))) % self.tasks
            self._next = (self._next + len(hashes)) % self.tasks
        for task, count in enumerate(np.bincount(tasks, minlength=self.tasks).tolist()):
            self._known[task].sent += count
        return Assigned(tasks, self._marked(np.unique(tasks).tolist()))

    def hear(self, answer: Answer) -> None:
        """Take in what a task says; one that is no more, or of an earlier turn, says nothing."""
        if answer.task >= self.tasks:
            return
        task = self._known[answer.task]
        if isinstance(answer, Report):
            task.sketch = answer.sketch
            reports = [each.sketch for each in self._known if each.sketch is not None]
            self._common = CostSketch.total(reports)
            self._reported = self._reported or len(reports) == self.tasks
            if self._reported:
                self._begin_turn()
        elif answer.turn == self._turn and task.waiting:
            if task.ahead is None:
                task.ahead = 0.0 if self.settings.literal else answer.difference
            task.seconds += answer.difference - task.ahead
            task.waiting = False

    def resize(self, tasks: int) -> None:
        """Have more or fewer tasks; a new one begins with the least work that another has."""
        least = min(task.seconds for task in self._known)
        self._known = self._known[:tasks]
        self._known += [_Task(seconds=least) for _ in range(tasks - len(self._known))]
        self.tasks, self._next = tasks, 0
        if self._reported:
            self._begin_turn()

    def take_back(self, tasks: Places, hashes: Hashes) -> None:
        """Forget tuples that were sent and not executed: they will be sent again."""
        self._count(tasks, hashes, -1)

    def put(self, tasks: Places, hashes: Hashes) -> None:
        """Take note of tuples that somebody else has sent, or left where they were."""
        self._count(tasks, hashes, 1)

    def _count(self, tasks: Places, hashes: Hashes, sign: int) -> None:
        values, rows = np.unique(hashes, return_inverse=True)
        costs = self._costs(values)[tasks, rows] if self._reported else np.zeros(len(tasks))
        sums = np.bincount(tasks, costs, self.tasks)
        for task, count in enumerate(np.bincount(tasks, minlength=self.tasks).tolist()):
            self._known[task].sent += sign * count
            self._known[task].seconds += sign * float(sums[task])

    def _begin_turn(self) -> None:
        self._turn += 1
        for task in self._known:
            task.unmarked, task.waiting = True, False

    def _marked(self, tasks: list[int]) -> tuple[Marker, ...]:
        """Make the markers for those tasks that lack one."""
        due = [task for task in tasks if self._known[task].unmarked]
        for task in due:
            self._known[task].unmarked, self._known[task].waiting = False, True
        return tuple(
            Marker(task, self._turn, self._known[task].sent, self._known[task].seconds)
            for task in due
        )

    def _costs(self, hashes: Hashes) -> Floats:
        """Estimate the seconds of each value at each task; one row per task."""
        together = self._common.estimates(hashes)
        sketches = [task.sketch for task in self._known]
        return np.array([s.estimates(hashes, together) if s else together for s in sketches])

    def _least_loaded(self, hashes: Hashes) -> Places:
        values, rows = np.unique(hashes, return_inverse=True)
        costs = self._costs(values).tolist()
        heap = [(task.seconds, number) for number, task in enumerate(self._known)]
        heapify(heap)
        chosen = []
        for value in rows.tolist():
            seconds, task = heap[0]
            chosen.append(task)
            heapreplace(heap, (seconds + costs[task][value], task))
        for seconds, task in heap:
            self._known[task].seconds = seconds
        return np.array(chosen, np.int64)
