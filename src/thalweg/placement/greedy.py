"""Placing tasks one by one, each on the free unit with the lowest score.

Three scores: *equal* fills machines in turn; *resource-aware* takes the unit whose free CPU and
memory fit best, near the others (Peng et al., R-Storm, Middleware 2015); *traffic-aware* takes the
machine that already has most of what the task talks to (Xu et al., T-Storm, ICDCS 2014).

At most one task of a component runs on a unit, and memory is never exceeded. CPU is exceeded only
where no unit has enough left. Tasks that have a unit already keep it.

>>> two = [Machine("m0"), Machine("m1")]
>>> demand = Demand({"source": 1, "count": 2}, {"source": Need(0.2), "count": Need(0.8)})
>>> place(demand, two, "equal").machines, place(demand, two, "resource").machines
(2, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from thalweg.errors import UsageError, explain
from thalweg.placement.values import Demand, Machine, Need, Placement, Task, Unit

Strategy = Literal["equal", "resource", "traffic"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

Floats = npt.NDArray[np.float64]
Score = Callable[["_Room", Task, Need], Floats]

#: Free CPU below this is a rounding error.
_NONE = 1e-9


def place(
    demand: Demand,
    machines: Sequence[Machine],
    strategy: Strategy = "resource",
    kept: Mapping[Task, Unit] | None = None,
    closed: Collection[int] = (),
) -> Placement:
    """Give every task a unit, or say why it has none; ``kept`` are those that tasks have now.

    Machines that are ``closed`` take no more tasks.
    """
    if strategy not in STRATEGIES:
        raise UsageError(explain("placement", "", f"one of {STRATEGIES}", repr(strategy)))
    room, score = _Room(machines, demand, closed), _SCORES[strategy]
    refused: dict[Task, str] = {}
    waiting = []
    for task in demand.tasks:
        unit = (kept or {}).get(task)
        if unit is None:
            waiting.append(task)
        else:
            room.take(task, room.row(unit))
    if strategy == "traffic":
        waiting = _ordered(waiting, demand)
    # The most valuable come first, as long as there is room.
    for task in sorted(waiting, key=lambda task: -demand.priorities.get(task.component, 1.0)):
        free = room.free_for(task)
        if not free.any():
            refused[task] = room.why_not(task)
            continue
        scores = np.where(free, score(room, task, demand.needs[task.component]), np.inf)
        room.take(task, int(scores.argmin()))
    return Placement(dict(room.placed), refused)


def _ordered(tasks: list[Task], demand: Demand) -> list[Task]:
    """Put the tasks of the heaviest streams first."""
    weight = dict.fromkeys(demand.degrees, 0.0)
    for stream in demand.traffic:
        for name in (stream.sender, stream.receiver):
            weight[name] = max(weight[name], stream.rate / demand.degrees[name])
    return sorted(tasks, key=lambda task: -weight[task.component])


class _Room:
    """What is left on each unit while tasks are placed; rows of arrays are units."""

    def __init__(
        self, machines: Sequence[Machine], demand: Demand, closed: Collection[int]
    ) -> None:
        self.demand = demand
        self.units = [
            Unit(number, core) for number, machine in enumerate(machines)
            for core in range(machine.cores)
        ]  # fmt: skip
        if not self.units:
            raise UsageError(explain("placement", expected="a machine", got="none"))
        self.machine = np.array([unit.machine for unit in self.units])
        #: The first row of each machine.
        self.first = np.searchsorted(self.machine, np.arange(len(machines)))
        racks = {name: i for i, name in enumerate(dict.fromkeys(m.rack for m in machines))}
        self.rack = np.array([racks[m.rack] for m in machines])[self.machine]
        self.open = ~np.isin(self.machine, list(closed))
        self.cpu = np.ones(len(self.units))
        self.memory = np.array([float(m.memory) for m in machines])
        self.tasks = np.zeros(len(machines))
        #: Rows that a component has, and the machine that all would like to be near.
        self.rows: dict[str, list[int]] = {name: [] for name in demand.degrees}
        self.near: int | None = None
        self.placed: dict[Task, Unit] = {}

    def row(self, unit: Unit) -> int:
        """Find a unit that a task has already."""
        row = int(self.first[unit.machine]) + unit.core if unit.machine < len(self.first) else -1
        if not 0 <= row < len(self.units) or self.units[row] != unit:
            raise UsageError(explain("placement", "", "units of the machines", str(unit)))
        return row

    def take(self, task: Task, row: int) -> None:
        """Put a task on a unit."""
        need, unit = self.demand.needs[task.component], self.units[row]
        self.cpu[row] -= need.cpu
        self.memory[unit.machine] -= need.memory
        self.tasks[unit.machine] += 1
        self.rows[task.component].append(row)
        self.placed[task] = unit
        self.near = unit.machine if self.near is None else self.near

    def free_for(self, task: Task) -> npt.NDArray[np.bool_]:
        """Say which units may have a task: with enough CPU, or any where none has."""
        need = self.demand.needs[task.component]
        free = self.open & (self.memory[self.machine] >= need.memory)
        free[self.rows[task.component]] = False
        enough = free & (self.cpu >= need.cpu - _NONE)
        return enough if enough.any() else free

    def why_not(self, task: Task) -> str:
        """Say why a task has no unit."""
        if len(self.rows[task.component]) == len(self.units):
            return f"each of the {len(self.units)} units has a task of {task.component!r} already"
        need = self.demand.needs[task.component].memory
        return f"no unit without {task.component!r} has {need:g} MB left"


def _equal(room: _Room, _task: Task, _need: Need) -> Floats:
    return room.tasks[room.machine] - room.cpu * 0.5


def _resource(room: _Room, _task: Task, need: Need) -> Floats:
    """Give R-Storm's distance between what is asked for and what a unit has."""
    largest = max(float(room.memory.max()), _NONE)
    memory = (room.memory[room.machine] - need.memory) / largest
    far = _distance(room, room.machine[0] if room.near is None else room.near)
    return (room.cpu - need.cpu) ** 2 + memory**2 + far**2


def _traffic(room: _Room, task: Task, _need: Need) -> Floats:
    """Give what would have to leave the machine, then how many tasks it has."""
    beside = np.zeros(len(room.tasks))
    for stream in room.demand.traffic:
        if task.component in (stream.sender, stream.receiver):
            other = stream.receiver if task.component == stream.sender else stream.sender
            found = room.machine[room.rows.get(other, [])]
            np.add.at(beside, found, stream.rate / room.demand.degrees[other])
    heaviest = max(float(beside.max()), 1.0)
    return (room.tasks * _NONE - beside / heaviest)[room.machine]


def _distance(room: _Room, near: int) -> Floats:
    """Give the distance of each unit: the same machine, the same rack, or another one."""
    rack = room.rack[int(room.first[near])]
    return np.where(room.machine == near, 0.0, np.where(room.rack == rack, 0.5, 1.0))


_SCORES: dict[Strategy, Score] = {"equal": _equal, "resource": _resource, "traffic": _traffic}
