"""Aggregates of values that are seldom: nanoseconds, infinities, numbers without room."""

from __future__ import annotations

import datetime as dt
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg import agg
from thalweg.codecs import MsgpackCodec
from thalweg.columns import column
from thalweg.eventtime import ALWAYS, NEVER, SECOND, EventTime
from thalweg.operators.windowing import EARLY_STREAM, TimeWindows, Windowing
from thalweg.schemas import fields
from thalweg.state import MemoryState
from thalweg.windows.aggregates import Aggregate, results
from thalweg.windows.keeping import Kept, Piece, keeping
from thalweg.windows.specs import TimeWindow

INF, NAN = math.inf, math.nan


def written(kept: Kept) -> Kept:
    """Write down what is kept, as a move or a restart does, and read it again."""
    again: Kept = MsgpackCodec().decode(MsgpackCodec().encode(kept))
    return again


def partial(aggregate: Aggregate, values: pa.Array) -> Any:
    return aggregate.partials(values, np.array([0]), len(values))[0]


# --- nanoseconds ----------------------------------------------------------------------------------

NANOS = [1_000_000_001, 1_000_000_000, 1_000_000_002]


@pytest.mark.parametrize("type_", [pa.timestamp("ns"), pa.duration("ns")], ids=str)
@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (agg.min("t"), 1_000_000_000),
        (agg.max("t"), 1_000_000_002),
        (agg.values("t"), NANOS),
        (agg.top("t", 3), sorted(NANOS)),
    ],
    ids=["min", "max", "values", "top"],
)
def test_windows_give_the_same_nanoseconds_after_a_restart(
    type_: Any, aggregate: Aggregate, expected: Any
) -> None:
    pytest.importorskip("pandas")
    values = pa.array(NANOS, pa.int64()).cast(type_)
    rules = keeping(TimeWindow(10, 10), (aggregate,), 0)
    kept = rules.add(None, [Piece(0, 10, [partial(aggregate, values)])], NEVER).kept
    assert kept is not None
    for each in (kept, written(kept)):
        _, (told,) = rules.due(each, ALWAYS)
        (result,) = results((aggregate,), told.partials)
        found = column(result if isinstance(result, list) else [result], type_).array
        whole = found.cast(pa.int64()).to_pylist()
        assert whole == (expected if isinstance(expected, list) else [expected])


@pytest.mark.parametrize(
    ("type_", "old"),
    [
        (pa.timestamp("ns"), dt.datetime(1970, 1, 1, 0, 0, 1)),
        (pa.timestamp("ns", "UTC"), dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)),
        (pa.duration("ns"), dt.timedelta(seconds=1)),
    ],
    ids=str,
)
def test_what_was_written_without_nanoseconds_goes_on(type_: Any, old: Any) -> None:
    pytest.importorskip("pandas")
    least = agg.min("t")
    new = partial(least, pa.array([2_000_000_001], pa.int64()).cast(type_))
    result = least.result(least.add(written([old])[0], new))
    assert column([result], type_).array.cast(pa.int64()).to_pylist() == [10**9]


@pytest.mark.parametrize(
    "type_", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.time64("ns")]
)
def test_distinct_tells_nanoseconds_apart(type_: Any) -> None:
    values = pa.array([1, 2, 3, 3, None], pa.int64()).cast(type_)
    distinct = agg.distinct("t")
    assert distinct.result(partial(distinct, values)) == 3


# --- numbers without room -------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[INF, -INF], [1e308, 1e308], [NAN, INF], [-1e308] * 3])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    "aggregate", [agg.sum("x"), agg.mean("x"), agg.deviation("x"), agg.min("x"), agg.max("x")]
)
def test_infinities_and_great_numbers_are_added_without_a_warning(
    aggregate: Aggregate, kind: Any, values: list[float]
) -> None:
    with np.errstate(over="ignore"):
        numbers = pa.array(np.array(values, dtype=kind.to_pandas_dtype()))
    found = aggregate.result(partial(aggregate, numbers))
    assert isinstance(found, float)
    if isinstance(aggregate, type(agg.sum("x"))):
        assert str(found) == str(sum(numbers.to_pylist()))


# --- early results --------------------------------------------------------------------------------


def test_early_results_leave_a_window_of_many_panes_what_it_knows() -> None:
    spec = TimeWindow(60 * SECOND, SECOND)
    what = Windowing(spec, EventTime("at"), ("n",), (agg.sum("x"),))
    rules = keeping(spec, what.aggregates, 0)
    panes = [Piece(at * SECOND, (at + 1) * SECOND, [0.1 * at]) for at in range(100)]
    kept: Any = rules.add(None, panes, NEVER).kept
    for seconds in (70, 71, 72):
        kept = rules.due(kept, seconds * SECOND)[0]
    known, found = kept[0].running, list[Any]()
    bolt = TimeWindows(what, ("u",), fields(["u", "start", "end", "n"]), {})
    bolt.state = MemoryState()
    bolt.state.put("ann", kept)
    bolt.context = SimpleNamespace(  # type: ignore[assignment]  # as much as is looked at
        read_streams={EARLY_STREAM}
    )
    bolt._rules, bolt._types = rules, [pa.string()]
    bolt.make_batch = lambda columns, stream: columns  # type: ignore[assignment]
    bolt.emit = lambda columns, stream: found.extend(columns[-1])  # type: ignore[method-assign]
    bolt.process_tick()
    assert bolt.state.get("ann")[0].running is known is not None
    assert found == [told.partials[0] for told in rules.due(written(kept), ALWAYS)[1]]
