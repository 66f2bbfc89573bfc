"""Hands metrics to their consumers, in a thread of its own where the runtime has threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from thalweg.errors import RAISED, as_error, locate
from thalweg.registered import DataPoint, TaskInfo

#: The points of all tasks at one moment.
Points = list[tuple[TaskInfo, list[DataPoint]]]
# How many of them may wait for a slow consumer; after that points get wider, not more.
_MOST_WAITING = 8


class Delivering:
    """Tells consumers; one that raises is told nothing more, and a notice says so."""

    def __init__(
        self, consumers: Sequence[Any], notice: Callable[[str], None], threaded: bool = True
    ) -> None:
        self._consumers, self._notice = list(consumers), notice
        self._queue: queue.Queue[Points | None] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._threaded = threaded and bool(consumers)
        self._prepared: list[Any] = []
        self._failure: Exception | None = None

    def begin(self, topology: str) -> None:
        """Let consumers get ready."""
        for consumer in self._consumers:
            self._prepared.append(consumer)
            if hasattr(consumer, "prepare"):
                consumer.prepare(topology)
        if self._threaded:
            self._thread = threading.Thread(target=self._run, name="thalweg-metrics", daemon=True)
            self._thread.start()

    @property
    def wanted(self) -> bool:
        """Whether there is somebody to tell."""
        return bool(self._consumers)

    @property
    def ready(self) -> bool:
        """Whether there is somebody to tell, who has time for it."""
        return self.wanted and not self._queue.full()

    def give(self, points: Points) -> None:
        """Tell all consumers."""
        if self._thread is None:
            self._tell(points)
        else:
            self._queue.put(points)

    def close(self, wait: bool = True) -> None:
        """Wait until everything was told, and let consumers let go."""
        if self._thread is not None and not wait:
            return  # it ends with the program
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        prepared, self._prepared = self._prepared, []
        for consumer in prepared:
            try:
                if hasattr(consumer, "cleanup"):
                    consumer.cleanup()
            except RAISED as error:
                self._complain(consumer, as_error(error))

    def check(self) -> None:
        """Raise what whoever hears notices has raised in the thread."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        while (points := self._queue.get()) is not None:
            try:
                self._tell(points)
            except RAISED as error:  # the queue is emptied all the same
                self._consumers.clear()
                self._failure = as_error(error)

    def _tell(self, points: Points) -> None:
        for consumer in list(self._consumers):
            try:
                for info, of_task in points:
                    consumer.handle(info, of_task)
            except RAISED as error:
                self._consumers.remove(consumer)
                self._complain(consumer, as_error(error))

    def _complain(self, consumer: object, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        self._notice(f"metrics consumer {locate(type(consumer))} is told nothing more: {text}")
