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

#: Seconds for a call that somebody interrupted: then others are called elsewhere.
_LINGER = 3.0
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
        #: Set while it is at nothing; Ctrl-C may keep somebody from waiting for what it is at.
        self._idle = threading.Event()
        self._idle.set()
        #: Whether it is called no more: it has ended, or does not come back.
        self._closed = False
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Any, BaseException | None, Effort]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Give what a function returns, or raise what it raises.

        What is called inside of such a call is called here, and so is all else while the thread
        does not come back from a call that somebody interrupted.
        """
        if threading.current_thread() is self._thread or not self._is_free():
            return function(*arguments)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        before = Effort.now()
        self._idle.clear()
        self._calls.put((function, arguments))
        result, error, effort = self._answers.get()
        effort.replaces(before)
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Let the thread end; what it is stuck in is not waited for any longer."""
        free = self._is_free()
        self._closed = True
        self._calls.put(None)
        if free and self._thread is not None:
            self._thread.join()

    def _is_free(self) -> bool:
        """Say whether it may be called; what somebody interrupted is waited for, but not long."""
        if self._closed:
            return False
        self._closed = not self._idle.wait(_LINGER)
        while not self._answers.empty():
            self._answers.get()  # nobody waited for it
        return not self._closed

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
            self._idle.set()
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
