"""Sources and sinks inside the process: iterables, callables, lists."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Self

import pyarrow as pa

from thalweg.components import BlockBolt, BlockSpout, TaskContext
from thalweg.errors import SchemaError
from thalweg.operators.calls import unpack
from thalweg.tuples import tuples_of


class Shared:
    """For bodies that hold something that must not be copied: tasks share what it refers to."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)


class Items(Shared, BlockSpout):
    """An iterable, or a function that makes one, as a source; the k-th task takes every k-th item."""

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self.source = source

    def prepare(self, context: TaskContext) -> None:
        """Begin to iterate."""
        made = self.source() if callable(self.source) else self.source
        if isinstance(made, Iterator):  # one iterator: the first task takes it all
            made = made if context.task == 0 else ()
            self._items = iter(made)
        else:
            self._items = islice(iter(made), context.task, None, context.degree)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Take the next items; one that does not fit the fields is refused alone."""
        taken = list(islice(self._items, limit))
        if len(taken) < limit:
            self.finish()
        if not taken:
            return None
        (shape,) = self.context.shapes.values()
        try:
            return shape.batch(unpack(taken, shape.names))
        except SchemaError:
            return self._one_by_one(taken)

    def _one_by_one(self, taken: list[Any]) -> pa.RecordBatch | None:
        (shape,) = self.context.shapes.values()
        good = []
        for item in taken:
            try:
                shape.batch(unpack([item], shape.names))
            except SchemaError as error:
                self.context.refuse_record(repr(item), str(error))
            else:
                good.append(item)
        return shape.batch(unpack(good, shape.names)) if good else None


def items(source: Iterable[Any] | Callable[[], Iterable[Any]]) -> Items:
    """Make a source of an iterable, or of a function that returns one (run again and again).

    An item is a value when the source has one field; otherwise a tuple, a dictionary, or an object
    with the fields as attributes.
    """
    return Items(source)


class Call(Shared, BlockBolt):
    """Calls a function with each tuple."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        self.function = function

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Call it row by row."""
        for row, t in enumerate(tuples_of(batch)):
            try:
                self.function(t)
            except Exception as error:  # noqa: BLE001 (the policy decides)
                self.context.refuse(row, error)


def call(function: Callable[[Any], object]) -> Call:
    """Make a sink that calls a function with each tuple."""
    return Call(function)


def collect(into: list[Any]) -> Call:
    """Make a sink that appends each tuple to a list."""
    return Call(into.append)
