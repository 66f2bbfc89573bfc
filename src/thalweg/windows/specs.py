"""Kinds of windows, as values."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, isfinite
from numbers import Integral, Real

from thalweg.errors import TopologyError, explain
from thalweg.eventtime import FIRST, LAST, SECOND, Micros, span

#: Microseconds that no stream lasts.
_ENDLESS = 2**60


@dataclass(frozen=True)
class TimeWindow:
    """Windows of one length that begin at fixed times, in microseconds."""

    size: int
    every: int
    offset: int = 0

    @property
    def holds(self) -> float:
        """Seconds for which tuples wait at most; 0 where that is until the end of all input.

        >>> sliding("1 min", "10 s").holds, whole().holds
        (60.0, 0.0)
        """
        return 0.0 if self.size == _ENDLESS else self.size / SECOND

    @property
    def pane(self) -> int:
        """The longest time that every window consists of a whole number of."""
        return gcd(self.size, self.every)

    @property
    def step(self) -> int:
        """How far time has to go on until something may be due."""
        return self.every

    @property
    def phase(self) -> int:
        """Where within a step windows end."""
        return (self.offset + self.size) % self.every

    def around(self, times: Micros) -> tuple[Micros, Micros]:
        """Give where the first window of each time begins, and where its last one ends."""
        last: Micros = (times - self.offset) // self.every * self.every + self.offset
        first = (times - self.size - self.offset) // self.every * self.every + self.offset
        return first + self.every, last + self.size


@dataclass(frozen=True)
class SessionWindow:
    """Windows of tuples that follow each other within a gap."""

    gap: int

    @property
    def holds(self) -> float:
        """Seconds for which the last tuple of a session waits."""
        return self.gap / SECOND

    @property
    def step(self) -> int:
        """How far time has to go on until something may be due."""
        return max(1, self.gap // 8)

    @property
    def phase(self) -> int:
        """Where within a step windows end: anywhere."""
        return 0

    def around(self, times: Micros) -> tuple[Micros, Micros]:
        """Give where a window of each time alone would begin and end."""
        return times, times + self.gap


@dataclass(frozen=True)
class LandmarkWindow:
    """Windows that all begin at one time, and end one after the other."""

    every: int
    since: int

    @property
    def holds(self) -> float:
        """Seconds for which tuples wait at most until they count for a result."""
        return self.every / SECOND

    @property
    def step(self) -> int:
        """How far time has to go on until something may be due."""
        return self.every

    @property
    def phase(self) -> int:
        """Where within a step windows end."""
        return self.since % self.every

    def around(self, times: Micros) -> tuple[Micros, Micros]:
        """Give each time, and the end of the first window that it is in."""
        return times, (times - self.since) // self.every * self.every + self.since + self.every


@dataclass(frozen=True)
class CountWindow:
    """The last so many tuples of a key, looked at after every so many."""

    rows: int
    every: int


TimeSpec = TimeWindow | SessionWindow | LandmarkWindow
WindowSpec = TimeSpec | CountWindow


def tumbling(size: float | str, *, offset: float | str = 0) -> TimeWindow:
    """Cut time into pieces of one length.

    >>> tumbling("1 h").size == 3600 * 1_000_000
    True
    """
    return TimeWindow(span(size), span(size), _offset(offset, span(size)))


def sliding(size: float | str, every: float | str, *, offset: float | str = 0) -> TimeWindow:
    """Look at the last ``size`` of time, again and again."""
    if span(every) > span(size):
        hint = "tuples between two windows would be in none"
        raise TopologyError(explain("sliding window", "", "every <= size", f"{every}", hint))
    return TimeWindow(span(size), span(every), _offset(offset, span(every)))


def session(gap: float | str) -> SessionWindow:
    """Put tuples together that follow each other within ``gap``."""
    return SessionWindow(span(gap))


def landmark(every: float | str, *, since: float | str = 0) -> LandmarkWindow:
    """Look at everything since a time, again and again."""
    begin = _moment(since, "since of a landmark")
    if not FIRST <= begin <= LAST:
        expected = "a time of the years 1 to 9999"
        raise TopologyError(explain("since of a landmark", "", expected, repr(since)))
    return LandmarkWindow(span(every), begin)


def whole() -> TimeWindow:
    """Put everything together, whenever it happened; told at the end of all input."""
    return TimeWindow(_ENDLESS, _ENDLESS, -_ENDLESS // 2)


def rows(count: int, *, every: int | None = None) -> CountWindow:
    """Look at the last so many tuples of a key, as they arrive, after each ``every`` of them."""
    step = count if every is None else every
    whole_numbers = isinstance(count, Integral) and isinstance(step, Integral)
    if not whole_numbers or not 0 < step <= count:
        expected = "whole numbers, 1 or more, and every <= rows"
        raise TopologyError(explain("window of rows", "", expected, f"{count}, {step}"))
    return CountWindow(int(count), int(step))


def last_rows(count: int) -> CountWindow:
    """Look at the last so many tuples of each key, with every tuple (CQL's partitioned windows)."""
    return rows(count, every=1)


def _offset(offset: float | str, period: int) -> int:
    return _moment(offset, "offset of a window") % period


def _moment(given: float | str, what: str) -> int:
    """Read a time before or after 1970, as microseconds.

    >>> _moment(-30, ""), _moment("-1 min", ""), _moment(0, "")
    (-30000000, -60000000, 0)
    """
    if isinstance(given, str):
        text = given.strip()
        return -span(text[1:]) if text.startswith("-") else span(text)
    if not isinstance(given, Real) or not isfinite(given):
        expected = "seconds, or text such as '10 s' or '-10 s'"
        raise TopologyError(explain(what, "", expected, repr(given)))
    return round(given * SECOND)
