"""Who talks to whom: the tasks of a topology, and those that stand behind it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class TaskId:
    """A task by its component and its number in it, which is its place in the routing table."""

    component: str
    index: int

    def __str__(self) -> str:
        return f"{self.component}[{self.index}]"


class Office(enum.Enum):
    """Whoever is not a task."""

    MANAGER = "manager"
    #: Stable storage, where the manager saves configurations.
    STORE = "store"


Address = TaskId | Office


@dataclass(frozen=True, eq=False)
class Wiring:
    """The tasks of a topology and the channels between them.

    Where the degree changes, the tasks of both degrees count: those that come have been started,
    and those that go stop after the reconfiguration.

    >>> wiring = Wiring({"posts": 1, "count": 2}, {"posts": ("count",)})
    >>> [str(task) for task in wiring.successors(TaskId("posts", 0))]
    ['count[0]', 'count[1]']
    >>> [str(task) for task in wiring.first]
    ['posts[0]']
    """

    #: Number of tasks of each component.
    degrees: Mapping[str, int]
    #: The components that each one sends to.
    streams: Mapping[str, tuple[str, ...]]

    @property
    def tasks(self) -> tuple[TaskId, ...]:
        """All tasks."""
        return tuple(task for component in self.degrees for task in self._of(component))

    @property
    def first(self) -> tuple[TaskId, ...]:
        """The tasks that no task sends to."""
        return tuple(task for task in self.tasks if not self.predecessors(task))

    def successors(self, task: TaskId) -> tuple[TaskId, ...]:
        """Give the tasks that a task sends to."""
        receivers = self.streams.get(task.component, ())
        return tuple(to for component in receivers for to in self._of(component))

    def predecessors(self, task: TaskId) -> tuple[TaskId, ...]:
        """Give the tasks that send to a task."""
        senders = (name for name in self.degrees if task.component in self.streams.get(name, ()))
        return tuple(sender for component in senders for sender in self._of(component))

    def _of(self, component: str) -> tuple[TaskId, ...]:
        return tuple(TaskId(component, index) for index in range(self.degrees[component]))
