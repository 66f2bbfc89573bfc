"""Keys and values of stored state as JSON, and back.

JSON lacks some types; they are written as an object with one name that begins with ``$``. Keys
are never lists, so a tuple that is a key is written as a plain list.

>>> to_json({"seen": {1}, "last": ("eu", b"x")})
{'seen': {'$set': [1]}, 'last': {'$tuple': ['eu', {'$bytes': 'eA=='}]}}
>>> from_json(to_json({"seen": {1}, "last": ("eu", b"x")}))
{'seen': {1}, 'last': ('eu', b'x')}
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from thalweg.codecs import ArrowCodec, MsgpackCodec, read_nanos, write_nanos
from thalweg.errors import StateError, ThalwegError, UsageError, explain, shorten
from thalweg.keys import Key, canonical, decode_key
from thalweg.timers import NOTHING, TimersCodec

_MICROSECOND = dt.timedelta(microseconds=1)
_plain = MsgpackCodec()


def to_json(value: Any) -> Any:
    """Write a value with types that JSON has."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, list):
        return [to_json(part) for part in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and key[:1] != "$" for key in value):
            return {key: to_json(part) for key, part in value.items()}
        return {"$map": [[to_json(key), to_json(part)] for key, part in value.items()]}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, tuple | set | frozenset):
        return {f"${type(value).__name__}": [to_json(part) for part in value]}
    nanos = write_nanos(value)
    if nanos is not None:
        return {"$nanoseconds": nanos}
    if isinstance(value, dt.timedelta):
        return {"$timedelta": value // _MICROSECOND}
    if isinstance(value, dt.date | dt.time):
        return {f"${type(value).__name__}": value.isoformat()}
    return value


def _from_bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_TAGS: dict[str, Callable[[Any], Any]] = {
    "$float": float,
    "$map": lambda pairs: {from_json(key): from_json(part) for key, part in pairs},
    "$bytes": _from_bytes,
    "$tuple": lambda parts: tuple(map(from_json, parts)),
    "$set": lambda parts: set(map(from_json, parts)),
    "$frozenset": lambda parts: frozenset(map(from_json, parts)),
    "$timedelta": lambda count: count * _MICROSECOND,
    "$datetime": dt.datetime.fromisoformat,
    "$nanoseconds": read_nanos,
    "$date": dt.date.fromisoformat,
    "$time": dt.time.fromisoformat,
}


def from_json(value: Any) -> Any:
    """Read what :func:`to_json` wrote."""
    if isinstance(value, list):
        return [from_json(part) for part in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if len(value) != 1 or tag not in _TAGS:
        return {key: from_json(part) for key, part in value.items()}
    try:
        return _TAGS[tag](value[tag])
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        got = f"{shorten(value[tag])}: {error}"
        raise UsageError(explain(f"value of {tag}", got=got)) from error


def key_to_json(data: bytes) -> Any:
    """Write a stored key."""
    return _without_tuples(to_json(decode_key(data)))


def _without_tuples(written: Any) -> Any:
    if isinstance(written, dict) and "$tuple" in written:
        return [_without_tuples(part) for part in written["$tuple"]]
    return written


def key_from_json(written: Any) -> Key:
    """Read what :func:`key_to_json` wrote."""
    if isinstance(written, list):
        return tuple(map(key_from_json, written))
    key: Key = from_json(written)
    return key


def keys_meant(text: str) -> list[Key]:
    """Give the keys that a text may mean: JSON if it is that, and the text itself.

    >>> keys_meant("5"), keys_meant("eu"), keys_meant('["eu", 5]')
    ([5, '5'], ['eu'], [('eu', 5), '["eu", 5]'])
    """
    try:
        return [canonical(key_from_json(json.loads(text))), text]
    except (ValueError, ThalwegError):
        return [text]


@dataclass(frozen=True)
class Values:
    """Reads and writes the values of a component, whose codec is known by its name alone.

    A value that needs the component's own code to be understood is shown as ``$raw``, its bytes.
    """

    codec: str

    def to_json(self, data: bytes) -> Any:
        """Write a stored value."""
        raw = {"$raw": base64.b64encode(data).decode()}
        try:
            if self.codec.startswith("ArrowCodec("):
                batch = ArrowCodec().decode(data)
                shown = ", ".join(f"{field.name}: {field.type}" for field in batch.schema)
                return {"$arrow": f"{batch.num_rows} rows ({shown})"} | raw
            if self.codec.startswith(f"{TimersCodec.__name__}("):
                timed = TimersCodec().decode(data)
                value = {} if timed.value is NOTHING else {"value": to_json(timed.value)}
                return {"$timed": value | {"timers": timed.timers}} | raw
            return to_json(_plain.decode(data)) if self._is_msgpack else raw
        except ThalwegError:
            return raw

    def from_json(self, written: Any) -> bytes:
        """Make the bytes to store; what was exported comes back the same."""
        if isinstance(written, dict) and "$raw" in written:
            return _from_bytes(written["$raw"])
        if not self._is_msgpack:
            hint = "such values can only be imported as they were exported"
            text = explain(f"value for {self.codec}", "", "$raw", shorten(written, 80), hint)
            raise UsageError(text)
        value = from_json(written)
        if self.codec in ("", "MsgpackCodec(Any)"):
            return _plain.encode(value)
        try:
            return msgspec.msgpack.encode(value)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            text = explain(f"value for {self.codec}", got=f"{shorten(written, 80)}: {error}")
            raise StateError(text) from error

    @property
    def _is_msgpack(self) -> bool:
        return not self.codec or self.codec.startswith("MsgpackCodec(")
