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
>>> hash_key("a") == hash_key(b"a")
False

The 64-bit hash depends on nothing but the key: not on the process, the platform or
``PYTHONHASHSEED``. Scalars and Arrow columns hash alike. Its mixing step is the finaliser of
SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import struct
from collections.abc import Hashable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.errors import StateError, explain, shorten

Key = Hashable
Hashes = npt.NDArray[np.uint64]

#: Number of key groups unless a topology says otherwise; the unit that scaling moves.
KEY_GROUPS = 1024

NAN = float("nan")
_MASK = (1 << 64) - 1
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (naive datetimes are a kind of key)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)

# One odd constant per kind of key, so that equal bits of different kinds hash apart.
_NULL, _INT, _FLOAT, _TEXT, _BYTES, _DATE, _NAIVE, _AWARE, _TIME, _SPAN, _TUPLE = (
    0x9E3779B97F4A7C15 * (2 * i + 1) & _MASK for i in range(11)
)
_EXT = {_DATE: 1, _NAIVE: 2, _AWARE: 3, _TIME: 4, _SPAN: 5}

#: What reading bytes raises when nobody here wrote them.
UNREADABLE = (msgspec.MsgspecError, struct.error, ValueError, TypeError, OverflowError)

# Longer text is digested first: hashing it word by word would loop in Python.
_LONG_BYTES = 256


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


def _unfit(value: Any, expected: str) -> StateError:
    return StateError(explain(f"key or value {shorten(value)}", "", expected, hint="use its str()"))


def _parts(key: Key) -> tuple[int, int]:
    """Give the kind and the 64 bits of a canonical date or time."""
    if isinstance(key, dt.datetime):
        if key.tzinfo:
            return _AWARE, (key - _EPOCH_UTC) // _MICROSECOND
        return _NAIVE, (key - _EPOCH) // _MICROSECOND
    if isinstance(key, dt.date):
        return _DATE, key.toordinal() - _EPOCH.toordinal()
    if isinstance(key, dt.time):
        since = dt.timedelta(
            hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond
        )
        return _TIME, since // _MICROSECOND
    assert isinstance(key, dt.timedelta)  # noqa: S101 (canonical() lets nothing else through)
    return _SPAN, key // _MICROSECOND


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
    kind, bits = _parts(checked_moment(value))
    return msgspec.msgpack.Ext(_EXT[kind], struct.pack("<q", bits))


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
    if code not in _EXT.values():
        raise StateError(explain("stored value", expected="a known extension", got=f"code {code}"))
    bits = struct.unpack("<q", data)[0]
    if code == _EXT[_DATE]:
        return dt.date.fromordinal(bits + _EPOCH.toordinal())
    span = dt.timedelta(microseconds=bits)
    if code == _EXT[_NAIVE]:
        return _EPOCH + span
    if code == _EXT[_AWARE]:
        return _EPOCH_UTC + span
    return (_EPOCH + span).time() if code == _EXT[_TIME] else span


# --- hash of one key ---------------------------------------------------------------------------


def hash_key(key: Any) -> int:
    """Hash one key to 64 bits; equal to :func:`hash_columns` of a column that holds it.

    >>> hash_key(7) == hash_key(7.0) == int(hash_columns([pa.array([7])])[0])
    True
    """
    return _hash_canonical(canonical(key))


def _hash_canonical(key: Any) -> int:
    if key is None:
        return _mix(_NULL)
    if isinstance(key, str):
        return _hash_bytes(key.encode("utf-8", "surrogatepass"), _TEXT)
    if isinstance(key, bytes):
        return _hash_bytes(key, _BYTES)
    if isinstance(key, int):
        return _mix(key & _MASK ^ _INT)
    if isinstance(key, float):
        return _mix(struct.unpack("<Q", struct.pack("<d", key))[0] ^ _FLOAT)
    if isinstance(key, tuple):
        mixed = _mix(_TUPLE ^ len(key))
        for part in key:
            mixed = _mix(mixed ^ _hash_canonical(part))
        return mixed
    kind, bits = _parts(key)
    return _mix(bits & _MASK ^ kind)


def _hash_bytes(data: bytes, kind: int) -> int:
    mixed = _mix(kind ^ len(data))
    if len(data) > _LONG_BYTES:
        return _mix(mixed ^ _digest(data))
    for start in range(0, len(data), 8):
        mixed = _mix(mixed ^ int.from_bytes(data[start : start + 8], "little"))
    return mixed


def _digest(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def _mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


# --- hash of columns ---------------------------------------------------------------------------


def hash_columns(columns: Sequence[pa.Array]) -> Hashes:
    """Hash the key that each row of these columns forms: one column a scalar, several a tuple."""
    if len(columns) == 1:
        return _hash_column(columns[0])
    mixed = np.full(len(columns[0]), _mix(_TUPLE ^ len(columns)), dtype=np.uint64)
    for column in columns:
        mixed = _mix_array(mixed ^ _hash_column(column))
    return mixed


def refusal(type_: pa.DataType) -> str | None:
    """Say why a column of this type cannot be a key, or None when it can.

    >>> refusal(pa.string()) is None, refusal(pa.list_(pa.int64()))
    (True, 'list<item: int64> has no stable hash')
    """
    if pa.types.is_dictionary(type_):
        return refusal(type_.value_type)
    if pa.types.is_temporal(type_) and getattr(type_, "unit", "us") == "ns":
        return f"{type_} is finer than Python's microseconds; cast it to 'us'"
    if (
        pa.types.is_null(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or _is_bytes_like(type_)
        or (pa.types.is_temporal(type_) and not pa.types.is_interval(type_))
    ):
        return None
    return f"{type_} has no stable hash"


def _is_bytes_like(type_: pa.DataType) -> bool:
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


def _is_text(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    )


def _hash_column(column: pa.Array) -> Hashes:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    reason = refusal(column.type)
    if reason:
        raise StateError(explain("key column", expected="a type with a stable hash", got=reason))
    if pa.types.is_null(column.type):
        return np.full(len(column), _mix(_NULL), dtype=np.uint64)
    if _is_bytes_like(column.type):
        hashes = _hash_bytes_column(column)
    else:
        hashes = _hash_fixed_column(column)
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = _mix(_NULL)
    return hashes


def _hash_fixed_column(column: pa.Array) -> Hashes:
    filled = column.fill_null(_zero(column.type)) if column.null_count else column
    if pa.types.is_floating(column.type):
        return _hash_floats(filled.cast(pa.float64()).to_numpy(zero_copy_only=False))
    kind, bits = _integer_bits(filled)
    return _mix_array(bits ^ np.uint64(kind))


def _zero(type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(0, pa.int32() if type_.bit_width == 32 else pa.int64()).cast(type_)


def _integer_bits(column: pa.Array) -> tuple[int, Hashes]:
    """Give the kind of a column of whole numbers, dates or times, and its values as 64 bits."""
    type_, kind = column.type, _INT
    if pa.types.is_timestamp(type_):
        kind = _AWARE if type_.tz else _NAIVE
        column = column.cast(pa.timestamp("us", type_.tz)).cast(pa.int64())
    elif pa.types.is_date(type_):
        kind, column = _DATE, column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_time(type_):
        kind, column = _TIME, column.cast(pa.time64("us")).cast(pa.int64())
    elif pa.types.is_duration(type_):
        kind, column = _SPAN, column.cast(pa.duration("us")).cast(pa.int64())
    if pa.types.is_uint64(column.type):
        return kind, column.to_numpy(zero_copy_only=False).astype(np.uint64)
    return kind, column.cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)


def _hash_floats(values: npt.NDArray[np.float64]) -> Hashes:
    whole = (values == np.floor(values)) & (values >= -(2.0**63)) & (values < 2.0**64)
    large = whole & (values >= 2.0**63)
    numbers = np.where(whole & ~large, values, 0.0).astype(np.int64).view(np.uint64)
    numbers[large] = values[large].astype(np.uint64)
    bits = np.where(np.isnan(values), NAN, values).view(np.uint64)
    return _mix_array(np.where(whole, numbers ^ np.uint64(_INT), bits ^ np.uint64(_FLOAT)))


def _hash_bytes_column(column: pa.Array) -> Hashes:
    kind = _TEXT if _is_text(column.type) else _BYTES
    column = column.cast(pa.large_string() if kind == _TEXT else pa.large_binary())
    if column.null_count:
        column = column.fill_null("" if kind == _TEXT else b"")
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, "<i8", len(column) + 1, column.offset * 8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    mixed = _mix_array(lengths.astype(np.uint64) ^ np.uint64(kind))
    if not len(column) or not lengths.any():
        return mixed
    long_rows = np.flatnonzero(lengths > _LONG_BYTES)
    words = _words_at_every_byte(data_buffer, int(starts[0]), int(offsets[-1]))
    short = np.where(lengths > _LONG_BYTES, 0, lengths)
    _mix_words(mixed, words, starts - starts[0], short)
    for row in long_rows:
        digest = _digest(data_buffer[int(starts[row]) : int(offsets[row + 1])].to_pybytes())
        mixed[row] = _mix(int(mixed[row]) ^ digest)
    return mixed


def _words_at_every_byte(buffer: pa.Buffer, start: int, end: int) -> Hashes:
    """View the buffer as overlapping little-endian words, zero-padded behind its end."""
    padded = np.zeros(end - start + 8, dtype=np.uint8)
    padded[: end - start] = np.frombuffer(buffer, np.uint8, end - start, start)
    return np.ndarray((end - start,), "<u8", padded, 0, (1,))


def _mix_words(
    mixed: Hashes, words: Hashes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> None:
    """Mix each row's words into its hash, the n-th words of all rows at once."""
    rows = np.flatnonzero(lengths > 0)
    done = 0
    while len(rows):
        left = lengths[rows] - done
        bits = np.minimum(left, 8).astype(np.uint64) * np.uint64(8)
        keep = np.where(left >= 8, np.uint64(_MASK), (np.uint64(1) << bits % 64) - np.uint64(1))
        mixed[rows] = _mix_array(mixed[rows] ^ (words[starts[rows] + done] & keep))
        rows = rows[left > 8]
        done += 8


def _mix_array(x: Hashes) -> Hashes:
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


# --- columns to keys and back ------------------------------------------------------------------


def key_values(columns: Sequence[pa.Array]) -> list[Any]:
    """Turn columns into one key per row, ready for a dictionary.

    >>> key_values([pa.array(["a", None])])
    ['a', None]
    >>> key_values([pa.array(["a"]), pa.array([0.0])])
    [('a', 0.0)]
    """
    values = [_column_values(column) for column in columns]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def is_plain(type_: pa.DataType) -> bool:
    """Say whether values of this type are keys as they are: text, bytes, whole numbers, dates."""
    if pa.types.is_dictionary(type_):
        return is_plain(type_.value_type)
    return not (pa.types.is_floating(type_) or pa.types.is_timestamp(type_))


def _column_values(column: pa.Array) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    type_ = column.type
    if pa.types.is_floating(type_):
        column = pc.add(column.cast(pa.float64()), 0.0)  # turns -0.0 into 0.0
        if pc.any(pc.is_nan(column)).as_py():
            return [NAN if _is_nan(value) else value for value in column.to_pylist()]
    elif pa.types.is_timestamp(type_) and type_.tz:
        column = column.cast(pa.timestamp(type_.unit, "UTC"))
    return column.to_pylist()


def key_arrays(keys: Sequence[Any], types: Sequence[pa.DataType]) -> list[pa.Array]:
    """Turn keys back into columns of the given types; the inverse of :func:`key_values`."""
    if len(types) == 1:
        return [_key_array(keys, types[0])]
    return [_key_array([key[i] for key in keys], type_) for i, type_ in enumerate(types)]


def _key_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(type_):  # a stored True comes back as 1
        values = [None if value is None else bool(value) for value in values]
    return pa.array(values, type_)


def key_groups(hashes: Hashes, groups: int = KEY_GROUPS) -> npt.NDArray[np.int64]:
    """Map hashes to key groups."""
    return (hashes % np.uint64(groups)).astype(np.int64)
