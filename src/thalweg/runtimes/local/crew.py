"""The workers of a run: threads that ask what to work on next.

The thread that runs the topology is the first worker; others are started when there is something
for them to do. Components of plain Python share one token, unless they are seen to wait: two
threads that both want Python's lock only get in each other's way. For the same reason others are
not called for what one worker does sooner alone; but one of them watches whether it goes on.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from thalweg.runtimes.local.effort import Effort
from thalweg.runtimes.local.failing import Failed, Failures
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.pinning import stay
from thalweg.runtimes.local.scheduling import Meter, OperatorView, Scheduler
from thalweg.runtimes.local.settings import CrewLimits

#: The first worker is the thread that runs the topology.
MAIN = 0
_NOBODY = -1


class Crew:
    """Gives work to workers."""

    def __init__(
        self, operators: Sequence[Operator], scheduler: Scheduler, meter: Meter, limits: CrewLimits
    ) -> None:
        self._operators, self._scheduler, self._meter = operators, scheduler, meter
        self._limits = limits
        #: Whether Python lets one thread at a time run its code.
        self.python_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
        self._condition = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._token = _NOBODY
        self._closing = False
        self._resting = False
        #: Times that something was taken and done, and whether an idle worker watches them.
        self._done = 0
        self._watched = False
        self._failures = Failures()
        #: How often each operator was chosen.
        self.choices = {operator.component.name: 0 for operator in operators}

    @property
    def error(self) -> BaseException | None:
        """What has gone wrong; None when all is well."""
        return self._failures.first

    @property
    def threads(self) -> int:
        """Workers that there are now."""
        return 1 + len(self._threads)

    @property
    def hunger(self) -> int:
        """Units that workers could work on at once; 0 when there is no use in more than one."""
        waiting = sum(operator.limit for operator in self._operators if operator.waits)
        if waiting:
            return min(self._limits.most, max(self._limits.workers, waiting))
        several = self._limits.workers > 1 and not all(o.python for o in self._operators)
        return self._limits.workers if several else 0

    @property
    def worth_sharing(self) -> bool:
        """Whether what waits would take one worker long, or nobody knows how long."""
        if not self.python_lock:
            return True
        seconds = 0.0
        for operator in self._operators:
            if rows := operator.worklist.rows:
                cost = self._meter.read(operator.index).cost
                if not cost or operator.waits:
                    return True
                seconds += rows * cost
        return seconds >= self._limits.alone

    # --- what workers do ---------------------------------------------------------------------

    def work(self, worker: int) -> bool:
        """Work for a while, on one operator after the other; False when there is nothing to do.

        So a lone block goes through the whole chain at once.
        """
        end = time.perf_counter() + self._limits.slice
        worked = more = self._work_once(worker)
        while more and time.perf_counter() < end:
            more = self._work_once(worker)
        return worked

    def _work_once(self, worker: int) -> bool:
        with self._condition:
            if worker == MAIN and not self._limits.first:
                self._call_others()
                return False
            operator = self._choose(worker)
            if operator is None:
                return False
            self._call_others()
        try:
            self._work_on(operator, worker)
        except Failed as error:  # nobody goes on; others may be at earlier tuples that fail as well
            self._failures.add(error)
        finally:
            with self._condition:
                operator.workers -= 1
                if operator.holding.full:
                    operator.holding.look()
                if self._token == worker:
                    self._token = _NOBODY
                if self._limits.fixed or self._resting:
                    self._condition.notify_all()
        return True

    def _work_on(self, operator: Operator, worker: int) -> None:
        """Take from one operator until the time slice is over."""
        worklist, limits = operator.worklist, self._limits
        end = time.perf_counter() + limits.slice
        rows = self._meter.rows_within(operator.index, limits.longest, limits.block_rows)
        before = Effort.now()
        while (taken := worklist.take(worker, rows)) is not None:
            # After an error nobody takes what waits behind it.
            came, went, took = operator.work(taken, worker)
            after, at = Effort.now(), worker if operator.pooled else taken.bucket
            operator.counters[at].cpu += after.cpu - before.cpu
            worklist.release(taken.bucket)
            with self._condition:
                self._done += 1
                self._meter.record(operator.index, came, went, took)
                operator.look(took, after.worked(before, took))
            before = after
            if time.perf_counter() >= end or operator.blocked:
                return

    def _choose(self, worker: int) -> Operator | None:
        ready = self._ready(worker)
        if not ready:
            return None
        chosen = ready[0]
        if len(ready) > 1:
            able = {operator.index for operator in ready}
            views = [self._view(operator, operator.index in able) for operator in self._operators]
            choice = self._scheduler.choose(views)
            # All are beyond their thresholds: the last one makes room.
            chosen = ready[-1] if choice is None else self._operators[choice.index]
        chosen.workers += 1
        self.choices[chosen.component.name] += 1
        if chosen.python and self.python_lock:
            self._token = worker
        return chosen

    def _view(self, operator: Operator, able: bool) -> OperatorView:
        return OperatorView(
            operator.index,
            operator.worklist.rows if able else 0,
            operator.workers,
            operator.limit,
            operator.output,
            operator.bound,
            *self._meter.read(operator.index),
        )

    def entered(self, rows: int) -> None:
        """Count rows that sources have given."""
        with self._condition:
            self._meter.enter(rows)

    def _ready(self, worker: int) -> list[Operator]:
        """Find the operators that a worker could work on."""
        if self.error is not None or self._resting:
            return []
        return [o for o in self._operators if o.worklist.ready(worker) and self._may(o, worker)]

    def _may(self, operator: Operator, worker: int) -> bool:
        if operator.workers >= operator.limit or operator.blocked:
            return False
        taken = self._token not in (_NOBODY, worker)
        return not (taken and operator.python and self.python_lock)

    # --- waiting and waking ------------------------------------------------------------------

    def start(self) -> None:
        """Nobody begins before there is something to do, unless each has tasks of its own."""
        for _ in range(self._limits.workers - 1 if self._limits.fixed else 0):
            self._start()

    def resize(self, operator: Operator, tasks: int) -> None:
        """Let as many workers work on an operator as it has tasks now."""
        with self._condition:
            operator.limit = tasks
            self._call_others()

    def woken(self, operator: Operator) -> None:
        """Something was added: let somebody work on it, if its finder has enough to do already."""
        with self._condition:
            self._call_others(beside=1)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Let nobody work for a moment; what workers are at is finished first."""
        with self._condition:
            self._resting = True
            self._condition.wait_for(lambda: not any(o.workers for o in self._operators))
        try:
            yield
        finally:
            with self._condition:
                self._resting = False
                self._condition.notify_all()

    def tell(self) -> None:
        """Something has changed that the first worker may wait for."""
        with self._condition:
            if self._idle:
                self._condition.notify_all()

    def wait(self, seconds: float | None) -> None:
        """Let the first worker wait until something changes."""
        with self._condition:
            ready = self._limits.first and self._ready(MAIN)
            if self.error is None and not ready:
                self._idle += 1
                self._condition.wait(seconds)
                self._idle -= 1

    def _call_others(self, beside: int = 0) -> None:
        """Wake or start a worker when there is more to do than those at work will do next."""
        if self._limits.fixed:  # only one of them may take it
            self._condition.notify_all()
            return
        startable = self.threads < self._limits.workers or self._waiting()
        if self._closing or not (self._idle or startable):
            return
        more = self._free() - beside
        if more <= 0:
            return
        if not self.worth_sharing and self._limits.first:  # one may watch
            if self._watched:
                return
            more = 1
        if self._idle:
            self._condition.notify(more)
        else:
            self._start()

    def _free(self) -> int:
        """Count what workers could begin now."""
        count, token = 0, self._token == _NOBODY
        for operator in self._operators:
            alone = self.python_lock and operator.python
            takes = operator.worklist.takes if token or not alone else 0
            if not takes or operator.blocked:
                continue
            if alone:
                count, token = count + 1, False
            else:
                count += min(operator.limit - operator.workers, takes)
        return count

    def _waiting(self) -> bool:
        """Say whether a worker more makes sense, because others wait for something."""
        if self.threads >= self._limits.most:
            return False
        for operator in self._operators:  # noqa: SIM110 (asked so often that a loop pays)
            if operator.workers and operator.waits:
                return True
        return False

    def _start(self) -> None:
        number = self.threads
        name = f"thalweg-worker-{number}"
        thread = threading.Thread(target=self._run, args=(number,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, worker: int) -> None:
        stay(self._limits.cores, worker)
        try:
            while not self._closing:
                with self._condition:
                    called = self._called(worker)
                if called:
                    self.work(worker)
        except BaseException as error:
            self._failures.add(error)
            self.tell()

    def _called(self, worker: int) -> bool:
        """Wait, or watch the others; say whether there is something to begin."""
        ready = bool(self._ready(worker))
        if ready and (self._limits.fixed or self.worth_sharing or self._nobody_at_work()):
            return True
        done, watches = self._done, ready and not self._watched
        self._watched |= watches
        self._idle += 1
        in_time = self._closing or self._condition.wait(self._limits.alone if watches else None)
        self._idle -= 1
        if watches:
            self._watched = False
        # Nobody has done anything for so long: what waits may wait much longer.
        return not in_time and done == self._done and bool(self._ready(worker))

    def _nobody_at_work(self) -> bool:
        """Say whether a worker has to begin because the first one never does."""
        return not (self._limits.first or any(operator.workers for operator in self._operators))

    def close(self, wait: bool = True) -> None:
        """Let all workers end; what they are at is finished, unless nobody waits for it."""
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        for thread in self._threads if wait else ():
            thread.join()
