"""Fields of JSON lines, as the first of them show."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa

from thalweg.connectors.formats import FileFormat
from thalweg.connectors.lines import BLOCK_BYTES
from thalweg.connectors.readers import BOM, open_bytes
from thalweg.errors import TopologyError
from thalweg.schemas import Fields

#: Lines that are looked at, of all files together.
LOOKED_AT = 1000
_KINDS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
_WHOLE = range(-(2**63), 2**63)


def learnt_fields(paths: Iterable[str], format_: FileFormat) -> Fields:
    """Learn names and types from the first lines; lines that cannot be read tell nothing.

    Left out is what has no such type (lists, objects, texts beside numbers) or no name that a field
    may have. Where there was no value, the type is None.
    """
    seen: dict[str, set[pa.DataType | None]] = {}
    for record in _records(paths, format_):
        for name, value in record.items():
            types = seen.setdefault(name, set())
            if value is not None:
                types.add(_type(value))
    known = {name: _common(types) for name, types in seen.items() if _is_name(name)}
    kept = {name: type_ for name, type_ in known.items() if type_ is not None}
    return Fields(tuple(kept), tuple(None if t == pa.null() else t for t in kept.values()))


def _type(value: Any) -> pa.DataType | None:
    if type(value) is int and value not in _WHOLE:
        return pa.float64()
    return _KINDS.get(type(value))


def _common(types: set[pa.DataType | None]) -> pa.DataType | None:
    """Give the type of all values; null for no value, None where they have none in common."""
    if types == {pa.int64(), pa.float64()}:
        return pa.float64()
    return next(iter(types), pa.null()) if len(types) < 2 else None


def _is_name(name: str) -> bool:
    try:
        Fields((name,), (None,))
    except TopologyError:
        return False
    return True


def _records(paths: Iterable[str], format_: FileFormat) -> Iterator[dict[str, Any]]:
    lines = (line for path in paths for line in _lines(path, format_))
    size = 0
    for line in islice(lines, LOOKED_AT):
        try:
            record = msgspec.json.decode(line.removeprefix(BOM))
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield record
        size += len(line)
        if size > BLOCK_BYTES:
            return


def _lines(path: str, format_: FileFormat) -> Iterator[bytes]:
    if format_.knows(path) and format_.of(path) == "jsonl":
        with io.BufferedReader(open_bytes(path)) as file:  # type: ignore[type-var] # reads bytes
            while line := file.readline(format_.max_record):
                yield line
