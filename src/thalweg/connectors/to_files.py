"""Files as a sink: CSV, JSON lines or Parquet."""

from __future__ import annotations

import os

import pyarrow as pa

from thalweg.components import BlockBolt, TaskContext
from thalweg.connectors.formats import FileFormat, file_format
from thalweg.connectors.writers import CsvWriter, JsonWriter, ParquetWriter, Writer
from thalweg.errors import UsageError, explain


class ToFiles(BlockBolt):
    """Writes what it gets to one file per task."""

    def __init__(self, path: str, format_: FileFormat, overwrite: bool) -> None:
        self.path = path
        self.format = format_
        self.overwrite = overwrite
        self._writer: Writer | None = None

    def prepare(self, context: TaskContext) -> None:
        """Create the file, and its folder."""
        path = self.path if context.degree == 1 else _numbered(self.path, context.task)
        subject = f"file {path!r} of {context.component!r}"
        if os.path.exists(path) and not self.overwrite:
            hint = "overwrite=True replaces it"
            raise UsageError(
                explain(subject, "", "a name that is free", "a file that exists", hint)
            )
        try:
            os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
            self._writer = self._make_writer(path)
        except OSError as error:
            text = explain(subject, expected="a place that can be written", got=str(error))
            raise UsageError(text) from error

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""
        if self._writer is not None:
            self._writer.write(batch)

    def cleanup(self) -> None:
        """Complete the file, also after an error: what was written is whole."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _make_writer(self, path: str) -> Writer:
        match self.format.of(path):
            case "parquet":
                return ParquetWriter(path)
            case "jsonl":
                return JsonWriter(path)
            case _:
                return CsvWriter(path, self.format.delimiter_of(path))


def to_files(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 (as in files)
    overwrite: bool = False,
) -> ToFiles:
    """Make a sink that writes CSV (or TSV), JSON lines or Parquet, as the end of the name says.

    Folders are created. With several tasks each has its file: ``counts-0.csv``, ``counts-1.csv``.
    Lines are complete after each block; a Parquet file appears when the run ends. A file that
    exists is an error unless ``overwrite`` says otherwise.

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
