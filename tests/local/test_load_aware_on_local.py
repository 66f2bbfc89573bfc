"""Load-aware grouping on the local runtime: tasks tell what tuples took, tuples go by that."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.blocks import Block, Origin
from thalweg.components import Bolt
from thalweg.control.scaling.autoscale_plus import AutoscalePlus
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Timing
from thalweg.events import Event, Reconfigured
from thalweg.routing.load_aware import OsgSettings, State
from thalweg.routing.load_router import LoadRouter
from thalweg.runtimes.local.runtime import Local

#: Every second tuple is costly: in turn, one of two tasks gets all of them.
COSTS = [0.004 if number % 2 else 0.0 for number in range(1200)]
QUICK = OsgSettings(every=16, stable=0.5)


class Wait(Bolt):
    """Takes as long as the tuple says, and says which task did it."""

    outputs = {"number": int, "cost": float, "task": int}

    def process(self, t: Any) -> None:
        """Wait."""
        if t.cost:
            self.context.clock.sleep(t.cost)
        self.emit(t.number, t.cost, self.context.task)


def topology(seen: list[Any], degree: int, costs: Any = COSTS, **options: Any) -> tw.Topology:
    builder = tw.TopologyBuilder("work")
    fields = {"number": int, "cost": float}
    rows = [(0, cost) for cost in costs] if isinstance(costs, list) else costs
    builder.add_spout("costs", tw.items(rows), fields=fields)
    builder.add_bolt("wait", Wait(), degree=degree, **options).load_aware("costs")
    builder.add_bolt("out", tw.collect(seen)).global_("wait")
    return builder.build()


@pytest.mark.parametrize("assigning", ["executors", "workers"])
def test_costly_tuples_are_shared_out_once_costs_are_known(assigning: Any) -> None:
    seen: list[Any] = []
    local = Local(assigning=assigning, osg=QUICK, block_rows=4, most_block_rows=4, window=8)
    topology(seen, 2).run(on=local)
    assert [t.cost for t in seen] == COSTS  # in order, each once
    later = Counter(t.task for t in seen[600:] if t.cost)
    assert min(later[0], later[1]) > 100  # of 300; in turn all were with one task


def test_in_processes_a_part_is_taken_to_cost_the_same_for_all_its_tuples() -> None:
    seen: list[Any] = []
    local = Local(osg=QUICK, block_rows=4, most_block_rows=4, window=8)
    topology(seen, 2, COSTS[:200], isolation="process").run(on=local)
    assert [t.cost for t in seen] == COSTS[:200]
    assert {t.task for t in seen} == {0, 1}


@pytest.mark.usefixtures("all_samples_count")
def test_dabs_changes_degrees_and_goes_on_with_what_is_known() -> None:
    """DABS is AUTOSCALE+ with load-aware grouping."""
    seen, given, events = list[Any](), list[tuple[int, float]](), list[Event]()

    def rows() -> Any:
        more = 400
        while not any(isinstance(e, Reconfigured) for e in events) or (more := more - 1):
            given.append((len(given), COSTS[len(given) % 1200]))
            yield given[-1]

    policy = AutoscalePlus(timing=Timing(0.2, 0.1, 0.2))
    local = Local(
        assigning="executors",
        scaling=Scaling(policy, most={"wait": 4}),
        osg=QUICK,
        block_rows=4,
        most_block_rows=4,
        window=64,
    )
    topology(seen, 2, rows).run(on=local, listen=events.append)
    assert [(t.number, t.cost) for t in seen] == given
    assert len({t.task for t in seen}) > 2


# --- the router -----------------------------------------------------------------------------------


def block(values: list[int]) -> Block:
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.int64())})
    return Block(batch, Origin("source", "default", 0), np.arange(len(values)))


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=12)


@given(sizes, st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_every_tuple_goes_to_one_task_that_there_is(degrees: list[int], values: list[int]) -> None:
    router = LoadRouter(degrees[0], OsgSettings(every=2, stable=10.0))
    for degree in degrees:
        router.resize(degree)
        parts = list(router.route(block(values)))
        assert sorted(v for _, part in parts for v in part.batch.column(0).to_pylist()) == sorted(
            values
        )
        assert {task for task, _ in parts} <= set(range(degree))
        for task, part in parts:
            router.executed(task, part, np.full(len(part), 0.01))
        router.executed(degree, block([1]), np.array([0.5]))  # one that has gone
    assert len(router.scheduler.loads) == degrees[-1]


def test_a_new_task_does_not_send_the_router_back_to_turns() -> None:
    router = LoadRouter(2, OsgSettings(every=2, stable=10.0))
    for _ in range(8):
        for task, part in router.route(block([1, 2, 3, 4])):
            router.executed(task, part, np.full(len(part), 0.01))
    assert router.scheduler.state is not State.ROUND_ROBIN
    router.resize(3)
    assert router.scheduler.state is not State.ROUND_ROBIN
    assert router.scheduler.loads[2] == min(router.scheduler.loads)


def test_tasks_tell_from_threads_of_their_own_while_tuples_are_routed() -> None:
    router = LoadRouter(2, OsgSettings(every=4, stable=10.0))
    queues: list[list[Block]] = [[], []]
    ready, ended = threading.Condition(), threading.Event()
    done = [0, 0]

    def work(task: int) -> None:
        while True:
            with ready:
                ready.wait_for(lambda: queues[task] or ended.is_set())
                if not queues[task]:
                    return
                part = queues[task].pop(0)
            router.executed(task, part, np.full(len(part), 0.001))
            done[task] += len(part)

    threads = [threading.Thread(target=work, args=(task,)) for task in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(500):
        for task, part in router.route(block([1, 2, 3])):
            with ready:
                queues[task].append(part)
                ready.notify_all()
    with ready:
        ended.set()
        ready.notify_all()
    for thread in threads:
        thread.join()
    assert sum(done) == 1500
    assert router.scheduler.state is not State.ROUND_ROBIN


def test_what_is_taken_back_is_no_work_of_the_task_that_had_it() -> None:
    router = LoadRouter(2, OsgSettings(every=1, stable=10.0))
    for _ in range(3):  # until both tasks have told what tuples take
        for task, part in router.route(block([1, 1])):
            router.executed(task, part, np.full(len(part), 0.5))
    assert router.scheduler.state is not State.ROUND_ROBIN
    loads = router.scheduler.loads
    parts = list(router.route(block([1] * 10)))
    assert sum(router.scheduler.loads) == pytest.approx(sum(loads) + 5.0)
    for task, part in parts:
        router.take_back(task, part)
    assert router.scheduler.loads == pytest.approx(loads)
    router.resize(3)
    again = Counter(task for task, part in router.route(block([1] * 9)) for _ in range(len(part)))
    assert again == {0: 3, 1: 3, 2: 3}


def test_markers_that_nobody_waits_for_are_not_in_the_way_of_later_ones() -> None:
    """After a change tasks need not have done what was taken back before they answer."""
    router = LoadRouter(2, OsgSettings(every=1, stable=10.0))
    for _ in range(3):
        for task, part in router.route(block([1, 1])):
            router.executed(task, part, np.full(len(part), 0.5))
    for task, part in list(router.route(block([1] * 100))):
        router.take_back(task, part)
    router.resize(2)
    for task, part in router.route(block([1, 1])):
        router.executed(task, part, np.full(len(part), 0.5))
    assert not any(costs._markers for costs in router._costs)
