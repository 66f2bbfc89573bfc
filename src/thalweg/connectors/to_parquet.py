"""A writer of one Parquet file."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.connectors.places import Place
from thalweg.errors import SchemaError, explain

#: Rows or bytes of a row group; smaller ones make Parquet files slow to read.
_GROUP_ROWS = 64 * 1024
_GROUP_BYTES = 32 * 1024 * 1024


class ParquetWriter:
    """Writes beside the final name and renames at the end, since Parquet ends with its index."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._file: io.BufferedWriter | None = None
        self._writer: pq.ParquetWriter | None = None
        self._schema: pa.Schema | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        #: Whether a block was refused, and what broke the file itself.
        self._failed = False
        self._broken: Exception | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are written group by group, once all types are known."""
        self._file = self._file or io.BufferedWriter(self._place.open_part())
        try:
            self._add(batch)
        except (pa.ArrowException, ValueError) as error:
            self._failed = True
            raise self._misfit(error) from error
        except BaseException:
            self._failed = True
            raise

    def finish(self) -> None:
        """Write what waits and the index, and give the file its name; no rows make no file."""
        if self._file is None:
            self._place.remove_old()
            return
        self._complete()
        self._place.take_name()

    def abandon(self) -> None:
        """Complete the file; it gets its name if that is free and no row of it was at fault."""
        if self._file is None:
            return
        self._complete()
        if not self._failed and not self._place.replaces:
            self._place.take_name()

    def _add(self, batch: pa.RecordBatch) -> None:
        if self._broken is not None:
            raise self._misfit(self._broken)
        schema = batch.schema
        if self._writer is not None:
            batch = batch.cast(self._writer.schema)
        elif self._schema is not None:
            schema = pa.unify_schemas([self._schema, schema])
        rows, size = self._rows + batch.num_rows, self._bytes + batch.nbytes
        full = rows >= _GROUP_ROWS or size >= _GROUP_BYTES
        if full and self._writer is None:
            self._check_types(schema, rows)
        self._waiting.append(batch)
        self._schema, self._rows, self._bytes = schema, rows, size
        if full:
            self._write_group()

    def _check_types(self, schema: pa.Schema, rows: int) -> None:
        for field in schema:
            if _has_null(field.type):
                expected = f"a type for field {field.name!r}"
                got = f"only null in the first {rows} rows"
                hint = "declare the type of that field"
                raise SchemaError(explain(self._place.subject, "", expected, got, hint))

    def _write_group(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._rows = self._bytes = 0
        if not waiting:
            return
        try:
            tables = [pa.Table.from_batches([batch]) for batch in waiting]
            table = pa.concat_tables(tables, promote_options="default")
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._file, table.schema)
            self._writer.write_table(table)
        except Exception as error:
            self._broken = error
            raise

    def _complete(self) -> None:
        """Write what waits and the index; a file that broke is none."""
        try:
            if self._broken is None:
                self._write_group()
            if self._writer is not None:
                self._writer.close()
        except (pa.ArrowException, ValueError) as error:
            self._broken = error
        finally:
            if self._file is not None:
                self._file.close()
        if self._writer is None:
            self._place.remove_part()
        if self._broken is not None:
            raise self._misfit(self._broken) from self._broken

    def _misfit(self, error: Exception) -> SchemaError:
        expected = "rows of one schema that Parquet can hold"
        return SchemaError(explain(self._place.subject, "", expected, str(error)))


def _has_null(type_: pa.DataType) -> bool:
    """Tell whether a type, or one within it, is not known yet."""
    if pa.types.is_nested(type_):
        return any(_has_null(type_.field(i).type) for i in range(type_.num_fields))
    return pa.types.is_null(type_)
