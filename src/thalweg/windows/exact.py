"""Sums of floating numbers that are the same in whatever groups they are added.

A finite number is a whole one and how often it has to be halved; infinity and NaN stay as they are.

>>> rounded(plus(plus(exact(1e16), exact(1.0)), exact(-1e16)))
1.0
"""

from __future__ import annotations

import math
from typing import Any

Halved = tuple[int, int]


def exact(number: float) -> Halved | float:
    """Give a number so that nothing is lost when it is added."""
    if not math.isfinite(number):
        return number
    whole, parts = number.as_integer_ratio()
    return whole, parts.bit_length() - 1


def plus(one: Any, other: Any) -> Any:
    """Add two of them, or whole numbers; infinity and NaN go beyond all that is finite."""
    if type(one) is not tuple and type(other) is not tuple:
        return one + other
    if type(one) is float or type(other) is float:
        return one if type(one) is float else other
    number, times = one if type(one) is tuple else (one, 0)
    second, more = other if type(other) is tuple else (other, 0)
    if times < more:
        return (number << (more - times)) + second, more
    return number + (second << (times - more)), times


def rounded(sum_: Halved | float) -> float:
    """Give the nearest floating number."""
    return sum_ if isinstance(sum_, float) else quotient(sum_[0], 1 << sum_[1])


def quotient(number: int, divisor: int) -> float:
    """Divide whole numbers; what has no room is infinite.

    >>> quotient(1, 3), quotient(-10**400, 3)
    (0.3333333333333333, -inf)
    """
    try:
        return number / divisor
    except OverflowError:
        return math.inf if number > 0 else -math.inf
