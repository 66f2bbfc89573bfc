"""Steps of the ORACL loop that every runtime can use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from thalweg.control.assigning import Moved, Triggers, Trouble, limited, trouble
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
from thalweg.control.scaling.needs import with_learnt_cores
from thalweg.control.scaling.sharing import share
from thalweg.control.scaling.values import Decision, Policy, View
from thalweg.placement.values import Task, Unit

#: Finds places for tasks: gives the degrees for which there are some, and why not for more.
Place = Callable[[Mapping[str, int]], tuple[Mapping[str, int], Mapping[str, str]]]
#: Finds other units for tasks; none where that makes nothing better.
Move = Callable[[Trouble], Mapping[Task, Unit]]


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
class Learn:
    """Decides nothing, but lets the steps below see what tasks need, not what was declared."""

    def decide(self, _view: View, _above: Plan) -> Sequence[Made]:
        """Leave all as it is."""
        return ()

    def revised(self, view: View, _made: Sequence[Made]) -> View:
        """Show what tasks have used."""
        return with_learnt_cores(view)


@dataclass(frozen=True)
class Replicate:
    """Degrees, as a policy says; but more tasks do not help where a link is full."""

    policy: Policy
    #: How full a link has to be for its streams to count as limited by it.
    link: float = Triggers.link

    def decide(self, view: View, _above: Plan) -> Sequence[Made]:
        """Ask the policy, and say whom more tasks would not help."""
        made = self.policy.decide(view)
        more = [each for each in made if each.degree > each.before]
        why = {each.component: limited(view, view.node(each.component), self.link) for each in more}
        return [*made, *(_stays(each, text) for each in more if (text := why[each.component]))]

    def revised(self, view: View, made: Sequence[Made]) -> View:
        """Show the degrees that were decided."""
        return with_degrees(view, made)


@dataclass(frozen=True)
class Share:
    """Tasks for the most valuable components first, where there are not slots for all wishes.

    >>> from thalweg.control.scaling.monitor import Monitor
    >>> from thalweg.control.scaling.values import Node
    >>> nodes = [Node("bill", most=8, priority=2.0), Node("chart", most=8)]
    >>> view = Monitor(nodes, slots=6).view(0.0, {"bill": 1, "chart": 1})
    >>> wishes = Decision("bill", 4, 1, "too much"), Decision("chart", 4, 1, "too much")
    >>> [made] = Share().decide(view, Plan(wishes))
    >>> made.component, made.degree
    ('chart', 2)
    """

    def decide(self, view: View, above: Plan) -> Sequence[Made]:
        """Say who gets fewer tasks than were decided."""
        lessened = share(view, above.degrees)
        lacking = {each.component for each in lessened.lacking}
        return [made for made in lessened.decisions if made.component in lacking]

    def revised(self, view: View, made: Sequence[Made]) -> View:
        """Show the degrees for which there are slots."""
        return with_degrees(view, made)


@dataclass(frozen=True)
class Assign:
    """Places for tasks: for those that are new, and others for those that are badly placed.

    It is asked when a step above has changed a degree; and when a link or a machine is in
    :func:`trouble <thalweg.control.assigning.trouble>`, if somebody can move tasks.

    >>> from thalweg.control.scaling.monitor import Monitor
    >>> from thalweg.control.scaling.values import Node
    >>> view = Monitor([Node("count")]).view(0.0, {"count": 4})
    >>> step = Assign(lambda wanted: ({"count": 3}, {"count": "no machine has room"}))
    >>> [made] = step.decide(view, Plan((Decision("count", 4, 1, "too much"),)))
    >>> made.degree, made.reason
    (3, 'too much; 3 of 4 tasks: no machine has room')
    """

    place: Place
    #: Finds other units for tasks, where that makes it better.
    move: Move | None = None
    triggers: Triggers = field(default_factory=Triggers)

    def decide(self, view: View, above: Plan) -> Sequence[Made]:
        """Say which degrees there is no room for, or which tasks move."""
        lacks = self._lacking(view, above) if above.changes else []
        if self.move is None or view.in_grace or any(made.changes for made in above.degrees):
            return lacks
        found = trouble(view, self.triggers)
        units = {} if found is None else self.move(found)
        return [*lacks, Moved(units, found.reason)] if found is not None and units else lacks

    def _lacking(self, view: View, above: Plan) -> list[Made]:
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


def _stays(made: Decision, why: str) -> Decision:
    text = f"{made.reason}; but {why}, and more tasks do not help"
    return replace(made, degree=made.before, reason=text)
