"""Time as an argument: runtimes and components ask a clock, never the machine."""

from __future__ import annotations

import re
import time
from typing import Protocol

from thalweg.errors import UsageError, explain

_NAMES = {
    0.001: ("ms", "millisecond", "milliseconds"),
    1.0: ("s", "sec", "second", "seconds"),
    60.0: ("m", "min", "minute", "minutes"),
    3600.0: ("h", "hour", "hours"),
    86400.0: ("d", "day", "days"),
}
_UNITS = {name: value for value, names in _NAMES.items() for name in names}


class Clock(Protocol):
    """Seconds that only grow, and a way to wait."""

    def now(self) -> float:
        """Give the present time in seconds."""

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Give seconds since some fixed moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(max(0.0, seconds))


class WallClock(SystemClock):
    """The time of day, in seconds since 1970: for what outlives a process."""

    def now(self) -> float:
        """Give the time."""
        return time.time()


class ManualClock:
    """A clock that moves only when told, or when somebody sleeps on it.

    >>> clock = ManualClock()
    >>> clock.sleep(2.5); clock.advance(1); clock.now()
    3.5
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Give the time that was set."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Advance instead of waiting."""
        self.advance(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Move the time forward."""
        if seconds < 0:
            raise UsageError(explain("clock", expected="time that moves forward", got=f"{seconds}"))
        self._now += seconds


def seconds(duration: float | str, what: str = "duration", zero: bool = False) -> float:
    """Read a duration: a number of seconds, or text such as ``"10 s"`` or ``"5 minutes"``.

    Messages say ``what`` it is for; 0 is refused unless it makes sense there.

    >>> seconds("10 s"), seconds("250ms"), seconds("5 minutes"), seconds(2)
    (10.0, 0.25, 300.0, 2.0)
    >>> seconds("0", zero=True), seconds("0 s", zero=True)
    (0.0, 0.0)
    """
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        value = float(duration)
    elif zero and str(duration).strip() == "0":
        value = 0.0
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", str(duration).lower())
        if not match or match[2] not in _UNITS:
            raise _bad_duration(duration, what, zero)
        value = float(match[1]) * _UNITS[match[2]]
    if not 0 <= value < float("inf") or not (value or zero):
        raise _bad_duration(duration, what, zero)
    return value


def _bad_duration(duration: object, what: str, zero: bool) -> UsageError:
    expected = f"seconds {'from 0 on' if zero else 'above 0'}, or text such as '10 s'"
    return UsageError(explain(what, expected=expected, got=repr(duration)))
