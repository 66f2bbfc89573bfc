"""Units under way: what a block of a source has become, until nothing of it is left.

A unit has a number. It is held by each operator that ends the part of the topology which is in
order, until that operator has let the number pass, and by everything that has to be done behind
that. The window keeps the youngest unit near the oldest: it bounds memory, and reorder buffers that
have room for a window, and for the one that they are sending, never refuse a unit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from thalweg.errors import ThalwegError


class Flights:
    """Counts what is left of each unit."""

    def __init__(self, window: int, landed: Callable[[int, float], None]) -> None:
        self.window = window
        #: Operators that hold every unit until they have let it pass.
        self.gates = 0
        self._landed = landed
        self._lock = threading.Lock()
        self._next = 0
        #: What holds each unit that is under way, and when it began; the oldest unit first.
        self._held: dict[int, int] = {}
        self._begun: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def room(self) -> int:
        """Units that a reorder buffer has to have room for: one may end while it is being sent."""
        return self.window + 1

    @property
    def begun(self) -> int:
        """How many units were begun."""
        return self._next

    @property
    def oldest(self) -> int:
        """The oldest unit under way, or the next one: all before it have ended."""
        with self._lock:
            return next(iter(self._held), self._next)

    @property
    def open(self) -> bool:
        """Whether there is room for another unit."""
        with self._lock:
            oldest = next(iter(self._held), self._next)
            return self._next < oldest + self.window

    def begin(self, now: float) -> int:
        """Give the next number; the unit is held by who asks, and by the gates."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._held[number] = 1 + self.gates
            self._begun[number] = now
            return number

    def hold(self, number: int) -> None:
        """Note that more has to be done for a unit."""
        with self._lock:
            self._held[number] += 1

    def release(self, number: int, now: float) -> None:
        """Note that something was done; the unit may end with it."""
        with self._lock:
            self._held[number] -= 1
            left = self._held[number]
            if left:
                return
            del self._held[number]
            begun = self._begun.pop(number)
        self._landed(number, now - begun)

    def validate(self) -> None:
        """Check what must always hold."""
        with self._lock:
            if min(self._held.values(), default=1) < 1 or self._held.keys() != self._begun.keys():
                text = f"units out of balance: {self._held}"
                raise ThalwegError(text)
