"""Pairs of tuples and rows of a table, found in one of several ways.

Whatever the way, pairs are in the order of the block, and then in that of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.blocks import Rows
from thalweg.errors import RAISED, SchemaError, as_error, explain
from thalweg.expressions import ROW, Expression
from thalweg.operators.conditions import Condition
from thalweg.operators.lookups import KeyIndex, key_type, normal, spread, table_keys
from thalweg.operators.ranges import RangeIndex
from thalweg.tuples import tuples_of

Pairs = tuple[Rows, Rows]
Refuse = Callable[[int, Exception], None]

#: Pairs that are looked at at once.
_AT_ONCE = 4_000_000
_NONE: Rows = np.empty(0, np.int64)


class Matcher:
    """One version of a table, ready to be asked by blocks of one schema."""

    def __init__(self, table: pa.RecordBatch, condition: Condition, schema: pa.Schema) -> None:
        self._table, self._condition = table, condition
        types = {one: schema.field(one).type for one, _ in condition.keys}
        #: Forms in which keys are compared; a column of nothing but nulls has none.
        self._forms = {one: _form(type_, one) for one, type_ in types.items()}
        self._hopeless = any(pa.types.is_null(form) for form in self._forms.values())
        self._keys = None if self._hopeless or not condition.keys else self._by_key()

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self._table.num_rows

    def match(self, batch: pa.RecordBatch, way: str, refuse: Refuse) -> Pairs:
        """Give the pairs; a function that raises refuses its tuple."""
        if not batch.num_rows or not self.rows or self._hopeless:
            return _NONE, _NONE
        condition = self._condition
        if self._keys is not None:
            ours = [normal(batch.column(one), form) for one, form in self._forms.items()]
            pairs = self._keys.match(ours, by_hash=way == "hash")
            return pairs if condition.where is None else self._kept(batch, pairs)
        if condition.call is not None:
            return _each_with_each(batch, self._table, condition.call, refuse)
        if way == "range":
            return self._by_range(batch)
        assert condition.where is not None  # noqa: S101 (one of them is there)
        return _looped(batch, self._table, condition.where)

    def _by_key(self) -> KeyIndex:
        theirs = dict(self._condition.keys)
        columns = {name: self._table.column(theirs[name]) for name in self._forms}
        return KeyIndex(
            [table_keys(columns[name], form, theirs[name]) for name, form in self._forms.items()]
        )

    # --- ranges ----------------------------------------------------------------------------

    @cached_property
    def _range(self) -> RangeIndex:
        assert self._condition.band is not None  # noqa: S101 (or there is no such way)
        return RangeIndex(self._table, self._condition.band)

    def _by_range(self, batch: pa.RecordBatch) -> Pairs:
        index = self._range
        starts, counts = index.candidates(batch)
        found = []
        for first, last in _slices(counts):
            at, places = spread(starts[first:last], counts[first:last])
            pairs = first + at, index.rows[places]
            found.append(pairs if index.exact else self._kept(batch, pairs))
        ours, theirs = _put_together(found)
        if index.ordered:
            return ours, theirs
        order = np.lexsort((theirs, ours))
        return ours[order], theirs[order]

    def _kept(self, batch: pa.RecordBatch, pairs: Pairs) -> Pairs:
        """Keep the pairs for which the condition is true."""
        where = self._condition.where
        assert where is not None  # noqa: S101 (the callers have looked)
        sides = {n: batch.column(n).take(pa.array(pairs[0])) for n in where.fields if _ours(n)}
        for name in (name for name in where.fields if not _ours(name)):
            column = self._table.column(name.removeprefix(ROW))
            sides[name] = column.take(pa.array(pairs[1]))
        good = _truth(where, _View(sides), len(pairs[0]))
        return pairs[0][good], pairs[1][good]


def _form(type_: pa.DataType, name: str) -> pa.DataType:
    form = key_type(type_)
    if form is None:
        text = explain(f"field {name!r}", expected="a type whose values are keys", got=str(type_))
        raise SchemaError(text)
    return form


def _ours(name: str) -> bool:
    return not name.startswith(ROW)


def _slices(counts: Rows) -> Iterator[tuple[int, int]]:
    """Cut rows so that those of a slice have not too many candidates together."""
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _AT_ONCE, side="right")))
        yield first, last
        first = last


def _put_together(pairs: list[Pairs]) -> Pairs:
    if len(pairs) == 1:
        return pairs[0]
    ours, theirs = zip(*pairs, strict=True) if pairs else ((_NONE,), (_NONE,))
    return np.concatenate(ours), np.concatenate(theirs)


# --- each with each ------------------------------------------------------------------------------


class _View:
    """What an expression sees of a record batch: columns, and values that are the same all over."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = columns

    def column(self, name: str) -> Any:
        """Give a column, or a value."""
        return self._columns[name]


def _truth(where: Expression, view: Any, rows: int) -> Any:
    """Evaluate a condition; null is not true."""
    found = where.evaluate(view)
    if not pa.types.is_boolean(found.type):
        text = explain(f"condition {where.text}", expected="true or false", got=str(found.type))
        raise SchemaError(text)
    if isinstance(found, pa.Scalar):
        return np.full(rows, bool(found.as_py()))
    return pc.fill_null(found, False).to_numpy(zero_copy_only=False)


def _looped(batch: pa.RecordBatch, table: pa.RecordBatch, where: Expression) -> Pairs:
    """Compare each row of the smaller side with all of the other one at once."""
    wide = max(1, _AT_ONCE // table.num_rows)
    found = []
    for first in range(0, batch.num_rows, wide):
        truth = _grid(batch.slice(first, wide), table, where)
        ours, theirs = np.divmod(np.flatnonzero(truth), table.num_rows)
        found.append((ours + first, theirs))
    return _put_together(found)


def _grid(batch: pa.RecordBatch, table: pa.RecordBatch, where: Expression) -> Any:
    """Say for each row of a block, and each of a table, whether they are a pair."""
    ours = {name: batch.column(name) for name in where.fields if _ours(name)}
    theirs = {n: table.column(n.removeprefix(ROW)) for n in where.fields if not _ours(n)}
    if table.num_rows <= batch.num_rows:
        grid = np.empty((batch.num_rows, table.num_rows), np.bool_)
        for at in range(table.num_rows):
            view = _View(ours | {name: column[at] for name, column in theirs.items()})
            grid[:, at] = _truth(where, view, batch.num_rows)
        return grid
    rows = (_View(theirs | {n: c[at] for n, c in ours.items()}) for at in range(batch.num_rows))
    return np.array([_truth(where, view, table.num_rows) for view in rows])


def _each_with_each(
    batch: pa.RecordBatch, table: pa.RecordBatch, function: Callable[..., Any], refuse: Refuse
) -> Pairs:
    """Call a function on each pair; what it raises refuses the tuple."""
    ours: list[int] = []
    theirs: list[int] = []
    rows = list(tuples_of(table))
    for at, t in enumerate(tuples_of(batch)):
        try:
            found = [place for place, row in enumerate(rows) if function(t, row)]
        except RAISED as error:
            refuse(at, as_error(error))
            continue
        ours += [at] * len(found)
        theirs += found
    return np.array(ours, np.int64), np.array(theirs, np.int64)
