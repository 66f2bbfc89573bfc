"""Fields of what a query reads: what files say of themselves, and what ``--types`` says."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from thalweg.connectors.failures import BadFile
from thalweg.connectors.formats import FileFormat
from thalweg.connectors.json_fields import learnt_fields
from thalweg.connectors.readers import discover
from thalweg.errors import RecordError, UsageError, explain
from thalweg.schemas import Fields
from thalweg.validation import unknown

_TYPES: Mapping[str, Any] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
#: How files are read: lines of JSON need not be alike.
FORMAT = FileFormat(lacking=True)


@dataclass(frozen=True)
class Types:
    """What ``--types`` says, by source, or "" for all, and field."""

    given: Mapping[tuple[str, str], pa.DataType]

    def of(self, name: str) -> dict[str, pa.DataType]:
        """Give the types of a source: what is said of all, and of itself."""
        return self.said_of("") | self.said_of(name)

    def said_of(self, name: str) -> dict[str, pa.DataType]:
        """Give the types that are said of just this source."""
        return {field: type_ for (of, field), type_ in self.given.items() if of == name}


def types_in(text: str) -> Types:
    """Read ``--types``."""
    made: dict[tuple[str, str], pa.DataType] = {}
    for word in filter(None, text.split(",")):
        name, _, type_ = word.strip().partition(":")
        if type_ not in _TYPES:
            expected = f"FIELD:TYPE, with a type of {list(_TYPES)}"
            raise UsageError(explain("--types", expected=expected, got=word))
        source, _, field = name.rpartition(".")
        made[source, field] = _TYPES[type_]
    return Types(made)


def check_types(types: Types, known: Mapping[str, Fields]) -> None:
    """Refuse types of sources and fields that are not there."""
    for source, field in types.given:
        check_name("--types", source, field, known)


def check_name(option: str, source: str, field: str, known: Mapping[str, Fields]) -> None:
    """Refuse a field that its source does not have, or without one that none has."""
    if source and source not in known:
        raise unknown(source, "source", option, list(known))
    of = [known[source]] if source else known.values()
    names = dict.fromkeys(name for fields in of for name in fields.names)
    if field not in names:
        raise unknown(field, "field", option, list(names))


def file_fields(name: str, paths: Sequence[str], types: Types) -> Fields:
    """Give the fields of a source or table: those of its files, with the types that are said.

    Where files do not tell names (lines of JSON do, if there are any), ``--types`` does.
    """
    own = types.of(name)
    found = _discovered(paths[0]) if paths else None
    if found is None:
        learnt = _learnt(paths)
        # A field that first occurs far behind can be added, by its full name.
        more = types.said_of(name) if learnt.names else own
        found = learnt.extend(Fields(tuple(more), tuple(more.values())))
    if not found.names:
        expected, got = "records that tell them, or --types FIELD:TYPE,...", "neither"
        raise UsageError(explain(f"fields of {name!r}", "", expected, got))
    return found.extend(_present(own, found))


def _present(types: Mapping[str, pa.DataType], found: Fields) -> Fields:
    kept = {field: type_ for field, type_ in types.items() if field in found}
    return Fields(tuple(kept), tuple(kept.values()))


def _discovered(path: str) -> Fields | None:
    try:
        found = discover(path, FORMAT)
    except (BadFile, OSError) as error:
        raise RecordError(explain("fields", path, "a header or schema", str(error))) from error
    if found is None:
        return None
    # Cells of CSV are text, and a query that takes them for numbers is refused before it runs.
    return Fields(found.names, tuple(pa.string() if t is None else t for t in found.types))


def _learnt(paths: Sequence[str]) -> Fields:
    try:
        return learnt_fields(paths, FORMAT)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(explain("fields", paths[0], "lines of JSON", str(error))) from error
