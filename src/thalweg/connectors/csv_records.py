"""CSV into record batches.

A block of one-line records with the right number of cells, which is nearly every block, is taken at
once. Otherwise records are read one by one. A record in several lines whose quotes are in order but
whose cells are not is refused as a whole; where quotes go wrong, only the line on which they do is
refused, so that a quote that is never closed does not swallow what follows.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from thalweg.connectors.csv_cells import cell_array, mark_empty
from thalweg.connectors.failures import BadFile, field_names, find_columns
from thalweg.connectors.lines import MAX_RECORD, Lines, Refuse, readable
from thalweg.connectors.records import sift
from thalweg.errors import SchemaError, explain
from thalweg.schemas import Shape


def _cut_off() -> str:
    """Find out what the csv module says at an end inside quotes."""
    try:
        next(csv.reader(['"'], strict=True))
    except csv.Error as error:
        return str(error)
    raise AssertionError


_CUT_OFF = _cut_off()


class _Record(NamedTuple):
    number: int
    raw: str
    cells: list[str]


class CsvRecords:
    """Reads the records of one file; its first record names the columns."""

    def __init__(
        self, shape: Shape, refuse: Refuse, delimiter: str = ",", longest: int = MAX_RECORD
    ) -> None:
        self._shape = shape
        self._refuse = refuse
        self._delimiter = delimiter
        self._longest = longest
        self._numbers: list[int] = []
        self._held: list[str] = []
        self._cut = False
        #: Number of columns of the file, and where those of the fields are.
        self._width = 0
        self._columns: list[int] = []
        # The module's bound is for all of the process; raising it to ours takes nothing away.
        csv.field_size_limit(max(csv.field_size_limit(), longest))

    def wants(self, limit: int) -> int:
        """Ask for more lines when there are none, or when a record goes on behind those there."""
        if self._cut:  # twice as many as last time, since all of them are read again
            return max(limit, len(self._held))
        return 0 if self._held else limit

    def decode(self, lines: Lines, limit: int, last: bool) -> pa.RecordBatch | None:
        """Give the next records."""
        if self._cut and not lines.texts and not last:
            return None
        self._numbers += lines.numbers
        self._held += [text.decode("utf-8", "surrogateescape") + "\n" for text in lines.texts]
        self._cut = False
        if not self._width and not self._read_header(last):
            return None
        records = self._plain_records(limit) or self._any_records(limit, last)
        return sift(records, self._build, lambda row, error: self._refused(records[row], error))

    def _read_header(self, last: bool) -> bool:
        while self._held and not self._held[0].strip():
            self._drop(1)
        if not self._held:
            return False
        cells, end = self._parse(0)
        if cells == _CUT_OFF and not last:
            self._cut = True
            return False
        if isinstance(cells, str):
            raise BadFile(explain("header", expected="the names of the columns", got=cells))
        names = [readable(cell.encode("utf-8", "surrogateescape")).strip() for cell in cells]
        self._columns = find_columns(self._shape.names, names)
        self._width = len(names)
        self._drop(end)
        return True

    def _plain_records(self, limit: int) -> list[_Record]:
        """Read lines that are one record each; none when there is anything else among them."""
        lines = self._held[:limit]
        try:
            rows = list(csv.reader(lines, delimiter=self._delimiter, strict=True))
        except csv.Error:
            return []
        if len(rows) != len(lines) or set(map(len, rows)) != {self._width}:
            return []
        records = list(map(_Record, self._numbers, lines, rows))
        self._drop(len(lines))
        return records

    def _any_records(self, limit: int, last: bool) -> list[_Record]:
        records: list[_Record] = []
        start = 0
        while start < len(self._held) and len(records) < limit:
            cells, end = self._parse(start)
            if cells == _CUT_OFF and not last and self._may_go_on(start):
                self._cut = True
                break
            if isinstance(cells, str):
                end = start + 1
                self._refuse_lines(start, end, self._why(cells))
            elif len(cells) == self._width:
                raw = "".join(self._held[start:end])
                records.append(_Record(self._numbers[start], raw, cells))
            elif cells:
                why = f"expected {self._width} columns, got {len(cells)}"
                self._refuse_lines(start, end, why)
            start = end
        self._drop(start)
        return records

    def _parse(self, start: int) -> tuple[list[str] | str, int]:
        """Read one record: its cells, or what is wrong with it, and the line behind it."""
        lines = map(self._held.__getitem__, range(start, len(self._held)))
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        try:
            cells = next(reader)
        except csv.Error as error:
            return str(error), start + reader.line_num
        # A blank line is an empty cell where there is but one column, and nothing elsewhere.
        blank_cell = self._width == 1 and not cells
        return [""] if blank_cell else cells, start + reader.line_num

    def _may_go_on(self, start: int) -> bool:
        return sum(map(len, self._held[start:])) <= self._longest

    def _why(self, problem: str) -> str:
        if problem == _CUT_OFF:
            return f"a quote that is not closed before the end, or within {self._longest} bytes"
        return problem

    def _build(self, records: list[_Record]) -> pa.RecordBatch:
        rows = [self._marked(record) for record in records]
        shape = self._shape
        fields = zip(shape.names, shape.types, self._columns, strict=True)
        return shape.batch([cell_array(n, [row[at] for row in rows], t) for n, t, at in fields])

    def _marked(self, record: _Record) -> list[str]:
        if '""' in record.raw and "" in record.cells:
            return mark_empty(record.cells, record.raw, self._delimiter)
        return record.cells

    def _refused(self, record: _Record, error: SchemaError) -> None:
        self._refuse(f"line {record.number}", _shown(record.raw), str(error))

    def _refuse_lines(self, start: int, end: int, why: str) -> None:
        raw = "".join(self._held[start:end])
        self._refuse(f"line {self._numbers[start]}", _shown(raw), why)

    def _drop(self, count: int) -> None:
        del self._held[:count]
        del self._numbers[:count]


def _shown(raw: str) -> str:
    return readable(raw.encode("utf-8", "surrogateescape")).rstrip("\r\n")


def header_names(line: bytes, delimiter: str) -> Sequence[str]:
    """Read the names of the columns, as names that Python accepts."""
    cells = next(csv.reader([readable(line)], delimiter=delimiter), [])
    return field_names(cells)
