"""Executors: every task has a thread and a queue of its own, as in Storm.

The same operators, queues and reorder buffers as with workers; only who takes what is fixed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.scheduling import Meter
from thalweg.runtimes.local.waiting import Blocking, WaitStrategy


class Executors:
    """One thread for each task; takes the place of a crew of workers."""

    def __init__(
        self, operators: Sequence[Operator], meter: Meter, strategy: WaitStrategy, rows: int
    ) -> None:
        self._operators, self._meter = operators, meter
        self._strategy, self._rows = strategy, rows
        self._signals = {id(operator): threading.Condition() for operator in operators}
        #: Where the thread that runs the topology, and executors without room, wait.
        self._changed = threading.Condition()
        self._closing = False
        self._threads: list[threading.Thread] = []
        self.error: BaseException | None = None
        self.choices = {operator.component.name: 0 for operator in operators}

    @property
    def threads(self) -> int:
        """Threads that there are now."""
        return 1 + len(self._threads)

    @property
    def hunger(self) -> int:
        """Units that executors could work on at once."""
        return len(self._threads)

    def start(self) -> None:
        """Let all executors begin."""
        for operator in self._operators:
            for task in range(len(operator.tasks)):
                name = f"thalweg-{operator.component.name}-{task}"
                thread = threading.Thread(target=self._run, args=(operator, task), name=name)
                thread.daemon = True
                self._threads.append(thread)
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

    def close(self) -> None:
        """Let all executors end; what they are at is finished."""
        self._closing = True
        for signal in (*self._signals.values(), self._changed):
            with signal:
                signal.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self, operator: Operator, task: int) -> None:
        worklist, signal = operator.worklist, self._signals[id(operator)]

        def ready() -> bool:
            return self._closing or worklist.ready(task)

        try:
            while True:
                self._strategy.wait(ready, signal)
                if self._closing:
                    return
                _ROOM.wait(lambda: self._closing or not operator.blocked, self._changed)
                self._take(operator, task)
        except BaseException as error:
            self.error = self.error or error
            self.tell()

    def _take(self, operator: Operator, task: int) -> None:
        taken = operator.worklist.take(task, self._rows)
        if taken is None:
            return
        cpu = time.thread_time()
        try:
            came, went, took = operator.work(taken, task)
        finally:
            operator.worklist.release(taken.bucket)
        with self._changed:
            self.choices[operator.component.name] += 1
            self._meter.record(operator.index, came, went, took)
            operator.look(took, time.thread_time() - cpu)
            self._changed.notify_all()


# Room at readers is worth no processor time, whatever the strategy for queues.
_ROOM = Blocking()
