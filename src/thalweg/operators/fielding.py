"""Fields and columns of results: behind their key, and of types that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.blocks import Rows
from thalweg.contexts import TaskContext
from thalweg.errors import TopologyError, explain
from thalweg.eventtime import FIRST, LAST, EventTime, Micros
from thalweg.keys import key_arrays
from thalweg.schemas import Fields
from thalweg.windows.specs import TimeSpec

#: Which times are wanted, in words.
_OF_TIMES = "of the years 1 to 9999"
_OF_WINDOWS = "with windows that begin and end in the years 1 to 9999"


def beside_key(
    key: Fields, value: Fields, where: str, remedy: str = "give it another name"
) -> Fields:
    """Put the fields of a result behind those of its key."""
    clash = [name for name in value.names if name in key.names]
    if clash:
        raise TopologyError(
            explain(
                f"field {clash[0]!r} of {where!r}",
                expected="a name that no key field has",
                got=f"key {list(key.names)}",
                hint=f"{remedy}, or rename the key field",
            )
        )
    return key.extend(value)


def agreed(types: tuple[pa.DataType | None, ...]) -> pa.DataType | None:
    """Give the type that all of these fit into; None when that is to be learnt."""
    if len(set(types)) == 1:
        return types[0]
    return pa.int64() if all(t is not None and pa.types.is_integer(t) for t in types) else None


def wide(type_: pa.DataType | None) -> pa.DataType | None:
    """Give the type that holds sums of many values of a type."""
    if type_ is None or pa.types.is_decimal(type_):
        return None
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(type_) else type_


def key_columns(keys: Sequence[Any], types: Sequence[pa.DataType | None]) -> list[Any]:
    """Turn keys back into columns; those of a type that nobody knows yet stay plain values.

    >>> [list(column) for column in key_columns([("a", 1), ("b", 2)], [None, None])]
    [['a', 'b'], [1, 2]]
    """
    if not types:
        return []
    parts = [keys] if len(types) == 1 else list(zip(*keys, strict=True))
    pairs = zip(parts, types, strict=True)
    return [list(part) if type_ is None else key_arrays(part, [type_])[0] for part, type_ in pairs]


def timed_rows(
    batch: pa.RecordBatch, time: EventTime, context: TaskContext, spec: TimeSpec | None = None
) -> tuple[pa.RecordBatch, Rows, Micros]:
    """Give the tuples of a block that have a time, their rows and times; others are refused.

    With windows these have to be of the years that dates are of, too.
    """
    rows = np.arange(batch.num_rows)
    column = batch.column(time.field)
    times, known = time.read(column)
    good = known if spec is None else known & _within(spec, times)
    if good.all():
        return batch, rows, times
    for row in np.flatnonzero(~good).tolist():
        of = _OF_WINDOWS if known[row] else _OF_TIMES
        context.refuse(row, time.refusal(column, row, of))
    rows = np.flatnonzero(good)
    return batch.take(pa.array(rows)), rows, times[rows]


def _within(spec: TimeSpec, times: Micros) -> npt.NDArray[np.bool_]:
    """Say which times have windows whose bounds are dates."""
    first, last = spec.around(times)
    return (first >= FIRST) & (last <= LAST)
