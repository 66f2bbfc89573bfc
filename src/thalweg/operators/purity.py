"""What is known of functions that say so: they may be called at another place of a topology.

>>> dear = filtering(pure(lambda price: price > 5), ("price",))
>>> double = extending({"price": pure(lambda price: 2 * price)}, {"price": ("price",)})
>>> commute(dear, double), commute(dear, selecting(["price"]))
(False, True)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from thalweg.errors import TopologyError, explain, shorten
from thalweg.expressions import Expression
from thalweg.schemas import fields


@dataclass(frozen=True)
class Pure:
    """A function or expression of which :func:`pure` was said."""

    value: Any
    #: Fields that a function of whole tuples looks at; None where nobody has said it.
    reads: tuple[str, ...] | None = None


def pure(value: Any, *, reads: Any = None) -> Pure:
    """Say that a function, or an expression on columns, may be called on other tuples, or on fewer.

    It raises for no value of its fields, gives the same for the same values, and does nothing
    else. ``reads`` names the fields that a function of whole tuples looks at.
    """
    if isinstance(value, Pure) or not (callable(value) or isinstance(value, Expression)):
        text = explain("pure", expected="a function or an expression", got=shorten(value))
        raise TopologyError(text)
    return Pure(value, None if reads is None else fields(reads).names)


def plain(value: Any) -> Any:
    """Give what was called pure, or anything else as it is."""
    return value.value if isinstance(value, Pure) else value


@dataclass(frozen=True)
class Touch:
    """What an operator does to tuples, where it may change its place."""

    #: Fields that it looks at.
    reads: frozenset[str] = frozenset()
    #: Fields that have other values behind it.
    writes: frozenset[str] = frozenset()
    #: Fields that are left behind it; None for all.
    keeps: frozenset[str] | None = None
    #: Whether it keeps some tuples, as they are, rather than changing all.
    filters: bool = False

    def leaves(self, names: Collection[str]) -> bool:
        """Say whether fields are the same before it and behind it."""
        return self.writes.isdisjoint(names) and (self.keeps is None or self.keeps >= set(names))


def commute(one: Touch, other: Touch) -> bool:
    """Say whether two neighbours may change places.

    Two that keep all tuples never do: nothing is gained by it.
    """
    if one.filters and other.filters:
        return True
    if one.filters:
        return other.leaves(one.reads)
    return other.filters and one.leaves(other.reads)


def filtering(condition: Any, takes: Iterable[str] | None) -> Touch | None:
    """Describe a filter; None if it has to stay where it is. ``takes`` is what it is called with.

    >>> filtering(lambda price: price > 5, ("price",)) is None  # it may raise
    True
    """
    reads = _reads(condition, takes)
    return None if reads is None else Touch(reads, filters=True)


def extending(
    columns: Mapping[str, Any], takes: Mapping[str, Iterable[str] | None]
) -> Touch | None:
    """Describe what adds fields or replaces some."""
    found = [_reads(value, takes[name]) for name, value in columns.items()]
    known = [reads for reads in found if reads is not None]
    if len(known) < len(found):
        return None
    return Touch(frozenset().union(*known), writes=frozenset(columns))


def selecting(names: Iterable[str]) -> Touch:
    """Describe what keeps some fields; it cannot fail."""
    kept = frozenset(names)
    return Touch(kept, keeps=kept)


def _reads(value: Any, takes: Iterable[str] | None) -> frozenset[str] | None:
    if not isinstance(value, Pure):
        return None
    known = value.reads if takes is None else takes
    return None if known is None else frozenset(known)
