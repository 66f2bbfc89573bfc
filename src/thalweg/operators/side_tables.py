"""Tables that streams are joined with: rows in memory, or from somewhere that may change.

>>> table_of([{"item": "pen", "price": 2}]).fields
Fields(item: string, price: int64)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from thalweg.errors import TopologyError, explain, shorten
from thalweg.operators.calls import unpack
from thalweg.schemas import Fields, Shape, fields, record_fields

#: Takes something that people should know.
Notice = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Version:
    """All rows of a table at one moment."""

    rows: pa.RecordBatch
    #: Which one it is, for people.
    text: str = "the table"


@runtime_checkable
class SideTable(Protocol):
    """A table that a stream can be joined with."""

    @property
    def fields(self) -> Fields:
        """Its fields, and their types as far as they are known."""

    def current(self, now: float, notice: Notice) -> Version:
        """Give the version that a block is joined with which is processed at this time."""


@dataclass(frozen=True, eq=False)
class FixedTable:
    """Rows that never change."""

    fields: Fields
    version: Version

    def current(self, _now: float, _notice: Notice) -> Version:
        """Give the rows."""
        return self.version


def table_of(value: Any) -> SideTable:
    """Take a table as users give it: rows, an Arrow table, or one of a file."""
    if isinstance(value, SideTable):
        return value
    if isinstance(value, pa.Table):
        value = as_batch(value)
    if not isinstance(value, pa.RecordBatch):
        value = _rows_batch(value)
    shape = Shape(fields(value.schema), "the table")
    made = shape.batch(value.columns)
    return FixedTable(shape.fields, Version(made))


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """Put the pieces of an Arrow table together."""
    columns = [_whole(column) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    made = column.combine_chunks()
    return pa.concat_arrays(made.chunks) if isinstance(made, pa.ChunkedArray) else made


def _rows_batch(value: Any) -> pa.RecordBatch:
    rows = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else []
    if not rows:
        raise TopologyError(
            explain(
                "table of join",
                expected="rows (dictionaries or records), an Arrow table, or table_file(...)",
                got=shorten(value),
                hint="an Arrow table may be empty, since it knows its fields",
            )
        )
    first = rows[0]
    known = fields(list(first)) if isinstance(first, Mapping) else record_fields(type(first))
    if known is None:
        text = explain("row of a table", expected="a dictionary or a record", got=shorten(first))
        raise TopologyError(text)
    return Shape(known, "the table").batch(unpack(rows, known.names))
