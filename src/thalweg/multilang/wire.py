r"""Messages as bytes, in the two forms that Storm's components speak.

JSON is followed by a line ``end``; msgpack needs no end. Bytes come in any pieces:

>>> wire = JsonWire()
>>> wire.feed(b'{"pid": 1}\nen'), wire.feed(b'd\n{"command": "sync"}\nend\n')
([], [{'pid': 1}, {'command': 'sync'}])
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, Literal, Protocol

import msgpack  # type: ignore[import-untyped]  # it brings no types
import msgspec

from thalweg.errors import ThalwegError, UsageError, explain, shorten

SerializerName = Literal["json", "msgpack"]

#: A message may be so long and no longer.
MOST_BYTES = 64 << 20
#: Bytes that are unpacked at once.
_PIECE = 1 << 16
_END = b"\nend\n"
#: How its end is read: programs on some systems write the other line ends.
_ENDS, _LONGEST_END = re.compile(rb"\nend\r?\n"), 6


class ProtocolError(ThalwegError):
    """A component has said something that the protocol does not know."""

    #: Messages that came before it.
    before: Sequence[Any] = ()


class Wire(Protocol):
    """Turns messages into bytes and back."""

    def encode(self, message: Any) -> bytes:
        """Write a message."""

    def feed(self, data: bytes) -> list[Any]:
        """Take bytes, give the messages that they complete."""

    @property
    def begun(self) -> bool:
        """Whether a message has begun of which more is to come."""


class JsonWire:
    """JSON with a line ``end`` behind each message."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._buffer = bytearray()
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder().decode

    def encode(self, message: Any) -> bytes:
        """Write a message."""
        return self._encode(message) + _END

    def feed(self, data: bytes) -> list[Any]:
        """Take bytes, give the messages that they complete."""
        buffer = self._buffer
        seen = max(0, len(buffer) - _LONGEST_END)
        buffer += data
        if _ENDS.search(buffer, seen) is None:
            self._check(len(buffer))
            return []
        *whole, rest = _ENDS.split(bytes(buffer))
        self._buffer = bytearray(rest)
        found: list[Any] = []
        try:
            if len(buffer) > self._most:  # few of them are so long, together with the rest
                for text in whole:
                    self._check(len(text))
                    found.append(self._message(text))
                self._check(len(rest))
            else:
                found.extend(map(self._message, whole))
        except ProtocolError as error:
            error.before = found
            raise
        return found

    @property
    def begun(self) -> bool:
        """Whether a message has begun of which more is to come."""
        return bool(self._buffer.strip())

    def _check(self, size: int) -> None:
        if size > self._most:
            raise _too_long(self._most)

    def _message(self, text: bytes) -> Any:
        try:
            return self._decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return self._lenient(text, error)

    def _lenient(self, text: bytes, error: Exception) -> Any:
        """Read what JSON does not know and programs write all the same: NaN, half of a pair."""
        try:
            return json.loads(text.decode())
        except (ValueError, RecursionError):
            raise _unreadable(text, error) from error


_UNREADABLE = (ValueError, TypeError, RecursionError, msgpack.UnpackException)


class MsgpackWire:
    """msgpack, message behind message."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._encode = msgspec.msgpack.Encoder().encode
        self._piece = min(most, _PIECE)
        #: Bytes that came, and those of them that are whole messages.
        self._came = self._whole = 0
        self._unpacker = msgpack.Unpacker(
            raw=False, strict_map_key=False, max_buffer_size=most + self._piece, use_list=True
        )

    def encode(self, message: Any) -> bytes:
        """Write a message."""
        return self._encode(message)

    def feed(self, data: bytes) -> list[Any]:
        """Take bytes, give the messages that they complete."""
        found: list[Any] = []
        try:
            for start in range(0, len(data), self._piece):
                self._feed(data[start : start + self._piece], found)
        except ProtocolError as error:
            error.before = found
            raise
        return found

    @property
    def begun(self) -> bool:
        """Whether a message has begun of which more is to come."""
        return self._came > self._whole

    def _feed(self, data: bytes, found: list[Any]) -> None:
        self._came += len(data)
        try:
            self._unpacker.feed(data)
            for message in self._unpacker:
                found.append(message)
                self._whole = self._unpacker.tell()
        except msgpack.BufferFull as error:
            raise _too_long(self._most) from error
        except _UNREADABLE as error:  # a list as a key, say
            raise _unreadable(data, error) from error
        if self._came - self._whole > self._most:
            raise _too_long(self._most)


#: Types of which each value is the same in JSON.
_PLAIN = frozenset({str, int, bool, type(None)})


def all_plain(values: Iterable[Any]) -> bool:
    """Say whether all values are surely the same in JSON."""
    return _PLAIN.issuperset(map(type, values))


def check_values(values: Iterable[Any]) -> None:
    """Refuse what JSON would hold as something else: NaN, infinity, bytes."""
    for value in values:
        if isinstance(value, float):
            if not isfinite(value):
                msg = f"{value} is no number of JSON"
                raise ValueError(msg)
        elif isinstance(value, bytes | bytearray | memoryview):
            msg = f"bytes {shorten(value, 40)}; msgpack can"
            raise TypeError(msg)
        elif isinstance(value, list | tuple | set | frozenset):
            check_values(value)
        elif isinstance(value, dict):
            check_values(value.keys())
            check_values(value.values())


def make_wire(name: str, most: int = MOST_BYTES) -> Wire:
    """Find the form of messages by its name."""
    kinds: dict[str, type[JsonWire] | type[MsgpackWire]]
    kinds = {"json": JsonWire, "msgpack": MsgpackWire}
    if name not in kinds:
        raise UsageError(explain("serializer", expected=f"one of {list(kinds)}", got=repr(name)))
    return kinds[name](most)


def _too_long(most: int) -> ProtocolError:
    hint = "does it print something else to its standard output?"
    return ProtocolError(explain("message", "", f"at most {most} bytes", "more", hint))


def _unreadable(data: bytes, error: Exception) -> ProtocolError:
    sample = shorten(data[:200], 120)
    hint = f"{error}; does it print something else to its standard output?"
    return ProtocolError(explain("message", "", "JSON with a line 'end', or msgpack", sample, hint))
