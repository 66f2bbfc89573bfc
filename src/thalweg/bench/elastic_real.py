"""Elasticity on real rates: policies in the simulator, against an oracle that knows the trace.

A profile of our own policy is chosen on the first halves of the traces; everything that is reported
was found on the second halves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.bench.elastic_oracle import Tasks, least_tasks
from thalweg.bench.elastic_plots import pictures
from thalweg.bench.measuring import environment
from thalweg.bench.plotting import write_pictures
from thalweg.bench.rate_traces import Rates, traces
from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.autoscale_plus import AutoscalePlus
from thalweg.control.scaling.ds2 import Ds2
from thalweg.control.scaling.ours import PROFILES, ProfileName, Thalweg
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
#: What may be lost.
ALLOWED = 0.01
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

    def run(self, policy: Policy) -> Outcome:
        """Simulate it; it starts with as many tasks as the first minutes need."""
        profile = self.rates.profile(FULL * MOST / COST)
        return WORLD.run(topology(), profile, Law(), policy, {"sink": self.start})

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
    profile = chosen(first.values(), report) if found else "balanced"
    results = {}
    for name, replay in second.items():
        results[name], outcomes = _measured(name, replay, profile, report)
        if options.plots:
            write_pictures(Path(options.plots), pictures(f"real-{name}", "sink", outcomes))
    return {
        "name": "elastic-real",
        "environment": environment() | {"quick": quick, "profile": profile},
        "results": results,
        "summary": summary(results),
    }


def chosen(replays: Iterable[Replay], report: Report) -> ProfileName:
    """Choose the profile that spends least against the oracle, of those that lose little."""
    scores: dict[ProfileName, tuple[int, float]] = {}
    known = list(replays)
    for profile in PROFILES:
        rows = [_row(replay, replay.run(Thalweg(profile))) for replay in known]
        bad = sum(row["lost"] > ALLOWED for row in rows)
        ratio = sum(row["oracle_ratio"] for row in rows) / len(rows)
        report(f"first halves, {profile}: {bad} of {len(rows)} lose too much, {ratio:.2f} x oracle")
        scores[profile] = (bad, ratio)
    return min(scores, key=lambda profile: scores[profile])


def _measured(
    name: str, replay: Replay, profile: ProfileName, report: Report
) -> tuple[dict[str, Any], dict[str, Outcome]]:
    policies: Mapping[str, Policy] = {
        OURS: Thalweg(profile),
        "autoscale": Autoscale(),
        "autoscale+": AutoscalePlus(),
        "ds2": Ds2(),
        "static": Static(),
    }
    outcomes = {label: replay.run(policy) for label, policy in policies.items()}
    rows = {label: _row(replay, outcome) for label, outcome in outcomes.items()}
    for label, row in rows.items():
        report(
            f"{name}, {label}: lost {row['lost']:.2%}, {row['oracle_ratio']:.2f} x oracle, "
            f"latency {row['latency_mean']:.2f} s, {row['reconfigurations']} reconfigurations"
        )
    return {"policies": rows, "peak_to_mean": _peak(replay.rates)}, outcomes


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
        "tuples": outcome.emitted,
    }


def _peak(rates: Rates) -> float:
    return float(rates.counts.max() / rates.counts.mean())


def summary(results: Mapping[str, Any]) -> dict[str, Any]:
    """Give the worst of our own policy, and how many traces keep within the bounds."""
    rows = [found["policies"][OURS] for found in results.values()]
    if not rows:
        return {}
    within = [row["lost"] <= ALLOWED and row["oracle_ratio"] <= 1.3 for row in rows]
    return {
        "thalweg_worst_lost": max(row["lost"] for row in rows),
        "thalweg_worst_oracle_ratio": max(row["oracle_ratio"] for row in rows),
        "thalweg_mean_oracle_ratio": sum(row["oracle_ratio"] for row in rows) / len(rows),
        "traces": len(rows),
        "traces_within_bounds": sum(within),
    }
