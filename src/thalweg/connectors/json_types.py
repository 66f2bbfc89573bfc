"""Arrow types as the Python types that msgspec decodes and checks."""

from __future__ import annotations

import datetime as dt
import decimal
from types import GenericAlias
from typing import Any

import msgspec
import pyarrow as pa

from thalweg.schemas import Fields

_CHECKS: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
    (pa.types.is_string_view, str),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_boolean, bool),
    (pa.types.is_binary, bytes),
    (pa.types.is_large_binary, bytes),
    (pa.types.is_timestamp, dt.datetime),
    (pa.types.is_date, dt.date),
    (pa.types.is_time, dt.time),
    (pa.types.is_duration, dt.timedelta),
    (pa.types.is_decimal, decimal.Decimal),
    (pa.types.is_null, None),
    (pa.types.is_struct, dict[str, Any]),
)


def python_type(type_: pa.DataType | None) -> Any:
    """Give the type of a field's values, which may always be None.

    >>> python_type(pa.list_(pa.int64()))
    list[int | None] | None
    """
    if type_ is None:
        return Any
    if pa.types.is_dictionary(type_):
        return python_type(type_.value_type)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return GenericAlias(list, (python_type(type_.value_type),)) | None
    if pa.types.is_map(type_):
        pair = bare_type(type_.key_type), python_type(type_.item_type)
        return GenericAlias(dict, pair) | None
    bare = bare_type(type_)
    return Any if bare is Any else bare | None


def bare_type(type_: pa.DataType) -> Any:
    """Give the type of values that are not None; Any where Arrow alone can check."""
    return next((python for check, python in _CHECKS if check(type_)), Any)


def record_type(declared: Fields, lacking: bool = False) -> type[msgspec.Struct]:
    """Make the struct that a JSON object with these fields, or some of them, is decoded into."""
    pairs = zip(declared.names, declared.types, strict=True)
    default = (None,) if lacking else ()
    # Decoded JSON has no cycles, so the collector need not look at the records.
    return msgspec.defstruct("Record", [(n, python_type(t), *default) for n, t in pairs], gc=False)
