"""Many keys at once: their bytes and hashes, and back.

Each function gives exactly what :func:`thalweg.keys.encode_key`, :func:`thalweg.hashing.hash_key`
and :func:`thalweg.keys.decode_key` give key by key; the usual types take a shorter way.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.hashing import Hashes, hash_columns, hash_key
from thalweg.keys import Key, decode_key, encode_key

#: Keys of these types are their own canonical form.
SIMPLE = frozenset([str, int, bytes, type(None)])
_COLUMN_TYPES = {str: pa.string(), int: pa.int64(), bytes: pa.binary(), float: pa.float64()}
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def encode_keys(keys: Sequence[Key]) -> list[bytes]:
    """Write many keys as bytes."""
    if _are_plain(keys):
        try:
            return list(map(_encode, keys))
        except (OverflowError, UnicodeEncodeError):
            pass  # encode_key says what is wrong with which key
    return list(map(encode_key, keys))


def _are_plain(keys: Sequence[Any]) -> bool:
    """Say whether all keys, or all parts of keys that are tuples, are canonical as they are."""
    types = set(map(type, keys))
    if types == {tuple}:
        types = set(map(type, itertools.chain.from_iterable(keys)))
    return SIMPLE.issuperset(types)


def decode_keys(data: pa.Array) -> list[Key]:
    """Read back many keys."""
    stored = data.to_pylist()
    try:
        keys = list(map(_decode, stored))
    except msgspec.MsgspecError:
        return list(map(decode_key, stored))  # which says what is wrong with which key
    return [
        key if type(key) in SIMPLE else decode_key(data)
        for key, data in zip(keys, stored, strict=True)
    ]


def hash_keys(keys: Sequence[Key]) -> Hashes:
    """Hash many keys."""
    columns = _columns(keys)
    if columns is None:
        return np.fromiter(map(hash_key, keys), dtype=np.uint64, count=len(keys))
    return hash_columns(columns)


def _columns(keys: Sequence[Key]) -> list[pa.Array] | None:
    """Give columns whose rows are these keys, or None when they are not of one simple type."""
    types = set(map(type, keys))
    if types != {tuple}:
        column = _column(keys, types)
        return None if column is None else [column]
    lengths = set(map(len, keys))  # type: ignore[arg-type] # all of them are tuples
    if len(lengths) != 1 or min(lengths) < 2:
        return None  # a tuple of one part is no column: it would hash as that part
    columns = []
    for parts in zip(*keys, strict=True):
        column = _column(parts, set(map(type, parts)))
        if column is None:
            return None
        columns.append(column)
    return columns


def _column(values: Sequence[Any], types: set[type]) -> pa.Array | None:
    types = types - {type(None)}
    type_ = _COLUMN_TYPES.get(types.pop()) if len(types) == 1 else None
    if type_ is None:
        return None
    try:
        return pa.array(values, type_)
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):
        return None
