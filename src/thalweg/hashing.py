"""Stable 64-bit hashes of keys, and key groups.

A hash depends on nothing but the key: not on the process, the platform or ``PYTHONHASHSEED``.
Scalars and Arrow columns hash alike. The mixing step is the finaliser of SplitMix64 (Steele, Lea,
Flood: Fast splittable pseudorandom number generators, 2014).

>>> hash_key("a") == hash_key(b"a")
False
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.errors import StateError, explain
from thalweg.keys import (
    AWARE,
    DATE,
    NAIVE,
    NAN,
    SPAN,
    TIME,
    canonical,
    is_bytes_like,
    is_mixed,
    is_text,
    mixed_keys,
    moment_bits,
    refusal,
)

Hashes = npt.NDArray[np.uint64]

#: Number of key groups unless a topology says otherwise; the unit that scaling moves.
KEY_GROUPS = 1024

_MASK = (1 << 64) - 1
# One odd constant per kind of key, so that equal bits of different kinds hash apart.
_NULL, _INT, _FLOAT, _TEXT, _BYTES, *_MOMENTS, _TUPLE = (
    0x9E3779B97F4A7C15 * (2 * i + 1) & _MASK for i in range(11)
)
_MOMENT = dict(zip((DATE, NAIVE, AWARE, TIME, SPAN), _MOMENTS, strict=True))

# Longer text is digested first: hashing it word by word would loop in Python.
_LONG_BYTES = 256


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
    kind, bits = moment_bits(key)
    return _mix(bits & _MASK ^ _MOMENT[kind])


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


# --- columns -----------------------------------------------------------------------------------


def hash_columns(columns: Sequence[pa.Array]) -> Hashes:
    """Hash the key that each row of these columns forms: one column a scalar, several a tuple."""
    if len(columns) == 1:
        return _hash_column(columns[0])
    mixed = np.full(len(columns[0]), _mix(_TUPLE ^ len(columns)), dtype=np.uint64)
    for column in columns:
        mixed = _mix_array(mixed ^ _hash_column(column))
    return mixed


def _hash_column(column: pa.Array) -> Hashes:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    reason = refusal(column.type)
    if reason:
        raise StateError(explain("key column", expected="a type with a stable hash", got=reason))
    if is_mixed(column.type):
        return _hash_mixed(mixed_keys(column.to_pylist()))
    if pa.types.is_null(column.type):
        return np.full(len(column), _mix(_NULL), dtype=np.uint64)
    if is_bytes_like(column.type):
        hashes = _hash_bytes_column(column)
    else:
        hashes = _hash_fixed_column(column)
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = _mix(_NULL)
    return hashes


#: Columns for values of one type, with which many are hashed at once.
_ONE_TYPE = {str: pa.string(), int: pa.int64(), bytes: pa.binary()}


def _hash_mixed(keys: Sequence[Any]) -> Hashes:
    """Hash keys of any types, as a column where they are of one type after all."""
    types = set(map(type, keys))
    type_ = _ONE_TYPE.get(next(iter(types))) if len(types) == 1 else None
    if type_ is not None:
        try:
            return _hash_column(pa.array(keys, type_))
        except (OverflowError, pa.ArrowInvalid):
            pass  # numbers of 64 bits without a sign
    return np.fromiter(map(hash_key, keys), np.uint64, len(keys))


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
        kind = _MOMENT[AWARE if type_.tz else NAIVE]
        column = column.cast(pa.timestamp("us", type_.tz)).cast(pa.int64())
    elif pa.types.is_date(type_):
        kind, column = _MOMENT[DATE], column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_time(type_):
        kind, column = _MOMENT[TIME], column.cast(pa.time64("us")).cast(pa.int64())
    elif pa.types.is_duration(type_):
        kind, column = _MOMENT[SPAN], column.cast(pa.duration("us")).cast(pa.int64())
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
    kind = _TEXT if is_text(column.type) else _BYTES
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


def key_groups(hashes: Hashes, groups: int = KEY_GROUPS) -> npt.NDArray[np.int64]:
    """Map hashes to key groups."""
    return (hashes % np.uint64(groups)).astype(np.int64)
