"""Executors: every task has a thread and a queue of its own, as in Storm.

The same operators, queues and reorder buffers as with workers; only who takes what is fixed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.crew import Crew
from thalweg.runtimes.local.effort import Effort
from thalweg.runtimes.local.failing import Failures
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.pinning import stay
from thalweg.runtimes.local.scheduling import Meter
from thalweg.runtimes.local.settings import CrewLimits, Settings
from thalweg.runtimes.local.waiting import STRATEGIES, Blocking, WaitStrategy


class Executors:
    """One thread for each task; takes the place of a crew of workers."""

    def __init__(
        self,
        operators: Sequence[Operator],
        meter: Meter,
        strategy: WaitStrategy,
        limits: CrewLimits,
    ) -> None:
        self._operators, self._meter = operators, meter
        self._strategy, self._limits = strategy, limits
        self._signals = {id(operator): threading.Condition() for operator in operators}
        #: Where the thread that runs the topology, and executors without room, wait.
        self._changed = threading.Condition()
        self._closing = False
        #: By operator and task; those whose task has gone have to end.
        self._threads: dict[tuple[int, int], threading.Thread] = {}
        self._gone: set[tuple[int, int]] = set()
        self._failures = Failures()
        self.choices = {operator.component.name: 0 for operator in operators}

    @property
    def error(self) -> BaseException | None:
        """What has gone wrong; None when all is well."""
        return self._failures.first

    @property
    def threads(self) -> int:
        """Threads that there are now."""
        return 1 + len(self._threads)

    @property
    def hunger(self) -> int:
        """Units that executors could work on at once."""
        return len(self._threads)

    @property
    def worth_sharing(self) -> bool:
        """Whether others are called for what waits: each has to do its own."""
        return True

    def start(self) -> None:
        """Let all executors begin."""
        for operator in self._operators:
            self.resize(operator, len(operator.tasks))

    def resize(self, operator: Operator, tasks: int) -> None:
        """Start executors for new tasks, and let those end whose tasks have gone."""
        mine = [key for key in self._threads if key[0] == operator.index]
        for key in mine[tasks:]:
            self._gone.add(key)
            self.woken(operator)
            self._threads.pop(key).join()
            self._gone.discard(key)
        for task in range(len(mine), tasks):
            name = f"thalweg-{operator.component.name}-{task}"
            thread = threading.Thread(target=self._run, args=(operator, task), name=name)
            thread.daemon = True
            self._threads[operator.index, task] = thread
            thread.start()

    def work(self, worker: int) -> bool:
        """Do nothing: the thread that runs the topology has no task."""
        return False

    def entered(self, rows: int) -> None:
        """Count rows that sources have given."""
        with self._changed:
            self._meter.enter(rows)

    def woken(self, operator: Operator) -> None:
        """Something was added for an operator's tasks."""
        signal = self._signals[id(operator)]
        with signal:
            signal.notify_all()

    def tell(self) -> None:
        """Something has changed that others may wait for."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seconds: float | None) -> None:
        """Let the thread that runs the topology wait until something changes."""
        with self._changed:
            if self.error is None:
                self._changed.wait(seconds)

    def close(self, wait: bool = True) -> None:
        """Let all executors end; what they are at is finished, unless nobody waits for it."""
        self._closing = True
        for signal in (*self._signals.values(), self._changed):
            with signal:
                signal.notify_all()
        for thread in self._threads.values() if wait else ():
            thread.join()

    def _run(self, operator: Operator, task: int) -> None:
        worklist, signal = operator.worklist, self._signals[id(operator)]
        key = operator.index, task
        stay(self._limits.cores, operator.index + task)

        def ready() -> bool:
            return self._closing or key in self._gone or worklist.ready(task)

        try:
            while True:
                self._strategy.wait(ready, signal)
                if self._closing or key in self._gone:
                    return
                _ROOM.wait(lambda: self._closing or not operator.blocked, self._changed)
                self._take(operator, task)
        except BaseException as error:
            self._failures.add(error)
            self.tell()

    def _take(self, operator: Operator, task: int) -> None:
        limits = self._limits
        rows = self._meter.rows_within(operator.index, limits.longest, limits.block_rows)
        taken = operator.worklist.take(task, rows)
        if taken is None:
            return
        before = Effort.now()
        came, went, took = operator.work(taken, task)
        after = Effort.now()
        operator.counters[task].cpu += after.cpu - before.cpu
        operator.worklist.release(taken.bucket)
        if operator.holding.full:
            operator.holding.look()
        worked = after.worked(before, took)
        with self._changed:
            self.choices[operator.component.name] += 1
            self._meter.record(operator.index, came, went, took)
            operator.look(took, worked)
            self._changed.notify_all()


def make_crew(settings: Settings, built: Built, asking: bool) -> Crew | Executors:
    """Make those who do the work; ``asking`` if the first one is busy with sources."""
    if settings.assigning == "executors":
        wait = STRATEGIES[settings.wait]()
        return Executors(built.operators, built.meter, wait, settings.crew(asking))
    return Crew(built.operators, settings.scheduler(), built.meter, settings.crew(asking))


# Room at readers is worth no processor time, whatever the strategy for queues.
_ROOM = Blocking()
