"""How values of keyed state become bytes and come back the same. Never pickle.

>>> codec = MsgpackCodec()
>>> codec.decode(codec.encode({"seen": {1, 2}, "last": ("eu", None)}))
{'seen': {1, 2}, 'last': ('eu', None)}
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from thalweg.errors import StateError, explain, shorten
from thalweg.keys import AWARE, NAIVE, SPAN, UNREADABLE, read_moment, write_moment

_PLAIN = (type(None), bool, float, str, bytes)
_TUPLE, _SET, _FROZENSET, _BIG_INT, _MAP, _NANOS = 10, 11, 12, 13, 14, 15
#: Kinds of times with nanoseconds, as Arrow calls them.
_NANO_TYPES = {NAIVE: pa.timestamp("ns"), AWARE: pa.timestamp("ns", "UTC"), SPAN: pa.duration("ns")}


class Codec(Protocol):
    """Bytes from a value, and the same value from the bytes."""

    def encode(self, value: Any) -> bytes:
        """Write a value."""

    def decode(self, data: bytes) -> Any:
        """Read a value that ``encode`` wrote."""


class MsgpackCodec:
    """Msgpack by msgspec, for plain values, or for one declared type (a Struct, a dataclass ...).

    Plain values are None, numbers, text, bytes, dates and times, and lists, tuples, sets and
    dictionaries of them; each comes back as what it was.
    """

    def __init__(self, type_: Any = Any) -> None:
        self._typed = type_ is not Any
        self._decoder = msgspec.msgpack.Decoder(type_, ext_hook=_read_ext)

    def encode(self, value: Any) -> bytes:
        """Write a value."""
        try:
            return msgspec.msgpack.encode(value if self._typed else _to_plain(value))
        except (TypeError, OverflowError, ValueError, msgspec.MsgspecError) as error:
            raise StateError(_refused(value, str(error))) from error

    def decode(self, data: bytes) -> Any:
        """Read a value."""
        try:
            return self._decoder.decode(data)
        except UNREADABLE as error:
            raise StateError(explain("stored value", got=f"{shorten(data)}: {error}")) from error

    def decode_many(self, data: Iterable[bytes]) -> list[Any]:
        """Read many values at once; what nobody here wrote raises one of ``UNREADABLE``."""
        return list(map(self._decoder.decode, data))

    def decode_all(self, count: int, data: bytes) -> list[Any]:
        """Read so many plain values that stand behind each other; errors as above."""
        listed = b"\xdd" + count.to_bytes(4, "big") + data
        return list(msgspec.msgpack.decode(listed, ext_hook=_read_ext))


class ArrowCodec:
    """Arrow IPC, for values that are record batches."""

    def encode(self, value: pa.RecordBatch) -> bytes:
        """Write a record batch."""
        if not isinstance(value, pa.RecordBatch):
            raise StateError(_refused(value, "ArrowCodec keeps pyarrow.RecordBatch"))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        return sink.getvalue().to_pybytes()

    def decode(self, data: bytes) -> pa.RecordBatch:
        """Read a record batch."""
        try:
            with pa.ipc.open_stream(data) as reader:
                return reader.read_next_batch()
        except (pa.ArrowException, OSError, StopIteration) as error:
            raise StateError(explain("stored record batch", got=str(error))) from error


def _refused(value: Any, reason: str) -> str:
    return explain(
        "value for keyed state",
        expected="plain values, or the declared state_type",
        got=f"{shorten(value, 80)}: {reason}",
        hint="set state_type = YourStruct or state_codec on the bolt",
    )


def _to_plain(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, int):
        fits = -(1 << 63) <= value < 1 << 64
        return int(value) if fits else msgspec.msgpack.Ext(_BIG_INT, str(int(value)).encode())
    if type(value) is list:
        return [_to_plain(part) for part in value]
    if type(value) is dict:
        if all(type(key) is str for key in value):
            return {key: _to_plain(part) for key, part in value.items()}
        return _ext(_MAP, [[_to_plain(key), _to_plain(part)] for key, part in value.items()])
    if type(value) is tuple:
        return _ext(_TUPLE, [_to_plain(part) for part in value])
    if type(value) in (set, frozenset):  # in a fixed order, so that equal sets give equal bytes
        parts = sorted((_to_plain(part) for part in value), key=msgspec.msgpack.encode)
        return _ext(_SET if type(value) is set else _FROZENSET, parts)
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        nanos = write_nanos(value)
        return write_moment(value) if nanos is None else _ext(_NANOS, nanos)
    name = type(value).__name__
    told = (
        f"a dataclass: state_type = {name}"
        if dataclasses.is_dataclass(value)
        else "not a plain value"
    )
    raise TypeError(f"{name} is {told}")  # noqa: EM102 (wrapped above)


def _ext(code: int, parts: list[Any]) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(parts))


def write_nanos(value: Any) -> list[int] | None:
    """Give the kind and the number of nanoseconds of a time that has them; it is of pandas."""
    if getattr(value, "unit", None) != "ns":
        return None
    zoned = AWARE if getattr(value, "tzinfo", None) else NAIVE
    return [SPAN if isinstance(value, dt.timedelta) else zoned, value.value]


def read_nanos(parts: list[int]) -> Any:
    """Read what :func:`write_nanos` wrote; an instant comes back in UTC."""
    kind, nanos = parts
    return pa.scalar(nanos, _NANO_TYPES[kind]).as_py()  # which says so without pandas


def _read_ext(code: int, data: memoryview) -> Any:
    if code == _BIG_INT:
        return int(bytes(data))
    if code not in (_NANOS, _TUPLE, _SET, _FROZENSET, _MAP):
        return read_moment(code, data)
    parts = msgspec.msgpack.decode(data, ext_hook=_read_ext)
    if code == _NANOS:
        return read_nanos(parts)
    if code == _MAP:
        return {key: value for key, value in parts}  # noqa: C416 (lists are pairs here)
    return {_TUPLE: tuple, _SET: set, _FROZENSET: frozenset}[code](parts)
