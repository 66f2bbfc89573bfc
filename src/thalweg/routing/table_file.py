"""Routing tables as files: which keys of which field go to which place.

A file is JSON. Text, numbers and null are written as they are; keys of other kinds (bytes, dates,
tuples) as the base64 of their stored form, so that every key comes back as what it was.
"""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from thalweg.errors import StateError, UsageError, explain
from thalweg.hashing import KEY_GROUPS
from thalweg.keys import Key, canonical, decode_key, encode_key
from thalweg.routing.table import RoutingTable

FORMAT = "thalweg-table-1"
_STORED = "stored"


@dataclass(frozen=True)
class TableFile:
    """The places of single keys, by the name of the field that holds them."""

    places: int
    fields: Mapping[str, Mapping[Key, int]]

    def table(self, field: str, groups: int = KEY_GROUPS) -> RoutingTable:
        """Make the routing table of a component that is keyed by this field."""
        if field not in self.fields:
            text = explain("routing table", "", f"one of {sorted(self.fields)}", repr(field))
            raise UsageError(text)
        return RoutingTable.even(self.places, groups).with_keys(self.fields[field])


class _Field(msgspec.Struct):
    keys: list[Any]
    places: list[int]


class _File(msgspec.Struct):
    format: str
    places: int
    fields: dict[str, _Field]


def write_table_file(path: str | os.PathLike[str], table: TableFile) -> None:
    """Write a file that :func:`read_table_file` reads."""
    fields = {
        name: _Field([_plain(key) for key in keys], list(keys.values()))
        for name, keys in table.fields.items()
    }
    data = msgspec.json.encode(_File(FORMAT, table.places, fields))
    try:
        Path(path).write_bytes(data + b"\n")
    except OSError as error:
        raise _unfit(path, "a file to write", str(error)) from error


def read_table_file(path: str | os.PathLike[str]) -> TableFile:
    """Read a file of routing tables."""
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=_File)
    except OSError as error:
        raise _unfit(path, "a file that 'thalweg analyze --table' wrote", str(error)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unfit(path, "JSON that 'thalweg analyze --table' wrote", str(error)) from error
    if found.format != FORMAT:
        raise _unfit(path, f"format {FORMAT!r}", repr(found.format))
    if found.places < 1:
        raise _unfit(path, "at least one place", str(found.places))
    fields = {name: _keys(path, name, field, found.places) for name, field in found.fields.items()}
    return TableFile(found.places, fields)


def _keys(path: str | os.PathLike[str], name: str, field: _Field, places: int) -> dict[Key, int]:
    if len(field.keys) != len(field.places):
        got = f"{len(field.keys)} keys and {len(field.places)} places"
        raise _unfit(path, f"a place for each key of {name!r}", got)
    beyond = [place for place in field.places if not 0 <= place < places]
    if beyond:
        raise _unfit(path, f"places from 0 to {places - 1} for {name!r}", str(beyond[0]))
    try:
        return {_key(key): place for key, place in zip(field.keys, field.places, strict=True)}
    except (StateError, ValueError, TypeError) as error:
        raise _unfit(path, f"keys of {name!r}", str(error)) from error


def _plain(key: Key) -> Any:
    kept = canonical(key)
    if kept is None or isinstance(kept, str | int):
        return kept
    if isinstance(kept, float) and math.isfinite(kept):
        return kept
    return {_STORED: base64.b64encode(encode_key(kept)).decode()}


def _key(value: Any) -> Key:
    if isinstance(value, dict):
        return decode_key(base64.b64decode(value.get(_STORED, ""), validate=True))
    return canonical(value)


def _unfit(path: str | os.PathLike[str], expected: str, got: str) -> UsageError:
    return UsageError(explain(f"table file {os.fspath(path)!r}", "", expected, got))
