"""Degrees change while tuples flow: tasks come and go, state follows, order stays."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from keyed_counting import Counting, every_way, running
from test_isolation import children

import thalweg as tw
from thalweg.components import Bolt, Spout
from thalweg.errors import UsageError
from thalweg.events import Event, Noticed, Reconfigured
from thalweg.execution import Run
from thalweg.runtimes.local.building import build
from thalweg.runtimes.local.executors import Executors
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.holding import Holding
from thalweg.runtimes.local.links import Wiring
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.rescaling import check_degree
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.local.waiting import Blocking
from thalweg.runtimes.local.worklists import PartitionedWorklist

#: Twice what the window and the blocks of a run allow.
_UNDER_WAY = 400


class Changes:
    """Asks for one degree after the other, then ends a source.

    Each is asked for when the last one is there, and has been for more tuples than can be under
    way: so all tasks have had some.
    """

    def __init__(self, component: str, degrees: list[int]) -> None:
        self.steering, self.events = tw.Steering(), list[Event]()
        self._component, self._degrees = component, degrees
        self._asked, self._since = 0, _UNDER_WAY
        self.given: list[int] = []
        self.threads: set[str] = set()

    def listen(self, event: Event) -> None:
        """Hear of changes."""
        self.events.append(event)
        self.threads |= {thread.name for thread in threading.enumerate()}

    @property
    def reports(self) -> list[Reconfigured]:
        """Those that were told."""
        return [event for event in self.events if isinstance(event, Reconfigured)]

    def numbers(self) -> Iterator[int]:
        """Give numbers until all has been done."""
        while len(self.reports) < len(self._degrees):
            self._since += self._asked == len(self.reports)
            if self._since > _UNDER_WAY:
                self.steering.rebalance(self._component, self._degrees[self._asked])
                self._asked, self._since = self._asked + 1, 0
            self.given.append(len(self.given) ** 2 % 41)
            yield self.given[-1]
        for number in range(200):
            self.given.append(number % 41)
            yield self.given[-1]

    def run(self, topology: tw.Topology, **settings: Any) -> Any:
        """Run a topology that takes these numbers."""
        small = {"block_rows": 20, "most_block_rows": 20, "workers": 3, "window": 8}
        local = Local(**(small | settings))
        return topology.run(on=local, listen=self.listen, steering=self.steering)


def counting(changes: Changes, seen: list[Any], **options: Any) -> tw.Topology:
    builder = tw.TopologyBuilder("rescaled")
    builder.add_spout("keys", tw.items(changes.numbers), fields={"key": int})
    builder.add_bolt("count", Counting(), **options).fields("keys", "key")
    builder.add_bolt("out", tw.collect(seen), order="total").global_("count")
    return builder.build()


@every_way
def test_a_keyed_component_has_other_degrees_and_the_same_result(way: dict[str, Any]) -> None:
    changes, seen = Changes("count", [2, 5, 1, 3]), list[Any]()
    result = changes.run(counting(changes, seen, degree=1), **way)
    assert [(t.key, t.count) for t in seen] == running(changes.given)
    assert result.table("counts") == Counter(changes.given)
    metrics = result.metrics.component("count")
    assert (metrics.degree, len(metrics.per_task)) == (3, 3)
    assert metrics.received == len(changes.given)
    assert {t.task for t in seen} == {0, 1, 2, 3, 4}
    assert {t.task for t in seen[-41:]} == {0, 1, 2}
    assert changes.reports[0].report["keys"] > 0
    assert "'count' has 5 tasks in place of 2" in changes.reports[1].text


def test_it_is_told_which_keys_have_another_place() -> None:
    """Without anybody who counts keys, their names are those that state has."""
    changes = Changes("count", [3, 1])
    changes.run(counting(changes, [], degree=2))
    for report, places in zip(changes.reports, (3, 1), strict=True):
        told = report.difference
        assert told is not None
        # Keys that came after it was planned have moved as well.
        assert 0 < told.keys == len(told.moves) <= report.report["keys"]
        assert {move.component for move in told.moves} == {"count"}
        assert {int(move.key) for move in told.moves} <= set(changes.given)
        assert all(move.before != move.after < places for move in told.moves)


def test_executors_come_and_go_with_their_tasks() -> None:
    changes = Changes("count", [3, 1])
    changes.run(counting(changes, [], degree=2), assigning="executors")
    assert {f"thalweg-count-{task}" for task in range(3)} <= changes.threads
    assert not [t for t in threading.enumerate() if t.name.startswith("thalweg-count")]


def test_processes_come_and_go_with_their_tasks() -> None:
    changes, seen, there = Changes("count", [2, 1]), list[Any](), list[int]()

    def listen(event: Event) -> None:
        changes.events.append(event)
        if isinstance(event, Reconfigured):
            there.append(len(children()))

    changes.listen = listen  # type: ignore[method-assign]
    result = changes.run(counting(changes, seen, degree=1, isolation="process"))
    assert [(t.key, t.count) for t in seen] == running(changes.given)
    assert result.table("counts") == Counter(changes.given)
    assert there == [2, 1]
    assert children() == []


class Double(Bolt):
    """Keeps nothing."""

    outputs = {"n": int, "task": int}

    def process(self, t: Any) -> None:
        for _ in range(t[0] % 3):
            self.emit(t[0], self.context.task)


@every_way
def test_a_stateless_component_keeps_the_order_of_its_input(way: dict[str, Any]) -> None:
    changes, seen = Changes("double", [4, 2, 1, 3]), list[Any]()
    builder = tw.TopologyBuilder("stateless")
    builder.add_spout("numbers", tw.items(changes.numbers), fields={"n": int})
    builder.add_bolt("double", Double()).shuffle("numbers")
    builder.add_bolt("out", tw.collect(seen)).global_("double")
    changes.run(builder.build(), **way)
    assert [t.n for t in seen] == [n for n in changes.given for _ in range(n % 3)]
    assert {t.task for t in seen} == {0, 1, 2, 3}


class Hoards(Bolt):
    """Sends nothing before its input ends."""

    outputs = {"n": int}

    def prepare(self, context: tw.TaskContext) -> None:
        self.hoard: list[int] = []
        self.open = True

    def process(self, t: Any) -> None:
        assert self.open
        self.hoard.append(t.n)

    def process_end(self) -> None:
        for n in self.hoard:
            self.emit(n)

    def cleanup(self) -> None:
        assert self.open, "closed twice"
        self.open = False


def test_a_task_that_goes_is_told_that_its_input_has_ended() -> None:
    changes, seen = Changes("hoards", [3, 1, 2]), list[Any]()
    builder = tw.TopologyBuilder("hoards")
    builder.add_spout("numbers", tw.items(changes.numbers), fields={"n": int})
    builder.add_bolt("hoards", Hoards(), degree=2).shuffle("numbers")
    builder.add_bolt("out", tw.collect(seen)).global_("hoards")
    changes.run(builder.build())
    assert Counter(t.n for t in seen) == Counter(changes.given)


class Reliable(Spout):
    """Emits with ids, and wants every one of them back."""

    outputs = {"key": int}
    source: Any = None

    def prepare(self, context: tw.TaskContext) -> None:
        self.numbers, self.sent = self.source(), 0

    def next_tuple(self) -> None:
        number = next(self.numbers, None)
        if number is None:
            self.finish()
            return
        self.emit(number, id=self.sent)
        self.sent += 1


def test_every_tuple_is_acknowledged() -> None:
    changes, seen = Changes("count", [4, 2]), list[Any]()
    Reliable.source = staticmethod(changes.numbers)
    builder = tw.TopologyBuilder("acked")
    builder.add_spout("keys", Reliable())
    builder.add_bolt("count", Counting(), degree=2).fields("keys", "key")
    builder.add_bolt("out", tw.collect(seen)).global_("count")
    result = changes.run(builder.build())
    assert (result.metrics.acked, result.metrics.failed) == (len(changes.given), 0)
    assert Counter(t.key for t in seen) == Counter(changes.given)


def test_a_component_that_any_worker_may_take_has_other_bounds() -> None:
    changes, seen = Changes("map", [1, 2]), list[Any]()
    flow = tw.Flow("pooled")
    numbers = flow.source("numbers", tw.items(changes.numbers), fields={"n": int})
    numbers.map(lambda n: n + 1, fields={"n": int}, name="map").sink("out", tw.collect(seen))
    changes.run(flow.build())
    assert [t.n for t in seen] == [n + 1 for n in changes.given]
    assert "has 2 workers at most" in changes.reports[1].text


@pytest.mark.parametrize(
    ("component", "degree", "told"),
    [
        ("count", 0, "degree.*at least 1.*got 0"),
        ("nobody", 2, "'nobody'.*one of"),
        ("keys", 2, "'keys': expected a bolt, .* got a spout .*what a source has read"),
        ("total", 2, "one state"),
        ("everybody", 2, "senders count on its tasks"),
        ("out", 2, "sink without a degree"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(component: str, degree: int, told: str) -> None:
    class Total(Counting):
        kind = tw.Kind.GLOBAL
        table = None

    steering, events = tw.Steering(), list[Event]()
    steering.rebalance(component, degree)
    builder = tw.TopologyBuilder("refused")
    builder.add_spout("keys", tw.items([1, 2, 3]), fields={"key": int})
    builder.add_bolt("count", Counting()).fields("keys", "key")
    builder.add_bolt("total", Total()).global_("count")
    builder.add_bolt("everybody", Double(), degree=2).all("keys")
    builder.add_bolt("out", tw.collect([])).global_("count")
    builder.build().run(on=Local(workers=2), steering=steering, listen=events.append)
    (text,) = [event.text for event in events if isinstance(event, Noticed)]
    assert text.startswith("nothing changes: ")
    assert re.search(told, text), text


def test_asking_for_a_decision_needs_somebody_who_learns() -> None:
    steering, events = tw.Steering(), list[Event]()
    steering.reroute()
    flow = tw.Flow("asked")
    flow.source("numbers", tw.items([1, 2, 3]), fields={"n": int}).sink("out", tw.collect([]))
    flow.run(on=Local(workers=1), steering=steering, listen=events.append)
    assert any(isinstance(e, Noticed) and "nobody learns" in e.text for e in events)


class Gushing(Spout):
    """Gives all that it has at once, more than may be under way."""

    outputs = {"key": int}

    def __init__(self, steering: tw.Steering) -> None:
        self.steering, self.calls = steering, 0

    def next_tuple(self) -> None:
        """Ask for another degree, and then give much while that is made."""
        self.calls += 1
        if self.calls == 1:
            self.steering.rebalance("count", 3)
        if self.calls == 12:
            self.finish()
            return
        for number in range(300):
            self.emit(number % 41)


@every_way
def test_a_source_that_gives_more_than_there_is_room_for_is_counted_right(
    way: dict[str, Any],
) -> None:
    seen, steering = list[Any](), tw.Steering()
    builder = tw.TopologyBuilder("gushing")
    builder.add_spout("keys", Gushing(steering))
    builder.add_bolt("count", Counting()).fields("keys", "key")
    builder.add_bolt("out", tw.collect(seen), order="total").global_("count")
    small = {"block_rows": 4, "most_block_rows": 4, "workers": 3, "window": 2}
    builder.build().run(on=Local(**(small | way)), steering=steering)
    given = [number % 41 for _ in range(11) for number in range(300)]
    assert [(t.key, t.count) for t in seen] == running(given)


class Stuck(Bolt):
    """Waits with its first tuple until the degree has changed; says which task had each."""

    outputs = {"n": int, "task": int}
    changed = threading.Event()

    def process(self, t: Any) -> None:
        """Wait."""
        self.changed.wait()
        self.emit(t.n, self.context.task)


@pytest.mark.parametrize("before", [1, 2])
def test_a_backlog_is_shared_out_while_old_tasks_are_stuck(before: int) -> None:
    """The change is over before the old tasks have done what they are at."""
    Stuck.changed = threading.Event()
    seen, steering, given = list[Any](), tw.Steering(), range(4000)

    def numbers() -> Iterator[int]:
        for n in given:
            if n == 3600:  # so many may be under way
                steering.rebalance("stuck", 5)
            yield n

    def listen(event: Event) -> None:
        if isinstance(event, Reconfigured):
            Stuck.changed.set()

    builder = tw.TopologyBuilder("stuck")
    builder.add_spout("numbers", tw.items(numbers), fields={"n": int})
    builder.add_bolt("stuck", Stuck(), degree=before).shuffle("numbers")
    builder.add_bolt("out", tw.collect(seen)).global_("stuck")
    local = Local(assigning="executors", block_rows=20, most_block_rows=20, window=1000)
    builder.build().run(on=local, steering=steering, listen=listen)
    assert [t.n for t in seen] == list(given)
    tasks = Counter(t.task for t in seen)
    assert set(tasks) == set(range(5))
    assert max(tasks.values()) < 1.2 * min(tasks.values()), tasks


class Blind(PartitionedWorklist[str]):
    """Has nothing for whoever looks at first, as when it is being resized."""

    def __init__(self) -> None:
        super().__init__(1, 1)
        self.looked, self.blind = threading.Event(), True

    def ready(self, worker: int) -> bool:
        """Say no, as long as it is blind, also where something waits."""
        if not self.blind or not super().ready(worker):
            return super().ready(worker)
        self.looked.set()
        return False


def test_an_executor_that_looks_while_its_queue_is_resized_looks_again() -> None:
    worklist, done = Blind(), threading.Event()

    def work(taken: Any, task: int) -> tuple[int, int, float]:
        done.set()
        return 1, 0, 0.0

    operator: Any = SimpleNamespace(worklist=worklist, work=work, index=0, tasks=[None])
    operator.component, operator.blocked = SimpleNamespace(name="one"), False
    operator.look = lambda took, worked: None
    operator.holding = Holding(lambda: 1)
    operator.counters = [SimpleNamespace(cpu=0.0)]
    meter: Any = SimpleNamespace(record=lambda *seen: None, rows_within=lambda *asked: 10)
    executors = Executors([operator], meter, Blocking(), Settings().crew())
    operator._wiring = SimpleNamespace(woken=executors.woken)
    executors.start()
    worklist.add(0, "item", 1)
    executors.woken(operator)
    assert worklist.looked.wait(60)
    worklist.blind = False
    assert Operator.resize(operator, 1, 1)
    assert done.wait(60)
    executors.close()


def test_a_bolt_whose_output_nobody_puts_in_order_keeps_its_one_task() -> None:
    builder = tw.TopologyBuilder("unordered")
    builder.add_spout("one", tw.items([1]), fields={"n": int})
    builder.add_spout("other", tw.items([2]), fields={"n": int})
    builder.add_bolt("double", Double()).shuffle("one").shuffle("other")
    builder.add_bolt("out", tw.collect([])).global_("double")
    wiring = Wiring(Flights(8, lambda *_: None), {}, *[lambda *_: None] * 3, now=lambda: 0.0)
    alone = build(Settings(), builder.build(), Run(), wiring).operator("double")
    with pytest.raises(UsageError, match="give it a degree of 2 or more"):
        check_degree(alone, 2)
    steered = build(Settings(), builder.build(), Run(steering=tw.Steering()), wiring)
    check_degree(steered.operator("double"), 2)
