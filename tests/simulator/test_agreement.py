"""The simulator foretells what the local runtime does, where operators wait."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from waiting_program import BURSTS, DEGREES, chain

from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Timing
from thalweg.placement.values import Machine
from thalweg.runtimes.simulator.runtime import Simulator
from thalweg.workloads.stages import Law


def on_local():
    """Run it in a process of its own."""
    program = str(Path(__file__).with_name("waiting_program.py"))
    done = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, check=True)  # noqa: S603 (ours)
    return json.loads(done.stdout)


def simulated(costs, seed):
    """Run it in the simulator, with a sample every tenth of a second."""
    world = Simulator((Machine("m", cores=4),), latency=0.0, noise=0.0, timeout=1e9, seed=seed)
    policy = Static(Timing(60.0, 0.1, 60.0))
    return world.run(chain(costs), BURSTS, Law(), policy, DEGREES)


def busiest(ends):
    """Tuples per second while the sink is busy: the middle of each burst."""
    inside = [b - a for a, b in pairwise(ends) if b - a < 0.2]
    return 1 / statistics.fmean(inside)


@pytest.mark.quiet
def test_throughput_and_mean_latency_agree_within_15_percent():
    seen = on_local()
    outcomes = [simulated(seen["costs"], seed) for seed in range(20)]
    latency = statistics.fmean(outcome.latency_mean for outcome in outcomes)
    assert statistics.fmean(seen["took"]) == pytest.approx(latency, rel=0.15)
    moments = [m for outcome in outcomes for m in outcome.course if m.pending > 10]
    throughput = sum(m.done for m in moments) / (0.1 * len(moments))
    assert busiest(seen["ends"]) == pytest.approx(throughput, rel=0.15)
