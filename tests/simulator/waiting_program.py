"""A chain of two stages that wait, on the local runtime; prints what happened as JSON.

In a process of its own: where much else is in memory, collecting garbage takes a part of the time.
"""

from __future__ import annotations

import json
import statistics
import threading

from thalweg.clock import SystemClock
from thalweg.connectors.profiles import steps
from thalweg.placement.values import Need
from thalweg.runtimes.local.runtime import Local
from thalweg.workloads import working
from thalweg.workloads.stages import Reads, Stage, Staged

#: Two bursts, each of which takes the sink twice as long as it lasts.
BURSTS = steps([(150, "1 s"), (0, "2 s"), (150, "1 s"), (0, "2 s")])
DEGREES = {"sink": 3}
COSTS = {"first": 0.002, "sink": 0.040}


def chain(costs):
    """Make two stages with these costs, in seconds."""
    first = Stage("first", (Reads("source"),), (costs["first"],), Need(0.0))
    return Staged("chain", (first, Stage("sink", (Reads("first"),), (costs["sink"],), Need(0.0))))


def on_local():
    """Run it, and note when each tuple was due and when it had left the sink, and what it cost.

    A wait takes longer than it should where a machine is busy: that is cost as well.
    """
    clock, lock = SystemClock(), threading.Lock()
    ends: dict[int, float] = {}
    costs: dict[str, list[float]] = {name: [] for name in COSTS}
    begins = []

    class Noting(working.Work):
        def process(self, t):
            begin = clock.now()
            super().process(t)
            with lock:
                ends[t.number] = clock.now()
                costs[self.context.component].append(ends[t.number] - begin)

    class Beginning(working.Emit):
        def next_tuple(self):
            begins.append(clock.now())
            super().next_tuple()

    working.Work, working.Emit = Noting, Beginning
    topology = working.working(chain(COSTS), BURSTS, degrees=DEGREES)
    topology.run(on=Local(assigning="executors", block_rows=1, clock=clock))
    return {
        "took": [end - begins[0] - BURSTS.due(number) for number, end in ends.items()],
        "ends": sorted(end - begins[0] for end in ends.values()),
        "costs": {name: statistics.fmean(seconds) for name, seconds in costs.items()},
    }


if __name__ == "__main__":
    print(json.dumps(on_local()))
