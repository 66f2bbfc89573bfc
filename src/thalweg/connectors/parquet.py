"""Parquet files into record batches, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.connectors.failures import BadFile, field_names, find_columns
from thalweg.connectors.lines import Refuse
from thalweg.connectors.records import sift
from thalweg.errors import SchemaError, explain
from thalweg.schemas import Fields, Shape


class ParquetReader:
    """Reads the columns of the declared fields from one file."""

    def __init__(self, path: str, shape: Shape, refuse: Refuse) -> None:
        self._shape = shape
        self._refuse = refuse
        self._file = _open(path)
        try:
            names = self._file.schema_arrow.names
            self._names = [names[at] for at in find_columns(shape.names, names)]
        except BaseException:
            self._file.close()
            raise
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None
        self._row = 0
        #: Whether all rows have been read.
        self.ended = False

    def read(self, limit: int) -> pa.RecordBatch | None:
        """Give up to ``limit`` rows."""
        batch = self._next(limit)
        if batch is None:
            self.ended = True
            return None
        first, self._row = self._row, self._row + batch.num_rows
        columns = [batch.column(name) for name in self._names]
        try:
            return self._shape.batch(columns)
        except SchemaError:
            return self._row_by_row(columns, first)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _next(self, limit: int) -> pa.RecordBatch | None:
        if self._batches is None:
            self._batches = self._file.iter_batches(limit, columns=self._names)
        try:
            batch = self._rest if self._rest is not None else next(self._batches, None)
        except (pa.ArrowException, OSError) as error:
            why = f"row {self._row + 1} and behind"
            raise BadFile(explain(why, expected="Parquet", got=str(error))) from error
        if batch is None or batch.num_rows <= limit:
            self._rest = None
            return batch
        self._rest = batch.slice(limit)
        return batch.slice(0, limit)

    def _row_by_row(self, columns: list[pa.Array], first: int) -> pa.RecordBatch | None:
        def build(rows: list[int]) -> pa.RecordBatch:
            return self._shape.batch([column.take(pa.array(rows)) for column in columns])

        def refuse(row: int, error: SchemaError) -> None:
            values = zip(self._names, (column[row].as_py() for column in columns), strict=True)
            self._refuse(f"row {first + row + 1}", repr(dict(values)), str(error))

        return sift(list(range(len(columns[0]))), build, refuse)


def parquet_fields(path: str) -> Fields:
    """Read the fields of a file from its schema."""
    file = _open(path)
    try:
        schema = file.schema_arrow
        return Fields(tuple(field_names(schema.names)), tuple(schema.types))
    finally:
        file.close()


def _open(path: str) -> pq.ParquetFile:
    try:
        # Without pre_buffer a whole row group need not be in memory at once.
        return pq.ParquetFile(path, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise BadFile(explain("file", expected="Parquet", got=str(error))) from error
