"""Messages as Spark's own connector gives them: rows of record batches.

They are read by the same code as those of a client, so that what cannot be read is refused alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.connectors.messages import EXTRA, Format, MessageReader, Refuse
from thalweg.errors import RAISED
from thalweg.schemas import Shape

# Where a message stands, which is told when it cannot be read, and what it holds.
_ALWAYS = ("topic", "partition", "offset", "value")
_PER_MS = 1000


@dataclass(frozen=True)
class MessageColumns:
    """How rows of the connector become the fields of a source; it travels to where they are read.

    >>> MessageColumns("json", {"key": "user"}).names
    ('topic', 'partition', 'offset', 'value', 'key')
    """

    format: Format
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are needed."""
        return tuple(dict.fromkeys((*_ALWAYS, *self.extra)))

    def reading(
        self, shape: Shape, refuse: Refuse
    ) -> Callable[[pa.RecordBatch], pa.RecordBatch | None]:
        """Give a function that makes record batches of fields of those of the connector."""
        return _Reader(shape, self.format, self.extra, refuse).read


class _Columns:
    """The columns of a record batch as lists, each made when it is first asked for."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows
        self.value: Sequence[bytes | None] = rows.column("value").to_pylist()

    def _list(self, name: str) -> list[Any]:
        found: list[Any] = self.rows.column(name).to_pylist()
        return found

    @cached_property
    def key(self) -> list[bytes | None]:
        return self._list("key")

    @cached_property
    def topic(self) -> list[str]:
        return self._list("topic")

    @cached_property
    def partition(self) -> list[int]:
        return self._list("partition")

    @cached_property
    def offset(self) -> list[int]:
        return self._list("offset")

    @cached_property
    def timestamp(self) -> list[int | None]:
        """Milliseconds, None for no time."""
        found: list[int | None] = self.millis.to_pylist()
        return found

    @property
    def millis(self) -> pa.Array:
        """Milliseconds; Spark has microseconds, and a millisecond before 1970 for no time."""
        millis = pc.divide(self.rows.column("timestamp").cast(pa.int64()), _PER_MS)
        return pc.if_else(pc.equal(millis, -1), None, millis)

    @cached_property
    def headers(self) -> list[list[tuple[str, bytes | None]]]:
        found = self._list("headers")
        return [[(each["key"], each["value"]) for each in row or ()] for row in found]


class _Message:
    """A row, with the methods of a client's message."""

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: _Columns, at: int) -> None:
        self._columns, self._at = columns, at

    def value(self) -> bytes | None:
        return self._columns.value[self._at]

    def key(self) -> bytes | None:
        return self._columns.key[self._at]

    def topic(self) -> str:
        return self._columns.topic[self._at]

    def partition(self) -> int:
        return self._columns.partition[self._at]

    def offset(self) -> int:
        return self._columns.offset[self._at]

    def timestamp(self) -> tuple[int, int]:
        millis = self._columns.timestamp[self._at]
        return (0, -1) if millis is None else (1, millis)

    def headers(self) -> list[tuple[str, bytes | None]]:
        return self._columns.headers[self._at]


class _Reader(MessageReader):
    """Reads whole columns; only where something is wrong message by message."""

    def read(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        columns: Any = _Columns(rows)  # stands for a list of messages, below
        try:
            return self._build(columns, list(map(self._decode, columns.value)))
        except RAISED:  # a function may raise anything; the way below finds out where
            return self.batch([_Message(columns, at) for at in range(rows.num_rows)])

    def _about(self, messages: Any, name: str) -> Any:
        if not isinstance(messages, _Columns):
            return super()._about(messages, name)
        what, type_ = self._extra[name], self._shape.fields.type_of(name)
        column = messages.rows.column(what)
        if what == "headers":
            return pa.array(messages.headers, EXTRA[what])
        if what == "timestamp":
            times = messages.millis
            return times if type_ is None or pa.types.is_integer(type_) else times.cast(EXTRA[what])
        is_text = what == "key" and not (type_ is not None and pa.types.is_binary(type_))
        return column.cast(pa.string()) if is_text else column
