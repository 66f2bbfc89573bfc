"""Strategies for keys, values, columns and blocks."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from thalweg.blocks import Block, Origin

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
#: Mostly few and close values, so that examples collide; now and then any.
SMALL = st.integers(-3, 3)
TEXT = st.text(max_size=12) | st.sampled_from(["", "a", "b", "ä", "a\0", "x" * 256, "x" * 257])
BYTES = st.binary(max_size=12) | st.sampled_from([b"", b"a", b"\x00", b"x" * 256, b"x" * 300])
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1.0, -3.0, 2.0**63, -(2.0**63), 2.0**64, 1e300])
DATES = st.dates()
NAIVE = st.datetimes()
# Not at the ends of the calendar: there an instant may have no name in another time zone.
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))
AWARE = st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=ZONES)
TIMES = st.times()
SPANS = st.timedeltas(dt.timedelta(days=-(10**8)), dt.timedelta(days=10**8))

#: Values of every Arrow type that a key may have.
KEY_COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.null(): st.none(),
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): SMALL | INT64,
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.uint64(): SMALL.map(abs) | UINT64,
    pa.float32(): st.floats(width=32),
    pa.float64(): FLOATS,
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.string_view(): TEXT,
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary_view(): BYTES,
    pa.binary(4): st.binary(min_size=4, max_size=4),
    pa.date32(): DATES,
    pa.date64(): DATES,
    pa.timestamp("us"): NAIVE,
    pa.timestamp("s"): NAIVE.map(lambda moment: moment.replace(microsecond=0)),
    pa.timestamp("us", "UTC"): AWARE,
    pa.timestamp("us", "+05:30"): AWARE,
    pa.time64("us"): TIMES,
    pa.time32("s"): TIMES.map(lambda time: time.replace(microsecond=0)),
    pa.duration("us"): SPANS,
    pa.dictionary(pa.int32(), pa.string()): TEXT,
    pa.dictionary(pa.int8(), pa.float64()): FLOATS,
}
#: Values of every type that a block may have; Arrow can hash views but not take rows of them.
_VIEWS = (pa.string_view(), pa.binary_view())
COLUMNS = {type_: values for type_, values in KEY_COLUMNS.items() if type_ not in _VIEWS} | {
    pa.list_(pa.int64()): st.lists(st.none() | INT64, max_size=3),
    pa.struct([("a", pa.int64()), ("b", pa.string())]): st.fixed_dictionaries(
        {"a": st.none() | INT64, "b": st.none() | TEXT}
    ),
    pa.map_(pa.string(), pa.float64()): st.lists(st.tuples(TEXT, st.floats()), max_size=2),
}

#: One key field's values, of every kind.
SCALAR_KEYS = (
    st.none()
    | st.booleans()
    | SMALL
    | INT64
    | UINT64
    | FLOATS
    | TEXT
    | BYTES
    | DATES
    | NAIVE
    | AWARE
    | TIMES
    | SPANS
)
KEYS = st.recursive(SCALAR_KEYS, lambda part: st.lists(part, max_size=3).map(tuple), max_leaves=4)


@st.composite
def arrays(draw: st.DrawFn, types: dict[pa.DataType, Any], rows: int) -> pa.Array:
    """Draw a column, with nulls, and sometimes as a slice of a longer one."""
    type_ = draw(st.sampled_from(list(types)))
    before, behind = draw(st.sampled_from([(0, 0), (1, 0), (0, 2), (3, 1)]))
    total = before + rows + behind
    values = draw(st.lists(st.none() | types[type_], min_size=total, max_size=total))
    return pa.array(values, type_).slice(before, rows)


@st.composite
def blocks(draw: st.DrawFn, max_rows: int = 10) -> Block:
    """Draw a block of any columns, perhaps with roots and targets."""
    rows = draw(st.integers(0, max_rows))
    columns = draw(st.lists(arrays(COLUMNS, rows), min_size=1, max_size=3))
    batch = pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])
    steps = draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
    origin = Origin(draw(TEXT), draw(TEXT), draw(st.integers(0, 9)))
    roots = targets = None
    if draw(st.booleans()):
        few = st.lists(st.integers(1, 9), max_size=2).map(tuple)
        roots = draw(st.lists(few, min_size=rows, max_size=rows))
    if draw(st.booleans()):
        targets = np.array(draw(numbers(rows, 5)), dtype=np.int64)
    return Block(batch, origin, np.cumsum([0, *steps])[:rows], roots=roots, targets=targets)


def numbers(count: int, below: int) -> st.SearchStrategy[list[int]]:
    """Draw ``count`` numbers from 0 up to ``below``."""
    return st.lists(st.integers(0, below - 1), min_size=count, max_size=count)


def plain(value: Any) -> Any:
    """Make values comparable with ==: NaN equals itself, 1, 1.0 and True differ."""
    if isinstance(value, float):
        return (float, "NaN" if math.isnan(value) else value.hex())
    if isinstance(value, list | tuple):
        return (type(value), *map(plain, value))
    if isinstance(value, set | frozenset):
        return (type(value), frozenset(map(plain, value)))
    if isinstance(value, dict):
        return (dict, len(value), frozenset((plain(k), plain(v)) for k, v in value.items()))
    return (type(value), value)


def content(block: Block) -> Any:
    """Write down all that a block holds."""
    return (
        block.batch.schema,
        plain(block.batch.to_pylist()),
        block.origin,
        block.serials.tolist(),
        None if block.roots is None else list(block.roots),
        None if block.targets is None else block.targets.tolist(),
    )
