"""Writers of one file: CSV and JSON lines that can be read while they grow, and Parquet."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from thalweg.connectors.csv_cells import is_plain, plain_values, text_array
from thalweg.errors import SchemaError, explain
from thalweg.tuples import tuple_class

#: Rows or bytes of a row group; smaller ones make Parquet files slow to read.
_GROUP_ROWS = 64 * 1024
_GROUP_BYTES = 32 * 1024 * 1024


_JSON = msgspec.json.Encoder()


class Writer(Protocol):
    """Writes record batches to one file."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""

    def close(self) -> None:
        """Make the file complete."""


class _LinesWriter:
    """Appends whole lines, so that a reader of the growing file never sees half a record."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 (closed below)
        self._end = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(self._end)
            self._file.seek(self._end)
            raise
        self._end += len(data)


class JsonWriter(_LinesWriter):
    """One JSON object per line; NaN and infinities become null, as JSON has none."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._append(json_lines(batch))


class CsvWriter(_LinesWriter):
    """A header, then one record per row; None is an empty cell, empty text is ``""``."""

    def __init__(self, path: str, delimiter: str) -> None:
        super().__init__(path)
        self._options = pa_csv.WriteOptions(include_header=False, delimiter=delimiter)
        self._delimiter = delimiter

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        columns = [c if is_plain(c.type) else text_array(c) for c in batch.columns]
        made = io.BytesIO()
        if not self._end:
            made.write(self._delimiter.join(batch.schema.names).encode() + b"\n")
        plain = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
        pa_csv.write_csv(plain, made, self._options)
        self._append(made.getvalue())


class ParquetWriter:
    """Writes beside the final name and renames at the end, since Parquet ends with its index."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._part = f"{path}.part"
        open(self._part, "wb").close()  # finds out now whether it may be written
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are written group by group."""
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._write_group()

    def close(self) -> None:
        """Write what waits and the index, and give the file its name; no rows make no file."""
        try:
            self._write_group()
        finally:
            if self._writer is None:
                os.remove(self._part)
                with suppress(FileNotFoundError):  # what was there is overwritten by nothing
                    os.remove(self._path)
            else:
                self._writer.close()
                self._writer = None
                os.replace(self._part, self._path)

    def _write_group(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._rows = self._bytes = 0
        if not waiting:
            return
        try:
            tables = [pa.Table.from_batches([batch]) for batch in waiting]
            table = pa.concat_tables(tables, promote_options="default")
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._part, table.schema)
            self._writer.write_table(table.cast(self._writer.schema))
        except (pa.ArrowException, ValueError) as error:
            expected = "rows of one schema that Parquet can hold"
            raise SchemaError(explain(f"file {self._path!r}", "", expected, str(error))) from error


def json_lines(batch: pa.RecordBatch) -> bytes:
    r"""Write rows as JSON objects, one per line.

    >>> json_lines(pa.record_batch({"word": ["to", None], "n": [1, 2]}))
    b'{"word":"to","n":1}\n{"word":null,"n":2}\n'
    """
    make = tuple_class(tuple(batch.schema.names))
    rows = list(map(make, *map(plain_values, batch.columns)))
    return _JSON.encode_lines(rows)
