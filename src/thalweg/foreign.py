"""Values that Arrow has and Python has not: times before the year 1 and after 9999.

>>> times = pa.array([0, 2**58]).cast(pa.timestamp("us"))
>>> foreign_rows(times)
[1]
>>> listed(times, "at")
Traceback (most recent call last):
    ...
thalweg.foreign.NoValue: field 'at' in row 1: expected values that Python has, such as times of \
the years 1 to 9999, got 11103-08-29 17:22:31.711744
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from thalweg.errors import SchemaError, explain

_ERRORS = (ValueError, OverflowError)
_EXPECTED = "values that Python has, such as times of the years 1 to 9999"


class NoValue(SchemaError):
    """A field has a value that Python has none for."""

    def __init__(self, text: str, row: int | None = None, field: str = "") -> None:
        super().__init__(text, row)
        self.field = field


def listed(column: pa.Array, name: str, **how: Any) -> list[Any]:
    """Give the values of a field; one that Python has no value for is an error that names it.

    ``how`` is for ``to_pylist``.
    """
    try:
        found: list[Any] = column.to_pylist(**how)
    except _ERRORS as error:
        row = next(iter(foreign_rows(column)), None)
        if row is None:  # it is something else
            raise
        text = explain(f"field {name!r}", f"row {row}", _EXPECTED, cell_shown(column, row))
        raise NoValue(text, row, name) from error
    return found


def refusal(column: pa.Array, name: str, row: int) -> SchemaError:
    """Say of the tuple in a row why it is refused."""
    return SchemaError(explain(f"field {name!r}", "", _EXPECTED, cell_shown(column, row)), row)


def foreign_rows(column: pa.Array, first: int = 0) -> list[int]:
    """Find the rows that Python has no value for, by halves: mostly there are few."""
    if not _is_foreign(column):
        return []
    half = len(column) // 2
    if not half:
        return [first]
    return [*foreign_rows(column[:half], first), *foreign_rows(column[half:], first + half)]


def row_shown(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    """Give a row for people to see: what Python has no value for is text.

    >>> times = pa.array([2**58]).cast(pa.timestamp("us"))
    >>> row_shown(pa.record_batch({"n": [1], "at": times}), 0)
    {'n': 1, 'at': '11103-08-29 17:22:31.711744'}
    """
    return {name: cell_shown(batch.column(name), row) for name in batch.schema.names}


def cell_shown(column: pa.Array, row: int) -> Any:
    """Give a value for people to see: what Python has none for is text."""
    cell = column.slice(row, 1)
    if _is_foreign(cell):  # as Arrow writes it
        return " ".join(cell.to_string().split()).removeprefix("[ ").removesuffix(" ]")
    return cell.to_pylist()[0]


def _is_foreign(column: pa.Array) -> bool:
    try:
        column.to_pylist()
    except _ERRORS:
        return True
    return False
