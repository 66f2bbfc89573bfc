"""The linear topology under a scaling policy, twenty times as fast; prints what happened as JSON.

In a process of its own, since it goes by how long things take.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from thalweg.clock import SystemClock
from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.autoscale_plus import AutoscalePlus
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import ONE_MINUTE
from thalweg.events import Decided, Event
from thalweg.groupings import Fields
from thalweg.runtimes.local.runtime import Local
from thalweg.workloads import working
from thalweg.workloads.elastic import linear
from thalweg.workloads.stages import Law, Staged
from thalweg.workloads.streams import HIGH, LOW, stream

#: Time goes so much faster than in the document. There are only so many times its tuples per
#: second, and each costs that much less: more would ask more of a small machine than waiting.
SPEED, MORE = 20.0, 2.5
#: As THREE_STEP, with less of what is constant.
STEPS = ((1, LOW, LOW), (4, LOW, HIGH), (4, HIGH, HIGH), (1, HIGH, LOW), (3, LOW, LOW))
PROFILE = stream(STEPS, 100.0 * MORE / SPEED, SPEED)
#: Seconds after which a tuple is late, and the second half of the high rate.
LATE, RECOVERED, FALLING = 30 / SPEED, 7 * 60 / SPEED, 9 * 60 / SPEED
#: Many keys, so that tasks have about the same of them.
KEYS = 997
#: Those of the AUTOSCALE experiments have a Delta of a minute.
POLICIES = {"autoscale": Autoscale(), "autoscale+": AutoscalePlus(timing=ONE_MINUTE)}


def counted() -> Staged:
    """Give the linear topology with a sink that counts keys."""
    first, sink = linear().stages
    return Staged("linear", (first, replace(sink, grouping=Fields(("value",)))), values=KEYS)


def expected() -> Counter[int]:
    """Count the keys of all tuples."""
    law = np.cumsum(Law(KEYS).shares)
    draws = [working._draw(number, 0) for number in range(int(PROFILE.total))]
    return Counter(np.minimum(np.searchsorted(law, draws, "right"), KEYS - 1).tolist())


def run(policy: str) -> dict[str, Any]:
    """Run it from one task each."""
    clock, begins = SystemClock(), list[float]()
    took: dict[int, float] = {}
    degrees: list[int] = []

    class Noting(working.Counted):
        def process(self, t: Any) -> None:
            if clock.now() > begins[0] + PROFILE.end:  # what is left now is too late by far
                self._pace = working.Pace(1e9)
            super().process(t)
            took[t.number] = clock.now() - begins[0] - (PROFILE.due(t.number) or 0.0)

    class Beginning(working.Emit):
        def next_tuple(self) -> None:
            begins.append(clock.now())
            super().next_tuple()

    def listen(event: Event) -> None:
        if isinstance(event, Decided) and event.degrees:
            degrees.append(event.degrees["sink"][0])
            if event.text:
                print(f"{event.time - begins[0]:.1f} s {event.text}", file=sys.stderr)

    working.Counted, working.Emit = Noting, Beginning  # type: ignore[misc] # in this process only
    topology = working.working(counted(), PROFILE, Law(KEYS), pace=working.Pace(MORE))
    scaling = Scaling(POLICIES.get(policy, policy), most=16, speed=SPEED)
    local = Local(assigning="executors", scaling=scaling, clock=clock)
    result = topology.run(on=local, listen=listen)
    later = [s for n, s in took.items() if RECOVERED < (PROFILE.due(n) or 0.0) < FALLING]
    return {
        "late": sum(seconds > LATE for seconds in took.values()) / len(took),
        "late_at_last": sum(seconds > LATE for seconds in later) / len(later),
        "degrees": degrees,
        "exact": result.table("sink") == expected() and len(took) == PROFILE.total,
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
