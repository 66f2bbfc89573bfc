"""What every runtime gives, what every policy reads, and what a policy decides.

A runtime gives one :class:`Sample` per component and sample period. Whoever watches turns them into
a :class:`View`; a :class:`Policy` makes :class:`Decision` values of it and touches nothing. Times
are seconds of the runtime's clock, counts are tuples of one sample period, CPU is in cores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from thalweg.control.scaling.forecasting import Line, linear


@dataclass(frozen=True)
class TaskLoad:
    """The CPU of one task in a sample period; 1.0 is one whole core."""

    used: float
    #: What the task was promised; 1.0 where nobody reserves.
    reserved: float = 1.0
    #: Threads beside it on its core, and what they used together.
    others: int = 0
    others_used: float = 0.0
    #: Bytes of memory; 0 where it is not known.
    memory: float = 0.0
    #: Cores that all tasks of its core would use if they could; 0 where it is not known.
    asked: float = 0.0
    #: Part of the cores of its machine that all tasks there use; None where it is not known.
    machine: float | None = None


@dataclass(frozen=True)
class Sample:
    """What one component did in the sample period that ended at ``time``, over all its tasks."""

    component: str
    time: float
    #: Tasks in force.
    degree: int
    #: Tuples that arrived in this period, and those that were processed in it.
    received: int
    processed: int
    #: Tuples sent in this period, by outgoing stream.
    emitted: Mapping[str, int] = field(default_factory=dict)
    #: Tuples in its queues at the end of the period (for a source: not sent yet). Those that an
    #: operator has taken in and holds for its window are not pending.
    pending: int = 0
    #: Seconds of processing per tuple without queueing: the mean over tasks, and the slowest task.
    #: None when nothing was processed.
    latency_mean: float | None = None
    latency_max: float | None = None
    #: Seconds that the tasks worked, together.
    busy: float = 0.0
    #: CPU of each task; empty where it is not known.
    tasks: tuple[TaskLoad, ...] = ()
    #: Tuples given up in this period: late, or dropped from a full queue.
    lost: int = 0
    #: How full the fullest link is that each outgoing stream takes; 1 where more is sent than it
    #: can carry. Streams that no link could limit are left out.
    links: Mapping[str, float] = field(default_factory=dict)
    #: Share of the period for which a source that has more to send was held back by full queues.
    held: float = 0.0


@dataclass(frozen=True)
class Stream:
    """An outgoing stream of a component."""

    component: str
    name: str


@dataclass(frozen=True)
class Node:
    """A component as policies see it."""

    name: str
    #: The streams that it reads; none for a source.
    inputs: tuple[Stream, ...] = ()
    #: Bounds of the degree; equal where it is fixed.
    least: int = 1
    most: int = 1
    #: Cores that one task reserves: the first guess of what it needs.
    reserved: float = 1.0
    #: What it is worth when resources are scarce; more is better.
    priority: float = 1.0
    #: Seconds of the longest window of the operator; its tuples wait there without being pending.
    window: float = 0.0
    #: Seconds from one burst of what it sends to the next; None for its window.
    bursts: float | None = None

    @property
    def is_source(self) -> bool:
        """Whether it reads nothing; policies leave sources alone."""
        return not self.inputs

    @property
    def parents(self) -> tuple[str, ...]:
        """The components that it reads, each once."""
        return tuple(dict.fromkeys(stream.component for stream in self.inputs))

    def bounded(self, degree: float) -> int:
        """Bring a degree within the bounds; a part of a task is a task.

        >>> node = Node("count", least=2, most=8)
        >>> node.bounded(3.1), node.bounded(0), node.bounded(float("inf"))
        (4, 2, 8)
        """
        # A quotient that is an integer but for rounding is that integer.
        return max(math.ceil(min(degree, self.most) - 1e-9), self.least)


@dataclass(frozen=True)
class Change:
    """A degree that was changed: when, and from what to what."""

    time: float
    component: str
    before: int
    after: int


@dataclass(frozen=True)
class Window:
    """The samples of a component within the last Delta seconds, oldest first."""

    samples: tuple[Sample, ...]
    #: How many there are when none is missing.
    expected: int
    #: The line through the tuples that arrived, where it was kept up from sample to sample.
    fitted: Line | None = field(default=None, compare=False)

    @property
    def complete(self) -> bool:
        """Whether no sample is missing; an incomplete window is no ground for a decision."""
        return 0 < self.expected <= len(self.samples)

    @property
    def last(self) -> Sample:
        """The newest sample."""
        return self.samples[-1]

    @cached_property
    def trend(self) -> Line:
        """The line through the tuples that arrived; the oldest sample is at 1."""
        return self.fitted or linear([sample.received for sample in self.samples])

    @cached_property
    def received(self) -> int:
        """Tuples that arrived."""
        return sum(sample.received for sample in self.samples)

    @cached_property
    def processed(self) -> int:
        """Tuples that were processed."""
        return sum(sample.processed for sample in self.samples)

    @property
    def pending(self) -> int:
        """Tuples that wait now."""
        return self.last.pending

    @cached_property
    def latency_mean(self) -> float | None:
        """Seconds of processing per tuple, weighted by tuples; None when nothing was processed."""
        known = [(s.latency_mean, s.processed) for s in self.samples if s.latency_mean is not None]
        weight = sum(count for _, count in known)
        return sum(latency * count for latency, count in known) / weight if weight else None

    @cached_property
    def latency_max(self) -> float | None:
        """The same for the slowest task of each sample."""
        known = [(s.latency_max, s.processed) for s in self.samples if s.latency_max is not None]
        weight = sum(count for _, count in known)
        return sum(latency * count for latency, count in known) / weight if weight else None

    def emitted(self, stream: str) -> int:
        """Tuples sent to a stream."""
        return sum(sample.emitted.get(stream, 0) for sample in self.samples)


@dataclass(frozen=True)
class View:
    """All that a policy is given."""

    now: float
    #: Components, every one behind those that it reads.
    nodes: tuple[Node, ...]
    #: Degrees in force, of every component.
    degrees: Mapping[str, int]
    #: The last Delta seconds of each component.
    windows: Mapping[str, Window]
    #: Seconds of a window (Delta), and of one sample period.
    delta: float
    period: float
    #: The samples of each component as far back as they are kept, oldest first, gaps and all.
    history: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    #: Degrees that were changed, oldest first.
    changes: tuple[Change, ...] = ()
    #: Seconds after a reconfiguration in which samples say little.
    grace: float = 0.0
    #: Tasks that all components may have together, and machines to run them; None for no limit.
    slots: int | None = None
    machines: int | None = None

    @property
    def changed(self) -> float | None:
        """When a degree was last changed; None if never."""
        return self.changes[-1].time if self.changes else None

    @property
    def in_grace(self) -> bool:
        """Whether the last reconfiguration is so recent that nothing should be decided."""
        return self.changed is not None and self.now < self.changed + self.grace

    def node(self, name: str) -> Node:
        """Find a component."""
        return self._by_name[name]

    def children(self, name: str) -> tuple[Node, ...]:
        """Find the components that read this one, in topological order."""
        return tuple(node for node in self.nodes if name in node.parents)

    def streams(self, name: str) -> tuple[Stream, ...]:
        """Find the outgoing streams of a component that somebody reads."""
        read = (stream for node in self.nodes for stream in node.inputs)
        return tuple(dict.fromkeys(stream for stream in read if stream.component == name))

    @property
    def scalable(self) -> tuple[Node, ...]:
        """The components that a policy decides about: all but the sources."""
        return tuple(node for node in self.nodes if not node.is_source)

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}


@dataclass(frozen=True)
class Decision:
    """The degree that a component should have, and why. It may be the one that it has."""

    component: str
    degree: int
    #: The degree in force when it was decided.
    before: int
    reason: str
    #: What the reason stands on, by name.
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Whether anything is to be done."""
        return self.degree != self.before


@dataclass(frozen=True)
class Timing:
    """When a policy looks, and at how much, in seconds."""

    #: Delta: how far back a window reaches, and how far ahead a forecast.
    delta: float = 60.0
    #: Between two samples.
    period: float = 10.0
    #: After a reconfiguration, until something is decided again.
    grace: float = 60.0


#: What the documents' first experiments used.
ONE_MINUTE = Timing()


def amount(value: float) -> str:
    """Write a rate, seconds or a number of tuples for people who read a reason.

    >>> [amount(value) for value in (12_324_997.4, 433_123.0, 99.96, 12.34, 2.0, 0.00001, 0.0)]
    ['12,324,997', '433,123', '100', '12.3', '2', '0', '0']
    """
    if abs(value) >= 100 or not math.isfinite(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else "0"


class Policy(Protocol):
    """Decides degrees. The same view always gives the same decisions; nothing is remembered."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def timing(self) -> Timing:
        """When it wants to be asked, and for which windows."""

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Give one decision for every component but the sources, in topological order."""
