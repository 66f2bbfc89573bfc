"""Where the tasks of a simulation run, and what they leave of their cores to each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from thalweg.control.assigning import Triggers, Trouble
from thalweg.control.scaling.needs import learnt_cores, learnt_memory
from thalweg.control.scaling.values import Sample, TaskLoad
from thalweg.errors import UsageError, explain
from thalweg.placement.greedy import Strategy, place
from thalweg.placement.relocating import emptied, moved, nearer, relieved
from thalweg.placement.values import Demand, Machine, Need, Placement, Task, Traffic, Unit
from thalweg.runtimes.simulator.fifo import Floats, shares
from thalweg.runtimes.simulator.outcome import Recorder
from thalweg.runtimes.simulator.stations import Station
from thalweg.workloads.stages import Staged

#: Bytes of a megabyte, as machines have them.
_MEGABYTE = 1e6
#: Samples by which it is learnt what a task needs.
_SAMPLES = 180


class World(Protocol):
    """The machines, and how tasks are placed on them."""

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The machines."""

    @property
    def strategy(self) -> Strategy:
        """How tasks are placed."""

    @property
    def learns(self) -> bool:
        """Whether tasks are placed by what they were seen to use."""

    @property
    def assigning(self) -> Triggers:
        """When tasks move."""


def traffic_of(topology: Staged) -> tuple[Traffic, ...]:
    """Give the bytes from stage to stage per tuple of the source, which is on no machine.

    >>> from thalweg.workloads.stages import Reads, Stage
    >>> few, big = Reads("a", (0.0, 0.1)), Reads("b", size=500.0)
    >>> stages = Stage("a", (Reads("source"),), (0.1,)), Stage("b", (few,), (0.1,))
    >>> topology = Staged("filter", (*stages, Stage("c", (big,), (0.1,))))
    >>> [(each.sender, each.receiver, each.rate) for each in traffic_of(topology)]
    [('a', 'b', 10.0), ('b', 'c', 50.0)]
    """
    return tuple(
        Traffic(
            reads.sender,
            stage.name,
            topology.reaching(reads.sender) * reads.selectivity * reads.size,
        )
        for stage in topology
        for reads in stage.reads
        if reads.sender != topology.source
    )


class Cluster:
    """Machines with the tasks of all stations on them."""

    def __init__(self, world: World, topology: Staged, stations: Mapping[str, Station]) -> None:
        self._world = world
        self._stations = stations
        self._needs = {stage.name: stage.need for stage in topology}
        self._priorities = {stage.name: stage.priority for stage in topology}
        self._traffic = traffic_of(topology)
        #: The newest samples of each stage, where tasks are placed by them.
        self._seen: dict[str, deque[Sample]] = {}
        cores = [machine.cores for machine in world.machines]
        self._first = np.cumsum([0, *cores])
        self._placement = Placement({})
        #: Part of the cores of each machine that was used in the last period.
        self._used: Floats = np.zeros(len(cores))
        degrees = {name: station.degree for name, station in stations.items()}
        granted, reasons = self.place(degrees)
        if granted != degrees:
            text = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
            raise UsageError(explain("degrees at the start", "", "tasks that fit", text))
        self.assign()

    @property
    def busy_machines(self) -> int:
        """Machines with a task."""
        return self._placement.machines

    def place(self, degrees: Mapping[str, int]) -> tuple[dict[str, int], dict[str, str]]:
        """Find units for tasks; gives the degrees for which there are some, and why not more."""
        demand = self._demand(degrees)
        kept = {
            task: unit
            for task, unit in self._placement.units.items()
            if task.index < degrees[task.component]
        }
        self._placement = place(demand, self._world.machines, self._world.strategy, kept)
        granted = dict(degrees)
        for task in self._placement.refused:
            granted[task.component] -= 1
        return granted, {t.component: why for t, why in self._placement.refused.items()}

    def _demand(self, degrees: Mapping[str, int]) -> Demand:
        needs = {name: self._need(name) for name in self._needs}
        return Demand(degrees, needs, self._traffic, self._priorities)

    def _need(self, name: str) -> Need:
        """Give what a task needs: what is declared, or has been learnt."""
        declared, seen = self._needs[name], self._seen.get(name, ())
        if not seen:
            return declared
        memory = learnt_memory(seen, declared.memory * _MEGABYTE) / _MEGABYTE
        return Need(learnt_cores(seen, declared.cpu), memory)

    def move(self, found: Trouble) -> Mapping[Task, Unit]:
        """Find other units for tasks: together, on cores that have room, or on fewer machines."""
        degrees = {name: station.degree for name, station in self._stations.items()}
        demand, now = self._demand(degrees), self._placement
        machines, strategy = self._world.machines, self._world.strategy
        if found.links:
            talking = {name for each in found.links for name in (each.component, each.name)}
            if units := moved(now, nearer(now, demand, machines, talking)):
                return units
        if found.over and (units := moved(now, relieved(now, demand, machines, strategy))):
            return units
        if not found.under:
            return {}
        idle = np.flatnonzero(self._used < self._world.assigning.under).tolist()
        least_first = sorted(idle, key=lambda machine: float(self._used[machine]))
        return moved(now, emptied(now, demand, machines, strategy, least_first))

    def moved(self, units: Mapping[Task, Unit]) -> None:
        """Give tasks other units."""
        self._placement = Placement({**self._placement.units, **units})

    def assign(self) -> None:
        """Let the stations know the units of their tasks."""
        for name, station in self._stations.items():
            units = [self._placement.units[Task(name, i)] for i in range(station.degree)]
            station.machines = np.array([unit.machine for unit in units], np.int64)
            cores = np.array([unit.core for unit in units], np.int64)
            station.units = self._first[station.machines] + cores

    def shares(self) -> dict[str, Floats]:
        """Give the share of its core that each task can have in the next period."""
        stations = self._stations.values()
        demand = np.concatenate([station.demand for station in stations])
        units = np.concatenate([station.units for station in stations])
        found = shares(demand, units, int(self._first[-1]))
        ends = np.cumsum([station.degree for station in stations])
        return dict(zip(self._stations, np.split(found, ends[:-1]), strict=True))

    def samples(
        self, now: float, period: float, emitted: Mapping[str, dict[str, int]], record: Recorder
    ) -> Iterator[Sample]:
        """Say what each stage did in the period that ends now, its tasks' CPU included."""
        used = {name: station.measure(period) for name, station in self._stations.items()}
        units = np.concatenate([station.units for station in self._stations.values()])
        number = int(self._first[-1])
        together = np.bincount(units, np.concatenate(list(used.values())), number)
        threads = np.bincount(units, minlength=number)
        wanted = np.concatenate([station.demand for station in self._stations.values()])
        asked = np.bincount(units, wanted, number)
        self._used = np.add.reduceat(together, self._first[:-1]) / np.diff(self._first)
        for name, station in self._stations.items():
            record.tasks(name, used[name], station.pending)
            reserved = station.stage.need.cpu
            others = (together[station.units] - used[name]).tolist()
            beside = (threads[station.units] - 1).tolist()
            memory = station.stage.used.memory * _MEGABYTE
            where = asked[station.units].tolist(), self._used[station.machines].tolist()
            loads = tuple(
                TaskLoad(own, reserved, count, other, memory, asked=core, machine=machine)
                for own, count, other, core, machine in zip(
                    used[name].tolist(), beside, others, *where, strict=True
                )
            )
            sample = station.sample(now, emitted[name], loads)
            if self._world.learns:
                self._seen.setdefault(name, deque(maxlen=_SAMPLES)).append(sample)
            yield sample
