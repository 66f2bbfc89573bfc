"""What workers are sent: once per run the program, with each batch its facts."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark import Broadcast

from thalweg.components import BlockBolt, BlockSpout
from thalweg.connectors.frames import Decoder, SparkSource
from thalweg.eventtime import ALWAYS, NEVER, SECOND
from thalweg.hashing import KEY_GROUPS
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.shipping import unpack
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.links import Links
from thalweg.runtimes.spark.planning import Plan
from thalweg.runtimes.spark.side_tables import SentTable
from thalweg.runtimes.spark.tabled import Tabled
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import ComponentMark
from thalweg.statelog.owners import Owners
from thalweg.statelog.runs import RunRef, Runs
from thalweg.topology import Component


@dataclass(frozen=True)
class Program:
    """What does not change while a topology runs."""

    plan: Plan
    location: Location
    settings: Mapping[str, str] = field(default_factory=dict)
    key_groups: int = KEY_GROUPS
    limits: Limits = field(default_factory=Limits)
    #: Components of the state, also those that the topology no longer has.
    marks: Mapping[str, ComponentMark] = field(default_factory=dict)
    #: Name of the driver's host, as its workers know it.
    driver: str = "localhost"

    def owners(self, tabled: Tabled | None) -> Owners:
        """Say whose the rows of the state are."""
        tables = {} if tabled is None else tabled.tables()
        return Owners(self.marks, self.plan.places, self.key_groups, tables)

    def table(self, component: str, tabled: Tabled | None) -> RoutingTable:
        """Give the routing table of a component: which task owns a key."""
        own = None if tabled is None else tabled.tables().get(component)
        return own or self._even[component]

    @cached_property
    def links(self) -> Links:
        """Where keys that occur together are counted."""
        return Links.of(self.plan)

    @cached_property
    def _even(self) -> dict[str, RoutingTable]:
        even = {
            degree: RoutingTable.even(degree, self.key_groups)
            for degree in {c.degree for c in self.plan.topology}
        }
        return {c.name: even[c.degree] for c in self.plan.topology}

    @cached_property
    def opened(self) -> Runs:
        """Runs that this process has opened and verified; remote ones lie in Spark's folder."""
        folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        if self.location.is_local or not folder:
            return Runs()
        return Runs(Path(folder) / "thalweg-runs" / f"{os.getpid()}")


class BesideDriver(BlockBolt):
    """Stands for a sink that runs beside the driver, on its way to workers."""


class AtDriver(BlockSpout):
    """Stands for a spout, which is asked beside the driver, on its way to workers."""

    def __init__(self, decoder: Decoder | None = None) -> None:
        #: What makes fields of the columns of a DataFrame.
        self.decoder = decoder


def for_workers(plan: Plan) -> Plan:
    """Leave out what workers never call, and what may not be fit to travel: locks, generators."""

    def fit(component: Component) -> Component:
        if component.is_spout:
            body = component.body
            decoder = body.decoder if isinstance(body, SparkSource) else None
            return replace(component, body=AtDriver(decoder))
        beside = component.name in plan.beside_driver
        return replace(component, body=BesideDriver()) if beside else component

    topology = replace(plan.topology, components=tuple(map(fit, plan.topology)))
    return replace(plan, topology=topology)


@dataclass(frozen=True)
class Frame:
    """Where the rows of a DataFrame enter, and their Arrow schema."""

    component: str
    schema: bytes


@dataclass(frozen=True)
class Facts:
    """What a batch is: the same for every attempt at it."""

    #: The version of the state that this batch makes.
    version: int
    clock: float
    seed: int
    #: Components whose tick is due.
    ticks: frozenset[str] = frozenset()
    #: Whether all inputs have ended.
    end: bool = False
    #: Whether tuples are to be acknowledged one by one.
    tracked: bool = False
    #: The runs of each place that the batch begins with.
    runs: tuple[tuple[RunRef, ...], ...] = ()
    #: Schemas learnt so far, by "component/stream".
    types: Mapping[str, bytes] = field(default_factory=dict)
    #: The DataFrame that enters, or None where segments do.
    frame: Frame | None = None
    #: Tables in which keys have places of their own, if there are any.
    tabled: Tabled | None = None
    #: The share of the tuples on which keys are counted together; 0 for none.
    sampling: float = 0.0
    #: Hashes of frequent keys whose names people would like to know.
    unnamed: frozenset[int] = frozenset()
    #: Event time at components that have to know it: before this batch, and behind it.
    times: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Before which times, of events and of the clock, no timer of a component is due.
    due: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Versions of the tables that streams are joined with, by join.
    side_tables: Mapping[str, SentTable] = field(default_factory=dict)

    def is_due(self, component: str) -> bool:
        """Say whether timers of a component may be due with this batch."""
        events, clock = self.due.get(component, (ALWAYS, ALWAYS))
        told = ALWAYS - 1 if self.end else self.times.get(component, (NEVER, NEVER))[1]
        return events <= told or clock <= round(self.clock * SECOND)


@dataclass(frozen=True)
class Shipped:
    """A program on its way: workers unpack it once and keep it."""

    digest: str
    packed: Broadcast[bytes]

    def program(self) -> Program:
        """Give the program, unpacked at most once per process."""
        if self.digest not in _programs:
            while len(_programs) >= _PROGRAMS:
                _programs.pop(next(iter(_programs)))
            _programs[self.digest] = unpack(self.packed.value)
        return _programs[self.digest]


def digest(packed: bytes) -> str:
    """Name a packed program."""
    return hashlib.blake2b(packed, digest_size=16).hexdigest()


def spare_collections() -> None:
    """Take the modules of a worker out of the sight of its garbage collector.

    Workers collect all garbage after each task, which takes tens of milliseconds when there are as
    many objects as the modules here have. What is alive when a task begins was just collected
    around; after a few tasks everything is loaded, and later objects are collected as ever.
    """
    global _tasks_begun  # noqa: PLW0603 (of the process, as its garbage collector is)
    _tasks_begun += 1
    if _tasks_begun in _FREEZE_AT:
        gc.freeze()


_FREEZE_AT = frozenset({2, 4, 8, 16})
_tasks_begun = 0

# Topologies that run at the same time in one session share the workers.
_PROGRAMS = 8
_programs: dict[str, Any] = {}
