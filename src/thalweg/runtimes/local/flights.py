"""Units under way: what a block of a source has become, until nothing of it is left.

A unit has a number; it is held by everything that stems from it and still has to be done. The
window keeps the youngest unit near the oldest one, which bounds memory: reorder buffers have room
for a window, so none of them ever refuses a unit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from thalweg.errors import ThalwegError


class Flights:
    """Counts what is left of each unit."""

    def __init__(self, window: int, landed: Callable[[int, float], None]) -> None:
        self.window = window
        self._landed = landed
        self._lock = threading.Lock()
        self._next = 0
        #: What holds each unit that is under way, and when it began; the oldest unit first.
        self._held: dict[int, int] = {}
        self._begun: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def open(self) -> bool:
        """Whether there is room for another unit."""
        oldest = next(iter(self._held), self._next)
        return self._next < oldest + self.window

    def begin(self, now: float) -> int:
        """Give the next number; the unit is held once."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._held[number] = 1
            self._begun[number] = now
            return number

    def hold(self, number: int, times: int = 1) -> None:
        """Note that more has to be done for a unit."""
        with self._lock:
            self._held[number] += times

    def release(self, number: int, now: float, times: int = 1) -> None:
        """Note that something was done; the unit may end with it."""
        with self._lock:
            self._held[number] -= times
            left = self._held[number]
            if left > 0:
                return
            if left < 0:
                text = f"unit {number} was released more often than it was held"
                raise ThalwegError(text)
            del self._held[number]
            begun = self._begun.pop(number)
        self._landed(number, now - begun)
