"""Columns from Python values and from other columns, without silent loss.

Arrow itself would cut 2.5 to 2 in a field of whole numbers, a datetime to its date, and take bytes
for text; here such values are refused.

>>> column([1, None, 2]).array.type
DataType(int64)
>>> column([1, 2.5], pa.int64())
Traceback (most recent call last):
    ...
thalweg.columns.Misfit: row 1: 2.5 (float)
>>> cast(pa.array(["5"]), pa.int64())
Traceback (most recent call last):
    ...
thalweg.columns.Misfit: a column of string
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from operator import countOf
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.anyvalues import ANYTHING, SCALARS, is_anything
from thalweg.errors import StateError, shorten

_NONE = type(None)
_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def settle_arrow() -> None:
    """Let Arrow make its first array, for which it loads pandas where that is installed.

    This takes a fifth of a second, which the first tuples of a run would have to wait for.
    """
    pa.array([0])


class Column(NamedTuple):
    """An Arrow array, and whether Arrow gives back the very values it was made of."""

    array: pa.Array
    same: bool


class Misfit(Exception):
    """A value, in this row, or a whole column does not fit its field."""

    def __init__(self, text: str, row: int | None = None) -> None:
        super().__init__(text)
        self.row = row


def _misfit(row: int, value: Any) -> Misfit:
    return Misfit(f"row {row}: {shorten(value, 80)} ({type(value).__name__})", row)


# --- types ---------------------------------------------------------------------------------------


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Give the type that a stream uses for columns of this type.

    Arrow's kernels do not take rows of views yet, and Python has no nanoseconds.
    """
    types = pa.types
    if types.is_string_view(type_):
        return pa.string()
    if types.is_binary_view(type_):
        return pa.binary()
    if getattr(type_, "unit", None) == "ns":
        if types.is_timestamp(type_):
            return pa.timestamp("us", type_.tz)
        return pa.duration("us") if types.is_duration(type_) else pa.time64("us")
    if types.is_list(type_):
        return pa.list_(plain_type(type_.value_type))
    if types.is_struct(type_):
        return pa.struct([(f.name, plain_type(f.type)) for f in type_])
    return type_


def _accepted(type_: pa.DataType) -> frozenset[type] | None:
    """Give the Python types that fit an Arrow type; None when only the way back can tell."""
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
    if types.is_timestamp(type_) and type_.unit == "us":
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
_PLAIN = frozenset([str, int, float, bool, bytes, _NONE])
#: How NumPy and Arrow call the numbers of Python.
_NUMBERS: dict[type, tuple[Any, pa.DataType]] = {
    int: (np.int64, pa.int64()),
    float: (np.float64, pa.float64()),
}
#: Bytes from which on values are long.
_LONG = 256
_UNMIXABLE = (frozenset([str, bytes]), frozenset([dt.date, dt.datetime]))


# --- from Python values --------------------------------------------------------------------------


def column(values: Sequence[Any], wanted: pa.DataType | None = None) -> Column:
    """Make a column of a type, or of the type that the values show."""
    kinds = _kinds(values)
    if not kinds <= _PLAIN and any(issubclass(kind, np.generic) for kind in kinds):
        python = [v.item() if isinstance(v, np.generic) else v for v in values]
        return Column(column(python, wanted).array, False)
    if is_anything(wanted):
        return Column(_anything(values, kinds), kinds <= SCALARS)
    if wanted is None:
        _check_mix(values, kinds)
    else:
        _check_kinds(values, kinds, wanted)
    try:
        array = _array(values, kinds, wanted)
    except _ERRORS as error:
        raise _first_misfit(values, wanted) from error
    same = kinds <= _SAME.get(array.type, _NOTHING)
    if dt.datetime in kinds:
        _check_zones(values, array.type)
    if not same and not (wanted is not None and _ACCEPTED[wanted]):
        _check_way_back(values, array)
    return Column(array, same)


def _anything(values: Sequence[Any], kinds: set[type] | None = None) -> pa.Array:
    """Write values of any kind."""
    try:
        return ANYTHING.encode(values, kinds)
    except StateError:
        for row, value in enumerate(values):
            try:
                ANYTHING.encode([value])
            except StateError as error:
                raise _misfit(row, value) from error
        raise


def _kinds(values: Sequence[Any]) -> set[type]:
    """Find the types of values; counting one type is quicker than a set, and enough as a rule."""
    first = type(values[0]) if len(values) else _NONE
    if countOf(map(type, values), first) == len(values):
        return {first} if len(values) else set()
    return set(map(type, values))


def _array(values: Sequence[Any], kinds: set[type], wanted: pa.DataType | None) -> pa.Array:
    """Convert; numbers of one type go through NumPy, which takes half the time."""
    if kinds == {bytes} and len(values[0]) >= _LONG and wanted in (None, pa.binary()):
        return _joined(values)
    number = _NUMBERS.get(next(iter(kinds))) if len(kinds) == 1 else None
    if number is None or (wanted is not None and wanted != number[1]):
        return pa.array(values, wanted)
    return pa.array(np.fromiter(values, number[0], len(values)), number[1])


def _joined(values: Sequence[bytes]) -> pa.Array:
    """Put long values behind each other at once; Arrow makes room for one after the other."""
    ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    if ends[-1] > np.iinfo(np.int32).max:
        return pa.array(values, pa.binary())
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _check_mix(values: Sequence[Any], kinds: set[type]) -> None:
    """Refuse the first value of a kind that Arrow would only mix with others by changing some."""
    for pair in _UNMIXABLE:
        if pair <= kinds:
            first = next(type(value) for value in values if type(value) in pair)
            bad = next(i for i, v in enumerate(values) if type(v) in pair and type(v) is not first)
            raise _misfit(bad, values[bad])


def fit(values: Sequence[Any], wanted: pa.DataType) -> bool:
    """Say whether the types of values are enough to know that they fit.

    >>> fit(["a", None], pa.string()), fit([1], pa.string()), fit([1], pa.int64())
    (True, False, False)
    """
    if is_anything(wanted):
        return _kinds(values) <= SCALARS
    sure = pa.types.is_string(wanted) or pa.types.is_binary(wanted) or pa.types.is_boolean(wanted)
    return sure and _kinds(values) <= _SAME[wanted]


def _check_kinds(values: Sequence[Any], kinds: set[type], wanted: pa.DataType) -> None:
    if wanted not in _ACCEPTED:
        _ACCEPTED[wanted] = _accepted(wanted)
    accepted = _ACCEPTED[wanted]
    if accepted is not None and not kinds <= accepted:
        bad = next(i for i, value in enumerate(values) if type(value) not in accepted)
        raise _misfit(bad, values[bad])


def _check_zones(values: Sequence[Any], type_: pa.DataType) -> None:
    """Refuse a datetime with a zone among those without, and the other way round."""
    zoned = getattr(type_, "tz", None) is not None
    for row, value in enumerate(values):
        if isinstance(value, dt.datetime) and (value.tzinfo is not None) != zoned:
            raise _misfit(row, value)


def _check_way_back(values: Sequence[Any], array: pa.Array) -> None:
    for row, (value, back) in enumerate(zip(values, array.to_pylist(), strict=True)):
        if not _is_same(value, back):
            raise _misfit(row, value)


def _is_same(value: Any, back: Any) -> bool:
    """Say whether Arrow kept a value: numbers by value, fields that were left out as None."""
    if isinstance(value, dict):
        if isinstance(back, list):  # a map
            return _is_same(list(value.items()), back)
        left_out = isinstance(back, dict) and all(back[n] is None for n in back.keys() - value)
        return left_out and all(n in back and _is_same(v, back[n]) for n, v in value.items())
    if isinstance(value, list | tuple):
        return (
            isinstance(back, list | tuple)
            and len(value) == len(back)
            and all(map(_is_same, value, back))
        )
    if isinstance(value, float) and math.isnan(value):
        return isinstance(back, float) and math.isnan(back)
    numbers = type(value) is int and type(back) is float
    # Where there are nanoseconds, times come back as types of pandas that derive from Python's.
    times = isinstance(value, dt.datetime | dt.timedelta) and isinstance(back, type(value))
    return (numbers or times or isinstance(value, type(back))) and bool(value == back)


def _first_misfit(values: Sequence[Any], wanted: pa.DataType | None) -> Misfit:
    """Find the first value that cannot be converted (with those before it, when inferring)."""
    for row, value in enumerate(values):
        try:
            pa.array(values[: row + 1] if wanted is None else [value], wanted)
        except _ERRORS:
            return _misfit(row, value)
    return _misfit(0, values[0])


# --- from other columns --------------------------------------------------------------------------


def cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Turn a column into another type where that changes no value."""
    if array.type == wanted:
        return array
    if is_anything(wanted):
        return _anything(array.to_pylist())
    if not _may_become(array.type, wanted):
        text = f"a column of {array.type}"
        raise Misfit(text)
    try:
        return array.cast(wanted)
    except _ERRORS as error:
        text = f"a column of {array.type}: {error}"
        raise Misfit(text) from error


def _may_become(have: pa.DataType, wanted: pa.DataType) -> bool:
    """Say whether a safe cast between these types loses nothing, or notices that it would."""
    types = pa.types
    if types.is_dictionary(have):
        return _may_become(have.value_type, wanted)
    if have == wanted or types.is_null(have):
        return True
    if types.is_list(have) and types.is_list(wanted):
        return _may_become(have.value_type, wanted.value_type)
    if types.is_struct(have) and types.is_struct(wanted):
        names = [f.name for f in have] == [f.name for f in wanted]
        return names and all(_may_become(a.type, b.type) for a, b in zip(have, wanted, strict=True))
    if types.is_timestamp(have) and types.is_timestamp(wanted):
        return (have.tz is None) == (wanted.tz is None)
    if types.is_floating(have) and types.is_floating(wanted):
        return have.bit_width <= wanted.bit_width
    if types.is_integer(have) or types.is_floating(have):
        return bool(types.is_integer(wanted) or types.is_floating(wanted))  # 1.0 is 1
    return any(is_a(have) and is_a(wanted) for is_a in _FAMILIES)


def _is_text(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    )


def _is_bytes(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(type_) or types.is_large_binary(type_) or types.is_binary_view(type_)
    )


# Types within a family can be cast into each other; a safe cast notices when that loses something.
_FAMILIES = (
    _is_text,
    _is_bytes,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_duration,
    pa.types.is_decimal,
)
