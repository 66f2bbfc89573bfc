"""Staged topologies as ordinary ones: operators that wait, or burn CPU, as long as stages say.

What a tuple's value is, and which way it goes, depends on its number alone; so all runtimes see the
same tuples.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.builder import TopologyBuilder
from thalweg.components import Bolt, Kind, Spout
from thalweg.connectors.profiles import Profile
from thalweg.contexts import TaskContext
from thalweg.groupings import Fields
from thalweg.topology import Topology
from thalweg.workloads.stages import Law, Stage, Staged

_FIELDS = {"number": int, "value": int}
_MASK, _GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Pace:
    """How a staged topology is brought to life."""

    #: Divides the seconds of all stages; 20 lets a minute pass in three seconds. The profile has to
    #: be as fast.
    speed: float = 1.0
    #: Whether operators burn CPU instead of waiting.
    burn: bool = False
    #: Stages whose tasks are in processes of their own: threads burn no more than a core together.
    apart: frozenset[str] = frozenset()


def working(
    topology: Staged,
    profile: Profile,
    law: Law | None = None,
    degrees: Mapping[str, int] | None = None,
    pace: Pace | None = None,
) -> Topology:
    """Make an ordinary topology; without ``degrees``, one task for each stage.

    >>> from thalweg.connectors.profiles import constant
    >>> from thalweg.workloads.elastic import star
    >>> [component.name for component in working(star(), constant(5, "1 s"))]
    ['source', 'intermediate', 'sink1', 'sink2', 'sink3']
    """
    builder = TopologyBuilder(topology.name.replace(" ", "-"))
    source = Emit(_Ways(topology, topology.source), profile, law or Law(topology.values))
    builder.add_spout(topology.source, source)
    for stage in topology:
        degree = {**topology.minimal, **(degrees or {})}[stage.name]
        kind = Counted if isinstance(stage.grouping, Fields) else Work
        body = kind(_Ways(topology, stage.name), stage, pace or Pace())
        apart: Any = {"isolation": "process"} if pace and stage.name in pace.apart else {}
        reads = builder.add_bolt(stage.name, body, degree=degree, **apart)
        for each in stage.reads:
            reads.grouping(each.sender, stage.grouping, stage.name)
    return builder.build()


class _Ways:
    """Which streams a tuple takes when it leaves a stage; they are named after their readers."""

    def __init__(self, topology: Staged, name: str) -> None:
        readers = topology.readers(name)
        self._portions = [(stage.name, *reads.portion) for stage, reads in readers]
        # A draw of its own, or what passes one filter would pass the next one too.
        self._salt = [topology.source, *(stage.name for stage in topology)].index(name) + 1

    @property
    def streams(self) -> dict[str, dict[str, type[int]]]:
        """The streams, with their fields."""
        return {name: _FIELDS for name, _, _ in self._portions}

    def of(self, number: int) -> list[str]:
        """Give the streams of a tuple."""
        draw = _draw(number, self._salt)
        return [name for name, low, high in self._portions if low <= draw < high]


class Emit(Spout):
    """The source: tuples when a profile says that they are due."""

    slowable = False

    def __init__(self, ways: _Ways, profile: Profile, law: Law) -> None:
        self._ways = ways
        self._profile = profile
        self._law = np.cumsum(law.shares)
        self.streams = ways.streams

    def prepare(self, context: TaskContext) -> None:
        """Begin with the first tuple of this task."""
        self._next, self._step = context.task, context.degree
        self._begin: float | None = None

    def next_tuple(self) -> None:
        """Emit what is due by now."""
        now = self.context.clock.now()
        self._begin = now if self._begin is None else self._begin
        for number in range(self._next, self._profile.count_by(now - self._begin), self._step):
            value = int(np.searchsorted(self._law, _draw(number, 0), "right"))
            for stream in self._ways.of(number):
                self.emit(number, min(value, len(self._law) - 1), stream=stream)
            self._next = number + self._step
        if self._next >= self._profile.total:
            self.finish()


class Work(Bolt):
    """A stage: spends its time on a tuple, and sends it on."""

    def __init__(self, ways: _Ways, stage: Stage, pace: Pace) -> None:
        self._ways = ways
        self._stage = stage
        self._pace = pace
        self.streams = ways.streams

    def process(self, t: Any) -> None:
        """Work on one tuple."""
        seconds = self._stage.cost(t.value) / self._pace.speed
        if self._pace.burn:
            _burn(seconds)
        else:
            self.context.clock.sleep(seconds)
        for stream in self._ways.of(t.number):
            self.emit(t.number, t.value, stream=stream)


class Counted(Work):
    """A stage whose tuples are grouped by fields: it also counts each value, in its state."""

    kind = Kind.KEYED

    def __init__(self, ways: _Ways, stage: Stage, pace: Pace) -> None:
        super().__init__(ways, stage, pace)
        self.table = stage.name

    def process(self, t: Any) -> None:
        """Count, and work on one tuple."""
        self.state.put(t.value, self.state.get(t.value, 0) + 1)
        super().process(t)


def _burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def _draw(number: int, salt: int) -> float:
    """Give a number from 0 to 1 (the end of splitmix64)."""
    mixed = (number + 1) * _GOLDEN + (salt << 40) & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return ((mixed ^ mixed >> 31) >> 11) / 2.0**53
