"""The simulator foretells what the local runtime does, where operators wait."""

from __future__ import annotations

import statistics
import threading
from itertools import pairwise

import pytest

from thalweg.clock import SystemClock
from thalweg.connectors.profiles import steps
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Timing
from thalweg.placement.values import Machine, Need
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.simulator.runtime import Simulator
from thalweg.workloads import working
from thalweg.workloads.stages import Law, Reads, Stage, Staged

#: Two bursts, each of which takes the sink twice as long as it lasts.
BURSTS = steps([(150, "1 s"), (0, "2 s"), (150, "1 s"), (0, "2 s")])
DEGREES = {"sink": 3}
COSTS = {"first": 0.002, "sink": 0.040}


def chain(costs):
    """Make two stages with these costs, in seconds."""
    first = Stage("first", (Reads("source"),), (costs["first"],), Need(0.0))
    return Staged("chain", (first, Stage("sink", (Reads("first"),), (costs["sink"],), Need(0.0))))


def on_local(monkeypatch):
    """Run it, and note when each tuple was due and when it had left the sink, and what it cost.

    A wait takes longer than it should where a machine is busy: that is cost as well.
    """
    clock, lock = SystemClock(), threading.Lock()
    ends: dict[int, float] = {}
    costs: dict[str, list[float]] = {name: [] for name in COSTS}

    class Noting(working.Work):
        def process(self, t):
            begin = clock.now()
            super().process(t)
            with lock:
                ends[t.number] = clock.now()
                costs[self.context.component].append(ends[t.number] - begin)

    begins = []

    class Beginning(working.Emit):
        def next_tuple(self):
            begins.append(clock.now())
            super().next_tuple()

    monkeypatch.setattr(working, "Work", Noting)
    monkeypatch.setattr(working, "Emit", Beginning)
    topology = working.working(chain(COSTS), BURSTS, degrees=DEGREES)
    topology.run(on=Local(assigning="executors", block_rows=1, clock=clock))
    took = [end - begins[0] - BURSTS.due(number) for number, end in ends.items()]
    measured = {name: statistics.fmean(seconds) for name, seconds in costs.items()}
    return took, sorted(end - begins[0] for end in ends.values()), measured


def simulated(costs, seed):
    """Run it in the simulator, with a sample every tenth of a second."""
    world = Simulator((Machine("m", cores=4),), latency=0.0, noise=0.0, timeout=1e9, seed=seed)
    policy = Static(Timing(60.0, 0.1, 60.0))
    return world.run(chain(costs), BURSTS, Law(), policy, DEGREES)


def busiest(ends):
    """Tuples per second while the sink is busy: the middle of each burst."""
    inside = [b - a for a, b in pairwise(ends) if b - a < 0.2]
    return 1 / statistics.fmean(inside)


def test_throughput_and_mean_latency_agree_within_15_percent(monkeypatch):
    took, ends, costs = on_local(monkeypatch)
    outcomes = [simulated(costs, seed) for seed in range(20)]
    latency = statistics.fmean(outcome.latency_mean for outcome in outcomes)
    assert statistics.fmean(took) == pytest.approx(latency, rel=0.15)
    moments = [m for outcome in outcomes for m in outcome.course if m.pending > 10]
    throughput = sum(m.done for m in moments) / (0.1 * len(moments))
    assert busiest(ends) == pytest.approx(throughput, rel=0.15)
