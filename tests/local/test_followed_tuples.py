"""Tuples with an id have to end in time: no more of them are taken in than can do so."""

from __future__ import annotations

import sys
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

import thalweg as tw
from thalweg.runtimes.local.asking import Asking
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.scheduling import Measures
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.spout_tasks import SpoutTask

#: How many numbers there were at the latest, and when the first of them was used.
NOTED: dict[str, int] = {}


class Numbers(tw.Spout):
    """Emits sixty numbers, with an id or without."""

    outputs = {"n": int}

    def __init__(self, ids: bool) -> None:
        self.ids = ids

    def prepare(self, context: Any) -> None:
        NOTED.clear()
        NOTED["given"] = 0

    def next_tuple(self) -> None:
        n = NOTED["given"]
        if n == 60:
            self.finish()
            return
        self.emit(n, id=n if self.ids else None)
        NOTED["given"] = n + 1


class First(tw.Bolt):
    """Notes how many numbers there were when it got the first one."""

    def process(self, t: Any) -> None:
        NOTED.setdefault("first", NOTED["given"])


def given_at_first(ids: bool = True, most: int | None = None, **settings: Any) -> int:
    builder = tw.TopologyBuilder("followed")
    builder.add_spout("numbers", Numbers(ids), max_pending=most)
    builder.add_bolt("first", First()).shuffle("numbers")
    result = builder.build().run(on=tw.Local(**settings))
    assert result.metrics.component("first").received == 60
    return NOTED["first"]


def test_few_are_taken_in_before_anybody_knows_how_long_one_takes() -> None:
    assert given_at_first() == 8
    assert given_at_first(assigning="executors") == 8


def test_nobody_waits_where_tuples_need_not_end_in_time() -> None:
    assert given_at_first(acking=False) == 60
    assert given_at_first(ack_timeout=inf) == 60


def test_who_says_how_many_may_be_open_gets_so_many_in_small_blocks() -> None:
    assert given_at_first(most=5) == 5
    assert given_at_first(most=20) >= 8


def test_the_first_block_of_a_spout_without_ids_is_small_as_nobody_knows_that() -> None:
    assert given_at_first(ids=False) >= 8


# --- how many that are ---------------------------------------------------------------------------


class Bolt:
    """As much of an operator as one has to know."""

    def __init__(self, cost: float, waiting: int, beside: int = 1, **more: Any) -> None:
        self.index, self.cost, self.waiting, self.beside = 0, cost, waiting, beside
        self.sharing = more.get("sharing", beside)
        self.arrived = more.get("arrived", 1000)
        self.component = SimpleNamespace(body=SimpleNamespace(by_tuple=more.get("single", True)))


def asking(*bolts: Bolt, timeout: float = 30.0, most: int | None = None) -> tuple[Asking, Any]:
    for index, bolt in enumerate(bolts):
        bolt.index = index
    settings = Settings(ack_timeout=timeout)
    meter: Any = SimpleNamespace(read=lambda index: Measures(bolts[index].cost, 1.0, 0.0, 1.0))
    operators: Any = list(bolts)
    topology: Any = SimpleNamespace(quality=None)
    built = Built(None, settings, topology, operators, meter, None)  # type: ignore[arg-type]  # as much as it takes
    task = object.__new__(SpoutTask)
    options = SimpleNamespace(overflow=None, max_pending=most)
    task.component = SimpleNamespace(name="numbers", options=options)  # type: ignore[assignment]
    built.spouts["numbers"] = [task]
    built.counters["numbers"] = [SimpleNamespace(emitted=1000)]  # type: ignore[list-item]
    return Asking([task], settings, built, lambda _task, _ids: None), task


@pytest.mark.parametrize(
    ("bolts", "block", "room"),
    [
        ([Bolt(0.01, 0)], 300, 1500),
        ([Bolt(0.01, 500)], 300, 1000),  # of fifteen seconds five wait
        ([Bolt(0.01, 1500)], 300, 0),
        ([Bolt(0.01, 0), Bolt(0.02, 0)], 100, 500),  # one behind the other
        ([Bolt(0.01, 0), Bolt(0.02, 0, arrived=500)], 150, 750),  # half of them get there
        ([Bolt(0.1, 50, beside=4)], 120, 550),
        ([Bolt(0.1, 50, beside=4, sharing=1)], 30, 550),  # each takes a block of its own
        ([Bolt(20.0, 0)], 1, 1),  # one at a time, though it cannot end in time
        ([Bolt(0.0, 8)], 8, 0),  # nobody knows, and some are there already
        ([Bolt(0.0, 0, arrived=0)], 1024, sys.maxsize),  # nothing has come to it
        ([Bolt(0.01, 500, single=False)], 1024, sys.maxsize),  # takes whole blocks
    ],
)
def test_as_many_as_can_end_in_time_are_let_in(bolts: list[Bolt], block: int, room: int) -> None:
    made, task = asking(*bolts)
    assert made.limit(task) == max(1, min(block, room))
    assert made.room(task) == room


def test_blocks_stay_small_where_somebody_has_said_how_many_may_be_open() -> None:
    made, task = asking(Bolt(0.01, 1500), most=2000)
    made.pending = lambda _task: 700
    assert (made.limit(task), made.room(task)) == (300, 700)
