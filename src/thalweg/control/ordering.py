"""The order of neighbours that commute: filters that are cheap and keep little come first.

A chain of operators costs, for each tuple that comes, the first one's seconds, and those of every
other one for the part that those before it let through. What each of them costs and lets through
is measured, so the cheapest order can be found; nothing else about the output changes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import prod

from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import Kind
from thalweg.control.scaling.values import Node, Sample, Stream, View, Window
from thalweg.groupings import LocalOrShuffle, NoGrouping, Shuffle
from thalweg.operators.purity import Touch, commute
from thalweg.topology import Component, Topology

#: Operators of one chain at most; all sets of them are looked at.
_LONGEST = 10
#: Tuples sent for each one taken from which on they are more.
_MORE = 1.1
_ANYWHERE = (Shuffle, NoGrouping, LocalOrShuffle)


@dataclass(frozen=True)
class Ordering:
    """When a chain gets another order."""

    #: The share of a chain's cost that has to be gained.
    gain: float = 0.1
    #: Tuples that every operator must have processed within Delta, to be judged.
    tuples: int = 100
    #: Deltas for which it is remembered what an order has cost.
    memory: float = 20.0


@dataclass(frozen=True)
class Chain:
    """Neighbours, each the only reader of the one before, of which some may change places."""

    #: As the topology has them.
    names: tuple[str, ...]
    #: Pairs that keep their order.
    fixed: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Measured:
    """What an operator takes for a tuple, in seconds, and what part of them it lets through."""

    cost: float
    selectivity: float


Costs = Mapping[str, Measured]


@dataclass(frozen=True)
class Reorder:
    """The order that a chain should have, and why. It may be the one that it has."""

    chain: Chain
    before: tuple[str, ...]
    after: tuple[str, ...]
    reason: str
    #: Seconds per tuple that comes: measured, and expected.
    cost: float = 0.0
    expected: float = 0.0
    #: Why a runtime did not do it; empty if it did.
    refused: str = ""

    @property
    def changes(self) -> bool:
        """Whether anything is to be done."""
        return self.after != self.before


def touches(component: Component) -> Touch | None:
    """Say what an operator does to tuples; None if it has to stay where it is."""
    found: Touch | None = getattr(component.body, "touches", None)
    if component.kind is not Kind.STATELESS or len(component.inputs) != 1:
        return None
    plain = isinstance(component.inputs[0].grouping, _ANYWHERE) and component.tick is None
    return found if plain and component.options.isolation != "process" else None


def chains_of(topology: Topology) -> tuple[Chain, ...]:
    """Find the chains in which something may change places."""
    made = (_chain(topology, found) for found in _neighbours(topology))
    return tuple(c for c in made if len(c.fixed) < len(c.names) * (len(c.names) - 1) / 2)


def _neighbours(topology: Topology) -> Iterator[list[str]]:
    found: list[str] = []
    for component in _along(topology):
        before = topology.component(found[-1]) if found else None
        if before is not None and len(found) < _LONGEST and _follows(topology, before, component):
            found.append(component.name)
            continue
        if found:
            yield found
        found = [] if touches(component) is None else [component.name]
    if found:
        yield found


def _along(topology: Topology) -> Iterator[Component]:
    """Go through all components, each one's first reader right behind it where that is possible."""
    seen: set[str] = set()
    for component in topology:
        follower: Component | None = component
        while follower is not None and follower.name not in seen:
            seen.add(follower.name)
            yield follower
            readers = topology.readers(follower.name)
            follower = readers[0][0] if len(readers) == 1 else None


def _follows(topology: Topology, before: Component, component: Component) -> bool:
    readers = [pair for stream in before.outputs for pair in topology.readers(before.name, stream)]
    if [reader.name for reader, _ in readers] != [component.name] or touches(component) is None:
        return False
    return component.inputs[0].order == before.inputs[0].order


def _chain(topology: Topology, names: Sequence[str]) -> Chain:
    known = {name: touches(topology.component(name)) for name in names}
    fixed = {
        (first, second)
        for first, second in combinations(names, 2)
        if (one := known[first]) and (other := known[second]) and not commute(one, other)
    }
    return Chain(tuple(names), frozenset(fixed))


def cost_of(order: Sequence[str], costs: Costs) -> float:
    """Give the seconds that a chain takes for a tuple that comes.

    >>> costs = {"slow": Measured(0.9, 1.0), "few": Measured(0.1, 0.5)}
    >>> cost_of(["slow", "few"], costs), cost_of(["few", "slow"], costs)
    (1.0, 0.55)
    """
    return sum(reach(order, at, costs) * costs[name].cost for at, name in enumerate(order))


def reach(order: Sequence[str], at: int, costs: Costs) -> float:
    """Give the part of all tuples that comes as far as this position."""
    return prod(costs[name].selectivity for name in order[:at])


def cheapest(chain: Chain, costs: Costs) -> tuple[str, ...]:
    """Find the order that costs least, among those that keep what is fixed.

    What comes behind a set of operators does not depend on their order, so the best order of a set
    ends with one of them, behind the best order of the others.

    >>> costs = {"slow": Measured(0.9, 1.0), "few": Measured(0.1, 0.5)}
    >>> cheapest(Chain(("slow", "few")), costs)
    ('few', 'slow')
    >>> cheapest(Chain(("slow", "few"), frozenset([("slow", "few")])), costs)
    ('slow', 'few')
    """

    @cache
    def best(among: frozenset[str]) -> tuple[float, tuple[str, ...]]:
        found: list[tuple[float, tuple[str, ...]]] = []
        for last in (name for name in chain.names if name in among):
            if any((last, other) in chain.fixed for other in among):
                continue
            rest = among - {last}
            cost, order = best(rest)
            through = prod(costs[name].selectivity for name in rest)
            found.append((cost + through * costs[last].cost, (*order, last)))
        return min(found, key=lambda each: each[0], default=(0.0, ()))

    return best(frozenset(chain.names))[1]


def reorder(
    chain: Chain,
    before: tuple[str, ...],
    costs: Costs,
    known: Mapping[tuple[str, ...], float],
    least: float,
) -> Reorder:
    """Decide about a chain; ``known`` is what orders have really cost, where they were tried.

    That is why two filters whose answers have to do with each other do not change places for ever.
    """
    now = cost_of(before, costs)
    ways = {cheapest(chain, costs), *known}
    expected = {way: known.get(way, cost_of(way, costs)) for way in ways} | {before: now}
    after = min(expected, key=lambda way: (expected[way], way != before))
    gain = 1 - expected[after] / now if now else 0.0
    if after == before or gain < least:
        text = f"{_arrows(before)} is the cheapest order, or nearly so"
        return Reorder(chain, before, before, text, now, now)
    text = (
        f"{_arrows(after)} in place of {_arrows(before)}: {_time(expected[after])} instead of "
        f"{_time(now)} per tuple, {100 * gain:.0f} % less"
    )
    return Reorder(chain, before, after, text, now, expected[after])


def measured(view: View, name: str, least: int) -> Measured | None:
    """Read what an operator costs; None while too little is known."""
    window = view.windows[name]
    busy = sum(sample.busy for sample in window.samples)
    if not window.complete or window.processed < max(1, least) or not busy:
        return None
    passed = window.emitted(DEFAULT_STREAM) / window.processed
    # Tuples are counted at two moments; only a join sends clearly more of them than it takes.
    return Measured(busy / window.processed, 1.0 if 1.0 < passed < _MORE else passed)


def rewired(nodes: Sequence[Node], made: Reorder) -> tuple[Node, ...]:
    """Give components as policies see them once a chain has another order."""
    by_name = {node.name: node for node in nodes}
    first, last = by_name[made.before[0]], made.before[-1]
    inputs = {made.after[0]: first.inputs} | {
        name: (Stream(sender, DEFAULT_STREAM),)
        for sender, name in zip(made.after, made.after[1:], strict=False)
    }
    places = dict(zip(made.before, made.after, strict=True))
    found = []
    for node in nodes:
        name = places.get(node.name, node.name)
        reads = inputs.get(name) or tuple(
            replace(each, component=made.after[-1]) if each.component == last else each
            for each in node.inputs
        )
        found.append(replace(by_name[name], inputs=reads))
    return tuple(found)


def foreseen(view: View, made: Reorder, costs: Costs) -> View:
    """Show a view as if all that is known of had passed with the new order."""
    windows, history = dict(view.windows), dict(view.history)
    for at, name in enumerate(made.after):
        was = reach(made.before, made.before.index(name), costs)
        part = reach(made.after, at, costs) / was if was else 1.0
        kept = windows[name]
        windows[name] = Window(tuple(_scaled(s, part) for s in kept.samples), kept.expected)
        if name in history:
            history[name] = tuple(_scaled(s, part) for s in history[name])
    return replace(view, nodes=rewired(view.nodes, made), windows=windows, history=history)


def _scaled(sample: Sample, part: float) -> Sample:
    return replace(
        sample,
        received=round(sample.received * part),
        processed=round(sample.processed * part),
        emitted={stream: round(count * part) for stream, count in sample.emitted.items()},
        pending=round(sample.pending * part),
        busy=sample.busy * part,
    )


def _arrows(order: Sequence[str]) -> str:
    return " -> ".join(order)


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} us"
