"""Rates over time: when the i-th item is due.

A profile is made of segments in each of which the rate is constant or changes evenly. Item i is due
when the area under the rate reaches i + 1, so by any time as many items are due as the integral
says, rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.clock import seconds
from thalweg.components import Shared
from thalweg.errors import UsageError, explain

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Shared):
    """Items per second over time: what ``constant``, ``steps``, ``ramp`` and ``trace`` make."""

    #: When each segment begins, in seconds, and how many items are due by then.
    starts: Floats
    counts: Floats
    #: Rate at the beginning of each segment, and its change per second.
    rates: Floats
    slopes: Floats
    #: When the profile ends, and how many items it has; infinite for one that never ends.
    end: float
    total: float

    @classmethod
    def of(cls, durations: Floats, firsts: Floats, lasts: Floats) -> Profile:
        """Put segments behind each other: their durations, and their rates at both ends."""
        ends = np.cumsum(durations)
        areas = _snapped(np.cumsum(durations * (firsts + lasts) / 2))
        return cls(
            starts=np.concatenate([[0.0], ends[:-1]]),
            counts=np.concatenate([[0.0], areas[:-1]]),
            rates=firsts,
            slopes=(lasts - firsts) / durations,
            end=float(ends[-1]),
            total=math.floor(areas[-1]),
        )

    def due(self, item: int) -> float | None:
        """Give the seconds from the start after which an item is due; None when there is none."""
        if item >= self.total:
            return None
        wanted = item + 1
        at = max(int(np.searchsorted(self.counts, wanted, "left")) - 1, 0)
        rate, slope = float(self.rates[at]), float(self.slopes[at])
        missing = wanted - float(self.counts[at])
        # The usual formula for a quadratic equation, in the form that also holds for slope 0.
        root = math.sqrt(max(rate * rate + 2 * slope * missing, 0.0))
        return min(float(self.starts[at]) + 2 * missing / (rate + root), self.end)

    def count_by(self, elapsed: float) -> int:
        """Count the items that are due by a time: those with ``due(item) <= elapsed``."""
        if elapsed >= self.end:
            return int(self.total)
        at = max(int(np.searchsorted(self.starts, elapsed, "right")) - 1, 0)
        inside = max(elapsed - float(self.starts[at]), 0.0)
        area = float(self.counts[at] + inside * (self.rates[at] + self.slopes[at] * inside / 2))
        count = math.floor(area)
        while (due := self.due(count)) is not None and due <= elapsed:
            count += 1
        while count and (due := self.due(count - 1)) is not None and due > elapsed:
            count -= 1
        return count

    def __repr__(self) -> str:
        return f"Profile({self.total:g} items in {self.end:g} s)"


def constant(per_second: float, duration: float | str | None = None) -> Profile:
    """Give the same rate for a duration, or for ever.

    >>> constant(10, "1 minute")
    Profile(600 items in 60 s)
    >>> constant(10).due(0), constant(10).count_by(1.0)
    (0.1, 10)
    """
    rate = _rate(per_second)
    if rate == 0:
        raise UsageError(explain("rate", expected="more than 0 items per second", got="0"))
    if duration is None:
        zero = np.zeros(1)
        return Profile(zero, zero, np.array([rate]), zero, math.inf, math.inf)
    return _made([seconds(duration)], [rate], [rate])


def steps(levels: Iterable[tuple[float, float | str]]) -> Profile:
    """Give one rate after the other, each for its duration.

    >>> steps([(100, "10 s"), (0, "5 s"), (500, "10 s")])
    Profile(6000 items in 25 s)
    """
    read = [(_rate(per_second), seconds(duration)) for per_second, duration in levels]
    rates = [rate for rate, _ in read]
    return _made([duration for _, duration in read], rates, rates)


def ramp(start: float, stop: float, duration: float | str) -> Profile:
    """Change the rate evenly from ``start`` to ``stop``.

    >>> ramp(0, 100, "10 s").count_by(5.0)
    125
    """
    return _made([seconds(duration)], [_rate(start)], [_rate(stop)])


def of_counts(counts: Floats, every: float) -> Profile:
    """Spread each count evenly over an interval of ``every`` seconds."""
    rates = counts / every
    return _made(np.broadcast_to(every, rates.shape), rates, rates)


def _made(durations: npt.ArrayLike, firsts: npt.ArrayLike, lasts: npt.ArrayLike) -> Profile:
    several = [np.asarray(each, dtype=np.float64) for each in (durations, firsts, lasts)]
    if not len(several[0]):
        raise UsageError(explain("profile", expected="at least one step", got="none"))
    profile = Profile.of(*several)
    if not profile.total:
        text = explain("profile", expected="at least one item", got=f"none in {profile.end:g} s")
        raise UsageError(text)
    return profile


def _snapped(areas: Floats) -> Floats:
    """Undo rounding errors, which must not cost an item that is due exactly at the end."""
    whole = np.rint(areas)
    return np.where(np.abs(areas - whole) <= 1e-9 + 1e-12 * whole, whole, areas)


def _rate(per_second: object) -> float:
    if isinstance(per_second, int | float) and 0 <= per_second < math.inf:
        return float(per_second)
    raise UsageError(explain("rate", expected="items per second, 0 or more", got=repr(per_second)))
