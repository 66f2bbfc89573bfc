"""A linear topology under a scaling policy, many times as fast; prints what happened as JSON.

In a process of its own, since it goes by how long things take.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thalweg.clock import SystemClock
from thalweg.connectors.profiles import Profile
from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.autoscale_plus import AutoscalePlus
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import ONE_MINUTE
from thalweg.events import Decided, Event
from thalweg.groupings import Fields
from thalweg.runtimes.local.runtime import Local
from thalweg.workloads import working
from thalweg.workloads.elastic import linear
from thalweg.workloads.stages import Law, Reads, Stage, Staged
from thalweg.workloads.streams import HIGH, LOW, Segment, stream

#: Many keys, so that tasks have about the same of them.
KEYS = 997
#: Those of the AUTOSCALE experiments have a Delta of a minute.
POLICIES = {"autoscale": Autoscale(), "autoscale+": AutoscalePlus(timing=ONE_MINUTE)}
#: Tuples are late after so many seconds, of those that policies think in.
LATE = 30.0


@dataclass(frozen=True)
class Case:
    """A topology whose last stage counts keys, and what it has to do."""

    topology: Staged
    steps: tuple[Segment, ...]
    #: Tuples per second that the steps are parts of.
    whole: float
    #: Time goes so much faster than policies think.
    speed: float
    pace: working.Pace
    #: The stage whose degree is looked at, and the highest one.
    scaled: str = "sink"
    most: int = 16

    @property
    def profile(self) -> Profile:
        """When tuples come."""
        return stream(self.steps, self.whole / self.speed, self.speed)

    @property
    def recovered(self) -> tuple[float, float]:
        """The second half of the high rate."""
        before = sum(minutes for minutes, *_ in self.steps[:2])
        high = self.steps[2][0]
        return (before + high / 2) * 60 / self.speed, (before + high) * 60 / self.speed


def _counted(*stages: Stage) -> Staged:
    sink = replace(stages[-1], grouping=Fields(("value",)))
    return Staged("linear", (*stages[:-1], sink), values=KEYS)


#: As THREE_STEP, with less of what is constant. There are only so many times the document's tuples
#: per second, and each costs that much less: more would ask more of a small machine than waiting.
WAITING = Case(
    _counted(*linear().stages),
    ((1, LOW, LOW), (4, LOW, HIGH), (4, HIGH, HIGH), (1, HIGH, LOW), (3, LOW, LOW)),
    whole=250.0,
    speed=20.0,
    pace=working.Pace(2.5),
)
#: One task has a core, and the high rate needs 1.3 of them. Who notes when tuples are done sees
#: those of all processes.
BURNING = Case(
    _counted(Stage("work", (Reads("source"),), (0.02,)), Stage("sink", (Reads("work"),), (0.0,))),
    ((1.2, 0.2, 0.2), (1.2, 0.2, 1.3), (3, 1.3, 1.3), (0.3, 1.3, 0.2), (2.3, 0.2, 0.2)),
    whole=50.0,
    speed=30.0,
    pace=working.Pace(burn=True, apart=frozenset({"work"})),
    scaled="work",
    most=3,
)
CASES = {"waiting": WAITING, "burning": BURNING}


def expected(total: int) -> Counter[int]:
    """Count the keys of all tuples."""
    law = np.cumsum(Law(KEYS).shares)
    draws = [working._draw(number, 0) for number in range(total)]
    return Counter(np.minimum(np.searchsorted(law, draws, "right"), KEYS - 1).tolist())


def run(policy: str, case: Case) -> dict[str, Any]:
    """Run it from one task each."""
    clock, begins, profile = SystemClock(), list[float](), case.profile
    took: dict[int, float] = {}
    degrees: list[int] = []

    class Noting(working.Counted):
        def process(self, t: Any) -> None:
            if clock.now() > begins[0] + profile.end:  # what is left now is too late by far
                self._pace = working.Pace(1e9)
            super().process(t)
            took[t.number] = clock.now() - begins[0] - (profile.due(t.number) or 0.0)

    class Beginning(working.Emit):
        def next_tuple(self) -> None:
            begins.append(clock.now())
            super().next_tuple()

    def listen(event: Event) -> None:
        if isinstance(event, Decided) and event.degrees:
            degrees.append(event.degrees[case.scaled][0])
            if event.text:
                print(f"{event.time - begins[0]:.1f} s {event.text}", file=sys.stderr)

    working.Counted, working.Emit = Noting, Beginning  # type: ignore[misc] # in this process only
    topology = working.working(case.topology, profile, Law(KEYS), pace=case.pace)
    scaling = Scaling(POLICIES.get(policy, policy), most=case.most, speed=case.speed)
    local = Local(assigning="executors", scaling=scaling, clock=clock)
    result = topology.run(on=local, listen=listen)
    late, (begin, end) = LATE / case.speed, case.recovered
    later = [s for n, s in took.items() if begin < (profile.due(n) or 0.0) < end]
    return {
        "late": sum(seconds > late for seconds in took.values()) / len(took),
        "late_at_last": sum(seconds > late for seconds in later) / len(later),
        "degrees": degrees,
        "exact": result.table("sink") == expected(int(profile.total))
        and len(took) == profile.total,
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], CASES[sys.argv[2]])))
