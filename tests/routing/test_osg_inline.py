"""Load-aware grouping on the reference runtime, where time is what the clock says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from thalweg.blocks import Block, Origin
from thalweg.builder import TopologyBuilder
from thalweg.clock import ManualClock
from thalweg.components import BlockBolt, Bolt
from thalweg.connectors.memory import items
from thalweg.routing.load_aware import OsgSettings, State
from thalweg.routing.load_router import LoadRouter, values_of
from thalweg.runtimes.inline import Inline

#: Seconds by value: every eighth tuple takes ten times as long, and always falls to the same task
#: when eight tasks, or four, or two, take turns.
COSTS = [0.1 if number % 8 == 0 else 0.01 for number in range(20_000)]


class Work(Bolt):
    """Takes as long as the tuple says, and says which task did it."""

    outputs = ("cost", "task")

    def process(self, t):
        self.context.clock.sleep(t.cost)
        self.emit(t.cost, self.context.task)


class Collect(Bolt):
    """Adds up what each task did of the second half."""

    def __init__(self, spent):
        self.spent = spent

    def __deepcopy__(self, memo):
        return self

    def process(self, t):
        self.spent.append((t.task, t.cost))


def spent(grouping):
    found = []
    builder = TopologyBuilder("work")
    builder.add_spout("costs", items(COSTS), fields={"cost": float})
    getattr(builder.add_bolt("work", Work(), degree=4), grouping)("costs")
    builder.add_bolt("collect", Collect(found)).global_("work")
    builder.build().run(on=Inline(clock=ManualClock(), block_rows=64))
    tasks, costs = map(np.array, zip(*found[len(found) // 2 :], strict=True))
    assert len(found) == len(COSTS)
    return np.bincount(tasks, costs, 4)


def test_work_is_even_where_in_turn_it_would_not_be():
    """In turn, one of four tasks gets all that is costly: 2.2 times the mean."""
    in_turn = np.array([sum(COSTS[task::4]) for task in range(4)])
    assert in_turn.max() / in_turn.mean() > 2
    by_work = spent("load_aware")
    assert by_work.max() / by_work.mean() < 1.05


def test_a_run_with_a_manual_clock_can_be_repeated():
    assert spent("load_aware").tolist() == spent("load_aware").tolist()


def block(values):
    return Block.of(pa.record_batch({"n": values}), Origin("numbers"))


def test_a_router_learns_what_values_cost():
    router = LoadRouter(2, OsgSettings(every=4))
    for _ in range(6):
        for task, part in router.route(block([1, 2, 1, 2, 1, 2, 1, 2])):
            router.executed(task, part, np.array(part.values("n"), float))
    assert router.scheduler.state is not State.ROUND_ROBIN
    parts = dict(router.route(block([1] * 30 + [2] * 30)))
    loads = [sum(part.values("n")) for part in parts.values()]
    assert abs(loads[0] - loads[1]) <= 4
    assert abs(np.diff(router.scheduler.loads)[0]) <= 2


def test_fields_without_a_stable_hash_do_not_count():
    rows = pa.record_batch({"n": [1, 1, 2], "deep": [{"a": 1}, {"a": 2}, {"a": 3}]})
    hashes = values_of(Block.of(rows, Origin("numbers")))
    assert hashes[0] == hashes[1] != hashes[2]
    only = pa.record_batch({"deep": [{"a": 1}, {"a": 2}]})
    assert len(set(values_of(Block.of(only, Origin("numbers"))).tolist())) == 1


class Rest(BlockBolt):
    """A vectorised bolt: its tuples take equal shares of the block's time."""

    def process_block(self, batch):
        self.context.clock.sleep(sum(batch.column("cost").to_pylist()))


def test_vectorised_bolts_are_measured_by_the_block():
    builder = TopologyBuilder("rest")
    builder.add_spout("costs", items(COSTS[:2000]), fields={"cost": float})
    builder.add_bolt("rest", Rest(), degree=3).load_aware("costs")
    snapshot = builder.build().run(on=Inline(clock=ManualClock(), block_rows=16)).metrics
    assert sum(snapshot.component("rest").per_task) == 2000
    assert min(snapshot.component("rest").per_task) > 500
