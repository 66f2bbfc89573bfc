"""Background work of components: one small pool of threads that all tasks of a run share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from thalweg.errors import RAISED, ComponentError, UsageError, as_error, explain, locate
from thalweg.registered import TaskKey

#: Calls that may wait for a thread; who asks for more has to wait.
MOST_WAITING = 1024


class Background:
    """Runs functions beside the stream; the first that fails ends the run.

    >>> background = Background(threads=2)
    >>> background.submit(("fetch", 0), pow, 2, 10).result()
    1024
    >>> background.close()
    """

    def __init__(self, threads: int = 4, most_waiting: int = MOST_WAITING) -> None:
        if threads < 1:
            raise UsageError(explain("background_threads", "", "at least 1", str(threads)))
        self._threads = threads
        self._room = threading.Semaphore(threads + most_waiting)
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False
        self.error: ComponentError | None = None

    def submit(self, task: TaskKey, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Let a thread call a function; waits where too much waits already."""
        self._room.acquire()
        with self._lock:
            if self._closed:
                text = explain("background work", f"component {task[0]!r}", "a run that goes on")
                raise UsageError(text)
            if self._pool is None:  # with the first one: most runs have none
                self._pool = ThreadPoolExecutor(self._threads, "thalweg-background")
            return self._pool.submit(self._call, task, function, arguments)

    def _call(self, task: TaskKey, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        try:
            return function(*arguments)
        except RAISED as raised:
            error, (component, number) = as_error(raised), task
            reason = f"{type(error).__name__}: {error}"
            where = f"component {component!r}, task {number}, in the background"
            made = ComponentError(component, number, f"{where}, in {locate(function)}: {reason}")
            made.__cause__ = error
            self.error = self.error or made
            raise
        finally:
            self._room.release()

    def check(self) -> None:
        """Raise what has gone wrong."""
        if self.error is not None:
            raise self.error

    def close(self, finish: bool = True, wait: bool = True) -> None:
        """Take nothing more; finish what was asked for, or only what is being done."""
        with self._lock:
            self._closed, pool = True, self._pool
        if pool is not None:
            pool.shutdown(wait=wait, cancel_futures=not finish)
