"""What a key is, once for dictionaries, stores and hashes.

Two keys are the same when Python's ``==`` says so, with two additions: all NaNs are one key, and
values of the kinds below never equal one of another kind.

* numbers: ``1``, ``1.0`` and ``True`` are one key, ``-0.0`` is ``0``;
* text and bytes differ (``"a"`` is not ``b"a"``); ``None`` is a key of its own;
* a datetime with a time zone is the instant it names; one without is another kind;
* tuples are the same when their parts are; a key of several fields is a tuple.

>>> canonical(True), canonical(1.0), canonical(-0.0)
(1, 1, 0)
>>> canonical(float("nan")) is canonical(float("nan"))
True
>>> encode_key("a") == encode_key(b"a")
False
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.errors import StateError, explain, shorten
from thalweg.foreign import listed

Key = Hashable
#: Makes of the values of some keys, None where there is none, what they are to be.
Change = Callable[[list[Any]], Sequence[Any]]

NAN = float("nan")
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (naive datetimes are a kind of key)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)

#: Kinds of dates and times, as they are marked in stored keys and values.
DATE, NAIVE, AWARE, TIME, SPAN = range(1, 6)

#: What reading bytes raises when nobody here wrote them.
UNREADABLE = (msgspec.MsgspecError, struct.error, ValueError, TypeError, OverflowError)


def canonical(key: Any) -> Key:
    """Return the one representative of all keys that are the same as ``key``."""
    if key is None or isinstance(key, str | bytes):
        return key
    if isinstance(key, np.generic):
        return canonical(key.item())
    if isinstance(key, int):
        return _checked_int(int(key))
    if isinstance(key, float):
        return _canonical_float(key)
    if isinstance(key, tuple):
        return tuple(canonical(part) for part in key)
    if isinstance(key, dt.date | dt.time | dt.timedelta):
        return checked_moment(key)
    raise StateError(
        explain(
            f"key {shorten(key)}",
            expected="None, a number, text, bytes, a date or time, or a tuple of these",
            got=type(key).__name__,
            hint="use a field of such a type, for example its str()",
        )
    )


def _checked_int(key: int) -> int:
    if -(1 << 63) <= key < 1 << 64:
        return key
    raise _unfit(key, "a number of at most 64 bits")


def _canonical_float(key: float) -> float | int:
    if math.isnan(key):
        return NAN
    if key.is_integer() and -(2.0**63) <= key < 2.0**64:
        return int(key)
    return key


def checked_moment(value: Any) -> Any:
    """Bring a date, time or duration into the form that can be written; refuse what cannot."""
    if getattr(value, "unit", None) == "ns":  # of pandas
        value = _without_nanos(value)
    if isinstance(value, dt.datetime) and value.tzinfo:
        try:
            return value.astimezone(dt.UTC)
        except OverflowError as error:
            raise _unfit(value, "an instant that has a name in UTC") from error
    if isinstance(value, dt.time) and value.tzinfo:
        raise _unfit(value, "a time without a time zone")
    if isinstance(value, dt.timedelta) and not -(1 << 63) <= value // _MICROSECOND < 1 << 63:
        raise _unfit(value, "a duration of at most 64 bits of microseconds")
    return value


def _without_nanos(value: Any) -> dt.datetime | dt.timedelta:
    """Cut to microseconds, as a key is where it is stored and hashed."""
    is_span = isinstance(value, dt.timedelta)
    found: dt.datetime | dt.timedelta
    found = value.to_pytimedelta() if is_span else value.to_pydatetime(warn=False)
    return found


def _unfit(value: Any, expected: str) -> StateError:
    return StateError(explain(f"key or value {shorten(value)}", "", expected, hint="use its str()"))


def moment_bits(key: Key) -> tuple[int, int]:
    """Give the kind and the 64 bits of a canonical date or time."""
    if isinstance(key, dt.datetime):
        if key.tzinfo:
            return AWARE, (key - _EPOCH_UTC) // _MICROSECOND
        return NAIVE, (key - _EPOCH) // _MICROSECOND
    if isinstance(key, dt.date):
        return DATE, key.toordinal() - _EPOCH.toordinal()
    if isinstance(key, dt.time):
        since = dt.timedelta(
            hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond
        )
        return TIME, since // _MICROSECOND
    assert isinstance(key, dt.timedelta)  # noqa: S101 (canonical() lets nothing else through)
    return SPAN, key // _MICROSECOND


# --- bytes, for stores -------------------------------------------------------------------------


def encode_key(key: Any) -> bytes:
    """Write a key as bytes; keys that are the same give the same bytes.

    >>> encode_key(1) == encode_key(1.0) == encode_key(True)
    True
    """
    try:
        return msgspec.msgpack.encode(_to_plain(canonical(key)))
    except UnicodeEncodeError as error:
        raise _unfit(key, "text without lone surrogates") from error


def decode_key(data: bytes) -> Key:
    """Read back what :func:`encode_key` wrote, in canonical form.

    >>> decode_key(encode_key(("eu", 2.0)))
    ('eu', 2)
    """
    try:
        return _from_plain(msgspec.msgpack.decode(data, ext_hook=read_moment))
    except UNREADABLE as error:
        text = explain("stored key", expected="the bytes of encode_key", got=shorten(data))
        raise StateError(text) from error


def _to_plain(key: Any) -> Any:
    if isinstance(key, tuple):
        return [_to_plain(part) for part in key]
    return write_moment(key) if isinstance(key, dt.date | dt.time | dt.timedelta) else key


def write_moment(value: dt.date | dt.time | dt.timedelta) -> msgspec.msgpack.Ext:
    """Write a date, time or duration so that its kind is kept."""
    kind, bits = moment_bits(checked_moment(value))
    return msgspec.msgpack.Ext(kind, struct.pack("<q", bits))


def _from_plain(value: Any) -> Key:
    if isinstance(value, list):
        return tuple(_from_plain(part) for part in value)
    if isinstance(value, dict):
        text = "a dictionary is no key"
        raise TypeError(text)
    return NAN if _is_nan(value) else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def read_moment(code: int, data: memoryview) -> Any:
    """Read what :func:`write_moment` wrote; an instant comes back in UTC."""
    if code not in (DATE, NAIVE, AWARE, TIME, SPAN):
        raise StateError(explain("stored value", expected="a known extension", got=f"code {code}"))
    bits = struct.unpack("<q", data)[0]
    if code == DATE:
        return dt.date.fromordinal(bits + _EPOCH.toordinal())
    span = dt.timedelta(microseconds=bits)
    if code == NAIVE:
        return _EPOCH + span
    if code == AWARE:
        return _EPOCH_UTC + span
    return (_EPOCH + span).time() if code == TIME else span


# --- types of key columns ---------------------------------------------------------------------


def refusal(type_: pa.DataType) -> str | None:
    """Say why a column of this type cannot be a key, or None when it can.

    >>> refusal(pa.string()) is None, refusal(pa.list_(pa.int64()))
    (True, 'list<item: int64> has no stable hash')
    """
    if pa.types.is_dictionary(type_):
        return refusal(type_.value_type)
    if is_mixed(type_):
        return None  # each value tells
    if pa.types.is_temporal(type_) and getattr(type_, "unit", "us") == "ns":
        return f"{type_} is finer than Python's microseconds; cast it to 'us'"
    if (
        pa.types.is_null(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or is_bytes_like(type_)
        or (pa.types.is_temporal(type_) and not pa.types.is_interval(type_))
    ):
        return None
    return f"{type_} has no stable hash"


def is_mixed(type_: pa.DataType) -> bool:
    """Say whether each value has a type of its own (:mod:`thalweg.anyvalues`)."""
    return isinstance(type_, pa.ExtensionType)


def is_bytes_like(type_: pa.DataType) -> bool:
    """Say whether values of this type are text or bytes."""
    types = pa.types
    return bool(
        types.is_string(type_)
        or types.is_large_string(type_)
        or types.is_string_view(type_)
        or types.is_binary(type_)
        or types.is_large_binary(type_)
        or types.is_binary_view(type_)
        or types.is_fixed_size_binary(type_)
    )


def is_text(type_: pa.DataType) -> bool:
    """Say whether values of this type are text."""
    types = pa.types
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    )


# --- columns to keys and back ------------------------------------------------------------------


def key_values(columns: Sequence[pa.Array], names: Sequence[str] = ()) -> list[Any]:
    """Turn columns, of fields with these names, into one key per row, ready for a dictionary.

    >>> key_values([pa.array(["a", None])])
    ['a', None]
    >>> key_values([pa.array(["a"]), pa.array([0.0])])
    [('a', 0.0)]
    """
    named = zip(columns, names or [""] * len(columns), strict=True)
    values = [_column_values(column, name) for column, name in named]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def is_plain(type_: pa.DataType) -> bool:
    """Say whether values of this type are keys as they are: text, bytes, whole numbers, dates."""
    if pa.types.is_dictionary(type_):
        return is_plain(type_.value_type)
    return not (pa.types.is_floating(type_) or pa.types.is_timestamp(type_) or is_mixed(type_))


def _column_values(column: pa.Array, name: str) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    type_ = column.type
    if is_mixed(type_):
        return mixed_keys(column.to_pylist())
    if pa.types.is_floating(type_):
        column = one_way(column)
        if pc.any(pc.is_nan(column)).as_py():
            return [NAN if _is_nan(value) else value for value in column.to_pylist()]
    elif pa.types.is_timestamp(type_) and type_.tz:
        column = column.cast(pa.timestamp(type_.unit, "UTC"))
    return listed(column, name)


def one_way(column: pa.Array) -> pa.Array:
    """Write the same key one way, where Arrow knows several: zero with a sign, kinds of NaN.

    >>> one_way(pa.array([-0.0, 1.0])).to_pylist()
    [0.0, 1.0]
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_floating(column.type):
        return column
    wide = pc.add(column.cast(pa.float64()), 0.0)  # turns -0.0 into 0.0
    return pc.if_else(pc.is_nan(wide), pa.scalar(NAN), wide)


#: Types whose values are keys as they are.
_AS_THEY_ARE = frozenset([str, int, bytes, bool, type(None)])


def mixed_keys(values: list[Any]) -> list[Key]:
    """Turn values of any types into keys; lists become tuples.

    >>> mixed_keys(["a", 1.0, [2, "b"]])
    ['a', 1, (2, 'b')]
    """
    if _AS_THEY_ARE.issuperset(map(type, values)):
        return values
    return [canonical(_frozen(value)) for value in values]


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def key_arrays(keys: Sequence[Any], types: Sequence[pa.DataType]) -> list[pa.Array]:
    """Turn keys back into columns of the given types; the inverse of :func:`key_values`."""
    if len(types) == 1:
        return [_key_array(keys, types[0])]
    return [_key_array([key[i] for key in keys], type_) for i, type_ in enumerate(types)]


def _key_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    if is_mixed(type_):
        return type_.encode(values)
    if pa.types.is_boolean(type_):  # a stored True comes back as 1
        values = [None if value is None else bool(value) for value in values]
    return pa.array(values, type_)
