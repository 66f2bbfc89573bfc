"""A type for fields that hold any plain value, mixed as it comes: Storm's tuples are like that.

Values are msgpack in an Arrow column, written and read for a whole column at once.

>>> column = ANYTHING.encode(["to", 2, None, [1, "x"]])
>>> column.type, column.to_pylist()
(anything, ['to', 2, None, [1, 'x']])
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.codecs import MsgpackCodec
from thalweg.errors import StateError, explain
from thalweg.keys import UNREADABLE

_CODEC = MsgpackCodec()
_encode = msgspec.msgpack.Encoder().encode
#: Types of values that nobody can change in place, so that they need not be copied.
SCALARS = frozenset([str, int, float, bool, bytes, type(None)])
_STRINGS = frozenset([str])


class AnyScalar(pa.ExtensionScalar):
    """One value of such a column."""

    def as_py(self, **_options: Any) -> Any:
        """Give the Python value."""
        return None if self.value is None else _CODEC.decode(self.value.as_py())


class AnyArray(pa.ExtensionArray):
    """A column of any plain values."""

    def to_pylist(self, **_options: Any) -> list[Any]:
        """Give the Python values, all read by one call."""
        if not self.null_count:
            return _decoded(self.storage)
        values = iter(_decoded(self.storage.drop_null()))
        return [next(values) if valid else None for valid in self.is_valid().to_pylist()]


class Anything(pa.ExtensionType):
    """Any plain value: None, numbers, text, bytes, dates, lists and dictionaries of these."""

    def __init__(self) -> None:
        super().__init__(pa.binary(), "thalweg.anything")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Anything:
        del storage_type, serialized
        return cls()

    def __arrow_ext_class__(self) -> type[AnyArray]:
        return AnyArray

    def __arrow_ext_scalar_class__(self) -> type[AnyScalar]:
        return AnyScalar

    def __str__(self) -> str:
        return "anything"

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(Anything)

    def encode(self, values: Sequence[Any], kinds: set[type] | None = None) -> AnyArray:
        """Make a column; a value that is not plain raises StateError.

        ``kinds`` are the types of the values, where they are known.
        """
        kinds = set(map(type, values)) if kinds is None else kinds
        storage = _texts(values) if kinds == {str} else None
        if storage is None:
            storage = pa.array(_each(values, kinds), pa.binary())
        return pa.ExtensionArray.from_storage(self, storage)


#: The type: declare a field ``{"value": anything}``.
ANYTHING = anything = Anything()


def is_anything(type_: pa.DataType | None) -> bool:
    """Say whether a field holds any values."""
    return isinstance(type_, Anything)


def bare(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Give the bytes in place of any values, for Arrow's kernels; :func:`dressed` is the way back.

    Equal bytes are equal values, but 1 and 1.0 have different bytes.
    """
    if not any(map(is_anything, batch.schema.types)):
        return batch
    columns = [c.storage if is_anything(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def dressed(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Give a column of bytes the type again that it had before :func:`bare`."""
    return pa.ExtensionArray.from_storage(type_, column) if is_anything(type_) else column


def _each(values: Sequence[Any], kinds: set[type]) -> list[bytes | None]:
    """Write value by value; msgspec alone does it where there is nothing but scalars."""
    if kinds <= SCALARS:
        try:
            if type(None) not in kinds:
                return list(map(_encode, values))
            return [None if value is None else _encode(value) for value in values]
        except (OverflowError, UnicodeEncodeError):
            pass  # the codec knows what to do with long numbers, and refuses bad text
    return [None if value is None else _write(value) for value in values]


def _write(value: Any) -> bytes:
    """Write one value; lists and dictionaries of scalars need not be looked at part by part."""
    kind = type(value)
    if kind is list and SCALARS.issuperset(map(type, value)):
        direct = True
    else:
        direct = (
            kind is dict
            and _STRINGS.issuperset(map(type, value))
            and (SCALARS.issuperset(map(type, value.values())))
        )
    try:
        return _encode(value) if direct else _CODEC.encode(value)
    except (OverflowError, UnicodeEncodeError):
        return _CODEC.encode(value)


def _texts(values: Sequence[str]) -> pa.Array | None:
    """Write texts at once: Arrow knows how long each is, so where it ends among the others."""
    try:
        data = _encode(values)
        lengths = np.diff(_offsets(pa.array(values, pa.string())))
    except (UnicodeEncodeError, pa.ArrowException, AttributeError):
        return None  # bad text is found one by one, and what Arrow cuts into chunks is rare
    sizes = lengths + 1 + (lengths > 31) + (lengths > 255) + 2 * (lengths > 65535)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    begin = len(data) - int(offsets[-1])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)[begin:]]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _decoded(storage: pa.Array) -> list[Any]:
    """Read all values as one msgpack list; none of them is null."""
    if not len(storage):
        return []
    offsets = _offsets(storage)
    data = storage.buffers()[2][int(offsets[0]) : int(offsets[-1])].to_pybytes()
    try:
        values: list[Any] = _CODEC.decode_all(len(storage), data)
    except UNREADABLE as error:
        text = explain("column of any values", expected="msgpack of each value", got=str(error))
        raise StateError(text) from error
    return values


def _offsets(array: pa.Array) -> Any:
    """View where the values of a column of text or bytes begin and end."""
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)


with contextlib.suppress(pa.ArrowKeyError):  # known already, when the module is loaded anew
    pa.register_extension_type(ANYTHING)
