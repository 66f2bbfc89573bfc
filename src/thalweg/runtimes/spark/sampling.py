"""Samples of a run on Spark: what batches tell, as if it had been looked at once per period.

Counts are known when a batch ends; between two batches they are taken to grow evenly. So a batch
may be longer or shorter than a period. Nothing is known of the time of a batch that failed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Node, Sample, Stream
from thalweg.metrics import Counter
from thalweg.runtimes.spark.notes import Note
from thalweg.runtimes.spark.planning import with_degrees
from thalweg.topology import Component, Topology


@dataclass(frozen=True)
class Mark:
    """What a component has done so far."""

    arrived: float = 0.0
    processed: float = 0.0
    #: Seconds of work of all places.
    busy: float = 0.0
    #: Tuples sent, by stream.
    sent: Mapping[str, float] = field(default_factory=dict)
    #: Tuples that wait now.
    waiting: float = 0.0

    def towards(self, later: Mark, part: float) -> Mark:
        """Give what was done when a part of the time to a later mark had passed."""
        sent = {name: _between(self.sent.get(name, 0.0), n, part) for name, n in later.sent.items()}
        return Mark(
            _between(self.arrived, later.arrived, part),
            _between(self.processed, later.processed, part),
            _between(self.busy, later.busy, part),
            sent,
            _between(self.waiting, later.waiting, part),
        )


Marks = Mapping[str, Mark]


class Sampling:
    """Makes samples of marks."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._last: tuple[float, Marks] | None = None
        #: What had been done when the last sample was taken.
        self._sampled: tuple[float, Marks] | None = None

    @property
    def due(self) -> float:
        """When the next sample can be taken."""
        return -math.inf if self._sampled is None else self._sampled[0] + self._period

    def take(self, now: float, marks: Marks, degrees: Mapping[str, int]) -> list[Sample]:
        """Give the samples of the periods that have ended since the last call."""
        if self._last is None or self._sampled is None:
            self._last = self._sampled = now, marks
            return []
        (begin, before), found = self._last, []
        if now <= begin:
            return []
        while (due := self.due) <= now:
            part = (due - begin) / (now - begin)
            then = {name: before[name].towards(mark, part) for name, mark in marks.items()}
            found += [
                _sample(name, due, degrees[name], self._sampled[1][name], mark)
                for name, mark in then.items()
            ]
            self._sampled = due, then
        self._last = now, marks
        return found

    def skip(self) -> None:
        """Leave a gap: what was done since the last call is not known well."""
        self._last = self._sampled = None


@dataclass(frozen=True)
class Sources:
    """Where the tuples of spouts beside the driver are."""

    #: Logged so far, by spout and stream.
    sent: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: Not logged yet, and logged but in no batch yet, by spout.
    held: Mapping[str, int] = field(default_factory=dict)
    queued: Mapping[str, int] = field(default_factory=dict)


class Tallies:
    """Adds up what batches tell of components."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._received = dict.fromkeys((c.name for c in topology), 0)
        self._busy = dict.fromkeys((c.name for c in topology), 0.0)
        self._charged = 0.0
        self._sent: dict[Stream, int] = {}

    def add(self, notes: Iterable[Note], charge: float) -> None:
        """Take in the notes of a batch, and the seconds of places that it used up."""
        self._charged += charge
        for counts in (counts for note in notes for counts in note.counts):
            self._received[counts.component] += sum(counts.received.values())
            self._busy[counts.component] += counts.busy
            for name, tuples in counts.sent.items():
                stream = Stream(counts.component, name)
                self._sent[stream] = self._sent.get(stream, 0) + tuples

    def marks(self, sources: Sources, beside: Iterable[Counter] = ()) -> dict[str, Mark]:
        """Say what has been done so far; ``beside`` has the counters of sinks at the driver."""
        sent = {**self._sent, **{Stream(*ends): n for ends, n in sources.sent.items()}}
        held = _shared_out(self._topology, sent, sources.held)
        queued = _shared_out(self._topology, sent, sources.queued)
        come = {stream: sent.get(stream, 0) + held.get(stream, 0.0) for stream in {*sent, *held}}
        waits = {stream: held.get(stream, 0.0) + n for stream, n in queued.items()}
        sinks = {counter.component: counter for counter in beside}
        return {
            component.name: self._mark(component, come, held | waits, sinks.get(component.name))
            for component in self._topology
        }

    def _mark(
        self,
        component: Component,
        come: Mapping[Stream, float],
        waits: Mapping[Stream, float],
        sink: Counter | None,
    ) -> Mark:
        name = component.name
        own = {stream.name: n for stream, n in come.items() if stream.component == name}
        if component.is_spout:
            return Mark(sum(own.values()), sum(own.values()), 0.0, own)
        read = {Stream(each.component, each.stream) for each in component.inputs}
        entry = [self._topology.component(stream.component).is_spout for stream in read]
        waiting = sum(waits.get(stream, 0.0) for stream in read)
        done = self._received[name] + (sink.received if sink else 0)
        arrived = sum(come.get(stream, 0.0) for stream in read) if all(entry) else done + waiting
        busy = self._busy[name] + (sink.busy if sink else 0.0)
        # All that follows from the tuples of sources is done at the same places.
        charged = self._charged if any(entry) and sink is None else busy
        return Mark(arrived, done, charged, own, waiting)


def nodes_of(topology: Topology, places: int, most: int, how: Scaling) -> list[Node]:
    """Describe a topology to policies; what does not follow the places has equal bounds."""
    follows, found = followers(topology), []
    for component in with_degrees(topology, places):
        inputs = tuple(Stream(each.component, each.stream) for each in component.inputs)
        name, degree = component.name, component.degree
        bounds = (1, most) if name in follows else (degree, degree)
        node = Node(name, inputs, *bounds, priority=component.options.priority)
        found.append(how.windowed(node, component.window, component.bursts))
    return found


def followers(topology: Topology) -> frozenset[str]:
    """Name the components that have one task at each place, however many there are."""
    two, three = with_degrees(topology, 2), with_degrees(topology, 3)
    pairs = zip(two, three, strict=True)
    return frozenset(c.name for c, other in pairs if c.degree != other.degree)


def critical(notes: Iterable[Note]) -> float:
    """Add up the seconds that components worked at the busiest place of each stage."""
    worst: dict[int, float] = {}
    for note in notes:
        busy = sum(counts.busy for counts in note.counts)
        worst[note.stage] = max(worst.get(note.stage, 0.0), busy)
    return sum(worst.values())


def entering(notes: Iterable[Note]) -> float:
    """Add up the seconds that components worked where sources are read."""
    return sum(counts.busy for note in notes if not note.stage for counts in note.counts)


def _shared_out(
    topology: Topology, sent: Mapping[Stream, int], rows: Mapping[str, int]
) -> dict[Stream, float]:
    """Share out rows of sources among their streams, as they have sent so far."""
    found = {}
    for name, number in rows.items():
        streams = [Stream(name, stream) for stream in topology.component(name).outputs]
        parts = [sent.get(stream, 0) for stream in streams]
        total = sum(parts)
        for stream, part in zip(streams, parts, strict=True):
            found[stream] = number * part / total if total else number / len(streams)
    return found


def _between(before: float, after: float, part: float) -> float:
    return before + (after - before) * part


def _sample(name: str, time: float, degree: int, before: Mark, after: Mark) -> Sample:
    processed = round(after.processed) - round(before.processed)
    busy = after.busy - before.busy
    latency = busy / processed if processed else None
    return Sample(
        name,
        time,
        degree,
        max(0, round(after.arrived) - round(before.arrived)),
        processed,
        {s: max(0, round(n) - round(before.sent.get(s, 0.0))) for s, n in after.sent.items()},
        round(after.waiting),
        latency,
        latency,
        busy,
    )
