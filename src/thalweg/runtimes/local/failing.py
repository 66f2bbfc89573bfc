"""Errors of several workers, of which one ends the run: that of the earliest tuple."""

from __future__ import annotations

import threading


class Failed(Exception):
    """An error while a unit was processed; its cause says which."""

    def __init__(self, number: int) -> None:
        super().__init__(f"unit {number}")
        self.number = number


class Failures:
    """What has gone wrong so far.

    >>> failures, late = Failures(), Failed(7)
    >>> late.__cause__ = ValueError("later tuple")
    >>> failures.add(late)
    >>> early = Failed(3)
    >>> early.__cause__ = ValueError("earlier tuple")
    >>> failures.add(early)
    >>> failures.first
    ValueError('earlier tuple')
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: tuple[int, BaseException] | None = None

    def add(self, error: BaseException) -> None:
        """Take in an error; one that belongs to no unit comes before all others."""
        number, cause = -1, error
        if isinstance(error, Failed):
            number, cause = error.number, error.__cause__ or error
        with self._lock:
            if self._first is None or number < self._first[0]:
                self._first = number, cause

    @property
    def first(self) -> BaseException | None:
        """The error to tell; None when all is well."""
        return None if self._first is None else self._first[1]
