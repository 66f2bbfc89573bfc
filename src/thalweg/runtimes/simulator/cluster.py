"""Where the tasks of a simulation run, and what they leave of their cores to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from thalweg.control.scaling.values import Sample, TaskLoad
from thalweg.errors import UsageError, explain
from thalweg.placement.greedy import Strategy, place
from thalweg.placement.values import Demand, Machine, Placement, Task, Traffic
from thalweg.runtimes.simulator.fifo import Floats, shares
from thalweg.runtimes.simulator.outcome import Recorder
from thalweg.runtimes.simulator.stations import Station
from thalweg.workloads.stages import Staged


class World(Protocol):
    """The machines, and how tasks are placed on them."""

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The machines."""

    @property
    def strategy(self) -> Strategy:
        """How tasks are placed."""


class Cluster:
    """Machines with the tasks of all stations on them."""

    def __init__(self, world: World, topology: Staged, stations: Mapping[str, Station]) -> None:
        self._world = world
        self._stations = stations
        self._needs = {stage.name: stage.need for stage in topology}
        self._traffic = tuple(
            Traffic(reads.sender, stage.name, reads.selectivity * reads.size)
            for stage in topology
            for reads in stage.reads
            if reads.sender != topology.source
        )
        cores = [machine.cores for machine in world.machines]
        self._first = np.cumsum([0, *cores])
        self._placement = Placement({})
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
        demand = Demand(degrees, self._needs, self._traffic)
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
        for name, station in self._stations.items():
            record.tasks(name, used[name], station.pending)
            reserved = station.stage.need.cpu
            others = (together[station.units] - used[name]).tolist()
            beside = (threads[station.units] - 1).tolist()
            loads = tuple(
                TaskLoad(own, reserved, count, other)
                for own, count, other in zip(used[name].tolist(), beside, others, strict=True)
            )
            yield station.sample(now, emitted[name], loads)
