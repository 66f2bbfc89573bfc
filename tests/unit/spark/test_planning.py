"""From a topology to stages."""

from __future__ import annotations

import pytest

from thalweg.builder import TopologyBuilder
from thalweg.components import BlockBolt, Bolt, Kind, Spout
from thalweg.connectors.memory import call, items
from thalweg.errors import UsageError
from thalweg.flow import Flow
from thalweg.runtimes.spark.planning import Plan, make_plan, runs_anywhere, state_name
from thalweg.topology import Topology


def posts() -> tuple[Flow, object]:
    flow = Flow("posts")
    return flow, flow.source("posts", items([]), fields={"region": str, "tag": str})


def two_tallies() -> Topology:
    flow, source = posts()
    source.map(lambda region, tag: (region, tag), fields=["region", "tag"], name="same").tally(
        "regions", key="region"
    ).tally("tags", key="tag")
    flow.table("tags").top(3).sink("board", call(print))
    return flow.build()


def test_a_chain_of_keyed_operators_has_one_exchange_each() -> None:
    plan = make_plan(two_tallies(), places=2, shorten=False)
    assert plan.stage_of == {"posts": 0, "same": 0, "regions": 1, "tags": 2, "top-1": 3}
    assert plan.stages == 4


def test_readers_of_a_tally_get_its_tuples_at_the_same_time() -> None:
    plan = make_plan(two_tallies(), places=2)
    assert plan.stage_of == {"posts": 0, "same": 0, "regions": 1, "tags": 1, "top-1": 2}
    sent = {edge.reader: edge.stands_for for edge in plan.edges["same", "default"]}
    assert sent == {"regions": None, "tags": "regions"}
    assert plan.edges["regions", "default"] == ()


def test_a_tally_that_may_refuse_tuples_is_not_passed_by() -> None:
    flow, source = posts()
    source.tally("regions", key="region", on_error="skip").tally("tags", key="tag")
    assert make_plan(flow.build(), places=2).stage_of["tags"] == 2


def test_sinks_of_one_task_run_beside_the_driver() -> None:
    plan = make_plan(two_tallies(), places=2)
    assert plan.beside_driver == ("board",)
    (edge,) = plan.edges["top-1", "default"]
    assert edge.how == "driver"


def test_keyed_components_have_a_task_at_every_place_unless_told_otherwise() -> None:
    plan = make_plan(two_tallies(), places=3)
    degrees = {c.name: c.degree for c in plan.topology}
    assert degrees == {"posts": 1, "same": 3, "regions": 3, "tags": 3, "top-1": 1, "board": 1}
    flow, source = posts()
    source.tally("regions", key="region", degree=5)
    chosen = make_plan(flow.build(), places=2)
    regions = chosen.topology.component("regions")
    assert [list(chosen.tasks_at(regions, place)) for place in (0, 1)] == [[0, 2, 4], [1, 3]]


def test_only_unordered_inputs_may_skip_the_exchange() -> None:
    flow, source = posts()
    source.tally("regions", key="region").key_by("tag").running_count(name="running")
    plan = make_plan(flow.build(), places=2)
    fused = {edge.reader: edge.fused for edges in plan.edges.values() for edge in edges}
    assert fused == {"regions": True, "running": False}
    unfused = make_plan(plan.topology, places=2, fuse=False)
    assert not any(edge.fused for edges in unfused.edges.values() for edge in edges)


def test_what_comes_before_an_ordered_component_is_traced() -> None:
    flow, source = posts()
    source.tally("regions", key="region").key_by("tag").running_count(name="running")
    assert make_plan(flow.build(), places=2, shorten=False).traced == {"posts", "regions"}


class Ends(Bolt):
    outputs = ("n",)

    def process(self, t) -> None: ...

    def process_end(self) -> None:
        self.emit(1)


class Plain(BlockBolt):
    outputs = ("n",)

    def process_block(self, batch) -> None: ...


class Numbers(Spout):
    outputs = ("n",)

    def next_tuple(self) -> None: ...


@pytest.mark.parametrize(
    ("bolt", "options", "anywhere"),
    [(Plain(), {}, True), (Ends(), {}, False), (Plain(), {"tick": 1}, False)],
    ids=["plain", "with an end", "with ticks"],
)
def test_which_bolts_run_in_their_producers_task(bolt, options, anywhere) -> None:
    builder = TopologyBuilder("t")
    builder.add_spout("numbers", Numbers())
    builder.add_bolt("it", bolt, **options).shuffle("numbers")
    topology = builder.build()
    assert runs_anywhere(topology.component("it")) is anywhere
    assert make_plan(topology, places=2).stages == (1 if anywhere else 2)


def test_a_stateless_bolt_with_a_key_goes_to_the_place_of_its_key() -> None:
    builder = TopologyBuilder("t")
    builder.add_spout("numbers", Numbers())
    builder.add_bolt("it", Plain()).fields("numbers", "n")
    plan = make_plan(builder.build(), places=2)
    (edge,) = plan.edges["numbers", "default"]
    assert edge.how == "exchange"


class Half(Bolt):
    kind = Kind.KEYED
    outputs = ("n",)

    def process(self, t) -> None: ...

    @staticmethod
    def merge(a: int, b: int) -> int:
        return a + b


def test_tasks_share_a_state_unless_keys_are_at_two_of_them() -> None:
    builder = TopologyBuilder("t")
    builder.add_spout("numbers", Numbers())
    builder.add_bolt("whole", Half(), degree=2).fields("numbers", "n")
    builder.add_bolt("half", Half(), degree=2).partial_key("numbers", "n")
    topology = builder.build()
    assert {state_name(topology.component("whole"), t) for t in (0, 1)} == {"whole"}
    assert {state_name(topology.component("half"), t) for t in (0, 1)} == {"half#0", "half#1"}


def test_places_must_be_positive() -> None:
    with pytest.raises(UsageError, match="places: expected at least 1"):
        make_plan(two_tallies(), places=0)


def test_every_component_is_planned_exactly_once() -> None:
    plan: Plan = make_plan(two_tallies(), places=2)
    assert set(plan.stage_of) | set(plan.beside_driver) == {c.name for c in plan.topology}
    assert not set(plan.stage_of) & set(plan.beside_driver)
