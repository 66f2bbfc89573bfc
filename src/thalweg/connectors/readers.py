"""Readers of one file: some records at a time, from where the last call stopped."""

from __future__ import annotations

import gzip
import os
import zlib
from typing import IO, Protocol, cast

import pyarrow as pa

from thalweg.connectors.csv_records import CsvRecords, header_names
from thalweg.connectors.failures import BadFile
from thalweg.connectors.formats import FileFormat
from thalweg.connectors.lines import BLOCK_BYTES, NO_LINES, LineQueue, Refuse
from thalweg.connectors.parquet import ParquetReader, parquet_fields
from thalweg.connectors.records import Decoder, JsonRecords, TextRecords
from thalweg.errors import explain
from thalweg.schemas import Fields, Shape, fields

#: Large enough to read fast, small enough for many files.
_CHUNK = 256 * 1024
#: What some programs put before the first line.
BOM = b"\xef\xbb\xbf"


class Reader(Protocol):
    """Reads one file."""

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to read."""

    def read(self, limit: int) -> pa.RecordBatch | None:
        """Give up to ``limit`` rows, None when there are none now; BadFile if it cannot go on."""

    def close(self) -> None:
        """Close the file."""


class LineReader:
    """Reads a file of lines; while it is ``growing``, its end is only where it stops for now."""

    def __init__(self, path: str, queue: LineQueue, decoder: Decoder, growing: bool) -> None:
        self.path = path
        self.growing = growing
        #: Bytes read so far, of the unpacked content.
        self.offset = 0
        self._queue = queue
        self._decoder = decoder
        self._file: IO[bytes] | None = None
        self._at_end = False
        self._failure: BadFile | None = None

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to read, or nothing now of a growing file."""
        return self._all_decoded and self._failure is None

    @property
    def _all_decoded(self) -> bool:
        return self._at_end and not len(self._queue) and self._decoder.wants(1) > 0

    @property
    def is_open(self) -> bool:
        """Whether the file is open at present."""
        return self._file is not None

    def read(self, limit: int) -> pa.RecordBatch | None:
        """Give up to ``limit`` rows; blank and bad lines make it fewer."""
        if self._all_decoded and self._failure:
            raise self._failure
        wanted, lines = self._decoder.wants(limit), NO_LINES
        if wanted:
            self._fill(wanted)
            lines = self._queue.take(wanted)
        last = self._at_end and not len(self._queue) and not self.growing
        return self._decoder.decode(lines, limit, last)

    def size(self) -> int:
        """Give the present size of the open file."""
        return os.fstat(self._open().fileno()).st_size

    def resume(self, growing: bool = True) -> None:
        """Read on behind what was the end."""
        self._at_end = False
        self.growing = growing

    def suspend(self) -> None:
        """Close the file for now; a line that has begun will be read again from its start."""
        self.offset -= self._queue.drop_partial()
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _fill(self, wanted: int) -> None:
        """Read until there are enough lines, enough bytes, or no more of either."""
        queue = self._queue
        while len(queue) < wanted and queue.ready_bytes < BLOCK_BYTES and not self._at_end:
            try:
                data = self._open().read(_CHUNK)
            except (OSError, EOFError, zlib.error) as error:
                where = f"behind byte {self.offset}"
                self._failure = BadFile(explain("file", where, "readable bytes", str(error)))
                self._at_end = True
                return
            if data:
                skipped = len(BOM) if not self.offset and data.startswith(BOM) else 0
                self.offset += len(data)
                queue.feed(data[skipped:])
            else:
                self._at_end = True
                if not self.growing:
                    queue.end()

    def _open(self) -> IO[bytes]:
        if self._file is None:
            self._file = open_bytes(self.path)
            if self.offset:
                self._file.seek(self.offset)
        return self._file


def open_bytes(path: str) -> IO[bytes]:
    """Open a file, unpacked if its name ends in ``.gz``."""
    if path.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return open(path, "rb", buffering=0)


def open_reader(path: str, format_: FileFormat, shape: Shape, refuse: Refuse) -> Reader:
    """Make the reader of a complete file."""
    if format_.of(path) == "parquet":
        return ParquetReader(path, shape, refuse)
    return line_reader(path, format_, shape, refuse)


def line_reader(
    path: str, format_: FileFormat, shape: Shape, refuse: Refuse, growing: bool = False
) -> LineReader:
    """Make the reader of a file of lines."""
    queue = LineQueue(refuse, format_.max_record)
    return LineReader(path, queue, _decoder(path, format_, shape, refuse), growing)


def _decoder(path: str, format_: FileFormat, shape: Shape, refuse: Refuse) -> Decoder:
    match format_.of(path):
        case "text":
            return TextRecords(shape, refuse)
        case "jsonl":
            return JsonRecords(shape, refuse, format_.lacking)
        case _:
            return CsvRecords(shape, refuse, format_.delimiter_of(path), format_.max_record)


def discover(path: str, format_: FileFormat) -> Fields | None:
    """Read the fields of a file from what its format says about them; None if it says nothing."""
    match format_.of(path):
        case "text":
            return fields({"line": str})
        case "parquet":
            return parquet_fields(path)
        case "csv" | "tsv":
            with open_bytes(path) as file:
                line = file.readline(format_.max_record).removeprefix(BOM)
            return fields(header_names(line, format_.delimiter_of(path)))
        case _:
            return None
