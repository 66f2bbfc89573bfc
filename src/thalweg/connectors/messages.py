"""Messages of a broker into record batches, and rows into messages; bad ones are told apart.

A message here is what Kafka's client gives: its value, key, place and time are methods. Other
clients' messages have those that are asked for, and say themselves where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, methodcaller
from typing import Any, Literal, cast

import msgspec
import pyarrow as pa

from thalweg.connectors.json_types import record_type
from thalweg.connectors.lines import readable
from thalweg.connectors.records import sift
from thalweg.errors import RAISED, SchemaError, UsageError, as_error, explain
from thalweg.operators.calls import unpack
from thalweg.schemas import Fields, Shape, fields

#: How values become fields: by name, or a function of the bytes (None for a message without).
Format = Literal["json", "msgpack", "text", "bytes"] | Callable[[bytes | None], Any]
#: The name of the only field of text and bytes.
VALUE = "value"
_FORMATS = ("json", "msgpack", "text", "bytes")
_TIMES = pa.timestamp("ms", "UTC")
#: What is known of a message beside its value, with the types of the fields.
EXTRA: dict[str, Any] = {
    "key": str,
    "topic": str,
    "partition": int,
    "offset": int,
    "timestamp": _TIMES,
    "headers": pa.map_(pa.string(), pa.binary()),
}
#: Called with where a message stands, its value to be read by people, and what is wrong with it.
Refuse = Callable[[str, str, str], None]


def checked_format(format_: Any) -> Format:
    """Refuse what is no format."""
    if not callable(format_) and format_ not in _FORMATS:
        expected = "'json', 'msgpack', 'text', 'bytes' or a function"
        raise UsageError(explain("format of messages", expected=expected, got=repr(format_)))
    return cast(Format, format_)


def extra_fields(asked: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Give the names of fields, by what they are to hold.

    >>> extra_fields(["key"]), extra_fields({"offset": "at"})
    ({'key': 'key'}, {'offset': 'at'})
    """
    found = dict(asked) if isinstance(asked, Mapping) else {name: name for name in asked}
    for name in found:
        if name not in EXTRA:
            raise UsageError(explain("extra field", expected=f"one of {list(EXTRA)}", got=name))
    return found


def message_fields(
    format_: Format, declared: Any, extra: Mapping[str, str], binary_keys: bool
) -> Fields | None:
    """Put together the fields of a stream of messages; None where those of values are not known."""
    if declared is None and format_ not in ("text", "bytes"):
        return None
    one = {VALUE: str if format_ == "text" else bytes}
    known = fields(one if declared is None else declared)
    types = EXTRA | ({"key": bytes} if binary_keys else {})
    more = fields({name: types[what] for what, name in extra.items()})
    return Fields(known.names + more.names, known.types + more.types)


def offset_of(message: Any) -> str:
    """Say where a message stands in Kafka."""
    return f"{message.topic()}/{message.partition()}, offset {message.offset()}"


class MessageReader:
    """Turns messages into record batches; what cannot be read is refused one by one."""

    def __init__(
        self,
        shape: Shape,
        format_: Format,
        extra: Mapping[str, str],
        refuse: Refuse,
        where: Callable[[Any], str] = offset_of,
    ) -> None:
        self._shape, self._refuse, self._where = shape, refuse, where
        self._extra = {name: what for what, name in extra.items() if name in shape.names}
        self._names = [name for name in shape.names if name not in self._extra]
        self._decode = self._decoder(format_)

    def _decoder(self, format_: Format) -> Callable[[bytes | None], Any]:
        self._columns = self._fields_of
        if callable(format_):
            self._columns = lambda records: unpack(records, self._names)
            return format_
        if format_ in ("json", "msgpack"):
            types = tuple(self._shape.fields.type_of(name) for name in self._names)
            record = record_type(Fields(tuple(self._names), types))
            kind: Any = msgspec.json if format_ == "json" else msgspec.msgpack
            return cast(Callable[[bytes | None], Any], kind.Decoder(record).decode)
        if len(self._names) != 1:
            expected = "one field beside the extra ones, for example fields=['value']"
            got = str(self._names)
            raise UsageError(explain(f"{format_} of {self._shape.subject}", "", expected, got))
        self._columns = lambda records: [records]
        return _text if format_ == "text" else _same

    def batch(self, messages: list[Any]) -> pa.RecordBatch | None:
        """Make a record batch of the messages that can be read; they are then in ``kept``."""
        self.kept: list[Any] = []
        try:
            records = [self._decode(message.value()) for message in messages]
        except RAISED:  # a function may raise anything
            messages, records = self._one_by_one(messages)
        if not messages:
            return None
        try:
            return self._build(messages, records)
        except SchemaError:
            pairs = list(zip(messages, records, strict=True))
            return sift(pairs, self._of_pairs, lambda row, error: self._bad(pairs[row][0], error))

    def _of_pairs(self, pairs: list[tuple[Any, Any]]) -> pa.RecordBatch:
        return self._build([message for message, _ in pairs], [record for _, record in pairs])

    def _one_by_one(self, messages: list[Any]) -> tuple[list[Any], list[Any]]:
        kept, records = [], []
        for message in messages:
            try:
                records.append(self._decode(message.value()))
                kept.append(message)
            except RAISED as error:
                none = message.value() is None
                self._bad(message, ValueError("it has no value") if none else as_error(error))
        return kept, records

    def _bad(self, message: Any, error: Exception) -> None:
        where = self._where(message)
        self._refuse(where, readable(message.value() or b""), str(error) or type(error).__name__)

    def _fields_of(self, records: list[Any]) -> list[list[Any]]:
        return [list(map(attrgetter(name), records)) for name in self._names]

    def _build(self, messages: list[Any], records: list[Any]) -> pa.RecordBatch:
        known = dict(zip(self._names, self._columns(records), strict=True))
        known |= {name: self._about(messages, name) for name in self._extra}
        made = self._shape.batch([known[name] for name in self._shape.names])
        self.kept = messages  # those of the last one that is made are those that are given
        return made

    def _about(self, messages: list[Any], name: str) -> Any:
        what, type_ = self._extra[name], self._shape.fields.type_of(name)
        if what == "timestamp":
            times = pa.array([_time(message) for message in messages], pa.int64())
            return times if type_ is None or pa.types.is_integer(type_) else times.cast(_TIMES)
        if what == "headers":
            return pa.array([message.headers() or [] for message in messages], EXTRA[what])
        given = list(map(methodcaller(what), messages))
        if what != "key" or (type_ is not None and pa.types.is_binary(type_)):
            return given
        try:
            return list(map(_text_or_none, given))
        except UnicodeDecodeError as error:
            text = f"key: {error}"
            raise SchemaError(text) from error


def _time(message: Any) -> int | None:
    """Give when a message was made; one without a time has -1 for it."""
    kind, millis = message.timestamp()
    return millis if kind else None  # 0 says that there is none


def _same(value: bytes | None) -> bytes | None:
    return value


def _text(value: bytes | None) -> str | None:
    return _text_or_none(value)


def _text_or_none(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
