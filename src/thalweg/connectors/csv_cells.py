"""Cells of CSV records into Arrow arrays, and back.

An empty cell is None; an empty cell in quotes is empty text (as PostgreSQL has it). What CSV has no
form for (lists, bytes, durations) is JSON text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.connectors.json_types import python_type
from thalweg.connectors.nanoseconds import has_nanoseconds, values_of
from thalweg.errors import SchemaError, explain, shorten
from thalweg.foreign import listed


class _QuotedEmpty(str):
    """Empty text that stood in quotes."""

    __slots__ = ()


QUOTED_EMPTY = _QuotedEmpty()

_TEXT = (pa.types.is_string, pa.types.is_large_string)
_PLAIN = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_decimal,
)


def is_text(type_: pa.DataType) -> bool:
    """Tell whether values of a type are text."""
    return any(check(type_) for check in _TEXT)


def is_plain(type_: pa.DataType) -> bool:
    """Tell whether Arrow itself reads and writes values of a type as one cell."""
    return is_text(type_) or any(check(type_) for check in _PLAIN)


def mark_empty(cells: list[str], raw: str, delimiter: str) -> list[str]:
    """Mark the empty cells of a record that stand in quotes.

    >>> [cell is QUOTED_EMPTY for cell in mark_empty(["a", "", ""], 'a,,""', ",")]
    [False, False, True]
    """
    written = _tokens(delimiter).findall(raw.rstrip("\r\n"))
    if len(written) != len(cells):
        return cells
    pairs = zip(cells, written, strict=True)
    return [QUOTED_EMPTY if text == '""' else cell for cell, text in pairs]


@lru_cache(maxsize=16)
def _tokens(delimiter: str) -> re.Pattern[str]:
    d = re.escape(delimiter)
    return re.compile(rf'(?:^|{d})("[^"]*(?:""[^"]*)*"|[^{d}]*)')


def cell_array(name: str, cells: Sequence[str], type_: pa.DataType | None) -> pa.Array:
    """Make the column of a field; a cell that is none of its type is a SchemaError."""
    try:
        if type_ is None or is_text(type_):
            kept = [cell if cell or cell is QUOTED_EMPTY else None for cell in cells]
            return pa.array(kept, type_ or pa.string())
        if is_plain(type_):
            texts = pa.array([cell or None for cell in cells], pa.string())
            return pc.utf8_trim_whitespace(texts).cast(type_)
        return pa.array([_from_text(cell, type_) for cell in cells], type_)
    except UnicodeEncodeError as error:
        raise SchemaError(explain(f"field {name!r}", expected="UTF-8")) from error
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        got = shorten(str(cells[0]), 80) if len(cells) == 1 else f"{len(cells)} cells"
        raise SchemaError(explain(f"field {name!r}", expected=str(type_), got=got)) from error


def _from_text(cell: str, type_: pa.DataType) -> Any:
    if not cell:
        return None
    if pa.types.is_nested(type_):
        return msgspec.json.decode(cell, type=python_type(type_))
    return msgspec.convert(cell, python_type(type_), strict=False)


def text_array(column: pa.Array, name: str = "") -> pa.Array:
    """Turn the column of a field that CSV has no form for into text."""
    values = plain_values(column, name)
    return pa.array([None if value is None else _to_text(value) for value in values], pa.string())


def _to_text(value: Any) -> str:
    plain = msgspec.to_builtins(value)
    return plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()


def plain_values(column: pa.Array, name: str = "") -> list[Any]:
    """Give the values of a field as JSON knows them: a map is a dictionary."""
    if has_nanoseconds(column.type):
        return values_of(column)
    return listed(column, name, maps_as_pydicts="strict")
