"""Bursts that nobody can foretell: what waits is done just in time.

Where a rate changes from sample to sample by half of itself, a forecast says nothing, and tasks
that are asked for at the beginning of a burst work when it is over. But it is known how long each
tuple has waited, and so when it will be late. A change is put off for as long as a later one would
do as well, since the burst may be over by then; it takes the tasks with which nothing is late. They
go as soon as hardly anything waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from thalweg.control.scaling.estimating import kept
from thalweg.control.scaling.experience import Experience
from thalweg.control.scaling.values import Decision, Node, Sample, View


@dataclass(frozen=True)
class Part:
    """Tuples that wait and came evenly: how many, seconds since the first and since the last."""

    tuples: float
    first: float
    last: float


def unsteady(rates: Sequence[float], part: float) -> bool:
    """Say whether a rate changes so much that nobody can foretell it: by this part of itself.

    >>> unsteady([50, 55, 60, 50, 45], 0.5), unsteady([0, 0, 90, 20, 0, 0, 0, 70, 0], 0.5)
    (False, True)
    """
    return sum(abs(b - a) for a, b in pairwise(rates)) > part * sum(rates) > 0


def queue(samples: Sequence[Sample], period: float) -> list[Part]:
    """Say since when tuples wait, the oldest first: those that came last wait now.

    >>> of = lambda time, received, pending: Sample("c", time, 1, received, 0, pending=pending)
    >>> queue([of(10, 9, 3), of(20, 10, 5), of(30, 4, 8)], 10.0)
    [Part(tuples=4, first=14.0, last=10.0), Part(tuples=4, first=10.0, last=0.0)]
    """
    return list(_newest_first(samples, period))[::-1]


def _newest_first(samples: Sequence[Sample], period: float) -> Iterator[Part]:
    left, last = samples[-1].pending, 0.0
    for sample in reversed(samples):
        waits = min(left, sample.received)
        if waits:
            yield Part(waits, last + period * waits / sample.received, last)
        left, last = left - waits, last + period
        if not left:
            return


def later(parts: Sequence[Part], done: float, seconds: float, coming: float) -> list[Part]:
    """Say what waits some seconds later, when so many tuples were done and others came.

    >>> later([Part(4, 14.0, 10.0), Part(4, 10.0, 0.0)], done=6, seconds=10.0, coming=3.0)
    [Part(tuples=2, first=15.0, last=10.0), Part(tuples=3.0, first=10.0, last=0.0)]
    """
    found = []
    for part in (*parts, Part(coming, 0.0, -seconds)):
        rest = max(0.0, part.tuples - done)
        done = max(0.0, done - part.tuples)
        if rest:
            first = part.last + (part.first - part.last) * rest / part.tuples
            found.append(Part(rest, first + seconds, part.last + seconds))
    return found


def tasks_in_time(parts: Sequence[Part], per_task: float, left: float) -> float:
    """Give the tasks with which nobody waits beyond some seconds; who is late already is late.

    >>> tasks_in_time([Part(40, 10.0, 0.0)], per_task=1.0, left=20.0)
    2.0
    >>> tasks_in_time([Part(40, 10.0, 0.0), Part(10, 0.0, 0.0)], per_task=1.0, left=12.5)
    4.0
    """
    done, most = 0.0, 0.0
    for part in parts:
        for before, age in ((done, part.first), (done + part.tuples, part.last)):
            if age < left:
                most = max(most, before / (left - age))
        done += part.tuples
    return most / per_task


def late(parts: Sequence[Part], rate: float, left: float) -> float:
    """Give the tuples that wait beyond some seconds, if so many are done per second.

    >>> late([Part(40, 10.0, 0.0)], rate=2.0, left=20.0)
    0.0
    >>> late([Part(40, 10.0, 0.0)], rate=2.0, left=15.0), late([Part(9, 9.0, 8.0)], 9.0, left=7.0)
    (20.0, 9.0)
    """
    done = found = 0.0
    for part in parts:
        begin = part.first + done / rate - left
        done += part.tuples
        end = part.last + done / rate - left
        above = max(0.0, begin) + max(0.0, end)
        found += part.tuples * above / (abs(begin) + abs(end)) if above else 0.0
    return found


@dataclass(frozen=True)
class JustInTime:
    """Decides by what waits, and since when."""

    #: Seconds after which a tuple is late.
    within: float
    #: Part of the tasks that a smaller degree has to save.
    gain: float
    #: Seconds of work that may wait when tasks go.
    calm: float
    #: Part of the tasks that is taken beyond those with which all would just be in time.
    spare: float = 0.0

    def decide(self, view: View, node: Node, known: Experience, rate: float) -> Decision:
        """Decide about a component; ``rate`` is what comes on the average, per second."""
        degree, each, period = view.degrees[node.name], known.per_task, view.period
        parts = queue(view.history[node.name], period)
        waits = sum(part.tuples for part in parts) / (each * degree)
        what = f"bursts; what waits takes {waits:,.1f} s"
        numbers = {"per_task": each, "waits": waits, "rate": rate}
        missed = late(parts, each * degree, self.within)
        wanted = self._tasks(node, parts, known, rate)
        if missed and wanted > degree:
            now = self._late(parts, known, wanted)
            if now >= missed:
                return kept(view, node, f"{what}: too much, but a change is too late", **numbers)
            parts = later(parts, each * degree * period, period, rate * period)
            if self._late(parts, known, self._tasks(node, parts, known, rate)) <= now:
                return kept(view, node, f"{what}: too much, but there is time", **numbers)
            return Decision(node.name, wanted, degree, f"{what}: too much", numbers)
        if degree - wanted >= max(1, self.gain * degree) and waits <= self.calm:
            return Decision(node.name, wanted, degree, f"{what}: {wanted} will do", numbers)
        return kept(view, node, what, **numbers)

    def _tasks(self, node: Node, parts: Sequence[Part], known: Experience, rate: float) -> int:
        """Give the degree with which all are in time when it is changed to now."""
        left = self.within - known.pause
        gathered = sum(part.tuples for part in parts) + rate * known.pause
        steady = gathered / (self.within * known.per_task)
        just = max(tasks_in_time(parts, known.per_task, left), steady)
        return node.bounded((1 + self.spare) * just)

    def _late(self, parts: Sequence[Part], known: Experience, degree: int) -> float:
        """Give the tuples that are late when the degree is changed to this one."""
        return late(parts, known.per_task * degree, self.within - known.pause)
