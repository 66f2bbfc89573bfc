"""Threads that take turns: one runs at a time, and at every pause chance says who goes on.

So a test explores how threads can interleave, and a seed gives the same run again. Lists, locks
and functions that pause are put in the places where it matters who comes first.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import TracebackType
from typing import Any

#: Far more than any test needs; threads that pause so often never come to an end.
_MOST_PAUSES = 20_000


class _CutShort(BaseException):
    """Ends a thread because another one has failed."""


class Turns:
    """Runs functions in threads that take turns."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._batons: list[threading.Lock] = []
        self._running: list[int] = []
        self._here = threading.local()
        self._error: BaseException | None = None
        self._pauses = 0

    def run(self, *bodies: Callable[[], None]) -> None:
        """Run them all to their ends; raise what the first of them raised."""
        self._running = list(range(len(bodies)))
        self._batons = [threading.Lock() for _ in bodies]
        for baton in self._batons:
            baton.acquire()
        threads = [
            threading.Thread(target=self._live, args=(index, body))
            for index, body in enumerate(bodies)
        ]
        for thread in threads:
            thread.start()
        self._batons[self.random.choice(self._running)].release()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Let chance say who goes on. Does nothing in threads that it did not start."""
        me = getattr(self._here, "index", None)
        if me is None:
            return
        self._pauses += 1
        assert self._pauses < _MOST_PAUSES, "the threads do not come to an end"
        other = self.random.choice(self._running)
        if other != me:
            self._batons[other].release()
            self._batons[me].acquire()
        if self._error is not None:
            raise _CutShort

    def _live(self, index: int, body: Callable[[], None]) -> None:
        self._batons[index].acquire()
        self._here.index = index
        try:
            if self._error is None:
                body()
        except _CutShort:
            pass
        except BaseException as error:
            self._error = self._error or error
        self._running.remove(index)
        if self._running:
            self._batons[self.random.choice(self._running)].release()


class TurnLock:
    """A lock that pauses before it is taken and before it is given back."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._is_taken = False

    def acquire(self, blocking: bool = True) -> bool:
        self._turns.pause()
        while self._is_taken:
            if not blocking:
                return False
            self._turns.pause()
        self._is_taken = True
        return True

    def release(self) -> None:
        self._turns.pause()
        assert self._is_taken
        self._is_taken = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class TurnList(list[Any]):
    """A list that pauses before a slot is read or written."""

    def __init__(self, turns: Turns, values: list[Any]) -> None:
        super().__init__(values)
        self._turns = turns

    def __getitem__(self, place: Any) -> Any:
        self._turns.pause()
        return super().__getitem__(place)

    def __setitem__(self, place: Any, value: Any) -> None:
        self._turns.pause()
        super().__setitem__(place, value)


@contextmanager
def hasty_switches() -> Iterator[None]:
    """Make Python switch between threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_together(*bodies: Callable[[], None]) -> None:
    """Run functions in ordinary threads; raise what one of them raised."""
    errors: list[BaseException] = []

    def live(body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as error:
            errors.append(error)

    with hasty_switches():
        threads = [threading.Thread(target=live, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
