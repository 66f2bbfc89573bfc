"""Record batches on their way into Parquet files of a good size."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import SchemaError, explain

#: A file is worth writing when it has this many rows, or bytes of memory.
_ROWS, _BYTES = 1 << 18, 64 << 20


class ParquetParts:
    """Gathers batches; gives them back as whole Parquet files, one for each schema.

    What is full either is taken, or goes to a temporary folder until it is.
    """

    def __init__(self, subject: str, options: Mapping[str, Any] | None = None) -> None:
        self._subject, self._options = subject, dict(options or {})
        self._waiting: dict[pa.Schema, list[pa.RecordBatch]] = {}
        self._known: set[pa.Schema] = set()
        self._rows = self._bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._spilled: list[tuple[Path, int]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch; raises when Parquet has no such type."""
        if batch.schema not in self._known:
            self._encoded(batch.schema.empty_table())
            self._known.add(batch.schema)
        self._waiting.setdefault(batch.schema, []).append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to be taken."""
        return not self._rows and not self._spilled

    @property
    def is_full(self) -> bool:
        """Whether so much waits that a file should be made of it."""
        return self._rows >= _ROWS or self._bytes >= _BYTES

    def spill(self) -> None:
        """Write what waits to a temporary folder."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="thalweg-parts-")
        for rows, data in self._take_waiting():
            path = Path(self._folder.name) / f"{len(self._spilled)}.parquet"
            path.write_bytes(data)
            self._spilled.append((path, rows))

    def take(self) -> Iterator[tuple[int, pa.Buffer]]:
        """Give all there is as files: their rows and their bytes."""
        while self._spilled:
            path, rows = self._spilled.pop(0)
            with pa.memory_map(str(path)) as file:
                yield rows, file.read_buffer()
            path.unlink()
        yield from self._take_waiting()

    def close(self) -> None:
        """Forget what was not taken."""
        self._waiting.clear()
        self._spilled.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _take_waiting(self) -> Iterator[tuple[int, pa.Buffer]]:
        waiting, self._waiting = self._waiting, {}
        self._rows = self._bytes = 0
        for schema, batches in waiting.items():
            table = pa.Table.from_batches(batches, schema)
            yield table.num_rows, self._encoded(table)

    def _encoded(self, table: pa.Table) -> pa.Buffer:
        sink = pa.BufferOutputStream()
        try:
            pq.write_table(table, sink, **self._options)
        except (pa.ArrowException, ValueError) as error:
            expected = "rows that Parquet can hold"
            raise SchemaError(explain(self._subject, "", expected, str(error))) from error
        return sink.getvalue()
