"""Files with the state of a component: JSON lines, or Parquet with the same JSON in columns.

A file says what component its state is of: in its first line, or in the metadata of its schema.
Files that people write themselves need not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import UsageError, explain, shorten

#: A key and its value as JSON; ``task`` only where tasks have values of their own for a key.
Record = dict[str, Any]
_SCHEMA = pa.schema([("key", pa.string()), ("value", pa.string()), ("task", pa.int64())])
_GROUP = 1 << 16
_ORIGIN = "$component"


class Origin(msgspec.Struct, frozen=True):
    """The component that the state in a file is of, and what its keys and values are."""

    component: str = msgspec.field(name=_ORIGIN)
    kind: str
    key_types: list[str]
    codec: str

    def __str__(self) -> str:
        """Say it in words."""
        key = f" with key ({', '.join(self.key_types)})" if self.key_types else ""
        return f"{self.kind} {self.component!r}{key} and {self.codec or 'no codec'}"

    def fits(self, other: Origin) -> bool:
        """Say whether the state of one may become that of the other; ``any`` fits every type."""
        types = list(zip(self.key_types, other.key_types, strict=False))
        return (
            (self.kind, self.codec) == (other.kind, other.codec)
            and len(self.key_types) == len(other.key_types)
            and all(a == b or "any" in (a, b) for a, b in types)
        )


class _Writer(Protocol):
    def write(self, records: list[Record]) -> None:
        """Add records to the file."""


def check_suffix(path: Path) -> None:
    """Raise unless the suffix says which kind of file it is."""
    if path.suffix not in _WRITERS:
        expected = f"one that ends in {' or '.join(_WRITERS)}"
        raise UsageError(explain(f"file {str(path)!r}", "", expected, path.suffix or "none"))


def write_records(path: Path, origin: Origin | None, batches: Iterable[list[Record]]) -> int:
    """Write records, batch by batch; the file gets its name when it is complete."""
    check_suffix(path)
    part, count = path.with_name(f".{path.name}.part"), 0
    try:
        with _WRITERS[path.suffix](part, origin) as writer:
            for records in batches:
                writer.write(records)
                count += len(records)
        os.replace(part, path)
    except OSError as error:
        subject = f"output file {str(path)!r}"
        raise UsageError(explain(subject, expected="a file to write", got=str(error))) from error
    finally:
        part.unlink(missing_ok=True)
    return count


def read_origin(path: Path) -> Origin | None:
    """Give the component that a file is of, if it says so."""
    with _readable(path):
        if path.suffix == ".jsonl":
            with open(path, "rb") as lines:
                return _origin(lines.readline())
        return _origin((pq.read_schema(path).metadata or {}).get(_ORIGIN.encode(), b""))


def read_records(path: Path) -> Iterator[tuple[str, Record]]:
    """Give each record of a file, and where it stands."""
    with _readable(path):
        yield from _read_lines(path) if path.suffix == ".jsonl" else _read_parquet(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    check_suffix(path)
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        subject = f"file {str(path)!r}"
        raise UsageError(explain(subject, expected="a file to read", got=str(error))) from error


def _origin(line: bytes) -> Origin | None:
    try:
        return msgspec.json.decode(line, type=Origin)
    except msgspec.MsgspecError:
        return None


class _Lines:
    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, records: list[Record]) -> None:
        for record in records:
            self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


class _Columns:
    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer

    def write(self, records: list[Record]) -> None:
        columns = [
            [json.dumps(record["key"], ensure_ascii=False) for record in records],
            [json.dumps(record["value"], ensure_ascii=False) for record in records],
            [record.get("task") for record in records],
        ]
        arrays = [
            pa.array(column, type_) for column, type_ in zip(columns, _SCHEMA.types, strict=True)
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))


@contextmanager
def _lines(path: Path, origin: Origin | None) -> Iterator[_Writer]:
    with open(path, "w", encoding="utf-8") as file:
        if origin is not None:
            file.write(msgspec.json.encode(origin).decode() + "\n")
        yield _Lines(file)


@contextmanager
def _columns(path: Path, origin: Origin | None) -> Iterator[_Writer]:
    more = {_ORIGIN: msgspec.json.encode(origin)} if origin is not None else {}
    schema = _SCHEMA.with_metadata(more)
    with open(path, "wb") as file, pq.ParquetWriter(file, schema) as writer:
        yield _Columns(writer)


_WRITERS: dict[str, Callable[[Path, Origin | None], AbstractContextManager[_Writer]]] = {
    ".jsonl": _lines,
    ".parquet": _columns,
}


def _read_lines(path: Path) -> Iterator[tuple[str, Record]]:
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not (number == 1 and _origin(line.encode())):
                where = f"line {number} of {str(path)!r}"
                yield where, _checked(where, _parsed(where, line))


def _read_parquet(path: Path) -> Iterator[tuple[str, Record]]:
    with open(path, "rb") as file, pq.ParquetFile(file) as parquet:
        number = 0
        for batch in parquet.iter_batches(_GROUP):
            for row in batch.to_pylist():
                number += 1
                where = f"row {number} of {str(path)!r}"
                record = _checked(where, {name: row[name] for name in row if row[name] is not None})
                texts = {name: _parsed(where, record[name]) for name in ("key", "value")}
                yield where, record | texts


def _parsed(where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError) as error:
        raise UsageError(explain(where, "", "JSON", f"{shorten(text, 80)}: {error}")) from error


def _checked(where: str, record: Any) -> Record:
    if not isinstance(record, dict) or not {"key", "value"} <= record.keys():
        raise UsageError(explain(where, "", "an object with key and value", shorten(record, 80)))
    return record
