"""Tuples with an id have to end in time: no more of them are taken in than can do so."""

from __future__ import annotations

import sys
import threading
import time
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.runtimes.local.asking import Asking
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.intake import Intake
from thalweg.runtimes.local.links import Link, Streams
from thalweg.runtimes.local.observed import Observed
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


class Bolt(Observed):
    """As much of an operator as one has to know."""

    def __init__(self, cost: float, waiting: int, beside: int = 1, **more: Any) -> None:
        self.cost, self.tasks_beside = cost, beside
        self.tasks_sharing = more.get("sharing", beside)
        self.component: Any = SimpleNamespace(
            body=SimpleNamespace(by_tuple=more.get("single", True))
        )
        self.streams, self.inputs = {"default": []}, []
        self.come, self.left = more.get("arrived", 1000), waiting

    def read(self, streams: Streams) -> None:
        """Read all of a source or of another bolt; the last one counts."""
        link = Link(self, 0, None, self.left, self.come)  # type: ignore[arg-type]  # as much as it takes
        self.inputs.append(link)
        streams["default"].append(link)

    @property
    def beside(self) -> float:
        return self.tasks_beside

    @property
    def sharing(self) -> float:
        return self.tasks_sharing


def asking(*bolts: Bolt, timeout: float = 30.0, most: int | None = None) -> tuple[Asking, Any]:
    source: Streams = {"default": []}
    for index, bolt in enumerate(bolts):
        bolt.index = index
        bolt.read(bolts[index - 1].streams if index else source)
    settings = Settings(ack_timeout=timeout)
    meter: Any = SimpleNamespace(read=lambda index: Measures(bolts[index].cost, 1.0, 0.0, 1.0))
    operators: Any = list(bolts)
    topology: Any = SimpleNamespace(quality=None)
    built = Built(None, settings, topology, operators, meter, None)  # type: ignore[arg-type]  # as much as it takes
    task = object.__new__(SpoutTask)
    options = SimpleNamespace(overflow=None, max_pending=most)
    task.component = SimpleNamespace(name="numbers", options=options)  # type: ignore[assignment]
    built.spouts["numbers"], built.sources["numbers"] = [task], source
    built.counters["numbers"] = [SimpleNamespace(emitted=1000)]  # type: ignore[list-item]
    made = Asking([task], settings, built, lambda _task, _ids: None)
    made.opened = lambda _task: 1
    return made, task


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
        ([Bolt(0.0, 0)], 8, 8),  # nobody knows, and it is at the first
        ([Bolt(0.0, 0, arrived=0)], 1000, 1000),  # none of a thousand has come to it
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


def test_one_that_has_nothing_open_is_asked_whatever_waits() -> None:
    made, task = asking(Bolt(0.01, 1500))
    made.opened = lambda _task: 0
    assert (made.limit(task), made.room(task)) == (300, 300)


@pytest.mark.parametrize(
    ("own", "others", "rows"), [(1000, 9000, 750), (1000, 0, 750), (0, 9000, 8)]
)
def test_what_other_sources_give_does_not_count(own: int, others: int, rows: int) -> None:
    mine: Streams = {"default": []}
    theirs: Streams = {"default": []}
    first, filtering = Bolt(0.01, 0, arrived=own), Bolt(0.5, others, arrived=others)
    both = Bolt(0.01, 0)
    first.read(mine)
    filtering.read(theirs)
    both.come = own
    both.read(first.streams)
    both.come = 0
    both.read(filtering.streams)
    first.cost = both.cost = 0.01 if own else 0.0
    intake = Intake(mine, [first, filtering, both], lambda: own, lambda bolt: bolt.cost)  # type: ignore[attr-defined]  # of these
    assert (intake.rows_in_time(15.0), intake.seconds_waiting) == (rows, 0.0)


@pytest.mark.parametrize(
    ("taken", "beside"),
    [
        ([], 4.0),
        ([0, 0, 0, 0], 4.0),
        ([9, 9, 9, 9], 4.0),
        ([30, 0, 0, 0], 1.0),
        ([4, 2, 1, 1], 2.0),
    ],
)
def test_tasks_wait_for_that_which_gets_the_most(taken: list[int], beside: float) -> None:
    operator: Any = object.__new__(Observed)
    body = SimpleNamespace(pure_python=False)
    operator.component = SimpleNamespace(body=body, options=SimpleNamespace(isolation=None))
    operator._facts = SimpleNamespace(pooled=False, spread=False)
    operator.degree, operator.counters = 4, [SimpleNamespace(per_task=[n]) for n in taken]
    assert (operator.beside, operator.sharing) == (beside, beside)


class Others(tw.BlockSpout):
    """Gives rows without ids."""

    outputs = {"n": int}

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def prepare(self, context: Any) -> None:
        self.left = self.rows

    def next_block(self, limit: int) -> pa.RecordBatch:
        taken = min(limit, self.left)
        self.left -= taken
        if not self.left:
            self.finish()
        return pa.record_batch({"n": range(taken)})


class Heard(Numbers):
    """Gives its numbers when something has come of the other source."""

    def next_tuple(self) -> None:
        if SEEN.is_set():
            super().next_tuple()


#: Something has come of the other source.
SEEN = threading.Event()


def test_few_are_taken_in_at_first_whatever_another_source_has_given() -> None:
    SEEN.clear()
    builder = tw.TopologyBuilder("beside")
    builder.add_spout("others", Others(5000))
    builder.add_bolt("see", tw.call(lambda n: SEEN.set())).shuffle("others")
    builder.add_spout("numbers", Heard(ids=True))
    builder.add_bolt("first", First()).shuffle("numbers")
    builder.build().run(on="local")
    assert NOTED["first"] == 8


class Stuck(tw.Bolt):
    """Is at its first tuple until there is a file; says whether it came."""

    outputs = {"came": bool}

    def __init__(self, path: Path) -> None:
        self.path = path

    def prepare(self, context: Any) -> None:
        self.until = time.monotonic() + 60

    def process(self, t: Any) -> None:
        while not self.path.exists() and time.monotonic() < self.until:
            time.sleep(0.01)
        self.emit(self.path.exists())


@pytest.mark.parametrize("ids", [True, False])
def test_a_source_is_asked_while_what_others_sent_waits_elsewhere(
    tmp_path: Path, ids: bool
) -> None:
    came: list[bool] = []
    builder = tw.TopologyBuilder("apart")
    builder.add_spout("others", Others(200))
    builder.add_bolt("stuck", Stuck(tmp_path / "came"), degree=1, isolation="process").shuffle(
        "others"
    )
    builder.add_bolt("see", tw.call(lambda t: came.append(t.came))).shuffle("stuck")
    builder.add_spout("numbers", Numbers(ids))
    builder.add_bolt("touch", tw.call(lambda n: (tmp_path / "came").touch())).shuffle("numbers")
    builder.build().run(on="local")
    assert came == [True] * 200
