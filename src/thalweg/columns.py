"""Columns from Python values, without silent loss.

Arrow itself would cut 2.5 to 2 in a field of whole numbers, a datetime to its date, and take bytes
for text; here such values are refused.

>>> column([1, None, 2]).array.type
DataType(int64)
>>> column([1, 2.5], pa.int64())
Traceback (most recent call last):
    ...
thalweg.columns.Misfit: row 1: 2.5 (float)
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.errors import shorten

_NONE = type(None)
_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)


class Column(NamedTuple):
    """An Arrow array, and whether Arrow gives back the very values it was made of."""

    array: pa.Array
    same: bool


class Misfit(Exception):
    """A value does not fit its column."""

    def __init__(self, row: int, value: Any) -> None:
        super().__init__(f"row {row}: {shorten(value, 80)} ({type(value).__name__})")


def _accepted(type_: pa.DataType) -> frozenset[type] | None:
    """Give the Python types that fit an Arrow type; None when only trying can tell."""
    types = pa.types
    if types.is_integer(type_):
        return frozenset([int, _NONE])
    if types.is_floating(type_):
        return frozenset([float, int, _NONE])
    if types.is_string(type_) or types.is_large_string(type_):
        return frozenset([str, _NONE])
    if types.is_binary(type_) or types.is_large_binary(type_):
        return frozenset([bytes, _NONE])
    if types.is_boolean(type_):
        return frozenset([bool, _NONE])
    if types.is_date(type_):
        return frozenset([dt.date, _NONE])
    if types.is_timestamp(type_):
        return frozenset([dt.datetime, _NONE])
    return None


_ACCEPTED: dict[pa.DataType, frozenset[type] | None] = {}
#: Python types that come back from an Arrow column of this type as they went in.
_SAME: dict[pa.DataType, frozenset[type]] = {
    pa.string(): frozenset([str, _NONE]),
    pa.int64(): frozenset([int, _NONE]),
    pa.float64(): frozenset([float, _NONE]),
    pa.bool_(): frozenset([bool, _NONE]),
    pa.binary(): frozenset([bytes, _NONE]),
}
_NOTHING: frozenset[type] = frozenset()
# Types that Arrow would mix in one column by changing some of the values.
_UNMIXABLE = (frozenset([str, bytes]), frozenset([dt.date, dt.datetime]))


def column(values: Sequence[Any], wanted: pa.DataType | None = None) -> Column:
    """Make a column of a type, or of the type that the values show."""
    kinds = set(map(type, values))
    if any(issubclass(kind, np.generic) for kind in kinds):
        python = [v.item() if isinstance(v, np.generic) else v for v in values]
        return Column(column(python, wanted).array, False)
    array = _inferred(values, kinds) if wanted is None else _of_type(values, kinds, wanted)
    if dt.datetime in kinds:
        _check_zones(values, array.type)
    return Column(array, kinds <= _SAME.get(array.type, _NOTHING))


def _of_type(values: Sequence[Any], kinds: set[type], wanted: pa.DataType) -> pa.Array:
    if wanted not in _ACCEPTED:
        _ACCEPTED[wanted] = _accepted(wanted)
    accepted = _ACCEPTED[wanted]
    if accepted is not None and not kinds <= accepted:
        bad = next(i for i, value in enumerate(values) if type(value) not in accepted)
        raise Misfit(bad, values[bad])
    try:
        return _convert(values, wanted)
    except _ERRORS as error:
        raise _first_misfit(values, wanted) from error


def _convert(values: Sequence[Any], wanted: pa.DataType | None) -> pa.Array:
    # A cast refuses what a conversion would cut, but knows nothing of dictionaries as maps.
    if wanted is None or not values or not pa.types.is_nested(wanted) or pa.types.is_map(wanted):
        return pa.array(values, wanted)
    return pa.array(values).cast(wanted)


def _inferred(values: Sequence[Any], kinds: set[type]) -> pa.Array:
    for pair in _UNMIXABLE:
        if pair <= kinds:
            first = next(type(value) for value in values if type(value) in pair)
            bad = next(i for i, v in enumerate(values) if type(v) in pair and type(v) is not first)
            raise Misfit(bad, values[bad])
    try:
        return pa.array(values)
    except _ERRORS as error:
        raise _first_misfit(values, None) from error


def _check_zones(values: Sequence[Any], type_: pa.DataType) -> None:
    """Refuse a datetime with a zone among those without, and the other way round."""
    zoned = getattr(type_, "tz", None) is not None
    for row, value in enumerate(values):
        if isinstance(value, dt.datetime) and (value.tzinfo is not None) != zoned:
            raise Misfit(row, value)


def _first_misfit(values: Sequence[Any], wanted: pa.DataType | None) -> Misfit:
    """Find the first value that cannot be converted (with those before it, when inferring)."""
    for row, value in enumerate(values):
        try:
            _convert(values[: row + 1] if wanted is None else [value], wanted)
        except _ERRORS:
            return Misfit(row, value)
    return Misfit(0, values[0])
