"""A thread for one task alone: what its bolt makes may be bound to the thread that made it.

Any worker may have a task next. But connections of SQLite, event loops of asyncio and values of a
``threading.local`` are of use in one thread only, and bolts make them in ``prepare``. So a bolt
with such a method is called in a thread of its task's own. The worker waits meanwhile: for all
others it is as if the worker had called the bolt, also in what is measured.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from thalweg.components import BlockBolt, Bolt
from thalweg.runtimes.block_tasks import AnyBoltTask
from thalweg.runtimes.local.effort import Effort
from thalweg.runtimes.local.pinning import Cores, stay
from thalweg.runtimes.making import TaskMaker

_Call = tuple[Callable[..., Any], tuple[Any, ...]]


class OwnThread:
    """Calls functions in one thread, for one caller at a time.

    >>> own = OwnThread("thalweg-count-0")
    >>> own.call(lambda: threading.current_thread().name)
    'thalweg-count-0'
    >>> own.close()
    """

    def __init__(self, name: str, cores: Cores = (), number: int = 0) -> None:
        self._name, self._cores, self._number = name, cores, number
        #: Held while it is at work, for ever when nobody waits any more for what it is at.
        self._at_work = threading.Lock()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Any, BaseException | None, Effort]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Give what a function returns, or raise what it raises.

        What is called inside of such a call, or after somebody interrupted one, is called here.
        """
        if not self._at_work.acquire(blocking=False):
            return function(*arguments)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        before = Effort.now()
        self._calls.put((function, arguments))
        result, error, effort = self._answers.get()
        effort.replaces(before)
        self._at_work.release()
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Let the thread end; what it is stuck in is not waited for."""
        free = self._at_work.acquire(blocking=False)
        self._calls.put(None)
        if free and self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        stay(self._cores, self._number)
        while (call := self._calls.get()) is not None:
            function, arguments = call
            result, error, before = None, None, Effort.now()
            try:
                result = function(*arguments)
            except BaseException as raised:
                error = raised
            self._answers.put((result, error, Effort.now() - before))
            del call, function, arguments, result, error  # they may be large, or the bolt itself


def is_bound(kind: type[Bolt | BlockBolt]) -> bool:
    """Say whether bolts of a class may be bound to the thread in which they got ready."""
    if kind.one_thread is not None:
        return kind.one_thread
    return kind.prepare.__module__.partition(".")[0] != "thalweg"  # those here know of threads


def settle(task: AnyBoltTask, maker: TaskMaker) -> None:
    """Give a task a thread of its own, if its bolt wants that."""
    if is_bound(type(task.body)):
        name, number = task.component.name, task.context.task
        task.own_thread = OwnThread(f"thalweg-{name}-{number}", maker.cores, number)
