"""Sources that say themselves where they are, since a number of rows would not tell.

A reader of several partitions gives the same rows in another order every time. Its position goes
into the snapshot, or the entry of the log, that holds the rows before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from thalweg.runtimes.spout_tasks import AnySpoutTask

#: Key of a manifest's notes with the positions of tasks.
POSITIONS = "positions"


@runtime_checkable
class Positioned(Protocol):
    """A spout with a position: any value that JSON can hold."""

    def position(self) -> Any:
        """Say where it goes on behind the rows that it has given; the value does not change."""

    def seek(self, position: Any) -> None:
        """Go on from a position of an earlier run; called after ``prepare``, if at all."""

    def processed(self, position: Any) -> None:
        """Hear, in any thread, that nothing before a position will be asked for again."""


def has_position(task: AnySpoutTask) -> bool:
    """Say whether a source says itself where it is."""
    return isinstance(task.body, Positioned)


def position_of(task: AnySpoutTask) -> Any:
    """Ask a source where it is; None when it does not know positions."""
    return task.call(task.body.position) if isinstance(task.body, Positioned) else None


def tell_processed(task: AnySpoutTask, position: Any) -> None:
    """Tell a source what need not be asked for again."""
    if isinstance(task.body, Positioned):
        task.call(task.body.processed, position)


class Passing:
    """Tells sources how far all they gave is processed, where no snapshot does.

    Units have numbers, and end in any order; what a source gave is processed when all units are
    that were begun until then.
    """

    def __init__(self, begun: Callable[[], int], oldest: Callable[[], int]) -> None:
        self._begun, self._oldest = begun, oldest
        self._given: dict[AnySpoutTask, Any] = {}
        self._waiting: deque[tuple[int, AnySpoutTask, Any]] = deque()

    def given(self, task: AnySpoutTask) -> None:
        """Hear that a source has given something, which enters before the next step."""
        if has_position(task):
            self._given[task] = position_of(task)

    def step(self) -> None:
        """Look what has ended."""
        if self._given:
            number = self._begun()
            self._waiting += [(number, task, at) for task, at in self._given.items()]
            self._given.clear()
        oldest = self._oldest() if self._waiting else 0
        while self._waiting and self._waiting[0][0] <= oldest:
            _, task, position = self._waiting.popleft()
            tell_processed(task, position)
