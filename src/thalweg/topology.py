"""The topology: a frozen, validated graph of components and streams. It is data; nothing runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thalweg import execution
from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import AnyBody, BlockSpout, Kind, Spout
from thalweg.config import Options, OrderName, Quality
from thalweg.errors import TopologyError, explain
from thalweg.groupings import Fields as FieldsGrouping
from thalweg.groupings import Grouping, PartialKey
from thalweg.schemas import Fields

if TYPE_CHECKING:
    from thalweg.execution import Result


def task_name(component: str, task: int) -> str:
    """Name a task of a component.

    >>> task_name("posts", 1)
    'posts/1'
    """
    return f"{component}/{task}"


@dataclass(frozen=True)
class Input:
    """One stream that a component reads."""

    component: str
    stream: str
    grouping: Grouping
    order: OrderName = "sender"

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the fields that are the key, empty when there is none."""
        grouping = self.grouping
        return grouping.names if isinstance(grouping, FieldsGrouping | PartialKey) else ()

    def __str__(self) -> str:
        suffix = "" if self.stream == DEFAULT_STREAM else f":{self.stream}"
        return f"{self.component}{suffix}"


@dataclass(frozen=True)
class Component:
    """A named spout or bolt with its inputs and output streams."""

    name: str
    body: AnyBody
    options: Options
    inputs: tuple[Input, ...]
    outputs: Mapping[str, Fields]

    @property
    def is_spout(self) -> bool:
        """Whether it is a source."""
        return isinstance(self.body, Spout | BlockSpout)

    @property
    def kind(self) -> Kind:
        """What state it keeps."""
        return getattr(self.body, "kind", Kind.STATELESS)

    @property
    def degree(self) -> int:
        """Number of tasks; one where nobody said."""
        return 1 if self.options.degree is None else self.options.degree

    @property
    def tick(self) -> float | None:
        """Seconds between two ticks, None for none."""
        own: float | None = getattr(self.body, "default_tick", None)
        if self.options.tick is None:
            return own
        return min(self.options.tick, getattr(self.body, "poll", self.options.tick))

    @property
    def needed_tick(self) -> float | None:
        """The same, where a tick is dear: without those that only look what there is."""
        own: float | None = getattr(self.body, "needed_tick", self.tick)
        return own if self.options.tick is None else self.options.tick

    @property
    def window(self) -> float:
        """Seconds for which it holds tuples before it sends what came of them; 0 for not at all."""
        return float(getattr(self.body, "holds", 0.0))

    @property
    def bursts(self) -> float:
        """Seconds from one burst of what it sends to the next; 0 where it sends as tuples come."""
        return float(getattr(self.body, "sends_every", self.window))

    @property
    def table(self) -> str | None:
        """Name of the table that it keeps, if any."""
        return getattr(self.body, "table", None)

    @property
    def role(self) -> str:
        """One word for people: spout, sink, or the kind of bolt."""
        if self.is_spout:
            return "spout"
        return self.kind.value if self.outputs else "sink"


def task_names(component: Component) -> list[str]:
    """Name all tasks of a component."""
    return [task_name(component.name, task) for task in range(component.degree)]


@dataclass(frozen=True)
class Topology:
    """Components in an order in which every producer comes before its consumers."""

    name: str
    components: tuple[Component, ...]
    #: How soon results have to come, and what may be given up; None where that is left to the run.
    quality: Quality | None = None

    def __iter__(self) -> Iterator[Component]:
        return iter(self.components)

    def component(self, name: str) -> Component:
        """Find a component by name."""
        for component in self.components:
            if component.name == name:
                return component
        raise TopologyError(
            explain(
                f"component {name!r} in topology {self.name!r}",
                expected=f"one of {[component.name for component in self.components]}",
            )
        )

    @property
    def spouts(self) -> tuple[Component, ...]:
        """The sources."""
        return tuple(component for component in self.components if component.is_spout)

    @property
    def tables(self) -> dict[str, Component]:
        """The components that keep a table, by the table's name."""
        return {component.table: component for component in self.components if component.table}

    def readers(self, name: str, stream: str = DEFAULT_STREAM) -> list[tuple[Component, Input]]:
        """Who reads a stream, in the order of declaration."""
        return [
            (component, input_)
            for component in self.components
            for input_ in component.inputs
            if (input_.component, input_.stream) == (name, stream)
        ]

    def run(self, on: Any = None, **arguments: Any) -> Result:
        """Run it: ``on`` is a runtime or its name; the rest is for :class:`execution.Run`."""
        return execution.run(self, on, **arguments)
