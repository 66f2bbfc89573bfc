"""Elasticity in the simulator: every scenario of the document, every policy, several seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.bench.elastic_cases import SEEDS, Case, cases, mean_rows, row, scenario_names
from thalweg.bench.elastic_plots import pictures
from thalweg.bench.elastic_summary import summary
from thalweg.bench.measuring import environment
from thalweg.bench.plotting import write_pictures
from thalweg.errors import UsageError, explain
from thalweg.runtimes.simulator.outcome import Outcome

ALL = "all"
#: What a quick run takes of all scenarios.
_QUICK = ("linear-expert", "sensitive-erratic")


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    #: A scenario, or "all".
    scenario: str = ALL
    #: A folder for pictures.
    plots: str = ""
    #: How many runs of each case, each with another seed.
    seeds: int = len(SEEDS)

    def __post_init__(self) -> None:
        known = [*scenario_names(), ALL]
        if self.scenario not in known:
            raise UsageError(explain("scenario", "", f"one of {known}", repr(self.scenario)))
        if self.seeds < 1:
            raise UsageError(explain("seeds", expected="1 or more", got=str(self.seeds)))

    def chosen(self, quick: bool) -> tuple[str, ...]:
        """Give the scenarios to run."""
        if self.scenario != ALL:
            return (self.scenario,)
        return _QUICK if quick else tuple(scenario_names())


def elastic(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Lost tuples, resources and latency of every scaling policy, in the simulator."""
    seeds = [SEEDS.start + number for number in range(1 if quick else options.seeds)]
    results: dict[str, Any] = {}
    tuples, begin, cpu = 0.0, time.perf_counter(), time.process_time()
    for name in options.chosen(quick):
        found, outcomes = _scenario(name, seeds, report)
        results[name] = found
        tuples += sum(each["tuples"] for each in found["policies"].values()) * len(seeds)
        if options.plots:
            write_pictures(Path(options.plots), pictures(name, found["critical"], outcomes))
    took, cpu = time.perf_counter() - begin, time.process_time() - cpu
    speed = {
        "simulated_tuples_per_second": tuples / took,
        "simulated_tuples_per_cpu_second": tuples / cpu,
    }
    return {
        "name": "elastic",
        "environment": environment() | {"quick": quick, "seeds": seeds},
        "results": results,
        "summary": summary(results) | speed,
    }


def _scenario(
    name: str, seeds: list[int], report: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, Outcome]]:
    """Run all policies of a scenario; gives the figures, and the course of each first run."""
    policies: dict[str, Any] = {}
    first: dict[str, Outcome] = {}
    #: The first case of each kind of arrivals has static degrees.
    fixed: dict[bool, list[Outcome]] = {}
    about: dict[str, Any] = {}
    for case in cases(name):
        outcomes = [case.run(seed) for seed in seeds]
        first[case.label] = outcomes[0]
        beside = zip(outcomes, fixed.setdefault(case.bursty, outcomes), strict=True)
        policies[case.label] = mean_rows([row(own, case.scenario, one) for own, one in beside])
        about = _about(case)
        _tell(report, name, case, policies[case.label])
    return about | {"policies": policies}, first


def _about(case: Case) -> dict[str, Any]:
    scenario = case.scenario
    return {
        "published_lost": dict(scenario.published),
        "published": scenario.note,
        "start": scenario.start,
        "critical": scenario.critical[0],
    }


def _tell(report: Callable[[str], None], name: str, case: Case, found: Mapping[str, Any]) -> None:
    published = case.scenario.published.get(case.label)
    known = "" if published is None else f" (published {published:.1%})"
    report(
        f"{name}, {case.label}: lost {found['lost']:.2%}{known}, "
        f"{found['resource_seconds']:,.0f} core-s, latency {found['latency_mean']:.2f} s, "
        f"p99 {found['latency_p99']:.1f} s, {found['reconfigurations']:.0f} reconfigurations"
    )
