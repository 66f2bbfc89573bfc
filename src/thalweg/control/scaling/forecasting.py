"""Fitting curves to the last samples of a stream, and reading them on.

Three models with two parameters each: a line, a logarithm and an exponential, all by least squares.
Positions are counted in samples: 1 is the oldest one that is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

ModelName = Literal["linear", "logarithmic", "exponential"]
MODELS: tuple[ModelName, ...] = ("linear", "logarithmic", "exponential")


@dataclass(frozen=True)
class Line:
    """``start + slope * x``.

    >>> Line(10.0, 2.0).at(5)
    20.0
    """

    start: float
    slope: float

    def at(self, x: float) -> float:
        """Read the line at a position."""
        return self.start + self.slope * x


@dataclass(frozen=True)
class Sums:
    """The sums that a linear regression needs; a point joins or leaves in constant time.

    >>> sums = Sums().plus(0, 99).plus(1, 5).plus(2, 7).minus(0, 99)
    >>> sums.line()
    Line(start=3.0, slope=2.0)
    """

    n: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]]) -> Sums:
        """Add up points."""
        sums = cls()
        for x, y in points:
            sums = sums.plus(x, y)
        return sums

    def plus(self, x: float, y: float) -> Sums:
        """Let a point join."""
        return Sums(self.n + 1, self.x + x, self.y + y, self.xx + x * x, self.xy + x * y)

    def minus(self, x: float, y: float) -> Sums:
        """Let a point leave that joined before."""
        return Sums(self.n - 1, self.x - x, self.y - y, self.xx - x * x, self.xy - x * y)

    def line(self) -> Line:
        """Give the line of least squares; a level one when all points have the same ``x``."""
        spread = self.n * self.xx - self.x * self.x
        if self.n < 2 or spread <= 0:
            return Line(self.y / self.n if self.n else 0.0, 0.0)
        slope = (self.n * self.xy - self.x * self.y) / spread
        return Line((self.y - slope * self.x) / self.n, slope)


def linear(values: Sequence[float]) -> Line:
    """Fit a line to values at 1, 2, 3 and so on.

    >>> linear([10, 20, 30]).at(4)
    40.0
    """
    return Sums.of(enumerate(values, 1)).line()


@dataclass(frozen=True)
class Fit:
    """A curve through samples, and how far it is from them."""

    model: ModelName
    line: Line
    #: Mean squared distance of the curve from the values that it was fitted to.
    error: float

    def at(self, x: float) -> float:
        """Read the curve at a position."""
        return _READ[self.model](self.line, x)


def fit(values: Sequence[float], model: ModelName) -> Fit | None:
    """Fit one model to values at 1, 2, 3 and so on; None where it does not apply.

    >>> round(fit([1, 2, 4, 8], "exponential").at(5), 6)
    16.0
    >>> fit([0, 2, 4, 8], "exponential") is None
    True
    """
    if model == "exponential" and min(values, default=0) <= 0:
        return None  # zero has no logarithm
    line = Sums.of(_WRITE[model](x, y) for x, y in enumerate(values, 1)).line()
    read = _READ[model]
    errors = [(read(line, x) - y) ** 2 for x, y in enumerate(values, 1)]
    return Fit(model, line, sum(errors) / max(1, len(errors)))


def best_fit(values: Sequence[float], models: Sequence[ModelName] = MODELS) -> Fit:
    """Fit several models and take the one nearest to the values; of equal ones the first.

    A line is always among them, since it fits anything.

    >>> [best_fit(values).model for values in ([5, 5, 5], [1, 2, 3], [3, 9, 27, 81])]
    ['linear', 'linear', 'exponential']
    """
    found = [made for model in (*models, "linear") if (made := fit(values, model))]
    # A hair's breadth is rounding, not a better model.
    least = min(made.error for made in found) * (1 + 1e-9) + 1e-9
    return next(made for made in found if made.error <= least)


def coming(curve: Callable[[float], float], samples: int) -> int:
    """Add up what a curve expects of as many samples more; each is whole and none is negative.

    >>> coming(Line(0.0, 10.0).at, 3), coming(Line(20.0, -10.0).at, 3)
    (150, 0)
    """
    # A value that is whole but for rounding is that value.
    read = (curve(samples + k) for k in range(1, samples + 1))
    return sum(max(0, math.ceil(value - 1e-6)) for value in read)


_WRITE: dict[ModelName, Callable[[float, float], tuple[float, float]]] = {
    "linear": lambda x, y: (x, y),
    "logarithmic": lambda x, y: (math.log(x), y),
    "exponential": lambda x, y: (x, math.log(y)),
}
#: Beyond this an exponential says nothing but "very many".
_LARGEST = math.log(1e15)
_READ: dict[ModelName, Callable[[Line, float], float]] = {
    "linear": lambda line, x: line.at(x),
    "logarithmic": lambda line, x: line.at(math.log(x)),
    "exponential": lambda line, x: math.exp(min(line.at(x), _LARGEST)),
}
