"""What is made of the tuples of a window: partial results that can be put together.

A partial result is a plain value (numbers, text, bytes, lists), so that it can be written down and
moved; None stands for no value at all. Nulls are left out, as in SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, pairwise
from numbers import Integral
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from thalweg.anyvalues import is_anything
from thalweg.blocks import Rows
from thalweg.errors import SchemaError, TopologyError, explain, shorten
from thalweg.foreign import listed
from thalweg.keys import NAN
from thalweg.windows.exact import exact, plus, rounded

Partial = Any


@dataclass(frozen=True)
class Aggregate:
    """How partial results are made of values, put together, and become a result."""

    #: Whether the order of the values matters.
    ordered: ClassVar[bool] = False
    #: Whether all values have to be numbers.
    of_numbers: ClassVar[bool] = False
    #: Whether values are told apart as keys are, which lists and structs are not.
    of_keys: ClassVar[bool] = False
    #: Whether values are put in order, which nested ones and values of any kind do not have.
    by_order: ClassVar[bool] = False
    #: Whether opened partial results stay small, and give the same in whatever groups they are put
    #: together, to the last bit.
    running: ClassVar[bool] = False

    #: The field that it looks at; None for whole tuples.
    field: str | None = None

    def partials(self, column: pa.Array | None, starts: Rows, rows: int) -> list[Partial]:
        """Give a partial result for each group: rows from one start to the next."""
        assert column is not None  # noqa: S101 (those without a field have their own)
        values = listed(column, self.field or "")
        bounds = pairwise([*starts.tolist(), rows])
        groups = ([v for v in values[a:b] if v is not None] for a, b in bounds)
        return [self.of(group) if group else None for group in groups]

    def of(self, values: list[Any]) -> Partial:
        """Make a partial result of some values, of which none is None."""
        raise NotImplementedError

    def add(self, one: Partial, other: Partial) -> Partial:
        """Put two partial results together; the first is of earlier tuples."""
        raise NotImplementedError

    def combine(self, partials: list[Partial]) -> Partial:
        """Put several partial results together, of which none is None; earlier tuples first."""
        return reduce(self.add, partials)

    def opened(self, partial: Partial) -> Any:
        """Give a partial result so that nothing is lost when it is put together with others."""
        return partial

    def joined(self, one: Any, other: Any) -> Any:
        """Put two opened partial results together; the first is of earlier tuples."""
        return self.add(one, other)

    def closed(self, opened: Any) -> Partial:
        """Make a partial result of an opened one."""
        return opened

    def whole(self, partials: list[Partial]) -> Partial:
        """Put several together, of which none is None, as if they were opened."""
        return self.combine(partials)

    def result(self, partial: Partial) -> Any:
        """Make of a partial result what people see."""
        return partial

    def type(self, field: pa.DataType | None) -> pa.DataType | None:
        """Give the type of the result for a field of this type; None when values will show it."""
        return field

    def merge(self, one: Partial, other: Partial) -> Partial:
        """Put two partial results together, of which one may be of no value."""
        if one is None or other is None:
            return other if one is None else one
        return self.add(one, other)


@dataclass(frozen=True)
class Count(Aggregate):
    """The number of tuples, or of those where a field has a value."""

    running: ClassVar[bool] = True

    def partials(self, column: pa.Array | None, starts: Rows, rows: int) -> list[Partial]:
        """Count."""
        if column is None or not column.null_count:
            counts: list[int] = np.diff(starts, append=rows).tolist()
            return counts
        valid = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        return list(np.add.reduceat(valid, starts).tolist())

    def add(self, one: int, other: int) -> int:
        """Add."""
        return one + other

    def combine(self, partials: list[int]) -> int:
        """Add."""
        return sum(partials)

    def result(self, partial: int | None) -> int:
        """Give the number; 0 where there is nothing."""
        return partial or 0

    def type(self, field: pa.DataType | None) -> pa.DataType | None:
        """Give whole numbers."""
        return pa.int64()


@dataclass(frozen=True)
class OfNumbers(Aggregate):
    """Quick where all values are numbers that NumPy can add."""

    running: ClassVar[bool] = True

    def partials(self, column: pa.Array | None, starts: Rows, rows: int) -> list[Partial]:
        """Let NumPy go through all groups at once, if it can."""
        assert column is not None  # noqa: S101 (it has a field)
        if column.null_count or not _is_number(column.type):
            return super().partials(column, starts, rows)
        return self.quick(column.to_numpy(zero_copy_only=False), starts)

    def quick(self, values: Any, starts: Rows) -> list[Partial]:
        """Give partial results of numbers."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sum(OfNumbers):
    """The sum of a field."""

    of_numbers: ClassVar[bool] = True

    def quick(self, values: Any, starts: Rows) -> list[Partial]:
        """Add."""
        if values.dtype.kind != "f":
            return whole_sums(values, starts)
        with np.errstate(over="ignore", invalid="ignore"):  # infinity is a number here
            return list(np.add.reduceat(values.astype(np.float64, copy=False), starts).tolist())

    def of(self, values: list[Any]) -> Partial:
        """Add."""
        return sum(values[1:], values[0])

    def add(self, one: Any, other: Any) -> Any:
        """Add."""
        return one + other

    def combine(self, partials: list[Any]) -> Any:
        """Add."""
        return self.of(partials)

    def opened(self, partial: Any) -> Any:
        """Leave whole numbers as they are."""
        return exact(partial) if isinstance(partial, float) else partial

    def joined(self, one: Any, other: Any) -> Any:
        """Add."""
        return plus(one, other)

    def closed(self, opened: Any) -> Any:
        """Give the sum of floating numbers as one."""
        return rounded(opened) if isinstance(opened, tuple) else opened

    def whole(self, partials: list[Any]) -> Any:
        """Add; what a quicker way cannot add exactly is opened."""
        types = set(map(type, partials))
        try:
            if types in ({int}, {float}):
                return sum(partials) if types == {int} else math.fsum(partials) + 0.0
        except (OverflowError, ValueError):  # sums without room in between, infinities
            pass
        return self.closed(reduce(self.joined, map(self.opened, partials)))

    def result(self, partial: Any) -> Any:
        """Give the sum, as long as it has room."""
        if isinstance(partial, int) and not -(2**63) <= partial < 2**63:
            expected, hint = "a sum of at most 64 bits", "turn the field into floating numbers"
            raise SchemaError(explain(f"sum of field {self.field!r}", "", expected, "more", hint))
        return partial

    def type(self, field: pa.DataType | None) -> pa.DataType | None:
        """Give the widest numbers of the kind."""
        if field is None:
            return None
        return pa.int64() if pa.types.is_integer(field) else pa.float64()


@dataclass(frozen=True)
class Extreme(OfNumbers):
    """The smallest or greatest value of a field; NaN only where there is nothing else."""

    by_order: ClassVar[bool] = True

    greatest: bool = False

    def quick(self, values: Any, starts: Rows) -> list[Partial]:
        """Compare."""
        return list((np.fmax if self.greatest else np.fmin).reduceat(values, starts).tolist())

    def of(self, values: list[Any]) -> Partial:
        """Compare."""
        numbers = [value for value in values if not _is_nan(value)] or values
        return max(numbers) if self.greatest else min(numbers)

    def add(self, one: Any, other: Any) -> Any:
        """Compare; of the same ones the first stays."""
        better = other > one if self.greatest else other < one
        return other if better or _is_nan(one) else one

    def combine(self, partials: list[Any]) -> Any:
        """Compare."""
        return self.of(partials)


@dataclass(frozen=True)
class Collect(Aggregate):
    """All values of a field, in the order of their arrival."""

    ordered: ClassVar[bool] = True

    def of(self, values: list[Any]) -> Partial:
        """Keep them."""
        return values

    def add(self, one: Any, other: Any) -> Any:
        """Put lists behind each other."""
        return [*one, *other]

    def combine(self, partials: list[Any]) -> Any:
        """Put lists behind each other."""
        return list(chain.from_iterable(partials))

    def result(self, partial: Any) -> Any:
        """Give the list; an empty one where there is nothing."""
        return list(partial or ())

    def type(self, field: pa.DataType | None) -> pa.DataType | None:
        """Give lists of the field's type; one of values of any kind is such a value itself."""
        return field if field is None or is_anything(field) else pa.list_(field)


@dataclass(frozen=True)
class Top(Aggregate):
    """The most frequent values of a field, exactly; ties in the order of the values, NaN last."""

    of_keys: ClassVar[bool] = True
    by_order: ClassVar[bool] = True

    k: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.k, Integral) or self.k < 1:
            expected = "a whole number k >= 1"
            raise TopologyError(explain(f"top of field {self.field!r}", "", expected, f"{self.k}"))

    def of(self, values: list[Any]) -> Partial:
        """Count values."""
        return self.combine([[[value, 1] for value in values]])

    def add(self, one: Any, other: Any) -> Any:
        """Add counts."""
        return self.combine([one, other])

    def combine(self, partials: list[Any]) -> Any:
        """Add counts; all NaNs are one value."""
        found: dict[Any, int] = {}
        for value, n in chain.from_iterable(partials):
            known = NAN if _is_nan(value) else value
            found[known] = found.get(known, 0) + n
        return [[value, n] for value, n in found.items()]

    def result(self, partial: Any) -> Any:
        """Give the first few."""
        numbered = [(-n, _is_nan(value), value) for value, n in partial or ()]
        return [value for _, _, value in sorted(numbered)[: self.k]]

    def type(self, field: pa.DataType | None) -> pa.DataType | None:
        """Give lists of the field's type."""
        return None if field is None else pa.list_(field)


@dataclass(frozen=True)
class Fold(Collect):
    """What a function of the user's makes of values, once the window ends.

    They are kept until then: tuples may still come in between.
    """

    start: Callable[[], Any] = lambda: None
    step: Callable[[Any, Any], Any] = lambda state, _value: state
    #: The type of the result; None when results will show it.
    declared: pa.DataType | None = None

    def __post_init__(self) -> None:
        for name, example in {"start": "lambda: 0", "step": "lambda total, v: total + v"}.items():
            given = getattr(self, name)
            if not callable(given):
                subject = f"{name} of fold of field {self.field!r}"
                expected = f"a function, such as {example}"
                raise TopologyError(explain(subject, "", expected, repr(given)))

    def result(self, partial: Any) -> Any:
        """Go through all values; keys of a dictionary would be those of the first windows."""
        made = reduce(self.step, partial or (), self.start())
        if self.declared is None and isinstance(made, Mapping):
            subject, got = f"fold of field {self.field!r}", f"{shorten(made)} (dict)"
            expected = "a type that is said beforehand for dictionaries"
            hint = "say fold(..., type=tw.anything), or a struct of Arrow's where keys are the same"
            raise SchemaError(explain(subject, "", expected, got, hint))
        return made

    def type(self, field: pa.DataType | None) -> pa.DataType | None:
        """Give the declared one."""
        return self.declared


@dataclass(frozen=True)
class Numbered(Aggregate):
    """Values with the numbers of their rows, for windows that become one: all as they came."""

    inner: Aggregate = Aggregate()

    def partials_of(self, column: pa.Array, order: Rows, starts: Rows) -> list[Partial]:
        """Give partial results of rows in an order that is not that of their numbers."""
        pairs = list(zip(order.tolist(), listed(column, self.field or ""), strict=True))
        bounds = pairwise([*starts.tolist(), len(pairs)])
        groups = ([[row, v] for row, v in pairs[a:b] if v is not None] for a, b in bounds)
        return [group or None for group in groups]

    def add(self, one: Any, other: Any) -> Any:
        """Put values into the order of their numbers."""
        return self.combine([one, other])

    def combine(self, partials: list[Any]) -> Any:
        """Put values into the order of their numbers."""
        return sorted(chain.from_iterable(partials), key=itemgetter(0))

    def later(self, partial: Any, rows: int) -> Any:
        """Put values behind so many others."""
        return None if partial is None else [[row + rows, value] for row, value in partial]

    def plain(self, partial: Any) -> Any:
        """Give what the inner one would have made of them."""
        return None if partial is None else [value for _, value in partial]


def results(aggregates: Sequence[Aggregate], partials: Sequence[Partial]) -> list[Any]:
    """Make results of the partial results of several aggregates."""
    return [a.result(p) for a, p in zip(aggregates, partials, strict=True)]


def merged(
    aggregates: Sequence[Aggregate], one: Sequence[Partial], other: Sequence[Partial]
) -> list[Partial]:
    """Put the partial results of several aggregates together."""
    return [a.merge(x, y) for a, x, y in zip(aggregates, one, other, strict=True)]


def combined(aggregates: Sequence[Aggregate], parts: Sequence[Sequence[Partial]]) -> list[Partial]:
    """Put many partial results of several aggregates together, those of earlier tuples first."""
    if len(parts) == 1:
        return list(parts[0])
    known = ([p for p in each if p is not None] for each in zip(*parts, strict=True))
    return [a.combine(each) if each else None for a, each in zip(aggregates, known, strict=True)]


def check_field(aggregate: Aggregate, type_: pa.DataType | None, into: str) -> None:
    """Refuse to add what cannot be added, and to keep what state cannot hold."""
    if type_ is None:
        return
    decimal = pa.types.is_decimal(type_) and not isinstance(aggregate, Count)
    if decimal or (aggregate.of_numbers and not _is_number(type_)):
        expected = f"a field of numbers for {into!r}"
        hint = "turn it into whole or floating numbers before" if decimal else ""
        raise SchemaError(explain(f"field {aggregate.field!r}", "", expected, str(type_), hint))
    if aggregate.of_keys and pa.types.is_nested(type_):
        expected = f"a field of single values for {into!r}"
        raise SchemaError(explain(f"field {aggregate.field!r}", "", expected, str(type_)))
    if aggregate.by_order and (is_anything(type_) or pa.types.is_nested(type_)):
        expected = f"a field of values that have an order for {into!r}"
        got = "values of any kind" if is_anything(type_) else str(type_)
        raise SchemaError(explain(f"field {aggregate.field!r}", "", expected, got))


def whole_sums(values: Any, starts: Rows) -> list[int]:
    """Add the whole numbers of each group; those that might not fit one by one."""
    if greatest(values) * len(values) >= 2**63:
        values = values.astype(object)
    return list(np.add.reduceat(values, starts).tolist())


def greatest(values: Any) -> int:
    """Give the greatest of whole numbers, whatever their signs."""
    return max(abs(int(values.max())), abs(int(values.min()))) if len(values) else 0


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))
