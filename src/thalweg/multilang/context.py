"""What Storm's components are told about themselves and the topology around them.

Storm numbers the tasks of a topology through all components; here they are numbered from 1, in the
order of the topology, as it is when a run begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from thalweg import groupings
from thalweg.contexts import TaskContext
from thalweg.errors import UsageError, explain
from thalweg.groupings import Grouping
from thalweg.topology import Input, Topology

#: Storm's word for each grouping; it has none for groupings that are ours.
_TYPES: dict[type, str] = {
    groupings.Shuffle: "SHUFFLE",
    groupings.LoadAware: "SHUFFLE",
    groupings.LocalOrShuffle: "LOCAL_OR_SHUFFLE",
    groupings.All: "ALL",
    groupings.NoGrouping: "NONE",
    groupings.Direct: "DIRECT",
    groupings.Custom: "CUSTOM_OBJECT",
}


class TaskIds:
    """Numbers of tasks through a whole topology.

    Tasks that are added later, by a rebalance, have numbers behind all others, in turns: no two
    tasks ever have the same, and none has another than before.

    >>> ids = TaskIds({"words": 2, "count": 3})
    >>> ids.of("count", 1), ids.at(4)
    (4, ('count', 1))
    >>> ids.of("words", 2), ids.of("count", 3), ids.of("words", 3), ids.at(7)
    (6, 7, 8, ('count', 3))
    """

    def __init__(self, degrees: Mapping[str, int]) -> None:
        self._names = names = list(degrees)
        firsts = list(accumulate((degrees[name] for name in names), initial=1))
        self._firsts = dict(zip(names, firsts, strict=False))
        self._degrees = dict(degrees)
        #: The first number of tasks that are added.
        self._beyond = firsts[-1]

    @classmethod
    def of_topology(cls, topology: Topology) -> TaskIds:
        """Give numbers to the tasks of a topology."""
        return cls({component.name: component.degree for component in topology})

    def of(self, component: str, task: int) -> int:
        """Give the number of a task."""
        added = task - self._degrees[component]
        if added < 0:
            return self._firsts[component] + task
        return self._beyond + added * len(self._names) + self._names.index(component)

    def at(self, number: int) -> tuple[str, int]:
        """Find the task with a number."""
        if number >= self._beyond:
            added, at = divmod(number - self._beyond, len(self._names))
            return self._names[at], self._degrees[self._names[at]] + added
        for name, first in self._firsts.items():
            if first <= number < first + self._degrees[name]:
                return name, number - first
        raise UsageError(explain(f"task {number}", expected="a number from 1 on"))

    def components(self, added: tuple[str, int] | None = None) -> dict[str, str]:
        """Give the component of each task, numbers as text, as Storm writes them.

        With ``added``, a task, those of its component up to it as well.
        """
        found = {
            str(first + task): name
            for name, first in self._firsts.items()
            for task in range(self._degrees[name])
        }
        if added is not None:
            name, last = added
            more = range(self._degrees[name], last + 1)
            found |= {str(self.of(name, task)): name for task in more}
        return found


class DirectTasks:
    """Tasks that a component chooses by their numbers, on its direct streams."""

    def __init__(self, context: TaskContext) -> None:
        self._component = context.component
        self._topology: Topology = context.graph
        self._ids = TaskIds.of_topology(context.graph)
        #: By stream: who reads it as a direct one, if anybody does.
        self._readers: dict[str, str | None] = {}

    def find(self, number: int, stream: str) -> int:
        """Find the task of the reader that has a number; where nobody reads, any will do."""
        name, task = self._ids.at(number)
        if stream not in self._readers:
            self._readers[stream] = self._reader(stream)
        reader = self._readers[stream]
        if reader not in (name, None):
            subject = f"direct emit of {self._component!r} on stream {stream!r}"
            expected = f"a task of {reader!r}, which reads it"
            raise UsageError(explain(subject, "", expected, f"task {number}, of {name!r}"))
        return task

    def _reader(self, stream: str) -> str | None:
        found = self._topology.readers(self._component, stream)
        direct = [reader.name for reader, i in found if isinstance(i.grouping, groupings.Direct)]
        return direct[0] if direct else None


def storm_context(context: TaskContext) -> dict[str, Any]:
    """Describe a task and what is around it in Storm's manner."""
    topology: Topology = context.graph
    ids = TaskIds.of_topology(topology)
    own = topology.component(context.component)
    return {
        "task->component": ids.components((own.name, context.task)),
        "taskid": ids.of(own.name, context.task),
        "componentid": own.name,
        "streams": list(own.outputs),
        "stream->outputfields": {s: list(f.names) for s, f in own.outputs.items()},
        "stream->target->grouping": {
            stream: {
                reader.name: _grouping(input_.grouping)
                for reader, input_ in topology.readers(own.name, stream)
            }
            for stream in own.outputs
        },
        "source->stream->grouping": _by_source(
            {input_: _grouping(input_.grouping) for input_ in own.inputs}
        ),
        "source->stream->fields": _by_source(
            {i: list(topology.component(i.component).outputs[i.stream].names) for i in own.inputs}
        ),
    }


def _by_source(values: Mapping[Input, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for input_, value in values.items():
        found.setdefault(input_.component, {})[input_.stream] = value
    return found


def _grouping(grouping: Grouping) -> dict[str, Any]:
    if isinstance(grouping, groupings.Global):
        return {"type": "FIELDS", "fields": []}
    if isinstance(grouping, groupings.Fields | groupings.PartialKey):
        return {"type": "FIELDS", "fields": list(grouping.names)}
    return {"type": _TYPES[type(grouping)]}
