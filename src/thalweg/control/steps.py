"""Steps of the ORACL loop that every runtime can use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from thalweg.control.loop import Made, Plan
from thalweg.control.ordering import (
    Chain,
    Measured,
    Ordering,
    Reorder,
    cost_of,
    foreseen,
    measured,
    reorder,
)
from thalweg.control.scaling.values import Decision, Policy, View

#: Finds places for tasks: gives the degrees for which there are some, and why not for more.
Place = Callable[[Mapping[str, int]], tuple[Mapping[str, int], Mapping[str, str]]]


class Order:
    """The order of neighbours that commute, by what they cost and let through."""

    def __init__(
        self,
        chains: Sequence[Chain],
        in_force: Callable[[Chain], tuple[str, ...]],
        ordering: Ordering | None = None,
    ) -> None:
        self._chains, self._in_force = chains, in_force
        self._ordering = ordering or Ordering()
        #: When an order was last in force, and what it cost then.
        self._known: dict[tuple[str, ...], tuple[float, float]] = {}

    def decide(self, view: View, _above: Plan) -> Sequence[Made]:
        """Compare the order of every chain with the cheapest one."""
        found = [] if view.in_grace else [self._decided(view, chain) for chain in self._chains]
        return [made for made in found if made is not None]

    def revised(self, view: View, made: Sequence[Made]) -> View:
        """Show what operators would have got in their new places."""
        for each in made:
            if isinstance(each, Reorder) and each.changes:
                view = foreseen(view, each, self._costs(view, each.chain) or {})
        return view

    def _decided(self, view: View, chain: Chain) -> Reorder | None:
        costs = self._costs(view, chain)
        if costs is None:
            return None
        before, oldest = self._in_force(chain), view.now - self._ordering.memory * view.delta
        self._known[before] = view.now, cost_of(before, costs)
        tried = {
            order: cost
            for order, (time, cost) in self._known.items()
            if time >= oldest and set(order) == set(before)
        }
        return reorder(chain, before, costs, tried, self._ordering.gain)

    def _costs(self, view: View, chain: Chain) -> dict[str, Measured] | None:
        found = {name: measured(view, name, self._ordering.tuples) for name in chain.names}
        known = {name: each for name, each in found.items() if each is not None}
        return known if len(known) == len(found) else None


@dataclass(frozen=True)
class Replicate:
    """Degrees, as a policy says."""

    policy: Policy

    def decide(self, view: View, _above: Plan) -> Sequence[Made]:
        """Ask the policy."""
        return self.policy.decide(view)

    def revised(self, view: View, made: Sequence[Made]) -> View:
        """Show the degrees that were decided."""
        return with_degrees(view, made)


@dataclass(frozen=True)
class Assign:
    """Places for tasks; it is asked when a step above has changed something.

    >>> from thalweg.control.scaling.monitor import Monitor
    >>> from thalweg.control.scaling.values import Node
    >>> view = Monitor([Node("count")]).view(0.0, {"count": 4})
    >>> step = Assign(lambda wanted: ({"count": 3}, {"count": "no machine has room"}))
    >>> [made] = step.decide(view, Plan((Decision("count", 4, 1, "too much"),)))
    >>> made.degree, made.reason
    (3, 'too much; 3 of 4 tasks: no machine has room')
    """

    place: Place

    def decide(self, view: View, above: Plan) -> Sequence[Made]:
        """Say which degrees there is no room for."""
        if not above.changes:
            return ()
        granted, reasons = self.place(view.degrees)
        return [
            _less(made, granted[made.component], reasons.get(made.component, ""))
            for made in above.degrees
            if granted[made.component] != made.degree
        ]

    def revised(self, view: View, made: Sequence[Made]) -> View:
        """Show the degrees that there is room for."""
        return with_degrees(view, made)


def with_degrees(view: View, made: Sequence[Made]) -> View:
    """Show the degrees that were decided."""
    decided = {each.component: each.degree for each in made if isinstance(each, Decision)}
    return replace(view, degrees={**view.degrees, **decided}) if decided else view


def _less(made: Decision, granted: int, reason: str) -> Decision:
    text = f"{made.reason}; {granted} of {made.degree} tasks: {reason}"
    return replace(made, degree=granted, reason=text)
