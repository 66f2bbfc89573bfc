"""Elasticity on real rates: policies in the simulator, against an oracle that knows the trace.

A profile of our own policy is chosen on the first halves of the traces; everything that is reported
was found on the second halves, with other seeds: tuples come at random, by the rates of a trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from thalweg.bench.elastic_cases import mean_rows, scale_ins_while_growing
from thalweg.bench.elastic_oracle import Tasks, least_tasks
from thalweg.bench.elastic_plots import pictures
from thalweg.bench.measuring import environment
from thalweg.bench.plotting import write_pictures
from thalweg.bench.rate_traces import Rates, traces
from thalweg.config import ProfileName
from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.autoscale_plus import AutoscalePlus
from thalweg.control.scaling.ds2 import Ds2
from thalweg.control.scaling.ours import PROFILES, Thalweg
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Policy
from thalweg.placement.values import Machine
from thalweg.runtimes.simulator.outcome import Outcome
from thalweg.runtimes.simulator.runtime import Simulator
from thalweg.workloads.elastic import FAST, MOST, SLOW
from thalweg.workloads.scenarios import SKIP
from thalweg.workloads.stages import Law, Reads, Stage, Staged

Report = Callable[[str], None]
HOURS = 3.0
QUICK_HOURS = 0.25
#: Seconds per tuple of the stage that is scaled, and the share of all its tasks' time that the
#: highest rate takes.
COST, FULL = 0.160, 0.9
OURS = "thalweg"
#: What may be lost, and spent by what the oracle would.
ALLOWED, MOST_SPENT = 0.01, 1.3
#: Seeds with which a profile is chosen, and those of what is reported.
CHOOSING, SEEDS = range(101, 104), range(301, 306)
WORLD = Simulator(tuple(Machine(f"m{i}") for i in range(9)), skip=SKIP, noise=0.0, bursty=True)


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    #: The folder with the traces.
    data: str = "../shared/data/rate_traces"
    #: A folder for pictures.
    plots: str = ""


def topology() -> Staged:
    """Give source -> intermediate -> sink, with more tasks than in the document."""
    sink = Stage("sink", (Reads("intermediate"),), (COST,), SLOW, MOST, MOST)
    return Staged("real", (Stage("intermediate", (Reads("source"),), (0.002,), FAST), sink))


@dataclass(frozen=True)
class Replay:
    """A part of a trace that is played."""

    rates: Rates

    def run(self, policy: Policy, seed: int) -> Outcome:
        """Simulate it; it starts with as many tasks as the first minutes need."""
        profile, world = self.rates.profile(FULL * MOST / COST), replace(WORLD, seed=seed)
        return world.run(topology(), profile, Law(), policy, {"sink": self.start})

    def rows(self, policy: Policy, seeds: Iterable[int]) -> tuple[dict[str, Any], Outcome]:
        """Simulate it with several seeds: means, and the worst of what counts; the first run."""
        outcomes = [self.run(policy, seed) for seed in seeds]
        rows = [_row(self, outcome) for outcome in outcomes]
        worst = max(row["oracle_ratio"] for row in rows)
        return mean_rows(rows) | {"oracle_ratio_worst": worst}, outcomes[0]

    @property
    def start(self) -> int:
        """Tasks at the start."""
        counts = self.rates.counts
        return max(1, math.ceil(MOST * FULL * float(counts[:3].max() / counts.max())))

    def oracle(self, outcome: Outcome) -> float:
        """Give the least core-seconds for the tuples of a run of it."""
        period = outcome.course[0].time
        within = round(WORLD.timeout / period)
        tasks = Tasks(period / COST, MOST, self.start, within)
        least = least_tasks([float(moment.emitted) for moment in outcome.course], tasks)
        return period * (least * SLOW.cpu + len(outcome.course) * FAST.cpu)


def elastic_real(quick: bool, report: Report, options: Options) -> dict[str, Any]:
    """Lost tuples and resources of scaling policies on real rates, against an oracle."""
    found = dict(traces(Path(options.data)))
    if not found:
        report(f"no traces in {options.data}: nothing was measured (--data names the folder)")
    seconds = 3600 * (QUICK_HOURS if quick else HOURS)
    halves = {name: rates.halves for name, rates in found.items()}
    first = {name: Replay(half.around_peak(seconds)) for name, (half, _) in halves.items()}
    second = {name: Replay(half.around_peak(seconds)) for name, (_, half) in halves.items()}
    seeds = SEEDS[:1] if quick else SEEDS
    profile = chosen(first.values(), report, quick) if found else "balanced"
    results = {}
    for name, replay in second.items():
        results[name], outcomes = _measured(replay, profile, seeds)
        for label, row in results[name]["policies"].items():
            report(_told(name, label, row))
        if options.plots:
            write_pictures(Path(options.plots), pictures(f"real-{name}", "sink", outcomes))
    return {
        "name": "elastic-real",
        "environment": environment() | {"quick": quick, "profile": profile, "seeds": [*seeds]},
        "results": results,
        "summary": summary(results),
    }


def chosen(replays: Iterable[Replay], report: Report, quick: bool = False) -> ProfileName:
    """Choose the profile that spends least against the oracle, of those that lose little."""
    scores: dict[ProfileName, tuple[int, float]] = {}
    known, seeds = list(replays), CHOOSING[:1] if quick else CHOOSING
    for profile in PROFILES:
        rows = [replay.rows(Thalweg(profile), seeds)[0] for replay in known]
        bad = sum(row["lost"] > ALLOWED for row in rows)
        ratio = sum(row["oracle_ratio"] for row in rows) / len(rows)
        report(f"first halves, {profile}: {bad} of {len(rows)} lose too much, {ratio:.2f} x oracle")
        scores[profile] = (bad, ratio)
    return min(scores, key=lambda profile: scores[profile])


def _measured(
    replay: Replay, profile: ProfileName, seeds: Iterable[int]
) -> tuple[dict[str, Any], dict[str, Outcome]]:
    policies: Mapping[str, Policy] = {
        OURS: Thalweg(profile),
        "autoscale": Autoscale(),
        "autoscale+": AutoscalePlus(),
        "ds2": Ds2(),
        "static": Static(),
    }
    found = {label: replay.rows(policy, seeds) for label, policy in policies.items()}
    rows = {label: row for label, (row, _) in found.items()}
    outcomes = {label: outcome for label, (_, outcome) in found.items()}
    return {"policies": rows, "peak_to_mean": _peak(replay.rates)}, outcomes


def _told(name: str, label: str, row: Mapping[str, Any]) -> str:
    return (
        f"{name}, {label}: lost {row['lost']:.2%} (up to {row['lost_worst']:.2%}), "
        f"{row['oracle_ratio']:.2f} x oracle (up to {row['oracle_ratio_worst']:.2f}), "
        f"latency {row['latency_mean']:.2f} s, {row['reconfigurations']:.1f} reconfigurations"
    )


def _row(replay: Replay, outcome: Outcome) -> dict[str, Any]:
    least = replay.oracle(outcome)
    return {
        "lost": outcome.lost,
        "resource_seconds": outcome.resource_seconds,
        "oracle_seconds": least,
        "oracle_ratio": outcome.resource_seconds / least,
        "latency_mean": outcome.latency_mean,
        "latency_p99": outcome.latency_p99,
        "reconfigurations": outcome.reconfigurations,
        "scale_ins_while_growing": scale_ins_while_growing(outcome),
        "tuples": outcome.emitted,
    }


def _peak(rates: Rates) -> float:
    return float(rates.counts.max() / rates.counts.mean())


def summary(results: Mapping[str, Any]) -> dict[str, Any]:
    """Give the worst of our own policy, how many traces keep within the bounds, and totals."""
    rows = [found["policies"][OURS] for found in results.values()]
    if not rows:
        return {}
    within = [row["lost"] <= ALLOWED and row["oracle_ratio"] <= MOST_SPENT for row in rows]
    return {
        "thalweg_worst_lost": max(row["lost"] for row in rows),
        "thalweg_worst_oracle_ratio": max(row["oracle_ratio"] for row in rows),
        "thalweg_worst_lost_any_seed": max(row["lost_worst"] for row in rows),
        "thalweg_worst_oracle_ratio_any_seed": max(row["oracle_ratio_worst"] for row in rows),
        "thalweg_mean_oracle_ratio": sum(row["oracle_ratio"] for row in rows) / len(rows),
        "traces": len(rows),
        "traces_within_bounds": sum(within),
        **_totals(results),
    }


def _totals(results: Mapping[str, Any]) -> dict[str, float]:
    """Give what each policy lost of all tuples, and spent by what the oracle would, over all."""
    found = {}
    for label in next(iter(results.values()))["policies"]:
        rows = [each["policies"][label] for each in results.values()]
        lost = sum(row["lost"] * row["tuples"] for row in rows)
        spent = sum(row["resource_seconds"] for row in rows)
        found[f"{label}_total_lost"] = lost / sum(row["tuples"] for row in rows)
        found[f"{label}_total_oracle_ratio"] = spent / sum(row["oracle_seconds"] for row in rows)
    return found
