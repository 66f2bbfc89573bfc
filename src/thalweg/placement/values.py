"""What a placement is made from, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.errors import UsageError, explain


@dataclass(frozen=True)
class Machine:
    """A machine whose cores are processing units of equal speed."""

    name: str
    cores: int = 2
    #: Megabytes.
    memory: float = 4096.0
    #: Machines of one rack are nearer to each other than to others.
    rack: str = ""
    #: Bytes per second that it can send; None for no limit.
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise UsageError(explain(f"cores of {self.name!r}", "", "1 or more", f"{self.cores}"))


@dataclass(frozen=True, order=True)
class Unit:
    """A processing unit: a core of the machine with this index."""

    machine: int
    core: int


@dataclass(frozen=True, order=True)
class Task:
    """One task of a component."""

    component: str
    index: int


@dataclass(frozen=True)
class Need:
    """What one task of a component asks for: a share of a core, and megabytes."""

    cpu: float = 1.0
    memory: float = 0.0


@dataclass(frozen=True)
class Traffic:
    """Bytes per second from one component to another, over all their tasks."""

    sender: str
    receiver: str
    rate: float


@dataclass(frozen=True)
class Demand:
    """The tasks to place: components in topological order, how many of each, and their needs."""

    degrees: Mapping[str, int]
    needs: Mapping[str, Need]
    traffic: tuple[Traffic, ...] = ()
    #: What components are worth where there is not room for all; 1 where nothing is said.
    priorities: Mapping[str, float] = field(default_factory=dict)

    @property
    def tasks(self) -> list[Task]:
        """All tasks, component by component."""
        return [
            Task(component, index)
            for component, degree in self.degrees.items()
            for index in range(degree)
        ]


@dataclass(frozen=True)
class Placement:
    """The unit of each task; and those that have none, with the reason."""

    units: Mapping[Task, Unit]
    refused: Mapping[Task, str] = field(default_factory=dict)

    @property
    def machines(self) -> int:
        """How many machines have a task."""
        return len({unit.machine for unit in self.units.values()})

    def remote(self, traffic: tuple[Traffic, ...]) -> float:
        """Bytes per second between machines, if each stream is spread evenly among tasks.

        >>> here, there = Unit(0, 0), Unit(1, 0)
        >>> placed = Placement({Task("a", 0): here, Task("b", 0): here, Task("b", 1): there})
        >>> placed.remote((Traffic("a", "b", 100.0),))
        50.0
        """
        machines: dict[str, list[int]] = {}
        for task, unit in self.units.items():
            machines.setdefault(task.component, []).append(unit.machine)
        total = 0.0
        for stream in traffic:
            pairs = [
                a != b
                for a in machines.get(stream.sender, ())
                for b in machines.get(stream.receiver, ())
            ]
            total += stream.rate * sum(pairs) / max(len(pairs), 1)
        return total
