"""The scenarios of the elasticity experiments: topology, stream, machines, and what was published.

``SCENARIOS`` has them by name. Two families: those of AUTOSCALE replay what is late and have 6
machines that work; those of AUTOSCALE+ lose what is late, have 9 machines and start minimal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from thalweg.connectors.profiles import Profile
from thalweg.groupings import LoadAware
from thalweg.placement.values import Machine
from thalweg.workloads import elastic
from thalweg.workloads.elastic import SKEW, VALUES
from thalweg.workloads.stages import Law, Staged
from thalweg.workloads.streams import (
    ERRATIC,
    FIVE_STEP,
    HILLS,
    PROGRESSIVE,
    THREE_STEP,
    Segment,
    stream,
)

#: The document replays for ever; a congested run would then never end. After five replays a
#: congested topology gets six times what it could not do before, and does not recover either.
REPLAYS = 5
#: Tuples are late after 30 s. What has waited for 29 s is given up: a queue that once holds 30 s of
#: work would otherwise make all that follows late, and losses of 5 to 29 % would not be possible.
SKIP = 29.0


@dataclass(frozen=True)
class Scenario:
    """One experiment."""

    name: str
    topology: Staged
    segments: tuple[Segment, ...]
    #: The stages whose capacity with their expert degrees is the unit of the stream's rates.
    critical: tuple[str, ...]
    law: Law = field(default_factory=Law)
    start: Literal["minimal", "expert"] = "minimal"
    #: How often the source emits a tuple again that was late.
    replays: int = 0
    #: Seconds after which nobody begins with a tuple any more; None for never.
    skip: float | None = SKIP
    #: Whether what waits is spread over all tasks when a degree changes.
    spread: bool = True
    machines: int = 9
    #: Seconds of the policies' window.
    delta: float = 90.0
    #: Share of tuples lost that the document reports, by policy.
    published: Mapping[str, float] = field(default_factory=dict)
    #: What else it reports.
    note: str = ""

    @property
    def capacity(self) -> float:
        """Tuples of the source per second that the critical stages can process as the expert says.

        >>> SCENARIOS["linear-min"].capacity, SCENARIOS["star-min"].capacity
        (100.0, 100.0)
        """
        topology, found = self.topology, []
        for name in self.critical:
            stage = topology.stage(name)
            rate = stage.expert / self.law.mean(stage.seconds)
            found.append(rate / topology.reaching(name))
        return min(found)

    @property
    def profile(self) -> Profile:
        """The stream."""
        return stream(self.segments, self.capacity)

    @property
    def cluster(self) -> tuple[Machine, ...]:
        """The machines that work."""
        return tuple(Machine(f"m{number}") for number in range(self.machines))

    @property
    def degrees(self) -> dict[str, int]:
        """The degrees at the start."""
        return self.topology.minimal if self.start == "minimal" else self.topology.expert


def _of_autoscale(topology: Staged, critical: tuple[str, ...], saved: str) -> list[Scenario]:
    """Make the scenarios of AUTOSCALE: both starts with 3 steps, and the minimal one with 5."""
    common = Scenario(
        topology.name,
        topology,
        THREE_STEP,
        critical,
        replays=REPLAYS,
        skip=None,
        machines=6,
        delta=60.0,
    )
    congests = "static congests, autoscale does not"
    return [
        replace(common, name=f"{topology.name}-min", note=congests),
        replace(common, name=f"{topology.name}-expert", start="expert", note=saved),
        replace(common, name=f"{topology.name}-5-step", segments=FIVE_STEP, note=congests),
    ]


def _advertising() -> list[Scenario]:
    """Make those of the advertising topology: one task each suffices, the expert takes more."""
    least = Scenario(
        "advertising-min",
        elastic.advertising(),
        THREE_STEP,
        ("deserialise",),
        replays=REPLAYS,
        skip=None,
        machines=6,
        delta=60.0,
        note="nothing congests; autoscale takes 12 % more than needed",
    )
    expert = replace(least, name="advertising-expert", start="expert", note="autoscale saves 50 %")
    return [least, expert]


def _of_autoscale_plus(name: str, topology: Staged, published: _Both) -> list[Scenario]:
    """Make the scenarios of AUTOSCALE+: a progressive and an erratic stream."""
    critical = (max(topology, key=lambda stage: stage.expert).name,)
    skew = 0.0 if topology.name == "simple insensitive" else SKEW
    both = zip(("progressive", "erratic"), (PROGRESSIVE, ERRATIC), published, strict=True)
    return [
        Scenario(
            f"{name}-{kind}", topology, segments, critical, Law(VALUES, skew), published=losses
        )
        for kind, segments, losses in both
    ]


_Both = tuple[Mapping[str, float], Mapping[str, float]]
#: Shares lost, by policy; the last two were measured with OSG under all policies.
_INSENSITIVE: _Both = (
    {"autoscale+": 0.07, "learning": 0.17, "incremental": 0.29},
    {"autoscale+": 0.18, "learning": 0.006, "incremental": 0.19},
)
_SENSITIVE: _Both = (
    {"autoscale+": 0.20, "learning": 0.19, "incremental": 0.17},
    {"autoscale+": 0.048, "incremental": 0.20},
)
_COMPLEX: _Both = (
    {"autoscale+": 0.10, "learning": 0.27, "incremental": 0.18},
    {"autoscale+": 0.13, "learning": 0.26, "incremental": 0.19},
)


def _all() -> list[Scenario]:
    osg = LoadAware()
    hills = Scenario(
        "consistency",
        elastic.consistency(),
        HILLS,
        ("slow_mid",),
        skip=None,
        delta=60.0,
        note="GAL has the lowest latency and almost no late tuples",
    )
    return [
        *_of_autoscale(elastic.linear(), ("sink",), "autoscale saves 37.5 %"),
        *_of_autoscale(elastic.diamond(), ("sink",), "autoscale saves 35 %"),
        *_of_autoscale(elastic.star(), ("sink1", "sink2", "sink3"), "autoscale saves 24.6 %"),
        *_advertising(),
        hills,
        *_of_autoscale_plus("insensitive", elastic.simple(False), _INSENSITIVE),
        *_of_autoscale_plus("sensitive", elastic.simple(True, osg), _SENSITIVE),
        *_of_autoscale_plus("complex", elastic.complex_sensitive(osg), _COMPLEX),
    ]


SCENARIOS: Mapping[str, Scenario] = MappingProxyType({each.name: each for each in _all()})


def balancing(topology: Staged, skew: float) -> Scenario:
    """Make a scenario of the document's chapter 6: what groupings do for the complex topology.

    There, what waits stays at its task when others join; that is what groupings have to even out.
    """
    name = f"balancing-{'zipf' if skew else 'uniform'}"
    law = Law(VALUES, skew)
    return Scenario(name, topology, PROGRESSIVE, ("city_normaliser",), law, spread=False)
