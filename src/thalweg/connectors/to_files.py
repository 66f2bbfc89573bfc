"""Files as a sink: CSV, JSON lines or Parquet."""

from __future__ import annotations

import os
from typing import ClassVar

import pyarrow as pa

from thalweg.components import BlockBolt
from thalweg.connectors.formats import FileFormat, file_format
from thalweg.connectors.places import Place
from thalweg.connectors.to_parquet import ParquetWriter
from thalweg.connectors.writers import CsvWriter, JsonWriter, Writer
from thalweg.contexts import TaskContext
from thalweg.errors import UsageError, explain


class ToFiles(BlockBolt):
    """Writes what it gets to one file per task."""

    fixed_degree: ClassVar[bool] = True
    reads_first = True

    def __init__(self, path: str, format_: FileFormat, overwrite: bool) -> None:
        self.path = path
        self.format = format_
        self.overwrite = overwrite
        self._place: Place | None = None
        self._writer: Writer | None = None

    def prepare(self, context: TaskContext) -> None:
        """Find the place of the file, and make its folder."""
        path = self.path if context.degree == 1 else _numbered(self.path, context.task)
        subject = f"file {path!r} of {context.component!r}"
        self._place = Place(path, subject, self.overwrite)
        self._writer = self._make_writer(path, self._place)

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""
        if self._writer is not None:
            self._writer.write(batch)

    def process_end(self) -> None:
        """Complete the file; only now it replaces another one."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.finish()

    def cleanup(self) -> None:
        """Keep what was written before an error, and what was there as well."""
        writer, self._writer = self._writer, None
        place, self._place = self._place, None
        try:
            if writer is not None:
                writer.abandon()
        finally:
            if place is not None:
                place.release()

    def _make_writer(self, path: str, place: Place) -> Writer:
        match self.format.of(path):
            case "parquet":
                return ParquetWriter(place)
            case "jsonl":
                return JsonWriter(place)
            case _:
                return CsvWriter(place, self.format.delimiter_of(path))


def to_files(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 (as in files)
    overwrite: bool = False,
) -> ToFiles:
    """Make a sink that writes CSV (or TSV), JSON lines or Parquet, as the end of the name says.

    Folders are created. With several tasks each has its file: ``counts-0.csv``, ``counts-1.csv``.
    Lines are complete after each block; a Parquet file appears when the run ends. A file that
    exists is an error unless ``overwrite`` says otherwise: then it stays until the run has ended
    without an error. What is not complete has a name of its own that ends in ``.part``.

    >>> board = to_files("out/board.csv", overwrite=True)
    """
    name = os.fspath(path)
    chosen = file_format(format)
    if name.endswith(os.sep) or os.path.isdir(name):
        raise UsageError(
            explain(f"to_files {name!r}", expected="the name of a file", got="a folder")
        )
    if chosen.of(name) == "text" or name.endswith(".gz"):
        expected = "a name that ends in .csv, .tsv, .jsonl or .parquet"
        raise UsageError(explain(f"to_files {name!r}", expected=expected))
    return ToFiles(name, chosen, overwrite)


def _numbered(path: str, task: int) -> str:
    """Put the number of a task into a name.

    >>> _numbered("out/counts.csv", 1)
    'out/counts-1.csv'
    """
    stem, suffix = os.path.splitext(path)
    return f"{stem}-{task}{suffix}"
