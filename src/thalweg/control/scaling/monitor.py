"""Watching a topology: samples come in, and a view for a policy comes out.

Windows slide with every sample; their regression sums are kept up, not computed again. A sample
that is missing leaves a gap, and a window with a gap is no ground for a decision.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from thalweg.control.scaling.forecasting import Line, Sums
from thalweg.control.scaling.values import Change, Decision, Node, Sample, Timing, View, Window

#: Samples follow on each other if they are apart by this part of a period or more, and no further.
_LEAST, _MOST = 0.5, 1.5


def stretched(timing: Timing, nodes: Iterable[Node]) -> tuple[Timing, str]:
    """Make Delta longer than every operator window, and say so; the text is empty if it is.

    >>> timing, notice = stretched(Timing(60, 10, 60), [Node("hourly", window=95.0)])
    >>> timing
    Timing(delta=100.0, period=10, grace=100.0)
    >>> notice
    "Delta is 100 s, not 60 s: the window of 'hourly' is 95 s, and Delta has to be longer"
    """
    longest = max(nodes, key=lambda node: node.window, default=None)
    if longest is None or longest.window < timing.delta:
        return timing, ""
    delta = (math.floor(longest.window / timing.period) + 1) * float(timing.period)
    grace = timing.grace * delta / timing.delta
    notice = (
        f"Delta is {delta:g} s, not {timing.delta:g} s: the window of {longest.name!r} "
        f"is {longest.window:g} s, and Delta has to be longer"
    )
    return replace(timing, delta=delta, grace=grace), notice


class Monitor:
    """Keeps the samples of every component for a while, and shows them to a policy.

    ``notice`` says what was made otherwise than asked for; it is empty if nothing was.

    >>> monitor = Monitor([Node("posts"), Node("count", most=8)], Timing(20, 10, 20))
    >>> monitor.add(Sample("count", 10.0, 1, received=100, processed=90, pending=10))
    >>> monitor.view(10.0).windows["count"].complete
    False
    >>> monitor.add(Sample("count", 20.0, 1, received=120, processed=100, pending=30))
    >>> monitor.view(20.0).windows["count"].received
    220
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        timing: Timing | None = None,
        keep: float = 1800.0,
        slots: int | None = None,
        machines: int | None = None,
    ) -> None:
        self._nodes = tuple(nodes)
        self._timing, self.notice = stretched(timing or Timing(), self._nodes)
        self._keep = max(keep, self._timing.delta)
        self._slots, self._machines = slots, machines
        self._tracks = {
            node.name: _Track(self._expected, self._timing.period) for node in self._nodes
        }
        self._changes: deque[Change] = deque()

    @property
    def timing(self) -> Timing:
        """Delta, sample period and grace as they are used."""
        return self._timing

    def add(self, *samples: Sample) -> None:
        """Take in samples in the order of time; one not newer than the last is left out."""
        for sample in samples:
            self._tracks[sample.component].add(sample, sample.time - self._keep)

    def changed(self, time: float, decisions: Iterable[Decision]) -> None:
        """Take note of degrees that are in force since then; decisions for no change are none."""
        for made in decisions:
            if made.changes:
                self._changes.append(Change(time, made.component, made.before, made.degree))
        while self._changes and self._changes[0].time < time - self._keep:
            self._changes.popleft()

    def moved(self, time: float, components: Iterable[str]) -> None:
        """Take note of components whose tasks have other places since then; degrees stay."""
        degrees = {name: self._tracks[name].degree for name in components}
        self._changes.extend(Change(time, name, k, k) for name, k in degrees.items())

    def rewired(self, nodes: Iterable[Node]) -> None:
        """Take note that the same components read other ones from now on."""
        self._nodes = tuple(nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The components that are watched."""
        return self._nodes

    def remember(self, samples: Iterable[Sample], changes: Iterable[Change]) -> None:
        """Go on where an earlier monitor ended; components that are gone are left out."""
        self.add(*(sample for sample in samples if sample.component in self._tracks))
        self._changes.extend(change for change in changes if change.component in self._tracks)

    def view(self, now: float, degrees: Mapping[str, int] | None = None) -> View:
        """Show all that is known; without ``degrees`` those of the last samples are in force."""
        known = degrees or {}
        return View(
            now,
            self._nodes,
            {name: known.get(name, track.degree) for name, track in self._tracks.items()},
            {name: track.window(self._begin(now)) for name, track in self._tracks.items()},
            self._timing.delta,
            self._timing.period,
            {name: tuple(track.samples) for name, track in self._tracks.items()},
            tuple(self._changes),
            self._timing.grace,
            self._slots,
            self._machines,
        )

    @property
    def _expected(self) -> int:
        return max(1, round(self._timing.delta / self._timing.period))

    def _begin(self, now: float) -> float:
        # Clocks of real runtimes are early or late by part of a period.
        return now - (self._expected - 0.5) * self._timing.period


class _Track:
    """The samples of one component, and the regression sums of the newest of them."""

    def __init__(self, size: int, period: float) -> None:
        self.samples: deque[Sample] = deque()
        self._size, self._period = size, period
        # Positions are numbers of samples: whole, so that the sums stay exact for ever.
        self._count = 0
        self._sums = Sums()

    @property
    def degree(self) -> int:
        return self.samples[-1].degree if self.samples else 1

    def add(self, sample: Sample, oldest: float) -> None:
        if self.samples and sample.time <= self.samples[-1].time:
            return
        self.samples.append(sample)
        self._count += 1
        self._sums = self._sums.plus(self._count, sample.received)
        if len(self.samples) > self._size:
            left = self.samples[-1 - self._size]
            self._sums = self._sums.minus(self._count - self._size, left.received)
        while len(self.samples) > self._size and self.samples[0].time < oldest:
            self.samples.popleft()

    def window(self, begin: float) -> Window:
        newest = [sample for sample in list(self.samples)[-self._size :] if sample.time >= begin]
        breaks = [at for at, two in enumerate(pairwise(newest), 1) if not self._follows(*two)]
        inside = tuple(newest[breaks[-1] if breaks else 0 :])
        complete = len(inside) == self._size
        return Window(inside, self._size, self._line() if complete else None)

    def _follows(self, one: Sample, next_one: Sample) -> bool:
        """Say whether there is nothing between two samples that is missing, or counted twice."""
        return _LEAST * self._period <= next_one.time - one.time <= _MOST * self._period

    def _line(self) -> Line:
        line = self._sums.line()
        return Line(line.at(self._count - self._size), line.slope)
