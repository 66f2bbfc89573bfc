"""What tasks send: emissions, and the collectors behind ``emit``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.acking import Roots
from thalweg.blocks import DEFAULT_STREAM, Block, Rows
from thalweg.errors import SchemaError, ThalwegError, explain, shorten
from thalweg.schemas import Shape
from thalweg.topology import Component
from thalweg.validation import unknown


@dataclass(frozen=True)
class Emission:
    """What a task sent on one stream while it handled one block (or tick, or the end)."""

    stream: str
    batch: pa.RecordBatch
    #: Input row that each output row stems from; None when there is none, or nobody asked.
    parents: Rows | None = None
    #: True when all rows stem from the input as a whole; ``parents`` then names its last row.
    whole: bool = False
    #: Receiving task per row, on direct streams.
    targets: Rows | None = None
    #: Ids per row, from reliable spouts.
    ids: list[Any] | None = None
    #: Columns whose Python values are known.
    lists: dict[str, list[Any]] = field(default_factory=dict)
    #: Source tuples to acknowledge per row, where the task itself knows what stems from what.
    roots: list[Roots] | None = None


class TupleOutput:
    """Collects, column by column, what ``emit`` is called with on one stream."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.begin()

    def begin(self) -> None:
        """Begin with empty columns."""
        self.columns: list[list[Any]] = [[] for _ in self.shape.names]
        self.targets: list[int] = []
        self.ids: list[Any] = []

    def __len__(self) -> int:
        return len(self.columns[0])

    def add(self, values: tuple[Any, ...]) -> None:
        """Take one tuple."""
        if len(values) != len(self.columns):
            raise ThalwegError(
                explain(
                    f"emit of {self.shape.subject}",
                    expected=f"{len(self.columns)} values: {', '.join(self.shape.names)}",
                    got=f"{len(values)}: {shorten(values, 80)}",
                    hint="emit(a, b) sends one tuple with two fields",
                )
            )
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)

    def cut(self, rows: int) -> None:
        """Forget what came behind the first ``rows`` tuples."""
        for values in (*self.columns, self.targets, self.ids):
            del values[rows:]

    def take(self, stream: str, ends: list[int] | None, block: Block | None) -> Emission | None:
        """Give what was collected; ``ends`` counts the tuples sent up to each input row."""
        if not len(self):
            return None
        columns, targets, ids = self.columns, self.targets, self.ids
        passed = _passed_on(self.shape, columns, block) if block is not None else {}
        batch, lists = self.shape.make([passed.get(i, c) for i, c in enumerate(columns)])
        lists |= {self.shape.names[i]: columns[i] for i in passed}
        return Emission(
            stream=stream,
            batch=batch,
            parents=None if ends is None else _parents(ends),
            targets=np.array(targets, dtype=np.int64) if targets else None,
            ids=ids if any(id_ is not None for id_ in ids) else None,
            lists=lists,
        )

    def misfits(self, ends: list[int]) -> dict[int, SchemaError]:
        """Find the input rows that have sent something which does not fit, with the reasons."""
        parents = _parents(ends)
        found = self.shape.misfits(self.columns) if len(self) else {}
        return {int(parents[row]): found[row] for row in sorted(found, reverse=True)}

    def drop(self, refused: Collection[int], ends: list[int]) -> list[int]:
        """Forget what these input rows have sent; give the new ends."""
        parents = _parents(ends).tolist()
        kept = [row for row, parent in enumerate(parents) if parent not in refused]
        for values in (*self.columns, self.targets, self.ids):
            values[:] = [values[row] for row in kept] if values else []
        left = np.bincount([parents[row] for row in kept], minlength=len(ends))
        return np.cumsum(left).tolist()


def _emit_two(
    add_first: Callable[[Any], None], add_second: Callable[[Any], None]
) -> Callable[[Any, Any], None]:
    def emit(first: Any, second: Any) -> None:
        add_first(first)
        add_second(second)

    return emit


def _passed_on(shape: Shape, columns: list[list[Any]], block: Block) -> dict[int, pa.Array]:
    """Find the columns of text that are a column of the input, which need no new array.

    Comparing lists of the same objects costs next to nothing, and the first difference ends it.
    """
    found: dict[int, pa.Array] = {}
    for name, given in block.lists.items():
        array = block.batch.column(name)
        if pa.types.is_string(array.type):
            texts = (i for i, type_ in enumerate(shape.types) if type_ in (None, array.type))
            found |= {i: array for i in texts if columns[i] == given}
    return found


def _parents(ends: list[int]) -> Rows:
    counts: Rows = np.array(ends, dtype=np.int64)
    counts[1:] -= counts[:-1].copy()
    return np.repeat(np.arange(len(ends), dtype=np.int64), counts)


class TupleOutputs:
    """The streams of a tuple-at-a-time component, and its emit functions."""

    def __init__(self, component: Component, shapes: Mapping[str, Shape]) -> None:
        self._component = component
        self.streams = {name: TupleOutput(shape) for name, shape in shapes.items()}

    def emit(self, *values: Any, stream: str = DEFAULT_STREAM) -> None:
        """Take one tuple on any stream."""
        self._output(stream).add(values)

    def emit_function(self) -> Callable[..., None]:
        """Make ``emit`` for the next block: as little as possible per call.

        With one stream of one or two fields, which is the common case, the values go straight
        into their columns.
        """
        columns = self._only_columns()
        if len(columns) == 1:
            return columns[0].append
        if len(columns) == 2:
            return _emit_two(columns[0].append, columns[1].append)
        return self.emit

    def _only_columns(self) -> list[list[Any]]:
        only = list(self.streams) == [DEFAULT_STREAM]
        return self.streams[DEFAULT_STREAM].columns if only else []

    def hint(self, error: Exception) -> str:
        """Explain an error of a quick ``emit``, whose own text does not speak of fields."""
        quick = "list.append()" in str(error) or _emit_two.__name__ in str(error)
        if not isinstance(error, TypeError) or not quick or len(self._only_columns()) not in (1, 2):
            return ""
        names = self.streams[DEFAULT_STREAM].shape.names
        return (
            f" (if this was emit: {self._component.name!r} has one stream, and emit takes "
            f"{len(names)} values: {', '.join(names)})"
        )

    def emit_with_id(self, *values: Any, id: Any = None, stream: str = DEFAULT_STREAM) -> None:
        """Take one tuple of a spout, with an id to be acknowledged."""
        output = self._output(stream)
        output.add(values)
        output.ids.append(id)

    def emit_with_id_function(self) -> Callable[..., None]:
        """Make ``emit`` for what a spout is asked next: quick where there is one field."""
        columns = self._only_columns()
        if len(columns) != 1:
            return self.emit_with_id
        add, note = columns[0].append, self.streams[DEFAULT_STREAM].ids.append

        def emit(*values: Any, id: Any = None, stream: str = DEFAULT_STREAM) -> None:
            if len(values) == 1 and stream == DEFAULT_STREAM:
                add(values[0])
                note(id)
            else:  # says what is wrong
                self.emit_with_id(*values, id=id, stream=stream)

        return emit

    def counter(self) -> Callable[[], int]:
        """Make what counts the tuples so far, until they are taken."""
        if len(self.streams) != 1:
            return self.__len__
        (only,) = self.streams.values()
        return only.columns[0].__len__

    def emit_direct(
        self, task: int, *values: Any, id: Any = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Take one tuple for a chosen task."""
        output = self._output(stream)
        if stream not in self._component.body.direct_streams:
            raise ThalwegError(
                explain(
                    f"emit_direct on stream {stream!r}",
                    expected="a direct stream",
                    hint=f"name it in direct_streams of {type(self._component.body).__name__}",
                )
            )
        output.add(values)
        output.targets.append(task)
        output.ids.append(id)

    def take(
        self, ends: Mapping[str, list[int]] | None = None, block: Block | None = None
    ) -> list[Emission]:
        """Give what was collected on all streams, while a block was processed or without one."""
        taken = [
            output.take(stream, None if ends is None else ends[stream], block)
            for stream, output in self.streams.items()
        ]
        self.begin()
        return [emission for emission in taken if emission is not None]

    def begin(self) -> None:
        """Begin anew, with columns of their own for what was taken."""
        for output in self.streams.values():
            output.begin()

    def __len__(self) -> int:
        return sum(map(len, self.streams.values()))

    def _output(self, stream: str) -> TupleOutput:
        if stream not in self.streams:
            where = f"outputs of {self._component.name!r}"
            raise unknown(stream, "stream", where, sorted(self.streams))
        return self.streams[stream]
