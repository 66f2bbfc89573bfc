"""A join finds the pairs that comparing each with each finds, whatever the way and the types."""

from __future__ import annotations

import datetime as dt
import math
import operator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.connectors.memory import collect, items
from thalweg.connectors.table_files import table_file
from thalweg.expressions import col, row
from thalweg.flow import Flow
from thalweg.operators import lookups
from thalweg.operators.conditions import condition
from thalweg.operators.matching import Matcher
from thalweg.runtimes.inline import Inline
from thalweg.schemas import fields
from thalweg.testing import ManualClock

#: Types with few values, so that many are equal; always also null.
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-2, 2),
    pa.int16(): st.integers(-2, 2),
    pa.string(): st.sampled_from(["", "a", "b", "aa", "a long one, longer than eight bytes"]),
    pa.binary(): st.sampled_from([b"", b"a", b"\x00"]),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(dt.date(2026, 1, 1), dt.date(2026, 1, 3)),
    pa.timestamp("us", "UTC"): st.datetimes(
        dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2), timezones=st.just(dt.UTC)
    ).map(lambda moment: moment.replace(minute=0, second=0, microsecond=0)),
}
TYPES = st.sampled_from(list(VALUES))


def columns(types: list[pa.DataType], rows: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    def of(count: int) -> st.SearchStrategy[Any]:
        made = [st.lists(VALUES[t] | st.none(), min_size=count, max_size=count) for t in types]
        return st.tuples(*made)

    return rows.flatmap(of)


def batch(names: list[str], types: list[pa.DataType], values: Any) -> pa.RecordBatch:
    arrays = [pa.array(v, t) for v, t in zip(values, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def never(_row: int, error: Exception) -> None:
    raise error


def same(one: Any, other: Any) -> bool:
    return one is not None and other is not None and bool(one == other)


@st.composite
def keyed(draw: st.DrawFn) -> tuple[pa.RecordBatch, pa.RecordBatch, dict[str, str]]:
    types = draw(st.lists(TYPES, min_size=1, max_size=3))
    ours, theirs = ([f"{side}{i}" for i in range(len(types))] for side in "ab")
    rows = st.integers(0, 12)
    stream, table = (draw(columns(types, rows)) for _ in range(2))
    on = dict(zip(ours, theirs, strict=True))
    return batch(ours, types, stream), batch(theirs, types, table), on


@pytest.mark.parametrize("kept", [False, True], ids=["made anew", "kept"])
@given(given_=keyed())
def test_equal_keys_are_found_either_way(given_: Any, kept: bool) -> None:
    stream, table, on = given_
    ours, theirs = stream.to_pylist(), table.to_pylist()
    expected = [
        (i, j)
        for i, left in enumerate(ours)
        for j, right in enumerate(theirs)
        if all(same(left[one], right[other]) for one, other in on.items())
    ]
    found = condition(on, fields(stream.schema), fields(table.schema))
    with pytest.MonkeyPatch.context() as patch:
        if kept:  # as with a table that is large against the block
            patch.setattr(lookups, "_ANEW_PER_ROW", 0)
            patch.setattr(lookups, "_ANEW", -1)
        for way in found.ways:
            pairs = Matcher(table, found, stream.schema).match(stream, way, never)
            assert list(zip(*(side.tolist() for side in pairs), strict=True)) == expected


COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
ORDERED = st.sampled_from([pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us", "UTC")])


@st.composite
def compared(draw: st.DrawFn) -> tuple[pa.RecordBatch, pa.RecordBatch, list[tuple[str, str]]]:
    type_ = draw(ORDERED)
    rows = st.integers(0, 12)
    stream = batch(["v"], [type_], draw(columns([type_], rows)))
    table = batch(["x", "y"], [type_] * 2, draw(columns([type_] * 2, rows)))
    first = draw(st.sampled_from(list(COMPARISONS)))
    second = draw(st.sampled_from([*COMPARISONS, ""]))
    return stream, table, [("x", first)] + [("y", second)] * bool(second)


@given(given_=compared(), turned=st.booleans())
def test_ranges_are_found_either_way(given_: Any, turned: bool) -> None:
    stream, table, parts = given_
    ours, theirs = stream.to_pylist(), table.to_pylist()

    def holds(left: Any, right: Any) -> bool:
        return all(
            None not in (left["v"], right[name]) and COMPARISONS[sign](left["v"], right[name])
            for name, sign in parts
        )

    expected = [(i, j) for i, a in enumerate(ours) for j, b in enumerate(theirs) if holds(a, b)]
    other = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    where = [
        COMPARISONS[other[sign]](row(name), col("v"))
        if turned
        else COMPARISONS[sign](col("v"), row(name))
        for name, sign in parts
    ]
    on = where[0] & where[1] if len(where) > 1 else where[0]
    found = condition(on, fields(stream.schema), fields(table.schema))
    assert found.ways == ("range", "loop")
    for way in found.ways:
        pairs = Matcher(table, found, stream.schema).match(stream, way, never)
        assert list(zip(*(side.tolist() for side in pairs), strict=True)) == expected


@given(given_=keyed(), limit=st.integers(-2, 2))
def test_a_condition_with_keys_is_looked_up_and_then_checked(given_: Any, limit: int) -> None:
    stream, table, on = given_
    numbers = pa.array(range(stream.num_rows), pa.int64())
    stream = stream.append_column("n", numbers)
    where = col("n") > limit
    for one, other in on.items():
        where = where & (col(one) == row(other))
    expected = [
        (i, j)
        for i, left in enumerate(stream.to_pylist())
        for j, right in enumerate(table.to_pylist())
        if i > limit and all(same(left[one], right[other]) for one, other in on.items())
    ]
    found = condition(where, fields(stream.schema), fields(table.schema))
    for way in found.ways:
        pairs = Matcher(table, found, stream.schema).match(stream, way, never)
        assert list(zip(*(side.tolist() for side in pairs), strict=True)) == expected


# --- a file that changes -------------------------------------------------------------------------

PRICES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 9)), min_size=0, max_size=6
)


class Rewritten:
    """Items that let time pass and replace a file at some of them."""

    def __init__(self, keys: list[str], changes: dict[int, Any], path: Path, clock: Any) -> None:
        self.keys, self.changes, self.path, self.clock = keys, changes, path, clock

    def __iter__(self) -> Any:
        for at, key in enumerate(self.keys):
            if at in self.changes:
                write(self.path, self.changes[at], at + 1)
            self.clock.advance(1.0)
            yield key


def write(path: Path, rows: Any, number: int) -> None:
    """Replace a file at once, as whoever keeps such tables should."""
    part = path.with_suffix(".part")
    text = "\n".join(["item,price", *(f"{item},{price}" for item, price in rows)])
    part.write_text(text + "\n" + "\n" * number)  # so that each version has its own length
    part.replace(path)


@settings(deadline=None)
@given(
    keys=st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12),
    first=PRICES,
    changes=st.dictionaries(st.integers(0, 11), PRICES, max_size=3),
    how=st.sampled_from(["inner", "left"]),
)
def test_every_block_is_joined_with_the_newest_version(
    tmp_path_factory: pytest.TempPathFactory, keys: Any, first: Any, changes: Any, how: Any
) -> None:
    path, clock = tmp_path_factory.mktemp("tables") / "prices.csv", ManualClock()
    write(path, first, 0)
    out: list[Any] = []
    table = table_file(path, fields={"item": str, "price": int}, reload="1 s")
    flow = Flow("prices", "total")
    source = flow.source("keys", items(Rewritten(keys, changes, path, clock)), fields={"item": str})
    source.join(table, on="item", how=how).sink("out", collect(out))
    flow.run(on=Inline(block_rows=1, clock=clock))
    expected, version = [], first
    for at, key in enumerate(keys):
        version = changes.get(at, version)
        found = [(key, price) for item, price in version if item == key]
        expected += found or ([(key, None)] if how == "left" else [])
    assert [tuple(t) for t in out] == expected
