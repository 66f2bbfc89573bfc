"""Writers of one file of CSV or JSON lines, which can be read while it grows."""

from __future__ import annotations

import io
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv

from thalweg.connectors.csv_cells import is_plain, plain_values, text_array
from thalweg.connectors.places import Place
from thalweg.tuples import tuple_class

_JSON = msgspec.json.Encoder()


class Writer(Protocol):
    """Writes record batches to one file."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""

    def finish(self) -> None:
        """Make the file complete and give it its name."""

    def abandon(self) -> None:
        """Let go after an error; what exists is not replaced."""


class _LinesWriter:
    """Appends whole lines, so that a reader of the growing file never sees half a record."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._beside = place.replaces and not place.special
        self._opened = None if self._beside else place.open()
        self._end = 0

    @property
    def _file(self) -> io.FileIO:
        if self._opened is None:
            self._opened = self._place.open_part()
        return self._opened

    def finish(self) -> None:
        """Close the file; no rows make an empty one."""
        self._file.close()
        if self._beside:
            self._place.take_name()

    def abandon(self) -> None:
        """Close the file, whose lines are complete."""
        if self._opened is not None:
            self._opened.close()

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

    def __init__(self, place: Place, delimiter: str) -> None:
        super().__init__(place)
        self._delimiter = delimiter

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._append(csv_lines(batch, self._delimiter, header=not self._end))


def csv_lines(batch: pa.RecordBatch, delimiter: str = ",", header: bool = True) -> bytes:
    r"""Write rows as records of CSV; None is an empty cell, empty text is ``""``.

    >>> csv_lines(pa.record_batch({"word": ["to", None], "n": [1, 2]}))
    b'word,n\n"to",1\n,2\n'
    """
    named = zip(batch.columns, batch.schema.names, strict=True)
    columns = [c if is_plain(c.type) else text_array(c, name) for c, name in named]
    made = io.BytesIO()
    if header:
        made.write(delimiter.join(batch.schema.names).encode() + b"\n")
    plain = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    pa_csv.write_csv(plain, made, pa_csv.WriteOptions(include_header=False, delimiter=delimiter))
    return made.getvalue()


def json_lines(batch: pa.RecordBatch) -> bytes:
    r"""Write rows as JSON objects, one per line.

    >>> json_lines(pa.record_batch({"word": ["to", None], "n": [1, 2]}))
    b'{"word":"to","n":1}\n{"word":null,"n":2}\n'
    """
    names = batch.schema.names
    rows = list(map(tuple_class(tuple(names)), *map(plain_values, batch.columns, names)))
    return _JSON.encode_lines(rows)
