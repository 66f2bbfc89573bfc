"""Rows into the keys and values of messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
import pyarrow as pa

from thalweg.errors import RAISED, SchemaError, UsageError, as_error, explain, shorten
from thalweg.foreign import listed
from thalweg.tuples import tuples_of

#: How a row becomes a value: by name, or a function of the tuple.
RowFormat = Literal["json", "msgpack", "text", "bytes"] | Callable[[Any], bytes | str | None]
#: What gives the key of a message: a field, a function of the tuple, or nothing.
Key = str | Callable[[Any], bytes | str | None] | None
#: Called with a row that cannot be sent.
Refuse = Callable[[int, Exception], None]
#: Columns of encoded messages.
SCHEMA = pa.schema({"key": pa.binary(), "value": pa.binary()})


class MessageWriter:
    """Encodes record batches; a row that cannot be encoded is refused alone.

    >>> rows = pa.RecordBatch.from_pydict({"user": ["ann"], "n": [1]})
    >>> MessageWriter("json", "user").encode(rows, print).to_pylist()
    [{'key': b'ann', 'value': b'{"user":"ann","n":1}'}]
    """

    def __init__(self, format_: RowFormat, key: Key) -> None:
        self._format, self._key = format_, key

    def encode(self, batch: pa.RecordBatch, refuse: Refuse) -> pa.RecordBatch:
        """Give keys and values, in the order of the rows."""
        values, keys = self._values(batch), self._keys(batch)
        rows: list[tuple[bytes | None, bytes | None]] = []
        for row in range(batch.num_rows):
            try:
                rows.append((as_bytes(keys(row)), as_bytes(values(row))))
            except RAISED as error:  # of a function, or of a value that has no such form
                refuse(row, as_error(error))
        columns = list(zip(*rows, strict=True)) or [(), ()]
        return pa.RecordBatch.from_arrays(
            [pa.array(column, pa.binary()) for column in columns], schema=SCHEMA
        )

    def _values(self, batch: pa.RecordBatch) -> Callable[[int], Any]:
        if callable(self._format):
            tuples, function = list(tuples_of(batch)), self._format
            return lambda row: function(tuples[row])
        if self._format in ("text", "bytes"):
            name = batch.schema.names[0] if batch.num_columns == 1 else self._only(batch)
            return listed(batch.column(name), name).__getitem__
        encode = msgspec.json.encode if self._format == "json" else msgspec.msgpack.encode
        names = batch.schema.names
        columns = dict(zip(names, map(listed, batch.columns, names), strict=True))
        return lambda row: encode({name: values[row] for name, values in columns.items()})

    def _only(self, batch: pa.RecordBatch) -> str:
        """Name the one field beside the key."""
        names = [name for name in batch.schema.names if name != self._key]
        if len(names) != 1:
            expected = "one field beside the key"
            got = str(list(batch.schema.names))
            raise SchemaError(explain(f"messages of {self._format}", "", expected, got))
        return names[0]

    def _keys(self, batch: pa.RecordBatch) -> Callable[[int], Any]:
        if self._key is None:
            return lambda _row: None
        if isinstance(self._key, str):
            if self._key not in batch.schema.names:
                expected = f"one of {list(batch.schema.names)}"
                raise SchemaError(explain("key of messages", "", expected, repr(self._key)))
            return listed(batch.column(self._key), self._key).__getitem__
        tuples, function = list(tuples_of(batch)), self._key
        return lambda row: function(tuples[row])


def as_bytes(value: Any) -> bytes | None:
    """Give the bytes of a key or value: those of text are UTF-8, those of numbers their digits.

    >>> as_bytes("ann"), as_bytes(7), as_bytes(None)
    (b'ann', b'7', None)
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int | float):
        return str(value).encode()
    text = explain("key or value of a message", "", "bytes, text or a number", shorten(value))
    raise SchemaError(text)


def checked(format_: Any, key: Any) -> tuple[RowFormat, Key]:
    """Refuse what is no format or no key."""
    formats: Sequence[str] = ("json", "msgpack", "text", "bytes")
    if not callable(format_) and format_ not in formats:
        expected = "'json', 'msgpack', 'text', 'bytes' or a function"
        raise UsageError(explain("format of messages", expected=expected, got=repr(format_)))
    if not (key is None or isinstance(key, str) or callable(key)):
        expected = "a field or a function"
        raise UsageError(explain("key of messages", expected=expected, got=repr(key)))
    return format_, key
