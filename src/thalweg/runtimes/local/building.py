"""Building what runs: tasks, operators, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from thalweg.clock import SystemClock
from thalweg.components import Bolt, Kind, Shared
from thalweg.errors import UsageError, explain
from thalweg.execution import Run
from thalweg.groupings import LoadAware, LocalOrShuffle, NoGrouping, Shuffle
from thalweg.metrics import ComponentMetrics, Counter
from thalweg.ordering import ordered, traced
from thalweg.routing.routers import make_router
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.local.isolation import AnyTask, remote_task
from thalweg.runtimes.local.operators import Facts, Item, Link, Operator, Streams, Wiring
from thalweg.runtimes.local.scheduling import Meter
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.local.worklists import (
    HybridWorklist,
    OpenWorklist,
    PartitionedWorklist,
    SharedWorklist,
    Worklist,
)
from thalweg.runtimes.making import TaskMaker, make_shapes
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.topology import Component, Topology

_ANYWHERE = (Shuffle, LocalOrShuffle, NoGrouping, LoadAware)


@dataclass(frozen=True)
class Built:
    """A topology, ready to run."""

    topology: Topology
    operators: list[Operator]
    meter: Meter
    spouts: dict[str, list[AnySpoutTask]] = field(default_factory=dict)
    bolts: dict[str, list[AnyTask]] = field(default_factory=dict)
    #: By spout and stream.
    sources: dict[str, Streams] = field(default_factory=dict)
    #: One for each task.
    counters: dict[str, list[Counter]] = field(default_factory=dict)

    def operator(self, name: str) -> Operator:
        """Find an operator."""
        return next(o for o in self.operators if o.component.name == name)

    def tasks_backwards(self) -> Iterator[AnySpoutTask | AnyTask]:
        """Go through all tasks, readers before those they read from."""
        for component in reversed(self.topology.components):
            yield from (self.spouts if component.is_spout else self.bolts)[component.name]

    def metrics(self) -> tuple[ComponentMetrics, ...]:
        """Give the counts of all components."""
        return tuple(_sum(c, self.counters[c.name]) for c in self.topology)


def build(settings: Settings, topology: Topology, run: Run, wiring: Wiring) -> Built:
    """Make tasks and operators, and link them."""
    topology = resolved(settings, topology)
    maker = TaskMaker(topology, settings.clock, settings.seed, settings.key_groups, run)
    built = Built(topology, [], Meter(len(topology.components), settings.scheduling, SystemClock()))
    in_order, lineage, joins = _in_order(topology), traced(topology), _joins(topology)
    for component in topology:
        if component.is_spout:
            counter = Counter(component.name, component.degree)
            built.counters[component.name] = [counter]
            built.spouts[component.name] = maker.spouts(component, counter)
            built.sources[component.name] = {stream: [] for stream in component.outputs}
            continue
        pooled = _pooled(component)
        number = settings.crew().most if pooled else component.degree
        counters = [Counter(component.name, 1) for _ in range(number)]
        tasks = _tasks(maker, component, counters)
        built.counters[component.name], built.bolts[component.name] = counters, tasks
        facts = Facts(
            ordered=component.name in in_order,
            lineage=component.name in lineage,
            mixes=(pooled or number == 1) and component.name not in joins,
            pooled=pooled,
            gate=component.name in in_order and not _read_by(topology, component, in_order),
        )
        wiring.flights.gates += facts.gate
        worklist = _worklist(settings, number, pooled)
        operator = Operator(component, tasks, worklist, counters, wiring, facts)
        built.operators.append(operator)
    _link(built, settings)
    return built


def resolved(settings: Settings, topology: Topology) -> Topology:
    """Give components in processes of their own as many tasks as there are workers."""
    return replace(topology, components=tuple(_resolved(settings, c) for c in topology))


def _resolved(settings: Settings, component: Component) -> Component:
    options = component.options
    if options.isolation == "thread":
        return component
    if isinstance(component.body, Bolt) and not component.body.auto_ack:
        hint = "let it acknowledge by itself, or run it in a thread"
        where = f"component {component.name!r}"
        raise UsageError(explain("isolation 'process'", where, "auto_ack = True", "False", hint))
    if options.degree is not None or component.kind is Kind.GLOBAL or not component.outputs:
        return component
    return replace(component, options=replace(options, degree=settings.threads))


def _tasks(maker: TaskMaker, component: Component, counters: list[Counter]) -> list[AnyTask]:
    shapes, pooled = make_shapes(component), _pooled(component)
    made: list[AnyTask] = []
    for at, counter in enumerate(counters):
        number, state = 0 if pooled else at, maker.memory(component)
        if component.options.isolation == "process":
            made.append(
                remote_task(maker, maker.context(component, number, shapes, state), counter)
            )
        else:
            made.append(maker.bolt(component, number, counter, shapes, state))
    return made


def _link(built: Built, settings: Settings) -> None:
    for index, operator in enumerate(built.operators):
        operator.index = index
        table = RoutingTable.even(operator.component.degree, settings.key_groups)
        for at, input_ in enumerate(operator.component.inputs):
            link = Link(operator, at, input_)
            operator.inputs.append(link)
            operator.routers.append(make_router(input_.grouping, table))
            sender = built.sources.get(input_.component)
            streams = sender if sender is not None else built.operator(input_.component).streams
            streams[input_.stream].append(link)


def _pooled(component: Component) -> bool:
    """Say whether any worker may process any block of a component."""
    anywhere = all(isinstance(input_.grouping, _ANYWHERE) for input_ in component.inputs)
    free = component.options.degree is None and component.options.tick is None
    return anywhere and free and isinstance(component.body, Shared) and bool(component.outputs)


def _worklist(settings: Settings, tasks: int, pooled: bool) -> Worklist[Item]:
    if pooled:
        return OpenWorklist()
    if settings.queue == "partitioned":
        return PartitionedWorklist(tasks, settings.threads)
    return HybridWorklist(tasks) if settings.queue == "hybrid" else SharedWorklist(tasks)


def _in_order(topology: Topology) -> frozenset[str]:
    """Find the components that take their input in the order of a serial execution.

    Beside those that ask for it: a component that several workers may work on sends in the order
    of its input, as one worker would; otherwise older values could overtake newer ones.
    """
    found = set(ordered(topology))
    for component in reversed(topology.components):
        several = _pooled(component) or component.degree > 1
        scatters = component.kind is Kind.STATELESS and several and bool(component.outputs)
        if component.name in found or (scatters and not component.is_spout):
            found.add(component.name)
            found.update(input_.component for input_ in component.inputs)
    return frozenset(found)


def _read_by(topology: Topology, component: Component, readers: frozenset[str]) -> bool:
    return any(
        input_.component == component.name
        for reader in topology
        for input_ in reader.inputs
        if reader.name in readers
    )


def _joins(topology: Topology) -> frozenset[str]:
    """Find the components upstream of one that brings several ordered inputs together."""
    found: set[str] = set()
    in_order = _in_order(topology)
    for component in reversed(topology.components):
        if component.name in found or (len(component.inputs) > 1 and component.name in in_order):
            found.update(input_.component for input_ in component.inputs)
    return frozenset(found)


def _sum(component: Component, counters: list[Counter]) -> ComponentMetrics:
    per_task = [count for counter in counters for count in counter.per_task]
    if _pooled(component) if not component.is_spout else False:
        per_task = [sum(per_task)]
    return ComponentMetrics(
        component.name,
        component.degree,
        sum(per_task),
        sum(counter.emitted for counter in counters),
        sum(counter.errors for counter in counters),
        sum(counter.busy for counter in counters),
        tuple(per_task),
    )
