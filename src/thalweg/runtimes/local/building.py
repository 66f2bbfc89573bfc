"""Building what runs: tasks, operators, and the links between them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from thalweg.anchored import AnchoredBolt
from thalweg.clock import SystemClock
from thalweg.execution import Run
from thalweg.groupings import LoadAware
from thalweg.metrics import ComponentMetrics, Counter
from thalweg.routing.load_router import balanced_router
from thalweg.routing.routers import KeyRouter
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.local.arranging import Arranging
from thalweg.runtimes.local.holding import Holding
from thalweg.runtimes.local.intake import Intake
from thalweg.runtimes.local.isolation import AnyTask, remote_task
from thalweg.runtimes.local.links import Link, Streams, Wiring
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.overflow import WaitingRows
from thalweg.runtimes.local.own_threads import settle
from thalweg.runtimes.local.planning import Facts, plan, resolved
from thalweg.runtimes.local.scheduling import Meter
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.local.tables import first_tables
from thalweg.runtimes.local.units import Item
from thalweg.runtimes.local.worklists import (
    HybridWorklist,
    OpenWorklist,
    PartitionedWorklist,
    SharedWorklist,
    Worklist,
)
from thalweg.runtimes.making import Shapes, TaskMaker, make_shapes
from thalweg.runtimes.pairing import has_movable_keys
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.topology import Component, Topology

#: No event time is known.
NO_TIMES: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Built:
    """A topology, ready to run."""

    maker: TaskMaker
    settings: Settings
    topology: Topology
    operators: list[Operator]
    meter: Meter
    arranging: Arranging
    spouts: dict[str, list[AnySpoutTask]] = field(default_factory=dict)
    bolts: dict[str, list[AnyTask]] = field(default_factory=dict)
    #: By spout and stream.
    sources: dict[str, Streams] = field(default_factory=dict)
    #: One for each task.
    counters: dict[str, list[Counter]] = field(default_factory=dict)
    #: How long each component could not go on.
    holdings: dict[str, Holding] = field(default_factory=dict)
    #: What waits of sources that cannot be slowed.
    overflows: dict[AnySpoutTask, WaitingRows] = field(default_factory=dict)

    def operator(self, name: str) -> Operator:
        """Find an operator."""
        return next(o for o in self.operators if o.component.name == name)

    @property
    def tables(self) -> dict[str, RoutingTable]:
        """Give the tables in force of the components whose keys may have tasks of their own."""
        movable = [o for o in self.operators if has_movable_keys(o.component)]
        found = {o.component.name: o.routers for o in movable}
        return {
            name: routers[0].table
            for name, routers in found.items()
            if isinstance(routers[0], KeyRouter)
        }

    def lines(self, tasks: int) -> int | None:
        """Say how many workers there are for so many tasks, where each has its own."""
        return tasks if self.settings.assigning == "executors" else None

    def tasks_backwards(self) -> Iterator[AnySpoutTask | AnyTask]:
        """Go through all tasks, readers before those they read from."""
        for component in reversed(self.topology.components):
            yield from (self.spouts if component.is_spout else self.bolts)[component.name]

    def wide(self) -> float:
        """Say how many tuples Python makes of one of a source, where these are most."""
        bodies = ((o.index, o.component.body) for o in self.operators if not o.away)
        found = [self.meter.read(i) for i, body in bodies if getattr(body, "by_tuple", False)]
        return max((seen.flow * max(1.0, seen.selectivity) for seen in found), default=0.0)

    @property
    def measured(self) -> bool:
        """Whether it is known what a tuple takes at any component."""
        return any(self.meter.read(o.index).cost for o in self.operators)

    def rows_within(self, seconds: float) -> int:
        """Say how many rows of a source all tasks do in such a time, where that is least."""
        tasks = {o.index: o.limit if o.pooled else o.degree for o in self.operators}
        seen = ((self.meter.read(index), count) for index, count in tasks.items())
        found = [count * seconds / (m.cost * m.flow) for m, count in seen if m.cost * m.flow]
        return max(1, int(min([*found, sys.maxsize])))

    def intake(self, source: str) -> Intake:
        """Make what knows how much of a source can end in time."""
        counter = self.counters[source][0]
        return Intake(
            self.sources[source],
            self.operators,
            given=lambda: counter.emitted,
            cost=lambda operator: self.meter.read(operator.index).cost,
        )

    def metrics(self, choices: Mapping[str, int]) -> tuple[ComponentMetrics, ...]:
        """Give the counts of all components, and how often workers chose each of them."""
        found = {c.name: _sum(c, self.counters[c.name]) for c in self.topology}
        for operator in self.operators:
            name = operator.component.name
            counts = found[name]
            tasks = tuple(c.per_task[0] for c in operator.counters[: operator.degree])
            waited = operator.waited
            found[name] = replace(
                counts,
                degree=operator.degree,
                per_task=(counts.received,) if operator.pooled else tasks,
                waiting=operator.worklist.rows,
                reordering=waited.waiting,
                chosen=choices[name],
                order=operator.order,
                head_wait=waited.head,
                reordered=waited.units,
                reorder_seconds=waited.seconds,
            )
        held = {name: holding.seconds() for name, holding in self.holdings.items()}
        return tuple(replace(each, blocked=held[name]) for name, each in found.items())


def task_maker(
    settings: Settings, topology: Topology, run: Run, watermarks: Mapping[str, int]
) -> TaskMaker:
    """Make what makes tasks; their states know what has changed, where snapshots are taken."""
    return TaskMaker(
        topology,
        settings.clock,
        settings.seed,
        settings.key_groups,
        run,
        tracked=settings.checkpoint is not None,
        cores=settings.cores,
        watermarks=watermarks,
    )


def build(
    settings: Settings,
    topology: Topology,
    run: Run,
    wiring: Wiring,
    arranging: Arranging | None = None,
    watermarks: Mapping[str, int] = NO_TIMES,
) -> Built:
    """Make tasks and operators, and link them; degrees and tables may be those of earlier runs.

    So may be how far event time has come at components.
    """
    arranging = arranging or Arranging()
    free = {component.name for component in topology if component.options.degree is None}
    topology = resolved(settings, topology, arranging.begun)
    maker = task_maker(settings, topology, run, watermarks)
    meter = Meter(len(topology.components), settings.scheduling, SystemClock())
    built = Built(maker, settings, topology, [], meter, arranging)
    elastic = run.steering is not None or settings.scaling is not None
    facts = plan(settings, topology, elastic, free)
    wiring.flights.gates = sum(fact.gate for fact in facts.values())
    for component in topology:
        name = component.name
        if component.is_spout:
            built.counters[name] = [Counter(name, component.degree)]
            built.holdings[name] = Holding(now=wiring.now)
            built.spouts[name] = maker.spouts(component, built.counters[name][0])
            built.sources[name] = {stream: [] for stream in component.outputs}
            continue
        counters = [Counter(name, 1) for _ in range(facts[name].tasks)]
        tasks = _tasks(maker, component, counters, facts[name])
        worklist = _worklist(settings, facts[name])
        built.counters[name], built.bolts[name] = counters, tasks
        operator = Operator(component, tasks, worklist, counters, wiring, facts[name])
        operator.index = len(built.operators)
        if operator.pooled and name in arranging.begun:
            operator.limit = min(operator.limit, arranging.begun[name].degree)
        built.operators.append(operator)
        built.holdings[name] = operator.holding
    _link(built, settings)
    return built


def _tasks(
    maker: TaskMaker, component: Component, counters: list[Counter], facts: Facts
) -> list[AnyTask]:
    shapes = make_shapes(component)
    # All that share a pool are the one task that people know of.
    return [
        _task(maker, component, 0 if facts.pooled else at, counter, shapes)
        for at, counter in enumerate(counters)
    ]


def _task(
    maker: TaskMaker, component: Component, task: int, counter: Counter, shapes: Shapes
) -> AnyTask:
    state = maker.memory(component)
    apart = isinstance(component.body, AnchoredBolt)  # it has a process already, or may not move
    if component.options.isolation == "process" and not apart:
        return remote_task(maker, maker.context(component, task, shapes, state), counter)
    made = maker.bolt(component, task, counter, shapes, state)
    settle(made, maker)
    return made


def add_tasks(built: Built, operator: Operator, degree: int) -> list[AnyTask]:
    """Make the tasks that an operator lacks; they have to be prepared."""
    options = replace(operator.component.options, degree=degree)
    component, counters = replace(operator.component, options=options), operator.counters
    shapes, made = operator.tasks[0].context.shapes, list[AnyTask]()
    for at in range(len(operator.tasks), degree):
        if at == len(counters):
            counters.append(Counter(component.name, 1))
            if built.counters[component.name] is not counters:
                built.counters[component.name].append(counters[at])
        made.append(_task(built.maker, component, at, counters[at], shapes))
    operator.tasks.extend(made)
    built.bolts[component.name] = operator.tasks
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
    tables = first_tables(settings, built.topology, built.arranging.begun)
    for operator in built.operators:
        component = operator.component
        loads = any(isinstance(input_.grouping, LoadAware) for input_ in component.inputs)
        operator.osg = settings.osg if loads and not operator.pooled else None
        table = tables.get(component.name)
        if table is None:
            table = RoutingTable.even(component.degree, settings.key_groups)
        for at, input_ in enumerate(operator.component.inputs):
            link = Link(operator, at, input_)
            operator.inputs.append(link)
            operator.routers.append(balanced_router(input_.grouping, table, operator.osg))
            sender = built.sources.get(input_.component)
            if sender is None:
                before = built.operator(input_.component)
                sender, link.sender = before.streams, before.holding
            sender[input_.stream].append(link)


def _sum(component: Component, counters: list[Counter]) -> ComponentMetrics:
    per_task = [count for counter in counters for count in counter.per_task]
    return ComponentMetrics(
        component.name,
        component.degree,
        sum(per_task),
        sum(counter.emitted for counter in counters),
        sum(counter.errors for counter in counters),
        sum(counter.busy for counter in counters),
        tuple(per_task),
        dropped=sum(counter.dropped for counter in counters),
        late=sum(counter.late for counter in counters),
    )
