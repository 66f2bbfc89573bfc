"""What is known of each component before it runs: does order matter, who may work on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from thalweg.components import Kind, Shared
from thalweg.config import ORDERS, OrderName
from thalweg.groupings import LoadAware, LocalOrShuffle, NoGrouping, Shuffle
from thalweg.ordering import ordered, traced
from thalweg.runtimes.local.committing import for_snapshots
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.local.tables import with_places
from thalweg.statelog.arrangements import Arrangement
from thalweg.topology import Component, Topology

_ANYWHERE = (Shuffle, LocalOrShuffle, NoGrouping, LoadAware)


@dataclass(frozen=True)
class Facts:
    """What is known of an operator."""

    #: Whether it takes its input, and sends its output, in the order of a serial execution.
    ordered: bool
    #: Whether outputs must know the input row that they stem from.
    lineage: bool
    #: Whether blocks of several units may be processed as one: no reader brings inputs together.
    mixes: bool
    #: Whether any worker may take anything, with a task of its own.
    pooled: bool
    #: Whether it takes its input in order, and none of its readers does.
    gate: bool
    #: How many tasks it has.
    tasks: int
    #: Whether whole blocks go to its tasks in turn, since any of them may take anything.
    spread: bool = False


def resolved(
    settings: Settings, topology: Topology, arranged: Mapping[str, Arrangement] | None = None
) -> Topology:
    """Give components in processes of their own as many tasks as there are workers.

    Those that were changed in an earlier run have as many as they had come to.
    """
    if settings.checkpoint is not None:
        topology = for_snapshots(topology)
    made = (_arranged(settings, c, (arranged or {}).get(c.name)) for c in topology)
    topology = replace(topology, components=tuple(made))
    topology = _with_order(settings, topology)
    placed = with_places(settings, topology)
    return replace(topology, components=tuple(_resolved(settings, c) for c in placed))


def _with_order(settings: Settings, topology: Topology) -> Topology:
    """Let what leaves the topology be in the order of the settings, unless somebody asks otherwise.

    Where order makes no difference, nothing is put in order for it.
    """
    order, sources = settings.order, [c for c in topology if c.is_spout]
    if order is None:
        order = "total" if [c.degree for c in sources] == [1] else "sender"
    read = {input_.component for c in topology for input_ in c.inputs}
    made = (c if c.name in read else _with_least(c, order) for c in topology)
    return replace(topology, components=tuple(made))


def _with_least(component: Component, order: OrderName) -> Component:
    body, asked = component.body, component.options.order
    if asked is not None or getattr(body, "commutative", False):
        return component
    made = (replace(i, order=max(i.order, order, key=ORDERS.index)) for i in component.inputs)
    return replace(component, inputs=tuple(made))


def _arranged(settings: Settings, component: Component, kept: Arrangement | None) -> Component:
    """Give a component the degree that it had come to; in a pool that only limits workers."""
    if kept is None or (settings.assigning == "workers" and _pooled(component)):
        return component
    return replace(component, options=replace(component.options, degree=kept.degree))


def _resolved(settings: Settings, component: Component) -> Component:
    options = component.options
    if options.isolation != "process":
        return component
    if options.degree is not None or component.kind is Kind.GLOBAL or not component.outputs:
        return component
    return replace(component, options=replace(options, degree=settings.threads))


def plan(
    settings: Settings, topology: Topology, elastic: bool = False, free: Collection[str] = ()
) -> dict[str, Facts]:
    """Find out what is known of each bolt.

    ``elastic`` if degrees may change; ``free`` are those whose degree the runtime has chosen.
    """
    pooled = {c.name for c in topology if settings.assigning == "workers" and _pooled(c)}
    in_order, lineage = _in_order(topology, pooled, elastic), traced(topology)
    joins = _upstream_of_joins(topology, in_order)
    read_in_order = {i.component for c in topology if c.name in in_order for i in c.inputs}
    return {
        c.name: Facts(
            ordered=c.name in in_order,
            lineage=c.name in lineage,
            mixes=(c.name in pooled or c.degree == 1) and c.name not in joins,
            pooled=c.name in pooled,
            gate=c.name in in_order and c.name not in read_in_order,
            tasks=settings.crew(asking=True).most if c.name in pooled else c.degree,
            spread=c.name in free and c.degree > 1 and _spread(c),
        )
        for c in topology
        if not c.is_spout
    }


def anywhere(component: Component) -> bool:
    """Say whether any task of a component may get any of its tuples."""
    return all(isinstance(input_.grouping, _ANYWHERE) for input_ in component.inputs)


def _spread(component: Component) -> bool:
    """Say whether whole blocks may go to tasks in turn."""
    looks = any(isinstance(input_.grouping, LoadAware) for input_ in component.inputs)
    return component.kind is Kind.STATELESS and anywhere(component) and not looks


def _pooled(component: Component) -> bool:
    """Say whether any worker may process any block of a component."""
    options, shared = component.options, isinstance(component.body, Shared)
    shared = shared and component.kind is Kind.STATELESS  # any task is as good as another
    hears = component.tick is not None or getattr(component.body, "timed", False)
    free = options.degree is None and not hears and options.isolation != "process"
    return anywhere(component) and free and shared and bool(component.outputs)


def _in_order(topology: Topology, pooled: set[str], elastic: bool) -> frozenset[str]:
    """Find the components that take their input in the order of a serial execution.

    Beside those that ask for it: a component that several workers may work on sends in the order
    of its input, as one worker would; otherwise older values could overtake newer ones.
    """
    found = set(ordered(topology))
    for component in reversed(topology.components):
        several = elastic or component.name in pooled or component.degree > 1
        scatters = component.kind is Kind.STATELESS and several and bool(component.outputs)
        if component.name in found or (scatters and not component.is_spout):
            found.add(component.name)
            found.update(input_.component for input_ in component.inputs)
    return frozenset(found)


def _upstream_of_joins(topology: Topology, in_order: frozenset[str]) -> frozenset[str]:
    """Find the components upstream of one that brings several ordered inputs together."""
    found: set[str] = set()
    for component in reversed(topology.components):
        if component.name in found or (len(component.inputs) > 1 and component.name in in_order):
            found.update(input_.component for input_ in component.inputs)
    return frozenset(found)
