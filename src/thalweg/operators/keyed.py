"""Operators with a state per key.

Aggregates (count, tally, sum, fold) keep a *table* and send the values that changed, once per
block; the order of their input does not matter. Running operators (scan, stateful) send one tuple
per tuple, in the order of each key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM, Rows
from thalweg.components import BlockBolt, Kind
from thalweg.keys import Key, is_plain, key_arrays, key_values
from thalweg.operators.calls import Call, Function, unpack
from thalweg.schemas import Fields

#: The stream of a tally's changed values; its default stream passes the tuples on.
CHANGES_STREAM = "changes"
MISSING: Any = object()


class KeyedBolt(BlockBolt):
    """A block bolt with a state per key."""

    kind = Kind.KEYED
    #: The stream that takes changed values.
    changes_on: ClassVar[str] = DEFAULT_STREAM

    def _keys(self, batch: pa.RecordBatch) -> list[Any]:
        if len(self.key) == 1 and is_plain(batch.schema.field(self.key[0]).type):
            return self.values(self.key[0])
        return key_values([batch.column(name) for name in self.key])

    def _send(self, changed: Mapping[Key, Any], batch: pa.RecordBatch) -> None:
        """Send changed values when somebody reads them."""
        if changed and self.changes_on in self.context.read_streams:
            types = [batch.schema.field(name).type for name in self.key]
            columns = [*key_arrays(list(changed), types), list(changed.values())]
            self.emit(self.make_batch(columns, self.changes_on), stream=self.changes_on)


class FunctionBolt(KeyedBolt):
    """Calls a user's function (state, *fields) -> state on each tuple, in order.

    ``start`` makes the state of a new key. A tuple on which the function raises changes nothing,
    provided the function returns a new state rather than altering the old one.
    """

    def __init__(self, step: Call, start: Callable[[], Any], outputs: Fields) -> None:
        self.step = step
        self.start = start
        self.outputs = outputs

    @property
    def function(self) -> Function:
        """The user's function, for messages."""
        return self.step.function

    def _fold(self, batch: pa.RecordBatch, function: Function) -> tuple[list[Any], Rows]:
        """Give the state of its key after each tuple, and the rows that were not refused."""
        keys = self._keys(batch)
        columns = self.step.columns(batch, self.values)
        with self.state.working(keys) as values:
            calls = _Calls(function, self.start, values, self.context.refuse)
            after = calls.with_fields(keys, columns) if columns else calls.without_fields(keys)
        rows = np.arange(batch.num_rows, dtype=np.int64)
        return after, np.delete(rows, calls.refused) if calls.refused else rows


@dataclass
class _Calls:
    """The inner loops: a function on each tuple with the state of its key."""

    function: Function
    start: Callable[[], Any]
    values: dict[Key, Any]
    refuse: Callable[[int, Exception], None]
    refused: list[int] = field(default_factory=list)

    def without_fields(self, keys: list[Any]) -> list[Any]:
        """Call function(state)."""
        function, start, values, get = self.function, self.start, self.values, self.values.get
        after: list[Any] = []
        append = after.append
        for key in keys:
            value = get(key, MISSING)
            try:
                value = values[key] = function(start() if value is MISSING else value)
                append(value)
            except Exception as error:
                self._note(len(after), error)
        return after

    def with_fields(self, keys: list[Any], columns: list[Any]) -> list[Any]:
        """Call function(state, *fields)."""
        function, start, values, get = self.function, self.start, self.values, self.values.get
        after: list[Any] = []
        append = after.append
        for key, arguments in zip(keys, zip(*columns, strict=True), strict=True):
            value = get(key, MISSING)
            try:
                value = function(start() if value is MISSING else value, *arguments)
                values[key] = value
                append(value)
            except Exception as error:
                self._note(len(after), error)
        return after

    def _note(self, done: int, error: Exception) -> None:
        row = done + len(self.refused)
        self.refuse(row, error)
        self.refused.append(row)


class Fold(FunctionBolt):
    """A table of one value per key, made by a function; sends changed values once per block."""

    commutative = True

    def __init__(self, table: str, step: Call, start: Callable[[], Any], outputs: Fields) -> None:
        super().__init__(step, start, outputs)
        self.table = table

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Fold the block into the table."""
        after, rows = self._fold(batch, self._combine())
        if DEFAULT_STREAM in self.context.read_streams:
            keys = self._keys(batch)
            self._send({keys[row]: value for row, value in zip(rows, after, strict=True)}, batch)

    def _combine(self) -> Function:
        return self.step.function


class Reduce(Fold):
    """A fold whose start is the first value of the key."""

    def _combine(self) -> Function:
        combine = self.step.function
        return lambda before, value: value if before is MISSING else combine(before, value)


class Scan(FunctionBolt):
    """One output per tuple: the tuple with, in the field ``into``, the state of its key."""

    def __init__(self, step: Call, start: Callable[[], Any], outputs: Fields, into: str) -> None:
        super().__init__(step, start, outputs)
        self.into = into

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Fold each tuple into its key's state and send both on."""
        after, rows = self._fold(batch, self.step.function)
        kept = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
        names = self.outputs.names
        columns = [after if name == self.into else kept.column(name) for name in names]
        self.emit(self.make_batch(columns), parents=rows)


class Stateful(FunctionBolt):
    """A user's function (state, *fields) -> (state, output); one output per tuple."""

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Call the function on each tuple with its key's state."""
        outputs: list[Any] = []
        function = self.step.function

        def step(state: Any, *values: Any) -> Any:
            state, output = function(state, *values)
            outputs.append(output)
            return state

        _, rows = self._fold(batch, step)
        self.emit(self.make_batch(unpack(outputs, self.outputs.names)), parents=rows)


class Count(KeyedBolt):
    """A table of how many tuples each key had, a block at a time."""

    commutative = True

    def __init__(self, table: str, outputs: Fields) -> None:
        self.table = table
        self.outputs = outputs

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Add the block to the table."""
        keys, additions = self._additions(batch)
        values = self.state.get_many(keys)
        changed: dict[Key, Any] = {}
        for key, addition in zip(keys, additions, strict=True):
            # A key may be listed twice: Arrow tells -0.0 from 0.0, a key does not.
            changed[key] = values[key] = values.get(key, 0) + addition
        self.state.put_many(changed)
        self._send(changed, batch)
        return None

    def _additions(self, batch: pa.RecordBatch) -> tuple[list[Any], list[Any]]:
        table = pa.Table.from_batches([batch.select(self.key)])
        groups = pa.TableGroupBy(table, list(self.key), use_threads=False)
        counts = groups.aggregate([([], "count_all")])
        columns = [counts.column(name).combine_chunks() for name in self.key]
        return key_values(columns), counts.column("count_all").to_pylist()


class Tally(Count):
    """A count that passes its tuples on; the changed counts are a stream of their own."""

    changes_on = CHANGES_STREAM

    def __init__(self, table: str, outputs: Fields, changes: Fields) -> None:
        super().__init__(table, outputs)
        self.streams = {CHANGES_STREAM: changes}

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Count, then pass on."""
        super().process_block(batch)
        return batch


class Sum(Count):
    """A table of the sum of a field per key; a missing value adds nothing."""

    def __init__(self, table: str, field: str, outputs: Fields) -> None:
        super().__init__(table, outputs)
        self.field = field

    def _additions(self, batch: pa.RecordBatch) -> tuple[list[Any], list[Any]]:
        sums: dict[Key, Any] = {}  # Python's numbers, because Arrow's sums overflow in silence
        for key, value in zip(self._keys(batch), self.values(self.field), strict=True):
            sums[key] = sums.get(key, 0) + (0 if value is None else value)
        return list(sums), list(sums.values())
