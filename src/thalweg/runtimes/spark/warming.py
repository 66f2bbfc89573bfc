"""Gets new executors ready beside the batches.

The first task on an executor starts Python there and loads everything, which takes seconds. Here
that task is one that nobody waits for; and while it runs, no task of a batch runs in its place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from thalweg.runtimes.spark.batches import run_stage
from thalweg.runtimes.spark.exchange import at_executor, collect, executors, exhaust, run_at
from thalweg.runtimes.spark.placement import Executor

#: Seconds between two looks for executors that have come.
_EVERY = 0.2


class Warming:
    """Waits for executors that were asked for, and gives each a first task.

    ``list_`` and ``prepare`` are arguments for tests: who is there, and what an executor is given.
    """

    def __init__(
        self,
        context: SparkContext,
        list_: Callable[[SparkContext], Sequence[Executor]] = executors,
        prepare: Callable[[SparkContext, Executor], None] | None = None,
    ) -> None:
        self._context, self._list, self._prepare = context, list_, prepare or _prepared
        self._ready: set[str] = set()
        self._total = 0
        self._thread: threading.Thread | None = None
        self._enough = threading.Event()

    def expect(self, total: int, there: Sequence[Executor]) -> None:
        """Look for executors besides those that are there, until there are so many."""
        self._total = total
        if total <= len(there) or (self._thread is not None and self._thread.is_alive()):
            return
        self.close()
        self._ready |= {executor.id for executor in there}
        self._enough.clear()
        self._thread = threading.Thread(target=self._look, name="thalweg-warming", daemon=True)
        self._thread.start()

    def cold(self, there: Iterable[Executor]) -> frozenset[str]:
        """Name the hosts of which no executor is ready; none while nobody looks for new ones."""
        if self._thread is None or not self._thread.is_alive():
            return frozenset()
        ready = {executor.host for executor in there if executor.id in self._ready}
        return frozenset(executor.host for executor in there) - ready

    def close(self) -> None:
        """Stop looking."""
        self._enough.set()
        if self._thread is not None:
            self._thread.join()
        self._thread = None

    def _look(self) -> None:
        there: Sequence[Executor] = ()
        while len(there) < self._total and not self._enough.wait(_EVERY):
            try:
                there = self._list(self._context)
                for executor in there:
                    if executor.id not in self._ready:
                        self._prepare(self._context, executor)
                        self._ready.add(executor.id)
            except (Py4JError, PySparkException):  # it has gone again, or the session has
                there = ()


def _prepared(context: SparkContext, executor: Executor) -> None:
    collect(run_at(at_executor(context, executor), _loaded))


def _loaded(_place: int, payloads: Iterable[bytes]) -> Iterator[bytes]:
    """Do nothing: to get here, Python has started, and this module has loaded the others."""
    exhaust(payloads)
    yield run_stage.__name__.encode()
