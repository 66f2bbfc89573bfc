"""Operators with a state per key.

Aggregates (count, tally, sum, fold) keep a *table* and send the values that changed, once per
block; the order of their input does not matter. Running operators (scan, stateful) send one tuple
per tuple, in the order of each key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from thalweg.anyvalues import bare, dressed
from thalweg.blocks import DEFAULT_STREAM, Rows
from thalweg.components import BlockBolt, Kind, Shared
from thalweg.errors import RAISED, SchemaError, as_error
from thalweg.keys import Key, is_plain, key_arrays, key_values
from thalweg.operators.calls import Call, Function, unpack
from thalweg.operators.starting import Always
from thalweg.schemas import Fields
from thalweg.weights import WEIGHT, is_weighed

#: The stream of a tally's changed values; its default stream passes the tuples on.
CHANGES_STREAM = "changes"
MISSING: Any = object()
# Up to so many rows Arrow's counting of values is quicker than its grouping.
_FEW = 16_384


class KeyedBolt(Shared, BlockBolt):
    """A block bolt with a state per key."""

    kind = Kind.KEYED
    pure_python = True
    reads_first = True
    #: The stream that takes changed values.
    changes_on: ClassVar[str] = DEFAULT_STREAM

    def _keys(self, batch: pa.RecordBatch) -> list[Any]:
        if len(self.key) == 1 and is_plain(batch.schema.field(self.key[0]).type):
            return self.values(self.key[0])
        return key_values([batch.column(name) for name in self.key], self.key)

    def _send(self, changed: Mapping[Key, Any], batch: pa.RecordBatch) -> None:
        """Send changed values when somebody reads them."""
        if changed and self.changes_on in self.context.read_streams:
            types = [batch.schema.field(name).type for name in self.key]
            columns = [*key_arrays(list(changed), types), list(changed.values())]
            self.emit(self.make_batch(columns, self.changes_on), stream=self.changes_on)


class StepBolt(KeyedBolt):
    """Calls a user's function (state, *fields) -> state on each tuple, in order.

    ``start`` makes the state of a new key. A tuple that is refused, because the function raises or
    because its result does not fit, changes nothing, provided that the function returns a new
    state rather than altering the old one.
    """

    by_row = True
    by_tuple = True

    def __init__(self, step: Call, start: Callable[[], Any], outputs: Fields) -> None:
        self.step = step
        self.start = start
        self.outputs = outputs

    @property
    def function(self) -> Function:
        """The user's function, for messages."""
        return self.step.function

    @property
    def takes(self) -> tuple[str, ...] | None:
        """The fields that the function takes."""
        return self.step.names

    def _fold(
        self,
        batch: pa.RecordBatch,
        function: Function,
        done: Callable[[list[Any], list[Any], Rows], None],
    ) -> None:
        """Fold the block into the state; ``done`` sends (keys, states after each tuple, rows)."""
        keys = self._keys(batch)
        columns = self.step.columns(batch, self.values)
        with self._working(keys) as values:
            calls = _Calls(function, self.start, values, self.context.refuse)
            if columns or self.context.tolerant:
                calls.with_fields(keys, columns)
            else:
                calls.without_fields(keys)
            rows = np.arange(batch.num_rows, dtype=np.int64)
            rows = np.delete(rows, calls.refused) if calls.refused else rows
            try:
                done(keys, calls.after, rows)
            except SchemaError:
                calls.undo([keys[row] for row in rows])
                raise

    def _working(self, keys: Sequence[Key]) -> AbstractContextManager[dict[Key, Any]]:
        return self.state.working(keys)


@dataclass
class _Calls:
    """The inner loops: a function on each tuple with the state of its key."""

    function: Function
    start: Callable[[], Any]
    values: dict[Key, Any]
    refuse: Callable[[int, Exception], None]
    refused: list[int] = field(default_factory=list)
    #: State before and after each tuple that was not refused.
    before: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)

    def without_fields(self, keys: list[Any]) -> None:
        """Call function(state), with nothing that is not needed: an error ends the run."""
        # Python knows how to append to a list quickly where it sees that it does.
        function, start, values, after = self.function, self.start, self.values, self.after
        if isinstance(start, Always):
            get, first = values.get, start.value
            for key in keys:
                try:
                    value = values[key] = function(get(key, first))
                    after.append(value)
                except RAISED as error:
                    self._note(error)
            return
        for key in keys:
            try:
                value = values[key] = function(values[key] if key in values else start())
                after.append(value)
            except RAISED as error:
                self._note(error)

    def with_fields(self, keys: list[Any], columns: list[Any]) -> None:
        """Call function(state, *fields)."""
        function, start, values = self.function, self.start, self.values
        after, befores = self.after, self.before
        rows = zip(*columns, strict=True) if columns else repeat((), len(keys))
        for key, arguments in zip(keys, rows, strict=True):
            before = values.get(key, MISSING)
            try:
                value = function(start() if before is MISSING else before, *arguments)
                values[key] = value
                after.append(value)
                befores.append(before)
            except RAISED as error:
                self._note(error)

    def undo(self, keys: list[Any]) -> None:
        """Bring the states of these keys, one per tuple, back to what they were."""
        for key, before in zip(reversed(keys), reversed(self.before), strict=False):
            if before is MISSING:
                self.values.pop(key, None)
            else:
                self.values[key] = before

    def _note(self, raised: BaseException) -> None:
        row = len(self.after) + len(self.refused)
        self.refuse(row, as_error(raised))
        self.refused.append(row)


class Fold(StepBolt):
    """A table of one value per key, made by a function; sends changed values once per block."""

    commutative = True

    def __init__(self, table: str, step: Call, start: Callable[[], Any], outputs: Fields) -> None:
        super().__init__(step, start, outputs)
        self.table = table

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Fold the block into the table."""

        def done(keys: list[Any], after: list[Any], rows: Rows) -> None:
            if DEFAULT_STREAM in self.context.read_streams:
                changed = {keys[row]: value for row, value in zip(rows, after, strict=True)}
                self._send(changed, batch)

        self._fold(batch, self._combine(), done)

    def _combine(self) -> Function:
        return self.step.function


class Reduce(Fold):
    """A fold whose start is the first value of the key."""

    def _combine(self) -> Function:
        return or_first(self.step.function)


def or_first(combine: Function) -> Function:
    """Make a step that begins with the first value of a key."""
    return lambda before, value: value if before is MISSING else combine(before, value)


class Scan(StepBolt):
    """One output per tuple: the tuple with, in the field ``into``, the state of its key."""

    takes = None

    def __init__(self, step: Call, start: Callable[[], Any], outputs: Fields, into: str) -> None:
        super().__init__(step, start, outputs)
        self.into = into

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Fold each tuple into its key's state and send both on."""

        def done(_keys: list[Any], after: list[Any], rows: Rows) -> None:
            kept = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
            names = self.outputs.names
            columns = [after if name == self.into else kept.column(name) for name in names]
            self.emit(self.make_batch(columns), parents=lambda: rows)

        self._fold(batch, self.step.function, done)


class Stateful(StepBolt):
    """A user's function (state, *fields) -> (state, output); one output per tuple."""

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Call the function on each tuple with its key's state."""
        outputs: list[Any] = []
        function = self.step.function

        def step(state: Any, *values: Any) -> Any:
            state, output = function(state, *values)
            outputs.append(output)
            return state

        def done(_keys: list[Any], _after: list[Any], rows: Rows) -> None:
            self.emit(self.make_batch(unpack(outputs, self.outputs.names)), parents=rows)

        self._fold(batch, step, done)


class Count(KeyedBolt):
    """A table of how many tuples each key had, a block at a time."""

    commutative = True
    reads: tuple[str, ...] | None = ()
    #: Whether what is added is never missing.
    _numbers: ClassVar[bool] = True

    def __init__(self, table: str, outputs: Fields) -> None:
        self.table = table
        self.outputs = outputs

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Add the block to the table."""
        keys, additions = self._additions(batch)
        quick = getattr(self.state, "add", None)  # a state in memory has it
        if quick is not None and self._numbers and not self._changes_are_read:
            quick(keys, additions)
            return None

        def add(before: list[Any]) -> list[Any]:
            both = zip(before, additions, strict=True)
            after = [a if b is None else b if a is None else b + a for b, a in both]
            if self._changes_are_read:
                # First: what does not fit must not change the table.
                self._send(dict(zip(keys, after, strict=True)), batch)
            return after

        self.state.update(keys, add)
        return None

    @property
    def _changes_are_read(self) -> bool:
        return self.changes_on in self.context.read_streams

    def _additions(self, batch: pa.RecordBatch) -> tuple[list[Any], list[Any]]:
        """Give the keys of a block, each once, and what is to be added to them."""
        columns, counts = self._counts(batch)
        keys, numbers = key_values(columns, self.key), counts.to_pylist()
        plain = all(is_plain(column.type) for column in columns)
        if not plain and len(set(keys)) < len(keys):
            # Arrow tells -0.0 from 0.0, and one NaN from another: keys do not.
            sums: dict[Key, Any] = {}
            for key, number in zip(keys, numbers, strict=True):
                sums[key] = sums.get(key, 0) + number
            return list(sums), list(sums.values())
        return keys, numbers

    def _counts(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], pa.Array]:
        """Count the tuples of each key: the columns of keys, and the numbers."""
        types = [batch.schema.field(name).type for name in self.key]
        batch = bare(batch)
        if len(self.key) == 1 and batch.num_rows <= _FEW and not is_weighed(batch):
            found = batch.column(self.key[0]).value_counts()
            return [dressed(found.field(0), types[0])], found.field(1)
        groups = pa.TableGroupBy(pa.Table.from_batches([batch]), list(self.key), use_threads=False)
        counts = groups.aggregate([(WEIGHT, "sum") if is_weighed(batch) else ([], "count_all")])
        columns = [counts.column(name).combine_chunks() for name in (*self.key, -1)]
        return list(map(dressed, columns[:-1], types)), columns[-1]


class Tally(Count):
    """A count that passes its tuples on; the changed counts are a stream of their own."""

    changes_on = CHANGES_STREAM
    passes_on = True

    def __init__(self, table: str, outputs: Fields, changes: Fields) -> None:
        super().__init__(table, outputs)
        self.streams = {CHANGES_STREAM: changes}

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Count, then pass on what nobody else passes on in its stead."""
        super().process_block(batch)
        return batch if DEFAULT_STREAM in self.context.read_streams else None


class Sum(Count):
    """A table of the sum of a field per key; missing values add nothing, and alone give None."""

    by_tuple = True
    _numbers = False

    def __init__(self, table: str, field: str, outputs: Fields) -> None:
        super().__init__(table, outputs)
        self.field = field
        self.reads = (field,)

    def _additions(self, batch: pa.RecordBatch) -> tuple[list[Any], list[Any]]:
        values = self.values(self.field)
        if is_weighed(batch):
            values = list(map(_times, values, self.values(WEIGHT)))
        sums: dict[Key, Any] = {}  # Python's numbers, because Arrow's sums overflow in silence
        for key, value in zip(self._keys(batch), values, strict=True):
            sums[key] = _plus(sums.get(key), value)
        return list(sums), list(sums.values())


def _times(value: Any, weight: int) -> Any:
    return None if value is None else value * weight


def _plus(a: Any, b: Any) -> Any:
    """Add two values of which either may be missing."""
    if a is None or b is None:
        return b if a is None else a
    return a + b
