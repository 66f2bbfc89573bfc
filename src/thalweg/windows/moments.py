"""Mean, variance and standard deviation: of whole numbers exact, and rounded once.

A partial result of whole numbers is their number, their sum, and the sum of their squares. One of
floating numbers is their number, their mean, and the sum of squared deviations, which are put
together in the way of Chan et al.; so were those of whole numbers once, and are where both meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from thalweg.blocks import Rows
from thalweg.windows.aggregates import OfNumbers, Partial, greatest, whole_sums
from thalweg.windows.exact import exact, plus, quotient


@dataclass(frozen=True)
class Moments(OfNumbers):
    """Mean, variance or standard deviation of a field."""

    of_numbers: ClassVar[bool] = True

    #: "mean", "variance" or "deviation".
    what: str = "mean"

    def quick(self, values: Any, starts: Rows) -> list[Partial]:
        """Give number and sums, or number, mean, and sum of squared deviations."""
        counts = np.diff(starts, append=len(values))
        if values.dtype.kind != "f":
            wide = values.astype(np.int64 if greatest(values) < 2**31 else object)
            return _listed(counts.tolist(), whole_sums(wide, starts), whole_sums(wide**2, starts))
        numbers = values.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # infinity is a number here
            means = np.add.reduceat(numbers, starts) / counts
            if not np.isfinite(means).all():  # sums may have no room where means have
                shares = np.add.reduceat(numbers / np.repeat(counts, counts), starts)
                means = np.where(np.isfinite(means), means, shares)
            squares = np.add.reduceat((numbers - np.repeat(means, counts)) ** 2, starts)
        return _listed(counts.tolist(), means.tolist(), squares.tolist())

    def of(self, values: list[Any]) -> Partial:
        """Do the same for some values."""
        whole = all(type(value) is int for value in values)
        dtype = object if whole else np.float64
        return self.quick(np.array(values, dtype=dtype), np.array([0]))[0]

    def add(self, one: Any, other: Any) -> Any:
        """Put two of them together."""
        if _is_whole(one) and _is_whole(other):
            return [x + y for x, y in zip(one, other, strict=True)]
        (n, mean, squares), (m, second, more) = _floating(one), _floating(other)
        apart, count = second - mean, n + m
        whole = squares + more + apart * apart * n * m / count
        if math.isfinite(apart * m):
            return [count, mean + apart * m / count, whole]
        return [count, mean * (n / count) + second * (m / count), whole]

    def opened(self, partial: Any) -> Any:
        """Give number, sum, and sum of squares."""
        if _is_whole(partial):
            return partial
        n, mean, squares = partial
        known = exact(mean)
        if not isinstance(known, tuple):
            return n, mean, math.nan
        number, times = known
        return n, (n * number, times), plus(exact(squares), (n * number * number, 2 * times))

    def joined(self, one: Any, other: Any) -> Any:
        """Add."""
        return [plus(x, y) for x, y in zip(one, other, strict=True)]

    def closed(self, opened: Any) -> Any:
        """Make of sums what is kept."""
        n, sum_, squares = opened
        if not isinstance(sum_, tuple):
            return [n, sum_, squares if _is_whole(opened) else math.nan]
        number, times = sum_
        mean = quotient(number, n << times)
        if not isinstance(squares, tuple):
            return [n, mean, squares]
        second, more = squares
        left = second * n - (number * number << (more - 2 * times))
        return [n, mean, quotient(left, n << more)]

    def whole(self, partials: list[Any]) -> Any:
        """Open all of them."""
        return self.closed(reduce(self.joined, map(self.opened, partials)))

    def result(self, partial: Any) -> float | None:
        """Give the mean, or the variance of a sample; None of fewer values than it needs."""
        if partial is None or (self.what != "mean" and partial[0] < 2):
            return None
        n, first, second = partial
        if self.what == "mean":
            return quotient(first, n) if _is_whole(partial) else float(first)
        whole = _is_whole(partial)
        variance = _deviations(partial, n - 1) if whole else float(second / (n - 1))
        return math.sqrt(variance) if self.what == "deviation" else variance

    def type(self, field: pa.DataType | None) -> pa.DataType | None:
        """Give floating numbers."""
        return pa.float64()


def _listed(*parts: list[Any]) -> list[Partial]:
    return [list(each) for each in zip(*parts, strict=True)]


def _is_whole(partial: Any) -> bool:
    """Say whether a partial result is of whole numbers."""
    return type(partial[1]) is int


def _deviations(partial: Any, divisor: int) -> float:
    """Give the sum of squared deviations of whole numbers, divided by a number."""
    n, sum_, squares = partial
    return quotient(n * squares - sum_ * sum_, n * divisor)


def _floating(partial: Any) -> Any:
    """Give number, mean, and sum of squared deviations, also of whole numbers."""
    if not _is_whole(partial):
        return partial
    return [partial[0], quotient(partial[1], partial[0]), _deviations(partial, 1)]
