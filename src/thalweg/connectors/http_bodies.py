r"""The body of a request as rows: a JSON object, an array of objects, or a line for each.

>>> from thalweg.schemas import fields
>>> rows = JsonBodies(Shape(fields({"n": int})))
>>> bodies = b'{"n": 1}', b'[{"n": 1}, {"n": 2}]', b'{"n": 1}\n{"n": 2}'
>>> [rows.read(body).num_rows for body in bodies]
[1, 2, 2]
>>> rows.read(b'[{"n": 1}, {"n": "x"}]')
Traceback (most recent call last):
    ...
thalweg.connectors.http_bodies.BadBody: Expected `int | null`, got `str` - at `$[1].n`
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.connectors.json_types import record_type
from thalweg.errors import RecordError, SchemaError, explain, shorten
from thalweg.eventtime import FIRST, LAST, YEAR, EventTime
from thalweg.foreign import cell_shown
from thalweg.schemas import Shape

#: What may stand before JSON.
_BLANK = b" \t\r\n"


class BadBody(RecordError):
    """A body that cannot be read; nothing of it becomes rows."""


class JsonBodies:
    """Reads bodies into record batches of one shape."""

    def __init__(self, shape: Shape, time: EventTime | None = None) -> None:
        self._shape, self._time = shape, time
        record: Any = record_type(shape.fields)
        self._one = msgspec.json.Decoder(record)
        self._many = msgspec.json.Decoder(list[record])
        self._getters = [attrgetter(name) for name in shape.names]

    def read(self, body: bytes) -> pa.RecordBatch:
        """Give the rows of a body: all of them, or the reason why it has none."""
        records = self._records(body)
        try:
            batch = self._shape.batch([list(map(getter, records)) for getter in self._getters])
        except SchemaError as error:
            raise BadBody(str(error)) from error
        if self._time is not None and records:
            _check_times(self._time, batch.column(self._time.field))
        return batch

    def _records(self, body: bytes) -> list[Any]:
        try:
            if body.lstrip(_BLANK).startswith(b"["):
                return self._many.decode(body)
            return [self._one.decode(body)]
        except (ValueError, RecursionError) as error:
            lines = [line for line in body.split(b"\n") if line.strip()]
            if len(lines) < 2:
                raise BadBody(_reason(error)) from error
            return self._lines(body, error)

    def _lines(self, body: bytes, whole: Exception) -> list[Any]:
        """Read a record per line; one record over several lines is to blame as a whole."""
        records: list[Any] = []
        for number, line in enumerate(body.split(b"\n"), 1):
            try:
                records += [self._one.decode(line)] if line.strip() else []
            except (ValueError, RecursionError) as error:
                if not records:
                    raise BadBody(_reason(whole)) from error
                text = f"line {number}: {_reason(error)}"
                raise BadBody(text) from error
        return records


def _check_times(time: EventTime, column: pa.Array) -> None:
    """Refuse what would end the run where windows are: something that is no time."""
    try:
        found = time.read(column)
        # Windows of up to a year around them are of the years 1 to 9999.
        known = found.known & (found.micros >= FIRST + YEAR) & (found.micros <= LAST - YEAR)
    except SchemaError:  # texts, for instance
        known = np.zeros(len(column), np.bool_)
    if known.all():
        return
    row = int(known.argmin())
    value = cell_shown(column, row)
    number = isinstance(value, int | float)
    when = number or (value is not None and pa.types.is_temporal(column.type))
    expected = "a time of the years 2 to 9998" if when else "a time"
    hint = f"numbers count {time.unit} here" if number else ""
    got = "null" if value is None else shorten(value)
    subject = f"time of row {row + 1}, {time.field!r}"
    raise BadBody(explain(subject, "", expected, got, hint))


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "JSON that is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "text that is not UTF-8"
    return str(error)
