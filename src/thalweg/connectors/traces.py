"""Recorded rates, as profiles."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO

import numpy as np

from thalweg.clock import seconds
from thalweg.connectors.profiles import Floats, Profile, of_counts
from thalweg.connectors.readers import open_bytes
from thalweg.errors import RecordError, UsageError, explain, shorten

#: A trace is held in memory, so it has to end somewhere; this is a year of seconds.
MAX_INTERVALS = 32_000_000
#: Rows that are turned into numbers at once.
_MANY = 64 * 1024


def trace(
    path: str | os.PathLike[str],
    column: str | int | None = None,
    every: float | str = "1 s",
    scale: float = 1.0,
) -> Profile:
    """Follow counts per interval from a file: one number per line, or a column of a CSV file.

    ``column`` is a name in the header or a position from 0; without it the last one is taken.
    ``scale`` multiplies the counts. A file whose name ends in ``.gz`` is unpacked.
    """
    if not scale > 0:
        raise UsageError(explain("scale of a trace", expected="more than 0", got=repr(scale)))
    interval = seconds(every)
    with _open(path) as file:
        counts = _counts(file, os.fspath(path), column)
    if not counts:
        hint = "a number per line, or a column of a CSV file"
        raise RecordError(explain(f"trace {os.fspath(path)!r}", "", "counts", "none", hint))
    return of_counts(np.concatenate(counts) * scale, interval)


def _open(path: str | os.PathLike[str]) -> IO[str]:
    name = os.fspath(path)
    try:
        raw = open_bytes(name)
    except OSError as error:
        text = explain(f"trace {name!r}", expected="a file that can be read", got=str(error))
        raise RecordError(text) from error
    return io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")


def _counts(file: IO[str], name: str, column: str | int | None) -> list[Floats]:
    """Read the counts, many rows at a time."""
    rows = _rows(file, name)
    first = next(rows, None)
    if first is None:
        return []
    at, is_header = _column(first, column, name)
    rows = rows if is_header else chain([first], rows)
    parts: list[Floats] = []
    number = 2 if is_header else 1
    while many := list(islice(rows, _MANY)):
        parts.append(_numbers(many, at, name, number))
        number += len(many)
        if number > MAX_INTERVALS:
            text = explain(f"trace {name!r}", expected=f"at most {MAX_INTERVALS} intervals")
            raise RecordError(text)
    return parts


def _rows(file: IO[str], name: str) -> Iterator[list[str]]:
    """Give the rows that are not blank; what cannot be read becomes an error of ours."""
    try:
        yield from filter(None, csv.reader(file))
    except (OSError, EOFError, csv.Error, UnicodeDecodeError) as error:
        text = explain(f"trace {name!r}", expected="text with counts", got=str(error))
        raise RecordError(text) from error


def _column(first: list[str], column: str | int | None, name: str) -> tuple[int, bool]:
    """Find the column of the counts, and whether the first row is a header."""
    if isinstance(column, str):
        return _position(first, column, name), True
    at = len(first) - 1 if column is None else column
    try:
        return at, math.isnan(float(_cell(first, at, name, 1)))
    except ValueError:
        return at, True


def _numbers(rows: list[list[str]], at: int, name: str, number: int) -> Floats:
    try:
        counts = np.array([row[at] for row in rows]).astype(np.float64)
    except (ValueError, IndexError):
        counts = np.array([-1.0])
    if not ((counts >= 0) & (counts < np.inf)).all():
        checked = [_count(_cell(row, at, name, i), name, i) for i, row in enumerate(rows, number)]
        counts = np.array(checked)
    return counts


def _position(header: list[str], column: str, name: str) -> int:
    names = [cell.strip() for cell in header]
    if column not in names:
        text = explain(f"column {column!r}", f"trace {name!r}", f"one of {names}")
        raise RecordError(text)
    return names.index(column)


def _cell(row: list[str], at: int, name: str, number: int) -> str:
    if -len(row) <= at < len(row):
        return row[at]
    raise _bad(name, number, f"a column {at}", f"{len(row)} columns")


def _count(cell: str, name: str, number: int) -> float:
    try:
        count = float(cell)
    except ValueError:
        count = -1.0
    if not 0 <= count < float("inf"):
        raise _bad(name, number, "a count of 0 or more", shorten(cell, 80))
    return count


def _bad(name: str, number: int, expected: str, got: str) -> RecordError:
    return RecordError(explain(f"trace {name!r}", f"record {number}", expected, got))
