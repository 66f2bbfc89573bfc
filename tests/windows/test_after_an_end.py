"""What a run knows that goes on from a checkpoint whose run had read all that there was."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.eventtime import ALWAYS, NEVER
from thalweg.windows import agg
from thalweg.windows.aggregates import results
from thalweg.windows.keeping import Added, Piece, keeping
from thalweg.windows.specs import LandmarkWindow

FIELDS = {"at": int, "user": str}


class Growing(tw.BlockSpout):
    """Gives what its list has when a run begins, and ends; the next run goes on behind it."""

    replays = False

    def __init__(self, rows: list[Any], fields: Mapping[str, Any]) -> None:
        self.rows, self.outputs = rows, fields

    def prepare(self, context: Any) -> None:
        self.at = 0

    def position(self) -> int:
        return self.at

    def seek(self, position: Any) -> None:
        self.at = position

    def processed(self, position: Any) -> None:
        pass

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        rows = self.rows[self.at :][:limit]
        self.at += len(rows)
        if self.at >= len(self.rows):
            self.finish()
        columns = {name: [row[at] for row in rows] for at, name in enumerate(self.outputs)}
        return pa.RecordBatch.from_pydict(columns) if rows else None


def at(seconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)


def source(flow: tw.Flow, name: str, rows: list[Any], fields: Mapping[str, Any]) -> tw.Stream:
    return flow.source(name, Growing(rows, fields), fields=fields, time="at")


def runtime(on: str, folder: Path) -> Any:
    if on == "local":
        return tw.Local(checkpoint=str(folder), workers=1)
    return tw.Spark(spark_session(), places=2, state=str(folder))


everywhere = pytest.mark.parametrize(
    "on", ["local", pytest.param("spark", marks=pytest.mark.spark)]
)


@everywhere
def test_landmark_windows_go_on_with_all_that_they_know(on: str, tmp_path: Path) -> None:
    rows: list[Any] = []
    told = []
    for more in ([(1, "ann"), (30, "bob")], [(900, "ann"), (1000, "eve")], [(2000, "bob")]):
        rows += more
        found: list[Any] = []
        flow = tw.Flow("growing")
        windows = source(flow, "clicks", rows, FIELDS).key_by("user").window(tw.landmark("1 min"))
        counts = windows.aggregate("counts", n=agg.count())
        counts.sink("out", tw.call(lambda t, f=found: f.append((t.user, t.end, t.n))))
        late = flow.run(on=runtime(on, tmp_path)).metrics.component("counts").late
        told.append((sorted(found), late))
    assert told == [
        ([("ann", at(60), 1), ("bob", at(60), 1)], 0),
        ([("ann", at(960), 2), ("eve", at(1020), 1)], 0),
        ([("bob", at(2040), 2)], 0),
    ]


@everywhere
@pytest.mark.parametrize("within", [None, "1 min"])
def test_a_join_goes_on_with_the_last_tuple_of_the_right(
    on: str, within: Any, tmp_path: Path
) -> None:
    prices: list[Any] = [(1, "tea", 3), (2, "tea", 4)]
    orders: list[Any] = []
    told = []
    for order in ((5, "tea"), (50, "tea"), (70, "tea")):
        orders.append(order)
        found: list[Any] = []
        flow = tw.Flow("growing")
        fields = {"at": int, "item": str}
        right = source(flow, "prices", prices, fields | {"price": int})
        left = source(flow, "orders", orders, fields)
        joined = left.join_asof(right, "item", within=within, how="left", prefix="r_")
        joined.sink("out", tw.call(lambda t, f=found: f.append((t.at, t.r_price))))
        flow.run(on=runtime(on, tmp_path))
        told += found
    assert told == [(5, 4), (50, 4), (70, 4 if within is None else None)]


def landmarks(kept: Any, *times: int, allowed: int, now: int) -> Added:
    rules = keeping(LandmarkWindow(10, 0), (agg.count(),), allowed)
    return rules.add(kept, [Piece(t // 10 * 10, t // 10 * 10 + 10, [1]) for t in times], now)


@pytest.mark.parametrize("allowed", [0, 15, 1000])
def test_landmark_windows_are_told_again_after_an_end_as_before_it(allowed: int) -> None:
    rules = keeping(LandmarkWindow(10, 0), (agg.count(),), allowed)
    known = landmarks(None, 5, 15, 25, 35, allowed=allowed, now=NEVER).kept
    assert known is not None
    ended, told = rules.due(known, ALWAYS)
    passed, same = rules.due(known, 40)
    assert (ended, told) == (passed, same)
    assert [window.end for window in told] == [10, 20, 30, 40]
    kept, again, late = landmarks(ended, 12, allowed=allowed, now=38)
    assert late == []
    assert kept is not None
    last = [*again, *rules.due(kept, 60)[1]][-1]
    assert results(rules.parts, last.partials) == [5]
    assert [window.end for window in again] == {0: [], 15: [30, 40], 1000: [20, 30, 40]}[allowed]


def test_what_comes_when_all_time_has_passed_leaves_landmark_windows_to_the_next_run() -> None:
    kept = [40, [[0, 40, [4]]]]
    assert landmarks(kept, 45, allowed=0, now=ALWAYS) == (kept, [], [0])


def test_landmark_windows_that_a_run_before_has_closed_for_good_go_on() -> None:
    kept, _, late = landmarks([ALWAYS, [[0, 40, [4]]]], 45, allowed=0, now=38)
    assert (kept, late) == ([40, [[0, 40, [4]], [40, 50, [1]]]], [])
