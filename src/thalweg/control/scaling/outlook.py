"""What a rate is going to be: the best of several simple models, and how far off it usually is.

Every model is tried on the samples that are there: it says from those before what came some samples
later. The one that was nearest speaks, and its own error is the margin to be left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median


@dataclass(frozen=True)
class Forecasting:
    """How models are made and chosen."""

    #: Times that a model is tried.
    tests: int = 12
    #: Error that is assumed of a rate until there are samples to try models on.
    first_error: float = 0.1
    #: A model has to be nearer than a simpler one by this much to be preferred.
    better: float = 0.95
    #: Samples of means and lines, and of the slope that is taken to fade.
    looks: int = 6
    slope: int = 4
    #: How much of a trend is left after each sample, where it is taken to fade.
    fading: float = 0.7
    #: How often the usual change of so many before, and the part of the rate, is a jump.
    jump: float = 4.0
    jump_part: float = 0.25
    usual: int = 12


FORECASTING = Forecasting()


@dataclass(frozen=True)
class Outlook:
    """The most that is expected of a rate within some samples, and within more of them."""

    rate: float
    later: float
    #: Root of the mean squared error of the model, when it was tried.
    error: float
    model: str


def outlook(
    values: Sequence[float],
    ahead: int = 3,
    later: int | None = None,
    how: Forecasting = FORECASTING,
) -> Outlook:
    """Say what comes within the next ``ahead`` samples, and within ``later`` ones.

    What was before a jump says nothing about what comes.

    >>> steady, ramp = [100.0] * 12, [10.0 * k for k in range(12)]
    >>> outlook(steady)
    Outlook(rate=100.0, later=100.0, error=0.0, model='last')
    >>> outlook(ramp).model, round(outlook(ramp).rate)
    ('line', 140)
    >>> outlook([*steady, 300.0])
    Outlook(rate=300.0, later=300.0, error=30.0, model='last')
    """
    if not values:
        return Outlook(0.0, 0.0, 0.0, "none")
    recent = values[-(ahead + 2 * how.tests) :]
    recent = recent[_last_jump(recent, how) :]
    name, error = _best(recent, ahead, how)
    read = partial(MODELS[name], how)
    rate = max(0.0, read(recent, 1), read(recent, ahead))
    return Outlook(rate, max(rate, read(recent, later or ahead)), error, name)


def _best(values: Sequence[float], ahead: int, how: Forecasting) -> tuple[str, float]:
    first = max(2, len(values) - ahead - how.tests)
    origins = range(first, len(values) - ahead + 1)
    if len(origins) < 2:
        return "last", how.first_error * values[-1]
    found, least = "last", math.inf
    for name, read in MODELS.items():
        squares = [(values[at + ahead - 1] - read(how, values[:at], ahead)) ** 2 for at in origins]
        error = math.sqrt(sum(squares) / len(squares))
        if error < least * how.better:
            found, least = name, error
    return found, least


def _last_jump(values: Sequence[float], how: Forecasting) -> int:
    """Find where the last jump ended; 0 if there was none."""
    changes = [abs(now - before) for before, now in pairwise(values)]
    for at in range(len(changes) - 1, 2, -1):
        usual = changes[max(0, at - how.usual) : at]
        part = how.jump_part * max(values[at], values[at + 1])
        if changes[at] > part and changes[at] > how.jump * median(usual):
            return at + 1
    return 0


def _mean(how: Forecasting, values: Sequence[float], ahead: int) -> float:
    recent = values[-how.looks :]
    return sum(recent) / len(recent)


def _slope(values: Sequence[float]) -> float:
    """Give the slope of the line of least squares."""
    n = len(values)
    middle = (n - 1) / 2
    return 12 * sum((k - middle) * v for k, v in enumerate(values)) / (n * (n * n - 1))


def _line(how: Forecasting, values: Sequence[float], ahead: int) -> float:
    recent = values[-how.looks :]
    slope = _slope(recent)
    return sum(recent) / len(recent) + slope * ((len(recent) - 1) / 2 + ahead)


def _fading(how: Forecasting, values: Sequence[float], ahead: int) -> float:
    left = sum(how.fading**k for k in range(1, ahead + 1))
    return values[-1] + _slope(values[-how.slope :]) * left


#: From the simplest on; each reads some samples beyond the last one.
MODELS: dict[str, Callable[[Forecasting, Sequence[float], int], float]] = {
    "last": lambda _, values, __: values[-1],
    "mean": _mean,
    "line": _line,
    "fading line": _fading,
}
