r"""Arrow types as PostgreSQL's, and rows as the text that COPY reads.

>>> column_type(pa.int64()), column_type(pa.timestamp("us", "UTC"))
('bigint', 'timestamp with time zone')
>>> csv_bytes(pa.record_batch({"n": [1, None], "word": ["", None]}))
b'"1",""\n,\n'
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

_WHOLE = ("smallint", "integer", "bigint", "numeric")
_REAL = ("real", "double precision", "numeric")
_TEXT = ("text", "character varying", "character", "citext", "uuid", "json", "jsonb", "inet")
_JSON = ("jsonb", "json")
_NAIVE, _AWARE = "timestamp without time zone", "timestamp with time zone"

#: How to know a type, the column that is made for it, and the columns that it fits.
_KINDS: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    (pa.types.is_int8, "smallint", _WHOLE),
    (pa.types.is_uint8, "smallint", _WHOLE),
    (pa.types.is_int16, "smallint", _WHOLE),
    (pa.types.is_uint16, "integer", _WHOLE),
    (pa.types.is_int32, "integer", _WHOLE),
    (pa.types.is_uint64, "numeric", _WHOLE),
    (pa.types.is_integer, "bigint", _WHOLE),
    (pa.types.is_float64, "double precision", _REAL),
    (pa.types.is_floating, "real", _REAL),
    (pa.types.is_decimal, "numeric", ("numeric",)),
    (pa.types.is_boolean, "boolean", ("boolean",)),
    (pa.types.is_string, "text", _TEXT),
    (pa.types.is_large_string, "text", _TEXT),
    (pa.types.is_string_view, "text", _TEXT),
    (pa.types.is_binary, "bytea", ("bytea",)),
    (pa.types.is_large_binary, "bytea", ("bytea",)),
    (pa.types.is_fixed_size_binary, "bytea", ("bytea",)),
    (pa.types.is_date, "date", ("date",)),
    (pa.types.is_time, "time without time zone", ("time without time zone",)),
    (pa.types.is_duration, "interval", ("interval",)),
    (pa.types.is_nested, "jsonb", _JSON),
)
#: What PostgreSQL writes behind the name of a type: its length, say.
_MODIFIER = re.compile(r"\([\d,]+\)")
_NO_NUL = "text without the character 0"
_CSV = pa_csv.WriteOptions(include_header=False, quoting_style="all_valid")


def column_type(type_: pa.DataType) -> str | None:
    """Give the type of the column that is made for a field; None where nothing is known of it."""
    if pa.types.is_timestamp(type_):
        return _AWARE if type_.tz else _NAIVE
    return next((made for check, made, _ in _KINDS if check(type_)), None)


def fits(type_: pa.DataType, column: str) -> bool:
    """Say whether values of a field can go to a column.

    >>> fits(pa.int64(), "integer"), fits(pa.string(), "character varying(20)")
    (True, True)
    >>> fits(pa.string(), "bigint"), fits(pa.timestamp("us"), "timestamp with time zone")
    (False, False)
    """
    plain = _MODIFIER.sub("", column)
    if pa.types.is_null(type_):
        return True
    if pa.types.is_timestamp(type_):
        return plain == column_type(type_)
    return any(check(type_) and plain in columns for check, _, columns in _KINDS)


def csv_bytes(batch: pa.RecordBatch) -> bytes:
    """Write rows as CSV: what is null is nothing, and all else is in quotes."""
    sink = pa.BufferOutputStream()
    columns = [_plain(column) for column in batch.columns]
    pa_csv.write_csv(pa.RecordBatch.from_arrays(columns, names=batch.schema.names), sink, _CSV)
    return bytes(sink.getvalue().to_pybytes())


def misfits(column: pa.Array) -> tuple[list[int], str] | None:
    r"""Tell the rows whose values PostgreSQL does not keep, and what it would; None for none.

    >>> misfits(pa.array(["a", "a\x00"])), misfits(pa.array([[1.5], [float("nan")]]))
    (([1], 'text without the character 0'), ([1], 'numbers that JSON has'))
    """
    if pa.types.is_nested(column.type):
        return _json_misfits(column)
    if not _is_text(column.type):
        return None
    found = pc.match_substring(_plain(column), "\x00")
    rows = pc.indices_nonzero(pc.fill_null(found, False)).to_pylist()
    return (rows, _NO_NUL) if rows else None


def _json_misfits(column: pa.Array) -> tuple[list[int], str] | None:
    """Find what JSON cannot say (it would say null), or PostgreSQL cannot keep of it."""
    values = column.to_pylist()
    for fault, expected in ((_is_nul, _NO_NUL), (_is_endless, "numbers that JSON has")):
        rows = [row for row, value in enumerate(values) if any(map(fault, _leaves(value)))]
        if rows:
            return rows, expected
    return None


def _leaves(value: Any) -> Iterator[Any]:
    """Go through all that is in a nested value, names too."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _is_nul(value: Any) -> bool:
    return isinstance(value, str) and "\x00" in value


def _is_endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _is_text(type_: pa.DataType) -> bool:
    return column_type(type_) == "text"


def _plain(column: pa.Array) -> pa.Array:
    """Turn what CSV does not know, or PostgreSQL reads in another way, into text."""
    type_ = column.type
    if pa.types.is_string_view(type_):
        return column.cast(pa.string())
    if pa.types.is_duration(type_):
        finest = column.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.string())
        return pc.binary_join_element_wise(finest, "microseconds", " ")
    if pa.types.is_map(type_):
        return _texts(column, lambda pairs: msgspec.json.encode(dict(pairs)).decode())
    if pa.types.is_nested(type_):
        return _texts(column, lambda value: msgspec.json.encode(value).decode())
    if column_type(type_) == "bytea":
        return _texts(column, lambda value: "\\x" + value.hex())
    return column


def _texts(column: pa.Array, write: Any) -> pa.Array:
    values = [None if value is None else write(value) for value in column.to_pylist()]
    return pa.array(values, pa.string())
