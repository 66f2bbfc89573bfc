"""What earlier changes achieved: what tasks really do, and what a change really costs.

Only periods count in which enough tuples waited; otherwise tasks did little because there was
little to do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from thalweg.control.scaling.values import Node, Sample, View


@dataclass(frozen=True)
class Judging:
    """How earlier periods are judged."""

    #: Part of a period's work that has to wait at its end for the tasks to count as saturated.
    saturated: float = 0.2
    #: Saturated periods that are looked back at.
    looks: int = 5
    #: However badly it went, a task is taken to do this part of what it should.
    least: float = 0.3


JUDGING = Judging()


@dataclass(frozen=True)
class Experience:
    """What is known of the tasks of a component."""

    #: Tuples per second that one task adds.
    per_task: float
    #: Seconds for which tasks rest when their number changes.
    pause: float


def experience(
    view: View, node: Node, memory: float, pause: float, judging: Judging = JUDGING
) -> Experience | None:
    """Look at the last ``memory`` seconds; None if nothing was processed yet.

    ``pause`` is what a change is taken to cost until one was seen under load.
    """
    samples = view.history.get(node.name) or view.windows[node.name].samples
    recent = [sample for sample in samples if sample.time > view.now - memory]
    rate = _rate(recent) or _rate(samples)
    if rate is None:
        return None
    loads = Loads(view, node, rate, judging)
    rests = [view.period * max(0.0, 1 - part) for part in loads.parts(samples, changed=True)]
    cost = sum(rests) / len(rests) if rests else pause
    return Experience(rate * loads.achieved(recent), cost)


def _rate(samples: Sequence[Sample]) -> float | None:
    busy, processed = sum(s.busy for s in samples), sum(s.processed for s in samples)
    return processed / busy if busy > 0 and processed else None


@dataclass(frozen=True)
class Loads:
    """How much of what a component's tasks could do at a rate they did, where enough waited."""

    view: View
    node: Node
    rate: float
    judging: Judging = JUDGING

    def achieved(self, samples: Sequence[Sample]) -> float:
        """Compare what tasks did under load with what they should have done.

        Tasks that share a core, or of which one gets most of the tuples, do less together than each
        could alone.
        """
        parts = list(self.parts(samples, changed=False))[-self.judging.looks :]
        return min(1.0, max(self.judging.least, sum(parts) / len(parts))) if parts else 1.0

    def parts(self, samples: Sequence[Sample], changed: bool) -> Iterator[float]:
        """Give the part of what was possible that was done, in periods with or without a change."""
        view, name = self.view, self.node.name
        times = sorted(change.time for change in view.changes if change.component == name)
        for before, sample in pairwise(samples):
            could = self.rate * sample.degree * view.period
            rested = bisect_left(times, before.time) < bisect_left(times, sample.time)
            # In a period with a change enough tuples have come to wait by its end, if it took long.
            waited = sample.pending if rested else min(before.pending, sample.pending)
            if rested is changed and waited > self.judging.saturated * could:
                yield sample.processed / could
