"""How long components could not go on because too much waited behind them.

Nothing is done per tuple. A link says when it becomes full and when there is room again; between
the two, an operator whose tasks have something to do is *held*. A source is held while it has
something to give, and there is no room for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Lock

from thalweg.runtimes.spout_tasks import AnySpoutTask


class Holding:
    """Seconds of its tasks' time during which a component was held; any thread may tell.

    ``tasks`` counts those that could go on if there were room. Without it, all that are told to be
    full are tasks themselves.

    >>> now = iter([10.0, 12.0, 13.0]).__next__
    >>> holding = Holding(lambda: 2, now)
    >>> holding.fill(); holding.drain()
    >>> holding.seconds()
    4.0
    """

    def __init__(
        self, tasks: Callable[[], int] | None = None, now: Callable[[], float] = time.perf_counter
    ) -> None:
        self._tasks, self._now, self._lock = tasks, now, Lock()
        #: How many of the links to its readers are full.
        self.full = 0
        self._held, self._since, self._seconds = 0, 0.0, 0.0

    def fill(self) -> None:
        """Note that a link is full."""
        self._change(1)

    def drain(self) -> None:
        """Note that a link has room again."""
        self._change(-1)

    def look(self) -> None:
        """Note that tasks have got something to do, or have come to an end, while it is full."""
        self._change(0)

    def seconds(self) -> float:
        """Give the seconds so far."""
        self._change(0)
        return self._seconds

    def _change(self, more: int) -> None:
        with self._lock:
            if self.full:
                now = self._now()
                self._seconds += self._held * (now - self._since)
                self._since = now
            elif more:
                self._since = self._now()
            self.full += more
            if self.full:
                self._held = self.full if self._tasks is None else self._tasks()


class HeldSources:
    """Which tasks of sources are held; for the thread that asks them."""

    def __init__(self, holdings: Mapping[str, Holding]) -> None:
        self._holdings = holdings
        self._held: set[AnySpoutTask] = set()

    def note(self, task: AnySpoutTask, held: bool) -> bool:
        """Note whether a source is held; gives it back."""
        if held != (task in self._held):
            holding = self._holdings[task.component.name]
            if held:
                self._held.add(task)
                holding.fill()
            else:
                self._held.discard(task)
                holding.drain()
        return held

    def look(self, again: Callable[[AnySpoutTask], object]) -> None:
        """Let it be noted again of those that are held whether they are; most often nobody is."""
        for task in tuple(self._held):
            again(task)
