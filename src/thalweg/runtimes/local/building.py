"""Building what runs: tasks, operators, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from thalweg.clock import SystemClock
from thalweg.execution import Run
from thalweg.metrics import ComponentMetrics, Counter
from thalweg.routing.routers import make_router
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.local.isolation import AnyTask, remote_task
from thalweg.runtimes.local.operators import Item, Link, Operator, Streams, Wiring
from thalweg.runtimes.local.planning import Facts, plan, resolved
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
    facts = plan(settings, topology)
    wiring.flights.gates = sum(fact.gate for fact in facts.values())
    for component in topology:
        name = component.name
        if component.is_spout:
            built.counters[name] = [Counter(name, component.degree)]
            built.spouts[name] = maker.spouts(component, built.counters[name][0])
            built.sources[name] = {stream: [] for stream in component.outputs}
            continue
        counters = [Counter(name, 1) for _ in range(facts[name].tasks)]
        tasks = _tasks(maker, component, counters, facts[name])
        worklist = _worklist(settings, facts[name])
        built.counters[name], built.bolts[name] = counters, tasks
        operator = Operator(component, tasks, worklist, counters, wiring, facts[name])
        operator.index = len(built.operators)
        built.operators.append(operator)
    _link(built, settings)
    return built


def _tasks(
    maker: TaskMaker, component: Component, counters: list[Counter], facts: Facts
) -> list[AnyTask]:
    shapes, made = make_shapes(component), list[AnyTask]()
    for at, counter in enumerate(counters):
        # All that share a pool are the one task that people know of.
        task, state = 0 if facts.pooled else at, maker.memory(component)
        if component.options.isolation == "process":
            context = maker.context(component, task, shapes, state)
            made.append(remote_task(maker, context, counter))
        else:
            made.append(maker.bolt(component, task, counter, shapes, state))
    return made


def _worklist(settings: Settings, facts: Facts) -> Worklist[Item]:
    if facts.pooled:
        return OpenWorklist()
    if settings.assigning == "executors":
        return PartitionedWorklist(facts.tasks, facts.tasks)
    if settings.queue == "partitioned":
        return PartitionedWorklist(facts.tasks, settings.threads)
    kind = HybridWorklist if settings.queue == "hybrid" else SharedWorklist
    return kind(facts.tasks)


def _link(built: Built, settings: Settings) -> None:
    for operator in built.operators:
        table = RoutingTable.even(operator.component.degree, settings.key_groups)
        for at, input_ in enumerate(operator.component.inputs):
            link = Link(operator, at, input_)
            operator.inputs.append(link)
            operator.routers.append(make_router(input_.grouping, table))
            sender = built.sources.get(input_.component)
            streams = sender if sender is not None else built.operator(input_.component).streams
            streams[input_.stream].append(link)


def _sum(component: Component, counters: list[Counter]) -> ComponentMetrics:
    per_task = [count for counter in counters for count in counter.per_task]
    if len(per_task) > component.degree:  # a pool
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
