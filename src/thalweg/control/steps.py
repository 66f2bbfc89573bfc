"""Steps of the ORACL loop that every runtime can use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from thalweg.control.loop import Made, Plan
from thalweg.control.scaling.values import Decision, Policy, View

#: Finds places for tasks: gives the degrees for which there are some, and why not for more.
Place = Callable[[Mapping[str, int]], tuple[Mapping[str, int], Mapping[str, str]]]


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
