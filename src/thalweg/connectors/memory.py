"""Sources and sinks inside the process: iterables, callables, lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import islice
from typing import Any

import pyarrow as pa

from thalweg.components import BlockBolt, BlockSpout, Shared
from thalweg.connectors.records import sift
from thalweg.contexts import TaskContext
from thalweg.errors import RAISED, as_error
from thalweg.operators.calls import unpack
from thalweg.tuples import tuples_of


def fitting_batch(
    context: TaskContext, taken: list[Any], lists: dict[str, list[Any]] | None = None
) -> pa.RecordBatch | None:
    """Make a record batch of items; one that does not fit the fields is refused alone.

    ``lists`` takes the columns whose Python values are known.
    """
    (shape,) = context.shapes.values()

    def build(items: list[Any]) -> pa.RecordBatch:
        batch, known = shape.make(unpack(items, shape.names))
        if lists is not None:
            lists.clear()
            lists.update(known)
        return batch

    return sift(
        taken,
        build,
        lambda row, error: context.refuse_record(repr(taken[row]), str(error)),
    )


class Items(Shared, BlockSpout):
    """An iterable, or a function that makes one; the k-th task takes every k-th item."""

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self.source = source
        self.ends = isinstance(source, Sized)

    def prepare(self, context: TaskContext) -> None:
        """Begin to iterate."""
        made = self.source() if callable(self.source) else self.source
        if isinstance(made, Iterator):  # one iterator: the first task takes it all
            self._items = made if context.task == 0 else iter(())
        else:
            self._items = islice(iter(made), context.task, None, context.degree)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Take the next items; one that does not fit the fields is refused alone."""
        taken = list(islice(self._items, limit))
        if len(taken) < limit:
            self.finish()
        self.lists = {}
        return fitting_batch(self.context, taken, self.lists)


def items(source: Iterable[Any] | Callable[[], Iterable[Any]]) -> Items:
    """Make a source of an iterable, or of a function that returns one (run again and again).

    An item is a value when the source has one field; otherwise a tuple, a dictionary, or an object
    with the fields as attributes.
    """
    return Items(source)


class CallSink(Shared, BlockBolt):
    """Calls a function with each tuple."""

    pure_python = True
    by_tuple = True
    reads_first = True

    def __init__(self, function: Callable[[Any], object]) -> None:
        self.function = function

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Call it row by row."""
        for row, t in enumerate(tuples_of(batch)):
            try:
                self.function(t)
            except RAISED as error:
                self.context.refuse(row, as_error(error))


def call(function: Callable[[Any], object]) -> CallSink:
    """Make a sink that calls a function with each tuple."""
    return CallSink(function)


def collect(into: list[Any]) -> CallSink:
    """Make a sink that appends each tuple to a list."""
    return CallSink(into.append)
