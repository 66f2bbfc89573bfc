"""Keys and times that are none in joins of streams: as in joins with tables, and in windows."""

from __future__ import annotations

import math
from typing import Any

import pytest

import thalweg as tw

FIELDS = {"at": float, "user": str, "x": int}


def joined(left: list[Any], right: list[Any], how: str, kind: str, **options: Any) -> list[Any]:
    flow, found = tw.Flow("odd"), []
    fields = options.pop("fields", FIELDS)
    one, other = (
        flow.source(name, tw.items(rows), fields=fields, time="at")
        for name, rows in (("left", left), ("right", right))
    )
    join = one.join_within if kind == "within" else one.join_asof
    made = join(other, "user", within=5, how=how, prefix="r_", **options)
    made.sink("out", tw.call(lambda t: found.append(tuple(t))))
    flow.run(on=tw.Inline(block_rows=2))
    return found


@pytest.mark.parametrize("kind", ["within", "asof"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_null_equals_nothing(kind: str, how: str) -> None:
    left, right = [(1.0, None, 1), (2.0, "a", 2)], [(1.0, None, 9), (2.0, "a", 8)]
    lonely = [(1.0, None, 1, None, None)] if how == "left" else []
    assert sorted(joined(left, right, how, kind)) == [*lonely, (2.0, "a", 2, 2.0, 8)]


@pytest.mark.parametrize("kind", ["within", "asof"])
def test_nan_equals_nothing_and_zero_equals_zero(kind: str) -> None:
    fields = {"at": int, "user": float, "x": int}
    left, right = [(1, math.nan, 1), (2, -0.0, 2)], [(1, math.nan, 9), (2, 0.0, 8)]
    found = joined(left, right, "left", kind, fields=fields)
    assert sorted(row[2:] for row in found) == [(1, None, None), (2, 2, 8)]


@pytest.mark.parametrize("odd", [None, math.nan, math.inf])
@pytest.mark.parametrize("kind", ["within", "asof"])
def test_a_tuple_without_a_time_is_refused(kind: str, odd: Any) -> None:
    left, right = [(1.0, "a", 1), (odd, "a", 2)], [(1.0, "a", 8)]
    with pytest.raises(tw.ComponentError, match="a time in field 'at'"):
        joined(left, right, "left", kind)
    found = joined(left, right, "left", kind, on_error="skip")
    assert found == [(1.0, "a", 1, 1.0, 8)]
