"""What can be made of the tuples of a window, by short names: ``tw.agg.count()``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from thalweg.schemas import arrow_type
from thalweg.windows.aggregates import Collect, Count, Extreme, Fold, Sum, Top
from thalweg.windows.moments import Moments
from thalweg.windows.sketched import Distinct, Quantiles


def count(field: str | None = None) -> Count:
    """Count tuples, or those where a field has a value."""
    return Count(field)


def sum(field: str) -> Sum:  # noqa: A001 (as people say)
    """Add the values of a field."""
    return Sum(field)


def mean(field: str) -> Moments:
    """Give the mean of a field."""
    return Moments(field)


def variance(field: str) -> Moments:
    """Give the variance of a sample; None of fewer than two values."""
    return Moments(field, "variance")


def deviation(field: str) -> Moments:
    """Give the standard deviation of a sample; None of fewer than two values."""
    return Moments(field, "deviation")


def min(field: str) -> Extreme:  # noqa: A001 (as people say)
    """Give the smallest value of a field."""
    return Extreme(field)


def max(field: str) -> Extreme:  # noqa: A001 (as people say)
    """Give the greatest value of a field."""
    return Extreme(field, greatest=True)


def distinct(field: str) -> Distinct:
    """Estimate how many different values a field has, to about 2 %."""
    return Distinct(field)


def quantiles(field: str, shares: Sequence[float] = (0.5,)) -> Quantiles:
    """Estimate the values below which these shares of a field's values are."""
    return Quantiles(field, tuple(shares) if isinstance(shares, Iterable) else shares)


def top(field: str, k: int = 10) -> Top:
    """Give the most frequent values of a field; ties in the order of the values."""
    return Top(field, k)


def values(field: str) -> Collect:
    """Give all values of a field, in the order of their arrival."""
    return Collect(field)


def fold(
    field: str,
    start: Callable[[], Any],
    step: Callable[[Any, Any], Any],
    type: Any = None,  # noqa: A002 (as in fields)
) -> Fold:
    """Let a function make something of the values of a field, one after the other.

    Results are of a type as fields are declared with, or of the one that the first of them show.
    """
    return Fold(field, start, step, arrow_type(type))
