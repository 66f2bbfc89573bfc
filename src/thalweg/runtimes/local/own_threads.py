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
#: What came of a call, and what it took.
_Answer = tuple[Any, BaseException | None, Effort]


class OwnThread:
    """Calls functions in one thread, for one caller at a time.

    >>> own = OwnThread("thalweg-count-0")
    >>> own.call(lambda: threading.current_thread().name)
    'thalweg-count-0'
    >>> own.close()
    """

    def __init__(self, name: str, cores: Cores = (), number: int = 0) -> None:
        self._name, self._cores, self._number = name, cores, number
        #: Held while it is at a call, whether or not somebody waits for that: Ctrl-C may come
        #: between. The thread itself lets go.
        self._at_work = threading.Lock()
        self._calls: SimpleQueue[tuple[_Call, SimpleQueue[_Answer]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        #: Whether it has ended, or does not come back.
        self._closed = False

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Give what a function returns, or raise what it raises.

        What is called inside of such a call is called here, and so is all else while the thread
        does not come back from a call that somebody interrupted.
        """
        if threading.current_thread() is self._thread or not self._takes():
            return function(*arguments)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        before, answers = Effort.now(), SimpleQueue[_Answer]()
        self._calls.put(((function, arguments), answers))
        result, error, effort = answers.get()
        effort.replaces(before)
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Let the thread end; what it is stuck in is not waited for any longer."""
        takes = self._takes()
        self._closed = True
        self._calls.put(None)
        if takes and self._thread is not None:
            self._thread.join()
        if takes:
            self._at_work.release()  # whoever waits for it finds it closed

    def _takes(self) -> bool:
        """Wait until it is at nothing, but not long, and let it be at something."""
        if self._closed or not self._at_work.acquire(timeout=_LINGER):
            return False
        if self._closed:
            self._at_work.release()
        return not self._closed

    def _run(self) -> None:
        stay(self._cores, self._number)
        while (taken := self._calls.get()) is not None:
            (function, arguments), answers = taken
            result, error, before = None, None, Effort.now()
            try:
                result = function(*arguments)
            except BaseException as raised:
                error = raised
            self._at_work.release()
            answers.put((result, error, Effort.now() - before))
            # They may be large, or the bolt itself.
            del taken, function, arguments, answers, result, error


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
