"""Keys change their tasks and tasks come and go between any two steps: nothing is lost or swapped.

No thread runs here. Chance says which task works next and on how much, what arrives, what changes,
and when the one who leads the change looks; so every interleaving of whole steps can come up.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from killed_program import link

import thalweg as tw
from thalweg.blocks import Block, Origin
from thalweg.components import Bolt, Kind
from thalweg.events import Event, Reconfigured
from thalweg.execution import Run, Steering
from thalweg.hashing import hash_columns, hash_key
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.local.building import build
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.local.links import Wiring
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.reconfiguring import Change, Reconfiguring
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.local.units import Call, Special

KEYS, GROUPS = range(12), 8
keys = st.sampled_from(KEYS)
degrees = st.integers(1, 4)


class Chain(Bolt):
    """Keeps a chain for each key, which tells lost, repeated and swapped tuples."""

    kind = Kind.KEYED
    outputs = {"key": int, "n": int, "value": int}

    def process(self, t: Any) -> None:
        value = link(self.state.get(t.key, 0), t.n)
        self.state.put(t.key, value)
        self.emit(t.key, t.n, value)


def chained(rows: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Compute the chains one tuple after the other."""
    values: Counter[int] = Counter()
    made = []
    for key, n in rows:
        values[key] = link(values[key], n)
        made.append((key, n, values[key]))
    return made


class Pass(Bolt):
    """Keeps nothing."""

    outputs = {"key": int, "n": int, "value": int}

    def process(self, t: Any) -> None:
        self.emit(t.key, t.n, 0)


class Moving(RuleBasedStateMachine):
    """An operator whose keys move, between a source and a sink; steps come in any order."""

    order = "total"
    #: Who takes what, and from which queues.
    assigning, queue = "executors", "hybrid"
    #: How many times somebody works on what was added before anything else happens: now, and
    #: from the next switch on.
    hurry = next_hurry = 0

    @initialize(degree=degrees)
    def start(self, degree: int) -> None:
        self.rows: list[tuple[int, int]] = []
        self.seen: list[Any] = []
        self.events: list[Event] = []
        self.asked = 0
        builder = tw.TopologyBuilder("moving")
        builder.add_spout("rows", tw.items([]), fields={"key": int, "n": int})
        self._add(builder, degree)
        builder.add_bolt("out", tw.collect(self.seen), order=self.order).global_("chain")
        self.flights = Flights(1 << 14, lambda number, _seconds: self.specials.pop(number, None))
        self.specials: dict[int, Special] = {}
        wiring = Wiring(
            flights=self.flights,
            specials=self.specials,
            woken=lambda _operator: None,
            delivered=lambda _link, _block: None,
            processed=lambda _task, _block: None,
            now=lambda: 0.0,
        )
        ways: Any = {"assigning": self.assigning, "queue": self.queue, "order": self.order}
        how = Settings(workers=3, key_groups=GROUPS, **ways)
        self.built = build(how, builder.build(), Run(steering=Steering()), wiring)
        for task in self.built.tasks_backwards():
            task.prepare()
        self.time = 0.0
        self.changing = Reconfiguring(self.built, self, self.events.append, lambda: self.time)
        self._watch(self.built.operator("chain").worklist)

    def _add(self, builder: tw.TopologyBuilder, degree: int) -> None:
        chain = builder.add_bolt("chain", Chain(), degree=degree, order=self.order)
        chain.fields("rows", "key")

    def _watch(self, worklist: Any) -> None:
        """Let workers come between any two additions."""
        add = worklist.add

        def hurried(bucket: int, item: Any, rows: int) -> None:
            add(bucket, item, rows)
            if self.hurry:
                self.hurry -= 1
                self._work(self.hurry, 1)

        worklist.add = hurried

    # --- what a run does for a reconfiguration ----------------------------------------------

    def announce(self, component: str, task: int, call: Call) -> None:
        if call == "switch":
            self.hurry, self.next_hurry = self.next_hurry, 0
        number = self.flights.begin(0.0)
        special = self.specials[number] = Special(component, task, call, len(self.rows))
        for operator in self.built.operators:
            if not operator.ordered and operator.takes(special):
                operator.begin_special(number, special)
        self._send(number, [])

    def resize(self, operator: Operator, tasks: int) -> None:
        """Nobody has to be started."""

    def opened(self, task: AnyTask) -> None:
        """Nobody closes it here."""

    def tell(self) -> None:
        """Nobody sleeps."""

    def _send(self, number: int, blocks: list[Block]) -> None:
        for to in self.built.sources["rows"]["default"]:
            if blocks or to.reader.ordered:
                to.reader.arrive(number, to, blocks)
        self.flights.release(number, 0.0)

    # --- what may happen ---------------------------------------------------------------------

    @rule(found=st.lists(keys, min_size=1, max_size=8))
    def arrive(self, found: list[int]) -> None:
        first = len(self.rows)
        self.rows += [(key, first + at) for at, key in enumerate(found)]
        serials = np.arange(first, len(self.rows), dtype=np.int64)
        batch = pa.record_batch({"key": found, "n": serials})
        self._send(self.flights.begin(0.0), [Block(batch, Origin("rows"), serials)])

    @rule(which=st.integers(0, 7), most=st.integers(1, 9))
    def work(self, which: int, most: int) -> None:
        self._work(which, most)

    def _work(self, which: int, most: int) -> None:
        able = [
            (operator, task)
            for operator in self.built.operators
            for task in range(len(operator.tasks) if self.assigning == "executors" else 3)
            if operator.worklist.ready(task)
        ]
        if able:
            operator, task = able[which % len(able)]
            taken = operator.worklist.take(task, most)
            assert taken is not None
            operator.work(taken, task)
            operator.worklist.release(taken.bucket)

    @rule(times=st.integers(1, 9))
    def be_quick(self, times: int) -> None:
        self.next_hurry = times

    @rule()
    def advance(self) -> None:
        if self.changing.active:
            self.changing.advance()

    @precondition(lambda self: not self.changing.active)
    @rule(degree=degrees, budget=st.sampled_from([1, 100, 1 << 62]))
    def rescale(self, degree: int, budget: int) -> None:
        self._begin(Change(degrees={"chain": degree}, budget=budget))

    @precondition(lambda self: not self.changing.active)
    @rule(
        degree=st.none() | degrees,
        places=st.dictionaries(keys, st.integers(0, 3)),
        groups=st.none() | st.lists(st.integers(0, 3), min_size=GROUPS, max_size=GROUPS),
        budget=st.sampled_from([1, 100, 1 << 62]),
    )
    def reroute(
        self, degree: int | None, places: dict[int, int], groups: list[int] | None, budget: int
    ) -> None:
        """Give keys and groups other tasks, and perhaps the component another degree as well."""
        count = degree or self.built.operator("chain").degree
        table = self.built.tables["chain"].resized(count)
        table = table.with_keys({key: place % count for key, place in places.items()})
        if groups is not None:
            spread = np.array(groups, np.int64) % count
            table = RoutingTable(table.epoch, count, spread, table.hashes, table.key_places)
        degrees = {} if degree is None else {"chain": degree}
        self._begin(Change(tables={"chain": table}, degrees=degrees, budget=budget))

    def _begin(self, change: Change) -> None:
        self.asked += 1
        self.changing.begin(change)

    # --- what must hold ----------------------------------------------------------------------

    @invariant()
    def no_key_is_at_two_tasks(self) -> None:
        found = [key for task in self._tasks() for key, _ in task.context.state.items()]
        assert len(found) == len(set(found))

    def _tasks(self) -> list[Any]:
        operator = self.built.operator("chain") if hasattr(self, "built") else None
        return [] if operator is None else [*operator.tasks, *operator.retired]

    def teardown(self) -> None:
        """Let everything come to its end, and look at what was made of it."""
        if not hasattr(self, "built"):
            return
        left, self.hurry = 10_000, 0
        while len(self.flights) or self.changing.active:
            self.advance()
            self._work(0, 1 << 20)
            left -= 1
            assert left, "it does not come to its end"
        self.flights.validate()
        self._check_output()
        self._check_state()
        report = self.changing.take_report()
        told = [event for event in self.events if isinstance(event, Reconfigured)]
        assert len(told) + (report is not None) == self.asked
        if report is not None:  # what came of it may be waited for
            self.time += 10.0
            self.changing.tell(report)
            assert self.events[-1].report["ago"] == 10.0

    def _check_output(self) -> None:
        given = [(t.key, t.n, t.value) for t in self.seen]
        assert given == chained(self.rows)

    def _check_state(self) -> None:
        operator, table = self.built.operator("chain"), self.built.tables["chain"]
        assert operator.passing is None
        assert len(operator.tasks) == operator.degree == table.places
        assert not any(len(task.context.state) for task in operator.retired)
        found = {}
        for number, task in enumerate(operator.tasks):
            assert task.context.degree == operator.degree
            for key, value in task.context.state.items():
                owner = table.places_of(np.array([hash_key(key)], np.uint64))
                assert owner.tolist() == [number]
                found[key] = value
        assert found == {key: value for key, _, value in chained(self.rows)}


class MovingUnordered(Moving):
    """The same where nobody asks for more than the order of each key."""

    order = "sender"

    def _check_output(self) -> None:
        given = [(t.key, t.n, t.value) for t in self.seen]
        for key in KEYS:
            mine = [row for row in chained(self.rows) if row[0] == key]
            assert [row for row in given if row[0] == key] == mine


class MovingAmongWorkers(Moving):
    """The same where any worker takes any task."""

    assigning = "workers"


class MovingInPartitions(MovingAmongWorkers):
    """The same where workers have tasks of their own."""

    queue = "partitioned"


class MovingInOneQueue(MovingAmongWorkers):
    """The same where all that waits is in one queue."""

    queue = "shared"


class ComingAndGoing(Moving):
    """Tasks without state come and go; the output is in the order of the input."""

    def _add(self, builder: tw.TopologyBuilder, degree: int) -> None:
        builder.add_bolt("chain", Pass(), degree=degree, order=self.order).shuffle("rows")

    @precondition(lambda _self: False)
    @rule()
    def reroute(self) -> None:  # type: ignore[override]  # it has no keys
        """Keys have no tasks here."""

    def _tasks(self) -> list[Any]:
        return []  # of those with state

    def _check_output(self) -> None:
        assert [(t.key, t.n) for t in self.seen] == self.rows

    def _check_state(self) -> None:
        operator = self.built.operator("chain")
        assert operator.passing is None
        assert len(operator.tasks) == operator.degree


class ComingAndGoingAmongWorkers(ComingAndGoing):
    """The same where any worker takes any task."""

    assigning = "workers"


class ComingAndGoingInPartitions(ComingAndGoingAmongWorkers):
    """The same where workers have tasks of their own."""

    queue = "partitioned"


class ComingAndGoingInOneQueue(ComingAndGoingAmongWorkers):
    """The same where all that waits is in one queue."""

    queue = "shared"


# --- a backlog, when tasks come or go -------------------------------------------------------------

# In one queue nobody overtakes, so those who are told of a change hear of it behind all that waits.
KEYED = (Moving, MovingUnordered, MovingAmongWorkers, MovingInPartitions)
STATELESS = (ComingAndGoing, ComingAndGoingAmongWorkers, ComingAndGoingInPartitions)


def waiting(moving: Moving) -> dict[int, int]:
    """Count the rows that wait for each task."""
    worklist = moving.built.operator("chain").worklist
    found: Counter[int] = Counter()
    back = worklist.take_all()
    for bucket, item in back:
        rows = 0 if item.block is None else len(item.block)
        found[bucket] += rows
        worklist.add(bucket, item, rows)
    return dict(found)


def with_backlog(kind: type[Moving], degree: int, units: int = 60) -> Moving:
    """Let much wait at an operator."""
    moving = kind()
    moving.start(degree=degree)
    for unit in range(units):
        moving.arrive([KEYS[(unit + at) % len(KEYS)] for at in range(8)])
    return moving


def changed(moving: Moving, degree: int) -> None:
    """Change the degree; nobody does more than is needed for that."""
    operator = moving.built.operator("chain")
    moving.rescale(degree=degree, budget=1 << 62)
    while moving.changing.active and operator.degree != degree:
        moving.advance()
        for worker in range(len(operator.tasks) if moving.assigning == "executors" else 3):
            taken = operator.worklist.take(worker, 1)
            if taken is not None:
                operator.work(taken, worker)
                operator.worklist.release(taken.bucket)


@pytest.mark.parametrize("kind", STATELESS)
@pytest.mark.parametrize(("before", "after"), [(1, 4), (2, 4), (3, 4), (4, 2)])
def test_what_waits_is_shared_out_among_all_tasks_as_they_come_or_go(
    kind: type[Moving], before: int, after: int
) -> None:
    moving = with_backlog(kind, before)
    changed(moving, after)
    rows = waiting(moving)
    assert sum(rows.values()) > 400
    assert {task for task in rows if rows[task]} == set(range(after))
    assert max(rows.values()) - min(rows[task] for task in range(after)) <= 8
    moving.teardown()


@pytest.mark.parametrize("kind", STATELESS)
def test_tasks_without_keys_are_others_before_anybody_has_done_what_it_is_at(
    kind: type[Moving],
) -> None:
    moving = with_backlog(kind, 2)
    operator = moving.built.operator("chain")
    moving.rescale(degree=1, budget=1 << 62)
    moving.advance()
    assert operator.degree == 1
    assert waiting(moving)[0] == 480
    moving.teardown()


@pytest.mark.parametrize("kind", KEYED)
@pytest.mark.parametrize(("before", "after"), [(1, 4), (2, 4), (3, 4), (4, 2)])
def test_what_waits_for_a_key_goes_where_its_state_goes(
    kind: type[Moving], before: int, after: int
) -> None:
    moving = with_backlog(kind, before)
    changed(moving, after)
    worklist, table = moving.built.operator("chain").worklist, moving.built.tables["chain"]
    back = worklist.take_all()
    blocks = [(bucket, item.block) for bucket, item in back if item.block is not None]
    assert sum(len(block) for _, block in blocks) > 300
    for bucket, block in blocks:
        assert set(table.places_of(hash_columns([block.batch.column("key")]))) == {bucket}
    assert {bucket for bucket, _ in blocks} == set(table.places_of(hash_keys(KEYS)))
    for bucket, item in back:
        worklist.add(bucket, item, 0 if item.block is None else len(item.block))
    moving.teardown()


def hash_keys(found: Any) -> Any:
    return np.array([hash_key(key) for key in found], np.uint64)


class Ticked(Chain):
    """Counts the ticks that each key has seen."""

    def process(self, t: Any) -> None:
        self.state.put(t.key, self.state.get(t.key, 0))

    def process_tick(self) -> None:
        for key, ticks in list(self.state.items()):
            self.state.put(key, ticks + 1)


class MovingTicked(Moving):
    """Keys that move while a tick waits for one of the tasks."""

    def _add(self, builder: tw.TopologyBuilder, degree: int) -> None:
        builder.add_bolt("chain", Ticked(), degree=degree, tick=3600).fields("rows", "key")


def test_a_key_sees_a_tick_once_though_it_comes_to_a_task_whose_tick_still_waits() -> None:
    moving = MovingTicked()
    moving.start(degree=2)
    operator, table = moving.built.operator("chain"), moving.built.tables["chain"]
    places = table.places_of(hash_keys(KEYS)).tolist()
    first, other = KEYS[places.index(0)], KEYS[places.index(1)]
    for _ in range(20):
        moving.arrive([other])
    moving.arrive([first])
    for task in range(2):
        moving.announce("chain", task, "tick")
    moving._begin(Change(tables={"chain": table.with_keys({first: 1})}))
    for _ in range(10):  # the other task has done half of what is before its tick by then
        moving.advance()
        for task, most in ((0, 100), (1, 1)):
            taken = operator.worklist.take(task, most)
            if taken is not None:
                operator.work(taken, task)
                operator.worklist.release(task)
    while len(moving.flights) or moving.changing.active:
        moving.advance()
        moving._work(0, 1 << 20)
    found = {key: ticks for task in operator.tasks for key, ticks in task.context.state.items()}
    assert found == {first: 1, other: 1}


def test_a_unit_is_not_over_while_its_parts_are_still_split_off() -> None:
    """What waits for a lone task is split when others come; a worker may be quick with a part."""
    moving = MovingAmongWorkers()
    moving.start(degree=1)
    moving.rescale(degree=3, budget=1 << 62)
    moving.be_quick(times=1)
    while moving.changing.active:
        moving.arrive(list(KEYS))
        moving.advance()
        moving.work(which=0, most=1)
    moving.teardown()


enough = settings(max_examples=150, stateful_step_count=40, deadline=None)
some = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestMoving = Moving.TestCase
TestMoving.settings = enough
TestMovingUnordered = MovingUnordered.TestCase
TestMovingUnordered.settings = enough
TestMovingAmongWorkers = MovingAmongWorkers.TestCase
TestMovingAmongWorkers.settings = enough
TestMovingInPartitions = MovingInPartitions.TestCase
TestMovingInPartitions.settings = some
TestMovingInOneQueue = MovingInOneQueue.TestCase
TestMovingInOneQueue.settings = some
TestComingAndGoing = ComingAndGoing.TestCase
TestComingAndGoing.settings = enough
TestComingAndGoingAmongWorkers = ComingAndGoingAmongWorkers.TestCase
TestComingAndGoingAmongWorkers.settings = some
TestComingAndGoingInPartitions = ComingAndGoingInPartitions.TestCase
TestComingAndGoingInPartitions.settings = some
TestComingAndGoingInOneQueue = ComingAndGoingInOneQueue.TestCase
TestComingAndGoingInOneQueue.settings = some
