"""From a topology to the stages of a Spark job: what runs where, and what has to be exchanged.

A component runs in one stage; those that need nothing but the tuples at hand run wherever their
producer does. Pure: nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import BlockBolt, Kind
from thalweg.errors import StateError, TopologyError, UsageError, explain
from thalweg.groupings import Fields as FieldsGrouping
from thalweg.groupings import (
    Global,
    LoadAware,
    LocalOrShuffle,
    NoGrouping,
    PartialKey,
    Shuffle,
    describe,
)
from thalweg.ordering import ordered
from thalweg.runtimes.outside import check_outside
from thalweg.topology import Component, Input, Topology

#: Readers of one stream that may share a tuple: one bit each.
MOST_SHARING = 8
_ANYWHERE = (Shuffle, LocalOrShuffle, NoGrouping, LoadAware)


@dataclass(frozen=True)
class Edge:
    """A stream on its way to one reader."""

    reader: str
    #: Which of the reader's inputs it is.
    index: int
    input: Input
    #: "here" in the producer's task, "exchange" to the reader's place, "driver" to staged files.
    how: str
    #: Whether tuples that belong to the sender's own place may skip the exchange.
    fused: bool
    #: Whether serial numbers and paths travel with the tuples.
    in_order: bool
    #: The component that the reader asked, where another one sends in its stead.
    stands_for: str | None = None
    #: The fields that matter to the reader, where equal tuples may travel as one; None for all.
    reads: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Plan:
    """What every stage of a batch has to know."""

    topology: Topology
    places: int
    #: Stage of each component that runs at places; spouts are in stage 0.
    stage_of: Mapping[str, int]
    #: Readers of each stream.
    edges: Mapping[tuple[str, str], tuple[Edge, ...]]
    #: Components whose outputs must keep the order of a serial execution.
    traced: frozenset[str]
    #: Components that take their input in that order.
    in_order: frozenset[str]
    #: Sinks that run beside the driver.
    beside_driver: tuple[str, ...]

    @property
    def stages(self) -> int:
        """How many stages a batch has; one more than it has exchanges."""
        return max(self.stage_of.values()) + 1

    @cached_property
    def read_streams(self) -> dict[str, frozenset[str]]:
        """The streams of each component that it has to send itself."""
        return {
            c.name: frozenset(s for s in c.outputs if self.edges[c.name, s]) for c in self.topology
        }

    @cached_property
    def stood_in_for(self) -> frozenset[str]:
        """Components whose default stream others send in their stead."""
        every = (edge for edges in self.edges.values() for edge in edges)
        return frozenset(edge.stands_for for edge in every if edge.stands_for is not None)

    @cached_property
    def sharing(self) -> dict[tuple[str, str], tuple[Edge, ...]]:
        """The readers of each stream to which a tuple is sent once, if they want it at one place.

        They are alike in stage and order, want the whole tuple, and have a task at every place.
        """
        found = {}
        for stream, edges in self.edges.items():
            alike: dict[tuple[int, bool], list[Edge]] = {}
            for edge in edges:
                if self._wants_whole_tuples_anywhere(edge):
                    alike.setdefault((self.stage_of[edge.reader], edge.in_order), []).append(edge)
            most = max(alike.values(), key=len, default=[])[:MOST_SHARING]
            found[stream] = tuple(most) if len(most) > 1 else ()
        return found

    def _wants_whole_tuples_anywhere(self, edge: Edge) -> bool:
        grouping = edge.input.grouping
        by_key = isinstance(grouping, FieldsGrouping) and not grouping.bounds
        degree = self.topology.component(edge.reader).degree
        return edge.how == "exchange" and edge.reads is None and by_key and degree == self.places

    def place_of(self, task: int) -> int:
        """Give the place at which a task of any component runs."""
        return task % self.places

    def tasks_at(self, component: Component, place: int) -> range:
        """Give the tasks of a component at a place."""
        return range(place, component.degree, self.places)


def make_plan(topology: Topology, places: int, fuse: bool = True, shorten: bool = True) -> Plan:
    """Decide the stages of a topology.

    With ``shorten`` the readers of a component that passes its tuples on unchanged get them from
    where it got them, at the same time: a chain of tallies needs one exchange, not one each.
    """
    if places < 1:
        raise UsageError(explain("places", expected="at least 1", got=str(places)))
    check_kept(topology)
    topology = with_degrees(topology, places)
    in_order = ordered(topology)
    for component in topology:
        if component.degree > places and state_name(component, 0) == component.name:
            check_movable(component)  # its tasks share a place, and tell their keys by hash
    driver = tuple(c.name for c in topology if _is_beside_driver(c))
    senders = {
        (reader.name, input_): _sender(topology, input_, shorten)
        for reader in topology
        for input_ in reader.inputs
    }
    stage_of = _stages(topology, driver, senders)
    edges: dict[tuple[str, str], list[Edge]] = {
        (producer.name, stream): [] for producer in topology for stream in producer.outputs
    }
    for (name, input_), sender in senders.items():
        reader = topology.component(name)
        edge = Edge(
            reader=name,
            index=reader.inputs.index(input_),
            input=input_,
            how=_how(reader, driver),
            fused=fuse and input_.order == "sender",
            in_order=name in in_order,
            stands_for=None if sender[0] == input_.component else input_.component,
            reads=None if name in in_order else _reads(reader, input_, senders.values()),
        )
        edges[sender].append(edge)
    traced = frozenset(
        name for (name, _), found in edges.items() if any(edge.in_order for edge in found)
    )
    frozen = {sender: tuple(found) for sender, found in edges.items()}
    return Plan(topology, places, stage_of, frozen, traced, in_order, driver)


def _sender(topology: Topology, input_: Input, shorten: bool) -> tuple[str, str]:
    """Find who sends an input: the component asked, or the one whose tuples it passes on."""
    asked = topology.component(input_.component)
    passes_on = getattr(asked.body, "passes_on", False) and input_.stream == DEFAULT_STREAM
    sure = asked.options.on_error == "fail" and len(asked.inputs) == 1
    by_place = isinstance(input_.grouping, LocalOrShuffle)  # who sends decides the way
    if shorten and passes_on and sure and not by_place:
        return _sender(topology, asked.inputs[0], shorten)
    return input_.component, input_.stream


def _reads(
    reader: Component, input_: Input, senders: Iterable[tuple[str, str]]
) -> tuple[str, ...] | None:
    """Name the fields that matter to a keyed reader which does not tell equal tuples apart."""
    body = reader.body
    if not isinstance(body, BlockBolt) or body.reads is None or not body.commutative:
        return None
    passed_on = body.passes_on and (reader.name, DEFAULT_STREAM) in senders
    by_key = isinstance(input_.grouping, FieldsGrouping)
    sure = reader.options.on_error == "fail"  # a refused row stands for one tuple
    if passed_on or not by_key or not sure:
        return None
    return tuple(dict.fromkeys((*input_.key, *body.reads)))


def with_degrees(topology: Topology, places: int) -> Topology:
    """Give components whose degree nobody chose one task per place."""
    return replace(topology, components=tuple(_with_degree(c, places) for c in topology))


def _with_degree(component: Component, places: int) -> Component:
    if component.options.degree is not None:
        return component
    one = component.is_spout or component.kind is Kind.GLOBAL or not component.outputs
    one = one or any(isinstance(input_.grouping, Global) for input_ in component.inputs)
    options = replace(component.options, degree=1 if one else places)
    return replace(component, options=options)


def _is_beside_driver(component: Component) -> bool:
    """Sinks of one task run beside the driver, on what was committed; others at their places."""
    return (
        not component.is_spout
        and not component.outputs
        and component.kind is Kind.STATELESS
        and component.degree == 1
        and not getattr(component.body, "at_places", False)
    )


def runs_anywhere(component: Component) -> bool:
    """Say whether a bolt may run in its producer's task: no state, no key, no ticks, no end."""
    body = type(component.body)
    return (
        component.kind is Kind.STATELESS
        and component.tick is None
        and all(isinstance(input_.grouping, _ANYWHERE) for input_ in component.inputs)
        and not _overrides(body, "process_end")
    )


def _overrides(body: type, method: str) -> bool:
    base = next(cls for cls in reversed(body.__mro__) if hasattr(cls, method))
    return getattr(body, method) is not getattr(base, method)


def _stages(
    topology: Topology,
    driver: tuple[str, ...],
    senders: Mapping[tuple[str, Input], tuple[str, str]],
) -> dict[str, int]:
    stages: dict[str, int] = {}
    for component in topology:
        if component.name in driver:
            continue
        found = [senders[component.name, input_][0] for input_ in component.inputs]
        before = max((stages[name] for name in found), default=0)
        here = component.is_spout or runs_anywhere(component)
        stages[component.name] = before if here else before + 1
    return stages


def _how(reader: Component, driver: tuple[str, ...]) -> str:
    if reader.name in driver:
        return "driver"
    return "here" if runs_anywhere(reader) else "exchange"


def check_kept(topology: Topology) -> None:
    """Refuse what keeps something that no batch of Spark's writes down."""
    for component in topology:
        check_outside(component)
        check_gathering(component)


def check_gathering(component: Component) -> None:
    """Refuse bolts that gather tuples until a tick: tasks, and what they know, go with batches."""
    if component.needed_tick and getattr(component.body, "gathers", False):
        raise TopologyError(
            explain(
                f"component {component.name!r}, which does something at ticks",
                expected="that it keeps nothing from one batch of Spark's to the next",
                got="process_tick, and attributes that are gone with a batch",
                hint="run it on local; or say thalweg.stateless: true if it keeps nothing",
            )
        )


def check_movable(component: Component) -> None:
    """Refuse to move state whose owner a key's hash does not tell."""
    grouping = next((i.grouping for i in component.inputs), None)
    by_hash = isinstance(grouping, FieldsGrouping) and not grouping.bounds
    if component.kind is Kind.KEYED and not by_hash:
        raise StateError(
            explain(
                f"component {component.name!r}",
                expected="as many places and tasks as before",
                got=f"others, with the grouping {describe(grouping) if grouping else 'none'}",
                hint="state moves by key only with fields(...) without bounds",
            )
        )


def state_name(component: Component, task: int) -> str:
    """Name the part of a run that holds a component's state.

    Tasks share it, since a key belongs to one of them; with partial keys each has its own.
    """
    split = any(isinstance(input_.grouping, PartialKey) for input_ in component.inputs)
    return f"{component.name}#{task}" if split else component.name
