"""Operators without state: map, filter, flat_map, extend, select, tap, branch, map_block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.blocks import Rows
from thalweg.components import BlockBolt, Shared
from thalweg.errors import RAISED, SchemaError, as_error, explain, shorten
from thalweg.expressions import Expression
from thalweg.operators.calls import Call, Refuse, unpack
from thalweg.operators.purity import Touch, selecting
from thalweg.schemas import Fields
from thalweg.tuples import values_of

REST_STREAM = "rest"


class FunctionBolt(Shared, BlockBolt):
    """A bolt around one function of the user's; errors name that function."""

    pure_python = True
    by_tuple = True
    reads_first = True

    def __init__(self, call: Call, outputs: Fields) -> None:
        self.call = call
        self.outputs = outputs

    @property
    def function(self) -> Callable[..., Any]:
        """The user's function, for messages."""
        return self.call.function

    def _over(self, batch: pa.RecordBatch) -> tuple[list[Any], Rows]:
        """Call the function on each row; give results and the rows they belong to."""
        results, refused = self.call.over(batch, self.values, self.context.refuse)
        rows = np.arange(batch.num_rows, dtype=np.int64)
        return results, np.delete(rows, refused) if refused else rows

    def _send_results(self, results: list[Any], parents: Callable[[], Rows]) -> None:
        """Send what the function gave; a result of another shape refuses its tuple alone."""
        names = self.outputs.names
        try:
            columns = unpack(results, names)
        except SchemaError:
            stem = parents()
            found: dict[int, SchemaError] = {}
            for result, parent in zip(results, stem.tolist(), strict=True):
                try:
                    unpack([result], names)
                except SchemaError as error:
                    found.setdefault(parent, error)
            for parent in sorted(found):
                self.context.refuse(parent, found[parent])
            kept = np.flatnonzero(~np.isin(stem, list(found)))
            self.send(unpack([results[i] for i in kept], names), stem[kept])
            return
        self.send(columns, parents)


class _Results(FunctionBolt):
    """A function bolt that sends nothing of its input but what the function makes of it."""

    @property
    def takes(self) -> tuple[str, ...] | None:
        """The fields that the function takes."""
        return self.call.names


class Map(_Results):
    """One output per tuple."""

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Call the function on each row."""
        results, rows = self._over(batch)
        self._send_results(results, lambda: rows)


class FlatMap(_Results):
    """Any number of outputs per tuple: the function returns an iterable."""

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Call the function on each row and put the results behind each other."""
        lists, rows = self._over(batch)
        if set(map(type, lists)) != {list}:
            lists, rows = self._listed(lists, rows)
        results = list(chain.from_iterable(lists))
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        self._send_results(results, lambda: np.repeat(rows, lengths))

    def _listed(self, results: list[Any], rows: Rows) -> tuple[list[list[Any]], Rows]:
        """Run through generators and the like; one that raises refuses its tuple."""
        lists, kept = [], []
        for result, row in zip(results, rows.tolist(), strict=True):
            try:
                lists.append(_listed(result))
                kept.append(row)
            except RAISED as error:
                self.context.refuse(row, as_error(error))
        return lists, np.array(kept, dtype=np.int64)


def _listed(result: Any) -> list[Any]:
    """Run through the results for one tuple, also those of a generator."""
    if type(result) is list:
        return result
    if isinstance(result, str | bytes) or not isinstance(result, Iterable):
        # Iterating over letters is never what was meant.
        text = explain("result of flat_map", expected="an iterable", got=shorten(result, 80))
        raise SchemaError(text)
    return list(result)


class Filter(FunctionBolt):
    """The tuples for which the function says yes, unchanged."""

    def __init__(self, call: Call, outputs: Fields, touches: Touch | None = None) -> None:
        super().__init__(call, outputs)
        self.touches = touches

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Keep some rows."""
        results, rows = self._over(batch)
        kept = rows[np.fromiter(map(bool, results), bool, len(results))]
        self.emit(batch.take(pa.array(kept)), parents=kept)


class Tap(FunctionBolt):
    """Calls the function for its effect; the tuples pass unchanged, but for refused ones."""

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Call the function on each row."""
        _, rows = self._over(batch)
        kept = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
        self.emit(kept, parents=rows)


class Branch(FunctionBolt):
    """The tuples for which the function says yes, and, on a second stream, the others."""

    def __init__(self, call: Call, outputs: Fields) -> None:
        super().__init__(call, outputs)
        self.streams = {REST_STREAM: outputs}

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Send each row to one of the two streams."""
        results, rows = self._over(batch)
        chosen = np.fromiter(map(bool, results), bool, len(results))
        self.emit(batch.take(pa.array(rows[chosen])), parents=rows[chosen])
        others = rows[~chosen]
        self.emit(batch.take(pa.array(others)), parents=others, stream=REST_STREAM)


class FilterExpression(Shared, BlockBolt):
    """The rows for which an expression on columns is true."""

    def __init__(
        self, expression: Expression, outputs: Fields, touches: Touch | None = None
    ) -> None:
        self.expression = expression
        self.function = expression.text
        self.outputs, self.touches = outputs, touches

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Keep some rows."""
        found, refused = _evaluated(self.expression, batch, self.context.refuse)
        kept = np.flatnonzero(pc.fill_null(found, False).to_numpy(zero_copy_only=False))
        if refused:
            kept = np.delete(np.arange(batch.num_rows), refused)[kept]
        self.emit(batch.take(pa.array(kept)), parents=kept)


class Extend(Shared, BlockBolt):
    """Adds or replaces fields, each by a function of fields or by an expression."""

    reads_first = True

    def __init__(
        self,
        columns: Mapping[str, Call | Expression],
        outputs: Fields,
        touches: Touch | None = None,
    ) -> None:
        self.columns = dict(columns)
        self._calls = [column for column in columns.values() if isinstance(column, Call)]
        self.function: Callable[..., Any] | str = self.process_block
        self.outputs, self.touches = outputs, touches

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Compute the columns, each on the rows that the ones before did not refuse."""
        for call in self._calls:
            call.columns(batch, self.values)  # before any function is called
        whole = batch.num_rows
        rows = np.arange(whole, dtype=np.int64)
        values: dict[str, Any] = {}
        for name, column in self.columns.items():
            refuse = self._refuse_at(rows)
            if isinstance(column, Expression):
                self.function = column.text  # messages name the one at hand
                values[name], refused = _evaluated(column, batch, refuse)
            else:
                self.function = column.function
                python = self.values if len(rows) == whole else values_of(batch)
                values[name], refused = column.over(batch, python, refuse)
            if refused:
                kept = np.delete(np.arange(batch.num_rows), refused)
                batch, rows = batch.take(pa.array(kept)), rows[kept]
                values = {n: _kept(v, kept) if n != name else v for n, v in values.items()}
        all_columns = [values.get(n, _column(batch, n)) for n in self.outputs.names]
        self.send(all_columns, rows)

    def _refuse_at(self, rows: Rows) -> Callable[[int, Exception], None]:
        return lambda row, error: self.context.refuse(int(rows[row]), error)


def _kept(values: Any, kept: Rows) -> Any:
    return (
        values.take(pa.array(kept)) if isinstance(values, pa.Array) else [values[i] for i in kept]
    )


def _column(batch: pa.RecordBatch, name: str) -> Any:
    return batch.column(name) if name in batch.schema.names else None


def _evaluated(
    expression: Expression, batch: pa.RecordBatch, refuse: Refuse
) -> tuple[pa.Array, list[int]]:
    """Evaluate an expression; gives the results, and the rows that were refused."""
    if not batch.num_rows:  # all were refused before
        return pa.nulls(0), []
    try:
        return _column_of(expression, batch), []
    except RAISED:
        refused: list[int] = []
        for row, error in _raising(expression, batch, 0):
            refuse(row, error)
            refused.append(row)
        if not refused:
            raise  # it is no row alone, but the block
        rest = batch.take(pa.array(np.delete(np.arange(batch.num_rows), refused)))
        return (_column_of(expression, rest) if rest.num_rows else pa.nulls(0)), refused


def _column_of(expression: Expression, batch: pa.RecordBatch) -> pa.Array:
    made = expression.evaluate(batch)
    return pa.repeat(made, batch.num_rows) if isinstance(made, pa.Scalar) else made


def _raising(
    expression: Expression, batch: pa.RecordBatch, first: int
) -> Iterator[tuple[int, Exception]]:
    """Find the rows on which an expression raises, by halves: mostly there are few."""
    try:
        expression.evaluate(batch)
    except RAISED as error:
        half = batch.num_rows // 2
        if not half:
            yield first, as_error(error)
            return
        yield from _raising(expression, batch[:half], first)
        yield from _raising(expression, batch[half:], first + half)


def added_fields(columns: Mapping[str, Call | Expression], fields: Fields) -> Fields:
    """Declare new columns with nanoseconds as such, since they would be learnt as microseconds."""
    return Fields(tuple(columns), tuple(_nanos(value, fields) for value in columns.values()))


def _nanos(value: Call | Expression, fields: Fields) -> pa.DataType | None:
    if not isinstance(value, Expression):
        return None
    read = {name: fields.type_of(name) for name in sorted(value.fields)}
    if not any(getattr(type_, "unit", None) == "ns" for type_ in read.values()):
        return None
    if None in read.values():
        return None
    row = pa.RecordBatch.from_arrays([pa.nulls(1, t) for t in read.values()], names=list(read))
    try:
        type_ = value.evaluate(row).type
    except (pa.ArrowException, TypeError):
        return None  # the run tells it, with the values
    return type_ if getattr(type_, "unit", None) == "ns" else None


class Select(Shared, BlockBolt):
    """Some of the fields."""

    def __init__(self, outputs: Fields) -> None:
        self.outputs = outputs
        self.touches = selecting(outputs.names)

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep some columns."""
        return batch.select(list(self.outputs.names))


class MapBlock(Shared, BlockBolt):
    """A function on whole record batches."""

    def __init__(
        self, function: Callable[[pa.RecordBatch], pa.RecordBatch | None], outputs: Fields
    ) -> None:
        self.function = function
        self.outputs = outputs

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Call the function."""
        return self.function(batch)
