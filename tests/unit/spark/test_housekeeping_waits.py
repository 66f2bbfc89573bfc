"""Batches do not wait for merges, unless runs become too many."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from thalweg.runtimes.spark.housekeeping import Housekeeping, Merged
from thalweg.runtimes.spark.limits import Limits
from thalweg.statelog.compaction import Merge
from thalweg.statelog.runs import RunRef


def refs(number: int) -> list[RunRef]:
    return [RunRef(f"runs/{i}", 10, "", {"c": 1}, i, i) for i in range(number)]


@pytest.fixture
def housekeeping() -> Any:
    program = SimpleNamespace(location=None, limits=Limits(runs=2))
    shipped: Any = SimpleNamespace(program=lambda: program)
    nobody: Any = None
    context: Any = SimpleNamespace(master="local[2]")
    made = Housekeeping(context, shipped, nobody, nobody, nobody)
    yield made
    made.close()


def test_a_batch_goes_on_without_the_merge_that_is_under_way(housekeeping: Any) -> None:
    housekeeping._merging = Future()
    runs = [refs(8), refs(1)]
    assert housekeeping.adopt(runs) == [refs(8), refs(1)]


def test_a_batch_waits_for_the_merge_when_runs_have_become_too_many(housekeeping: Any) -> None:
    housekeeping._merging = merging = Future()
    merge, one = Merge(tuple(refs(9)), oldest=True), RunRef("runs/all", 90, "", {"c": 9}, 0, 8)
    asked: Future[Any] = Future()
    waiting = threading.Thread(target=lambda: asked.set_result(housekeeping.adopt([refs(9)])))
    waiting.start()
    assert not asked.done()
    merging.set_result([Merged(0, merge, one)])
    waiting.join()
    assert asked.result() == [[one]]
