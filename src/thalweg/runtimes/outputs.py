"""What tasks send: emissions, and the collectors behind ``emit``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM, Rows
from thalweg.errors import SchemaError, ThalwegError, explain, shorten
from thalweg.schemas import Shape
from thalweg.topology import Component
from thalweg.validation import unknown


@dataclass(frozen=True)
class Emission:
    """What a task sent on one stream while it handled one block (or tick, or the end)."""

    stream: str
    batch: pa.RecordBatch
    #: Input row that each output row stems from; None when there is none.
    parents: Rows | None = None
    #: Receiving task per row, on direct streams.
    targets: Rows | None = None
    #: Ids per row, from reliable spouts.
    ids: list[Any] | None = None


class TupleOutput:
    """Collects what ``emit`` is called with on one stream."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.rows: list[tuple[Any, ...]] = []
        self.parents: list[int] = []
        self.targets: list[int] = []
        self.ids: list[Any] = []

    def drop_row(self, row: int) -> None:
        """Forget what the tuple in this row has sent, because it raised."""
        while self.parents and self.parents[-1] == row:
            self.parents.pop()
            self.rows.pop()
            if self.targets:
                self.targets.pop()

    def take(self, stream: str) -> Emission | None:
        """Give what was collected, and begin anew."""
        if not self.rows:
            return None
        parents = np.array(self.parents, dtype=np.int64)
        made = Emission(
            stream,
            self.shape.batch(self._columns()),
            None if self.parents[-1] < 0 else parents,
            np.array(self.targets, dtype=np.int64) if self.targets else None,
            self.ids[:] if any(id_ is not None for id_ in self.ids) else None,
        )
        self.clear()
        return made

    def clear(self) -> None:
        """Forget everything."""
        for values in (self.rows, self.parents, self.targets, self.ids):
            values.clear()

    def _columns(self) -> list[list[Any]]:
        names = self.shape.names
        if set(map(len, self.rows)) != {len(names)}:
            bad = next(row for row in self.rows if len(row) != len(names))
            raise SchemaError(
                explain(
                    f"emit of {self.shape.subject}",
                    expected=f"{len(names)} values: {', '.join(names)}",
                    got=f"{len(bad)}: {shorten(bad, 80)}",
                    hint="emit(a, b) sends one tuple with two fields",
                )
            )
        return [[row[i] for row in self.rows] for i in range(len(names))]


class TupleOutputs:
    """The streams of a tuple-at-a-time component, and its emit functions."""

    def __init__(self, component: Component, shapes: Mapping[str, Shape]) -> None:
        self._component = component
        self.streams = {name: TupleOutput(shape) for name, shape in shapes.items()}
        #: Input row at hand; -1 outside of process.
        self.row = -1

    def emit_function(self) -> Callable[..., None]:
        """Make ``emit`` for a bolt: as little as possible per call."""
        streams = self.streams
        default = streams.get(DEFAULT_STREAM)
        if default is None:
            return self._emit_named
        add, add_parent = default.rows.append, default.parents.append
        named = self._emit_named

        def emit(*values: Any, stream: str = DEFAULT_STREAM) -> None:
            if stream == DEFAULT_STREAM:
                add(values)
                add_parent(self.row)
            else:
                named(*values, stream=stream)

        return emit

    def emit_with_id(self, *values: Any, id: Any = None, stream: str = DEFAULT_STREAM) -> None:  # noqa: A002
        """Emit for a spout, with an id to be acknowledged."""
        output = self._output(stream)
        output.rows.append(values)
        output.parents.append(-1)
        output.ids.append(id)

    def emit_direct(self, task: int, *values: Any, stream: str = DEFAULT_STREAM) -> None:
        """Emit to a chosen task."""
        output = self._output(stream)
        if stream not in self._component.body.direct_streams:
            raise ThalwegError(
                explain(
                    f"emit_direct on stream {stream!r}",
                    expected="a direct stream",
                    hint=f"name it in direct_streams of {type(self._component.body).__name__}",
                )
            )
        output.rows.append(values)
        output.parents.append(self.row)
        output.targets.append(task)

    def take(self) -> list[Emission]:
        """Give what was collected on all streams."""
        made = (output.take(name) for name, output in self.streams.items())
        return [emission for emission in made if emission is not None]

    def drop_row(self, row: int) -> None:
        """Forget what the tuple in this row has sent."""
        for output in self.streams.values():
            output.drop_row(row)

    def clear(self) -> None:
        """Forget everything."""
        for output in self.streams.values():
            output.clear()

    def __len__(self) -> int:
        return sum(len(output.rows) for output in self.streams.values())

    def _emit_named(self, *values: Any, stream: str = DEFAULT_STREAM) -> None:
        output = self._output(stream)
        output.rows.append(values)
        output.parents.append(self.row)

    def _output(self, stream: str) -> TupleOutput:
        if stream not in self.streams:
            where = f"outputs of {self._component.name!r}"
            raise unknown("stream", stream, where, sorted(self.streams))
        return self.streams[stream]
