"""Lines into record batches: plain text and JSON, with what cannot be read refused one by one."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import msgspec
import pyarrow as pa

from thalweg.connectors.json_types import record_type
from thalweg.connectors.lines import Lines, Refuse, readable
from thalweg.errors import SchemaError, UsageError, explain
from thalweg.schemas import Shape

T = TypeVar("T")


class Decoder(Protocol):
    """Turns the lines of one input into record batches."""

    def wants(self, limit: int) -> int:
        """Say how many lines it needs for ``limit`` records; 0 while those it holds will do."""

    def decode(self, lines: Lines, limit: int, last: bool) -> pa.RecordBatch | None:
        """Give at most ``limit`` records; ``last`` says that no more lines will come."""


def sift(
    items: list[T],
    build: Callable[[list[T]], pa.RecordBatch],
    refuse: Callable[[int, SchemaError], None],
) -> pa.RecordBatch | None:
    """Build a record batch of all items that fit; halving finds the others.

    >>> from thalweg.schemas import fields
    >>> shape = Shape(fields({"n": int}))
    >>> made = sift([1, "x", 2], lambda items: shape.batch([items]), lambda row, _: print(row))
    1
    >>> made.column("n").to_pylist()
    [1, 2]
    """
    if not items:
        return None
    try:
        return build(items)
    except SchemaError:
        good = _fitting(items, 0, build, refuse)
    return build(good) if good else None


def _fitting(
    items: list[T],
    offset: int,
    build: Callable[[list[T]], pa.RecordBatch],
    refuse: Callable[[int, SchemaError], None],
) -> list[T]:
    try:
        build(items)
    except SchemaError as error:
        if len(items) == 1:
            refuse(offset, error)
            return []
        middle = len(items) // 2
        before = _fitting(items[:middle], offset, build, refuse)
        return before + _fitting(items[middle:], offset + middle, build, refuse)
    return items


class _PerLine:
    """One record per line."""

    def __init__(self, shape: Shape, refuse: Refuse) -> None:
        self._shape = shape
        self._refuse = refuse

    def wants(self, limit: int) -> int:
        """Take a line per record."""
        return limit

    def _refuse_row(self, lines: Lines, row: int, error: Exception) -> None:
        self._refuse(f"line {lines.numbers[row]}", readable(lines.texts[row]), str(error))


class TextRecords(_PerLine):
    """Each line is the value of the only field."""

    def __init__(self, shape: Shape, refuse: Refuse) -> None:
        super().__init__(shape, refuse)
        if len(shape.names) != 1:
            raise UsageError(
                explain(
                    f"plain text of {shape.subject}",
                    expected="one field, for example fields=['line']",
                    got=str(list(shape.names)),
                )
            )

    def decode(self, lines: Lines, limit: int, last: bool) -> pa.RecordBatch | None:
        """Decode UTF-8."""
        return sift(
            lines.texts, self._build, lambda row, error: self._refuse_row(lines, row, error)
        )

    def _build(self, texts: list[bytes]) -> pa.RecordBatch:
        try:
            return self._shape.batch([[text.decode().removesuffix("\r") for text in texts]])
        except UnicodeDecodeError as error:
            raise SchemaError(str(error)) from error


class JsonRecords(_PerLine):
    """Each line is a JSON object; blank lines are passed over."""

    def __init__(self, shape: Shape, refuse: Refuse, lacking: bool = False) -> None:
        super().__init__(shape, refuse)
        self._decode = msgspec.json.Decoder(record_type(shape.fields, lacking)).decode
        self._getters = [attrgetter(name) for name in shape.names]

    def decode(self, lines: Lines, limit: int, last: bool) -> pa.RecordBatch | None:
        """Decode and check the declared fields."""
        try:
            records = list(map(self._decode, lines.texts))
        except (ValueError, RecursionError):  # msgspec's errors, and UTF-8 that is none
            lines, records = self._one_by_one(lines)
        return sift(records, self._build, lambda row, error: self._refuse_row(lines, row, error))

    def _one_by_one(self, lines: Lines) -> tuple[Lines, list[Any]]:
        numbers, texts, records = [], [], []
        for row, text in enumerate(lines.texts):
            if not text.strip():
                continue
            try:
                records.append(self._decode(text))
            except (ValueError, RecursionError) as error:
                self._refuse_row(lines, row, error)
            else:
                numbers.append(lines.numbers[row])
                texts.append(text)
        return Lines(numbers, texts), records

    def _build(self, records: list[Any]) -> pa.RecordBatch:
        return self._shape.batch([list(map(getter, records)) for getter in self._getters])
