"""The runs of the elasticity benchmark: which policies meet which scenarios, and what is noted."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.autoscale_plus import AutoscalePlus
from thalweg.control.scaling.ds2 import Ds2
from thalweg.control.scaling.incremental import Incremental
from thalweg.control.scaling.learning import Learning, Lesson, train
from thalweg.control.scaling.ours import Thalweg
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Decision, Policy, Timing, View
from thalweg.groupings import LoadAware, Shuffle
from thalweg.runtimes.simulator.outcome import Applied, Outcome
from thalweg.runtimes.simulator.runtime import Simulator
from thalweg.workloads.elastic import SKEW, complex_sensitive
from thalweg.workloads.scenarios import SCENARIOS, Scenario, balancing

STATIC, OURS, PLUS, LITERAL = "static", "thalweg", "autoscale+", "autoscale+ literal"
EXPERT = "static expert"
#: OSG with the changes that AUTOSCALE+ made with round robin: nothing differs but the grouping.
SAME = f"{PLUS}, osg, same changes"
BURSTY = "bursty"
AUTOSCALE, LOCAL, STRAIGHT = "autoscale", "autoscale local", "autoscale straight"
#: Seeds that nothing was tuned on. Others were: 1 to 20, 101 to 103, 201, 202, 1001 and 7001 to
#: 7005; and figures of 8001 to 8005 were published, so whoever changed a policy since knew them.
SEEDS = range(9001, 9006)
#: What the document compares in chapter 6: static or not, shuffle or OSG, by the law of the values.
BALANCING = ("balancing-uniform", "balancing-zipf")


@dataclass(frozen=True)
class Case:
    """A policy, by a name, in a scenario."""

    scenario: Scenario
    label: str
    policy: Policy
    #: Another case whose changes are made in place of the policy's.
    like: Case | None = None
    #: Whether tuples come at random, not evenly.
    bursty: bool = False

    def run(self, seed: int) -> Outcome:
        """Simulate it once."""
        each, policy = self.scenario, self.policy
        if self.like:
            policy = Timetable.of(self.like.run(seed).applied, policy.timing)
        world = Simulator(
            each.cluster,
            replays=each.replays,
            skip=each.skip,
            spread=each.spread,
            bursty=self.bursty,
            seed=seed,
        )
        return world.run(each.topology, each.profile, each.law, policy, each.degrees)


@dataclass(frozen=True)
class Timetable:
    """A policy that repeats what another has done."""

    #: Degrees by time and component.
    degrees: Mapping[float, Mapping[str, int]]
    timing: Timing
    name: str = "timetable"

    @classmethod
    def of(cls, applied: Iterable[Applied], timing: Timing) -> Timetable:
        """Repeat changes."""
        degrees: dict[float, dict[str, int]] = {}
        for each in applied:
            degrees.setdefault(each.time, {})[each.decision.component] = each.decision.degree
        return cls(degrees, timing)

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Look up what was done at this time."""
        now = self.degrees.get(view.now, {})
        before = {node.name: view.degrees[node.name] for node in view.scalable}
        return tuple(Decision(n, now.get(n, k), k, "as before") for n, k in before.items())


def scenario_names() -> list[str]:
    """Give the names of all scenarios."""
    return [*SCENARIOS, *BALANCING]


def cases(name: str) -> Iterator[Case]:
    """Give the runs of a scenario."""
    if name in BALANCING:
        yield from _balancing(SKEW if name.endswith("zipf") else 0.0)
        return
    scenario = SCENARIOS[name]
    timing = _timing(scenario)
    for label, policy in (
        (STATIC, Static(timing)),
        ("incremental", Incremental(timing=timing)),
        ("learning", Learning(_table(scenario), timing)),
        (AUTOSCALE, Autoscale(timing=timing)),
        (PLUS, AutoscalePlus(timing=timing)),
        (LITERAL, AutoscalePlus(sizing="literal", timing=timing)),
        ("ds2", Ds2(timing=timing)),
        (OURS, Thalweg()),
    ):
        yield Case(scenario, label, policy)
    if name == "consistency":
        yield Case(scenario, LOCAL, Autoscale("local", timing=timing))
        yield Case(scenario, STRAIGHT, Autoscale("straight", timing=timing))
    if name.endswith("-expert"):
        yield Case(scenario, f"{STATIC}, {BURSTY}", Static(timing), bursty=True)
        yield Case(scenario, f"{AUTOSCALE}, {BURSTY}", Autoscale(timing=timing), bursty=True)


def _balancing(skew: float) -> Iterator[Case]:
    """Compare groupings: each with its own decisions, and with the same ones."""
    plus = []
    for grouping, suffix in ((Shuffle(), "shuffle"), (LoadAware(), "osg")):
        scenario = balancing(complex_sensitive(grouping), skew)
        timing = _timing(scenario)
        yield Case(scenario, f"{STATIC}, {suffix}", Static(timing))
        plus.append(Case(scenario, f"{PLUS}, {suffix}", AutoscalePlus(timing=timing)))
        yield plus[-1]
        # Without the pauses of reconfigurations, which hide what a grouping does.
        enough = replace(scenario, start="expert")
        yield Case(enough, f"{EXPERT}, {suffix}", Static(timing))
    shuffle, osg = plus
    yield replace(osg, label=SAME, like=shuffle)


def _timing(scenario: Scenario) -> Timing:
    return Timing(scenario.delta, 10.0, scenario.delta)


def _table(scenario: Scenario) -> Any:
    """Train the learning policy: all rates up to the capacity, as if it had seen them before."""
    rates = np.linspace(0.02, 1.0, 50) * scenario.capacity
    topology = scenario.topology
    return train(
        Lesson(
            stage.name,
            (rates * topology.reaching(stage.name)).tolist(),
            scenario.law.mean(stage.seconds),
            stage.most,
        )
        for stage in topology
    )


def row(outcome: Outcome, scenario: Scenario, fixed: Outcome) -> dict[str, Any]:
    """Note the figures of one run; ``fixed`` is one of the same stream without changes."""
    critical = scenario.critical[0]
    return {
        "lost": outcome.lost,
        "resource_seconds": outcome.resource_seconds,
        "machine_seconds": outcome.machine_seconds,
        "latency_mean": outcome.latency_mean,
        "latency_p50": outcome.latency_p50,
        "latency_p99": outcome.latency_p99,
        "calm_latency": calm_latency(outcome, outcome, scenario.delta),
        "calm_latency_static": calm_latency(fixed, outcome, scenario.delta),
        "reconfigurations": outcome.reconfigurations,
        "scale_ins_while_growing": scale_ins_while_growing(outcome),
        "deviation": outcome.deviation[critical],
        "queued": outcome.queued[critical],
        "tuples": outcome.emitted,
    }


def calm_latency(outcome: Outcome, changed: Outcome, grace: float) -> float:
    """Give the median of the means of periods outside of another outcome's grace times."""
    times = [each.time for each in changed.applied if not each.refused]
    calm = [
        moment.latency
        for moment in outcome.course
        if moment.latency is not None
        and not any(time < moment.time <= time + grace for time in times)
    ]
    return statistics.median(calm) if calm else float("nan")


def scale_ins_while_growing(outcome: Outcome) -> int:
    """Count degrees that fell although more tuples waited for the stage than a period before."""
    pairs = pairwise(outcome.course)
    grows = {
        (now.time, stage)
        for before, now in pairs
        for stage, waiting in now.waiting.items()
        if waiting > before.waiting[stage]
    }
    fell = [
        (each.time, each.decision.component)
        for each in outcome.applied
        if not each.refused and each.decision.degree < each.decision.before
    ]
    return sum(at in grows for at in fell)


def mean_rows(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Give the means over seeds, and the worst loss."""
    found: dict[str, Any] = {
        name: statistics.fmean(each[name] for each in rows) for name in rows[0]
    }
    return found | {"lost_worst": max(each["lost"] for each in rows)}
