"""Values with nanoseconds, which Python's own types cannot hold, as microseconds or ISO text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa

Replace = Callable[[pa.DataType], pa.DataType]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TIMES = (pa.types.is_timestamp, pa.types.is_duration, pa.types.is_time64)


def has_nanoseconds(type_: pa.DataType) -> bool:
    """Tell whether values of a type have nanoseconds in them, however deep.

    >>> has_nanoseconds(pa.list_(pa.duration("ns"))), has_nanoseconds(pa.duration("us"))
    (True, False)
    """
    if pa.types.is_dictionary(type_):
        return has_nanoseconds(type_.value_type)
    if pa.types.is_nested(type_):
        return any(has_nanoseconds(type_.field(i).type) for i in range(type_.num_fields))
    return _is_nano(type_)


def values_of(column: pa.Array) -> list[Any]:
    """Give values with nanoseconds: Python's types where they are exact, else ISO text."""
    try:
        return _pylist(column.cast(_swap(column.type, _in_micros)))
    except pa.ArrowInvalid:  # there are nanoseconds
        texts = _texts(column.type)
        return [texts(value) for value in _pylist(column.cast(_swap(column.type, _in_int)))]


def _pylist(column: pa.Array) -> list[Any]:
    return column.to_pylist(maps_as_pydicts="strict")


def _is_nano(type_: pa.DataType) -> bool:
    return any(check(type_) for check in _TIMES) and type_.unit == "ns"


def _in_int(_: pa.DataType) -> pa.DataType:
    return pa.int64()


def _in_micros(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    return pa.duration("us") if pa.types.is_duration(type_) else pa.time64("us")


def _swap(type_: pa.DataType, replace: Replace) -> pa.DataType:
    """Replace the types with nanoseconds in a type."""
    if not has_nanoseconds(type_):
        return type_
    if pa.types.is_dictionary(type_):
        return _swap(type_.value_type, replace)
    if pa.types.is_struct(type_):
        return pa.struct([f.with_type(_swap(f.type, replace)) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(_swap(type_.key_type, replace), _swap(type_.item_type, replace))
    if not pa.types.is_nested(type_):
        return replace(type_)
    item = type_.value_field.with_type(_swap(type_.value_type, replace))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(item, type_.list_size)
    return pa.large_list(item) if pa.types.is_large_list(type_) else pa.list_(item)


def _texts(type_: pa.DataType) -> Callable[[Any], Any]:
    """Make the function that gives a value of a type its text where it has nanoseconds."""
    make = _texts_of_some(type_) if has_nanoseconds(type_) else lambda value: value
    return lambda value: None if value is None else make(value)


def _texts_of_some(type_: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_dictionary(type_):
        return _texts(type_.value_type)
    if pa.types.is_struct(type_):
        parts = {f.name: _texts(f.type) for f in type_}
        return lambda value: {name: parts[name](item) for name, item in value.items()}
    if pa.types.is_map(type_):
        key, item = _texts(type_.key_type), _texts(type_.item_type)
        return lambda value: {key(k): item(v) for k, v in value.items()}
    if pa.types.is_nested(type_):
        each = _texts(type_.value_type)
        return lambda value: [each(item) for item in value]
    if pa.types.is_duration(type_):
        return _duration
    if pa.types.is_timestamp(type_):
        zone = pa.lib.string_to_tzinfo(type_.tz) if type_.tz else None
        return lambda value: _moment(value, zone)
    return lambda value: _moment(value, None).partition("T")[2]


def _moment(nanos: int, zone: dt.tzinfo | None) -> str:
    """Write a moment.

    >>> _moment(1, dt.UTC)
    '1970-01-01T00:00:00.000000001Z'
    """
    at = (_EPOCH + dt.timedelta(seconds=nanos // 10**9)).astimezone(zone or dt.UTC)
    text: str = msgspec.to_builtins(at if zone else at.replace(tzinfo=None))
    return f"{text[:19]}{_fraction(nanos % 10**9)}{text[19:]}"


def _duration(nanos: int) -> str:
    """Write a duration.

    >>> _duration(-86_400_000_000_001)
    '-P1DT0.000000001S'
    """
    days, rest = divmod(abs(nanos), 86_400 * 10**9)
    seconds, fraction = divmod(rest, 10**9)
    day = f"{days}D" if days else ""
    return f"{'-' if nanos < 0 else ''}P{day}T{seconds}{_fraction(fraction)}S"


def _fraction(nanos: int) -> str:
    return f".{nanos:09d}".rstrip("0").rstrip(".")
