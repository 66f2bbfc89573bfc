"""The workloads of the elasticity experiments are what the document says, and run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from thalweg.clock import ManualClock
from thalweg.connectors.profiles import constant
from thalweg.errors import TopologyError
from thalweg.groupings import All, LoadAware
from thalweg.placement.values import Need
from thalweg.runtimes.inline import Inline
from thalweg.workloads import elastic
from thalweg.workloads.scenarios import SCENARIOS
from thalweg.workloads.stages import Law, Reads, Stage, Staged
from thalweg.workloads.working import Pace, working

SIX = [
    f"{name}-{kind}"
    for name in ("insensitive", "sensitive", "complex")
    for kind in ("progressive", "erratic")
]


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_the_expert_starts_fits_on_the_machines_and_can_do_the_highest_rate(name):
    scenario = SCENARIOS[name]
    topology, profile = scenario.topology, scenario.profile
    highest = float(max(profile.rates.max(), (profile.rates + profile.slopes).max()))
    for stage in topology:
        busy = highest * topology.reaching(stage.name) * scenario.law.mean(stage.seconds)
        assert busy <= stage.expert
        assert stage.expert <= stage.most <= 2 * scenario.machines
    reserved = sum(stage.expert * stage.need.cpu for stage in topology)
    assert reserved <= 2 * scenario.machines


@pytest.mark.parametrize("name", [name for name in SCENARIOS if "advertising" not in name])
def test_one_task_of_each_stage_can_do_the_lowest_rate_but_not_the_highest(name):
    scenario = SCENARIOS[name]
    topology = scenario.topology
    busy = {
        stage.name: topology.reaching(stage.name) * scenario.law.mean(stage.seconds)
        for stage in topology
    }
    lowest = min(rate for _, first, last in scenario.segments for rate in (first, last))
    assert max(busy.values()) * lowest * scenario.capacity <= 0.9
    assert max(busy.values()) * 0.9 * scenario.capacity > 1.0


def test_linear_has_the_rates_that_were_fixed():
    profile = SCENARIOS["linear-min"].profile
    assert (profile.rates.min(), profile.rates.max()) == (10.0, 90.0)


def test_costly_values_are_rare():
    assert (elastic.SENSITIVE[0], elastic.SENSITIVE[-1]) == pytest.approx((0.010, 0.090))
    shares = SCENARIOS["sensitive-erratic"].law.shares
    assert shares[0] > 0.3 > 0.01 > shares[-1]
    assert SCENARIOS["insensitive-erratic"].law.shares[0] == 1 / elastic.VALUES


def test_the_six_scenarios_start_minimal_on_nine_machines_and_lose_what_is_late():
    for name in SIX:
        scenario = SCENARIOS[name]
        assert (scenario.start, scenario.machines, scenario.replays) == ("minimal", 9, 0)
        assert scenario.published["autoscale+"] > 0
        critical = scenario.topology.stage(scenario.critical[0])
        assert isinstance(critical.grouping, LoadAware) == (not name.startswith("insensitive"))


@pytest.mark.parametrize("kind", ["linear", "diamond", "star", "advertising", "consistency"])
def test_a_staged_topology_runs_as_an_ordinary_one(kind):
    """Each stage gets its share of the tuples, and takes its time for them."""
    topology = getattr(elastic, kind)()
    clock = ManualClock()
    made = working(topology, constant(20, "50 s"))
    snapshot = made.run(on=Inline(clock=clock, block_rows=1)).metrics
    for stage in topology:
        share = topology.reaching(stage.name)
        assert snapshot.component(stage.name).received == pytest.approx(1000 * share, rel=0.25)
    spent = sum(snapshot.component(s.name).received * s.seconds[0] for s in topology)
    assert clock.now() >= max(spent, 50) - 1


def test_speed_divides_the_time():
    clock = ManualClock()
    working(elastic.linear(), constant(1000, "1 s"), pace=Pace(20.0)).run(on=Inline(clock=clock))
    assert clock.now() == pytest.approx(1000 * 0.082 / 20, rel=0.3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grouping": All()}, "shuffle, fields or load-aware"),
        ({"expert": 9}, "expected 1 to 8, got 9"),
        ({"seconds": ()}, "one or more"),
        ({"reads": (Reads("source", (0.5, 0.5)),)}, "a part of the range"),
    ],
)
def test_stages_that_make_no_sense_are_refused(change, said):
    good = Stage("work", (Reads("source"),), (0.1,), Need())
    with pytest.raises(TopologyError, match=said):
        replace(good, **change)


def test_topologies_that_make_no_sense_are_refused():
    stage = Stage("work", (Reads("sauce"),), (0.1,))
    with pytest.raises(TopologyError, match="inputs among"):
        Staged("wrong", (stage,))
    uneven = Stage("work", (Reads("source"),), (0.1, 0.2))
    with pytest.raises(TopologyError, match="2 costs"):
        Staged("wrong", (uneven,), values=3)
    assert Law(2).mean((0.1, 0.3)) == pytest.approx(0.2)
