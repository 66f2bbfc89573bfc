"""What is known of each component before it runs: does order matter, who may work on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thalweg.components import Bolt, Kind, Shared
from thalweg.errors import UsageError, explain
from thalweg.groupings import LoadAware, LocalOrShuffle, NoGrouping, Shuffle
from thalweg.ordering import ordered, traced
from thalweg.runtimes.local.settings import Settings
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


def plan(settings: Settings, topology: Topology) -> dict[str, Facts]:
    """Find out what is known of each bolt."""
    pooled = {c.name for c in topology if settings.assigning == "workers" and _pooled(c)}
    in_order, lineage = _in_order(topology, pooled), traced(topology)
    joins = _upstream_of_joins(topology, in_order)
    read_in_order = {i.component for c in topology if c.name in in_order for i in c.inputs}
    return {
        c.name: Facts(
            ordered=c.name in in_order,
            lineage=c.name in lineage,
            mixes=(c.name in pooled or c.degree == 1) and c.name not in joins,
            pooled=c.name in pooled,
            gate=c.name in in_order and c.name not in read_in_order,
            tasks=settings.crew().most if c.name in pooled else c.degree,
        )
        for c in topology
        if not c.is_spout
    }


def _pooled(component: Component) -> bool:
    """Say whether any worker may process any block of a component."""
    anywhere = all(isinstance(input_.grouping, _ANYWHERE) for input_ in component.inputs)
    options, shared = component.options, isinstance(component.body, Shared)
    free = options.degree is None and options.tick is None and options.isolation == "thread"
    return anywhere and free and shared and bool(component.outputs)


def _in_order(topology: Topology, pooled: set[str]) -> frozenset[str]:
    """Find the components that take their input in the order of a serial execution.

    Beside those that ask for it: a component that several workers may work on sends in the order
    of its input, as one worker would; otherwise older values could overtake newer ones.
    """
    found = set(ordered(topology))
    for component in reversed(topology.components):
        several = component.name in pooled or component.degree > 1
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
