"""A place in a component where several workers have to be at once."""

from __future__ import annotations

import threading


class Meeting:
    """Holds whoever comes until so many are there; nobody who comes later is held.

    Not a barrier: one that comes while the others leave would wait there for the next round.
    """

    def __init__(self, workers: int) -> None:
        self._missing, self._lock = workers, threading.Lock()
        self._met = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether they have met."""
        return self._met.is_set()

    def attend(self) -> None:
        """Wait for the others."""
        with self._lock:
            self._missing -= 1
            if not self._missing:
                self._met.set()
        assert self._met.wait(60), f"{self._missing} more workers were expected"
