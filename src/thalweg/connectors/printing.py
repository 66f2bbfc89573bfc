"""A sink that prints tuples for people, or JSON lines and CSV for programs."""

from __future__ import annotations

import datetime as dt
import io
import os
import sys
from typing import Any, Literal, get_args

import msgspec
import pyarrow as pa
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from thalweg.components import BlockBolt
from thalweg.connectors.csv_cells import plain_values
from thalweg.connectors.writers import csv_lines, json_lines
from thalweg.contexts import TaskContext
from thalweg.errors import UsageError, explain

PrintFormat = Literal["text", "jsonl", "csv", "table"]

#: Columns do not grow wider than this to stand in line.
_WIDEST = 40
#: Wide enough for any table where no terminal sets a width.
_NO_TERMINAL = 10_000


class Stdout(BlockBolt):
    """Writes each tuple to ``sys.stdout``, as it is at that moment."""

    reads_first = True

    def __init__(self, format_: PrintFormat, limit: int | None) -> None:
        self.format = format_
        self.limit = limit

    def prepare(self, context: TaskContext) -> None:
        """Start with narrow columns."""
        self._widths: dict[str, int] = {}
        self._printed = 0
        self._left_out = 0

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Print the rows, in one piece so that tasks do not mix theirs."""
        room = batch.num_rows if self.limit is None else self.limit - self._printed
        shown = batch[: max(room, 0)]
        text = self._render(shown) if shown.num_rows else ""
        self._printed += shown.num_rows
        self._left_out += batch.num_rows - shown.num_rows
        if text and not _write(text):
            self.context.stop()  # nobody reads any more, as after ``| head``

    def process_end(self) -> None:
        """Say what was left out."""
        if self._left_out and self.format not in ("jsonl", "csv"):
            _write(f"... and {self._left_out} more\n")

    def _render(self, batch: pa.RecordBatch) -> str:
        if self.format == "jsonl":
            return json_lines(batch).decode()
        if self.format == "csv":
            return csv_lines(batch, header=not self._printed).decode()
        values = map(plain_values, batch.columns, batch.schema.names)
        columns = [list(map(show, column)) for column in values]
        if self.format == "table":
            return _table(batch, columns)
        return self._text(batch.schema.names, columns)

    def _text(self, names: list[str], columns: list[list[str]]) -> str:
        for name, column in zip(names, columns, strict=True):
            widest = min(max(map(cell_len, column)), _WIDEST)
            self._widths[name] = max(self._widths.get(name, 0), widest)
        rows = zip(*columns, strict=True)
        return "".join(self._row(names, row) for row in rows)

    def _row(self, names: list[str], row: tuple[str, ...]) -> str:
        cells = [
            f"{name}={value}" + " " * (self._widths[name] - cell_len(value))
            for name, value in zip(names, row, strict=True)
        ]
        return "  ".join(cells).rstrip() + "\n"


def show(value: Any) -> str:
    r"""Write a value on one line, without what could disturb a terminal.

    >>> show("a\nb"), show(0.1 + 0.2), show(None), show([1, "x"])
    ('a\\nb', '0.3', '-', '[1,"x"]')
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return value if value.isprintable() else _escape(value)
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    if isinstance(value, dict | list | bytes):
        return _escape(msgspec.json.encode(value, enc_hook=str).decode().strip('"'))
    return str(value)


def _escape(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _table(batch: pa.RecordBatch, columns: list[list[str]]) -> str:
    table = Table(box=box.SIMPLE_HEAD)
    for name, type_ in zip(batch.schema.names, batch.schema.types, strict=True):
        number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
        table.add_column(name, justify="right" if number else "left")
    for row in zip(*columns, strict=True):
        table.add_row(*map(Text, row))
    made = io.StringIO()
    Console(file=made, width=_terminal_width()).print(table)
    return made.getvalue()


def _terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return _NO_TERMINAL


def _write(text: str) -> bool:
    """Write to the present standard output; False when nobody can read it."""
    stream = sys.stdout
    if stream is None or getattr(stream, "closed", False):
        return False
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        return False
    return True


def stdout(format: PrintFormat = "text", limit: int | None = None) -> Stdout:  # noqa: A002 (as in files)
    """Make a sink that prints: aligned text, JSON lines, CSV, or a table per block.

    After ``limit`` rows it only counts the others.
    """
    if format not in get_args(PrintFormat):
        expected = f"one of {get_args(PrintFormat)}"
        raise UsageError(explain("format of stdout", expected=expected, got=repr(format)))
    if limit is not None and limit < 0:
        raise UsageError(explain("limit of stdout", expected="0 or more", got=repr(limit)))
    return Stdout(format, limit)
