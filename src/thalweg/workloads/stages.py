"""Topologies described by what their operators cost: values that a simulator runs.

A tuple has a value, a number from 0 on; what a stage spends on it may depend on that value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from thalweg.errors import TopologyError, explain
from thalweg.groupings import Fields, Grouping, LoadAware, NoGrouping, Shuffle
from thalweg.placement.values import Need


@dataclass(frozen=True)
class Reads:
    """A stream from one stage, or from the source, to another."""

    sender: str
    #: Which of the sender's tuples it carries: a part of the range from 0 to 1. Streams with parts
    #: that do not overlap share the tuples; the width of the part is the selectivity.
    portion: tuple[float, float] = (0.0, 1.0)
    #: Bytes of a tuple.
    size: float = 100.0

    @property
    def selectivity(self) -> float:
        """Tuples on this stream per tuple of its sender."""
        return self.portion[1] - self.portion[0]


@dataclass(frozen=True)
class Stage:
    """An operator: what it reads, and what it costs."""

    name: str
    reads: tuple[Reads, ...]
    #: Seconds per tuple; where several are given, the n-th is that of value n.
    seconds: tuple[float, ...]
    #: What a task reserves. While it works it burns that share of a core and waits for the rest.
    need: Need = field(default_factory=lambda: Need(0.2, 256.0))
    #: The degree that somebody who knows the stream would give it, and the highest.
    expert: int = 1
    most: int = 8
    grouping: Grouping = field(default_factory=Shuffle)
    #: What it is worth when there are not units for all; more is better.
    priority: float = 1.0
    #: Seconds of its window: what it sends, it sends when one ends. 0 for as tuples come.
    window: float = 0.0
    #: What a task really uses, where that is not what it reserves.
    uses: Need | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.grouping, Shuffle | NoGrouping | Fields | LoadAware):
            got = type(self.grouping).__name__
            raise TopologyError(self._wrong("grouping", "shuffle, fields or load-aware", got))
        if not self.reads or not self.seconds or min(self.seconds) < 0:
            text = self._wrong("inputs and seconds", "one or more, none below 0", "others")
            raise TopologyError(text)
        if not 1 <= self.expert <= self.most:
            raise TopologyError(self._wrong("degree", f"1 to {self.most}", f"{self.expert}"))
        if self.window < 0:
            raise TopologyError(self._wrong("window", "0 s or more", f"{self.window}"))
        if any(not 0 <= r.portion[0] < r.portion[1] <= 1 for r in self.reads):
            text = self._wrong("portion", "a part of the range from 0 to 1", str(self.reads))
            raise TopologyError(text)

    @property
    def used(self) -> Need:
        """What a task uses."""
        return self.need if self.uses is None else self.uses

    def _wrong(self, subject: str, expected: str, got: str) -> str:
        return explain(f"{subject} of stage {self.name!r}", "", expected, got)

    def cost(self, value: int) -> float:
        """Give the seconds that a value takes."""
        return self.seconds[value] if len(self.seconds) > 1 else self.seconds[0]


@dataclass(frozen=True)
class Staged:
    """A source and stages, every one behind those that it reads."""

    name: str
    stages: tuple[Stage, ...]
    source: str = "source"
    #: How many values tuples have.
    values: int = 1

    def __post_init__(self) -> None:
        known = {self.source}
        for stage in self.stages:
            missing = [reads.sender for reads in stage.reads if reads.sender not in known]
            if missing or stage.name in known or len(stage.seconds) not in (1, self.values):
                where = f"topology {self.name!r}"
                expected = f"a new name, inputs among {sorted(known)}, {self.values} costs or one"
                got = f"inputs {missing}" if missing else f"{len(stage.seconds)} costs"
                raise TopologyError(explain(f"stage {stage.name!r}", where, expected, got))
            known.add(stage.name)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def stage(self, name: str) -> Stage:
        """Find a stage by name."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        names = [stage.name for stage in self.stages]
        raise TopologyError(explain(f"stage {name!r}", f"{self.name!r}", f"one of {names}"))

    def readers(self, name: str) -> list[tuple[Stage, Reads]]:
        """Give who reads a stage, and how."""
        return [(s, reads) for s in self.stages for reads in s.reads if reads.sender == name]

    def reaching(self, name: str) -> float:
        """Give how many tuples a stage receives per tuple of the source."""
        if name == self.source:
            return 1.0
        reads = self.stage(name).reads
        return sum(each.selectivity * self.reaching(each.sender) for each in reads)

    @property
    def minimal(self) -> dict[str, int]:
        """One task for each stage."""
        return dict.fromkeys((stage.name for stage in self.stages), 1)

    @property
    def expert(self) -> dict[str, int]:
        """The degrees that somebody would choose who knows the stream."""
        return {stage.name: stage.expert for stage in self.stages}


@dataclass(frozen=True)
class Law:
    """How often each value comes.

    >>> Law(4).shares, Law(3, skew=1.0).shares[0]
    ((0.25, 0.25, 0.25, 0.25), 0.5454545454545455)
    """

    values: int = 1
    #: Exponent of Zipf's law; value 0 is the most frequent. 0 for all alike.
    skew: float = 0.0
    shares: tuple[float, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = [rank**-self.skew for rank in range(1, self.values + 1)]
        object.__setattr__(self, "shares", tuple(weight / sum(weights) for weight in weights))

    def mean(self, seconds: tuple[float, ...]) -> float:
        """Give the mean of what values cost."""
        if len(seconds) == 1:
            return seconds[0]
        return sum(share * cost for share, cost in zip(self.shares, seconds, strict=True))
