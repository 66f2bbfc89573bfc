"""Scarce resources: when not every wish fits, capacity goes to the most valuable components first.

What a component lacks is said: which part of its work it cannot do is known before tuples are lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from thalweg.control.scaling.values import Decision, View


@dataclass(frozen=True)
class Shortfall:
    """A component that gets less than it needs."""

    component: str
    wanted: int
    given: int

    @property
    def share(self) -> float:
        """The share of its work that cannot be done, if it needs all that it wants."""
        return 1 - self.given / self.wanted


@dataclass(frozen=True)
class Shared:
    """Decisions that fit, and what that costs."""

    decisions: tuple[Decision, ...]
    lacking: tuple[Shortfall, ...] = ()


def share(view: View, decisions: Iterable[Decision]) -> Shared:
    """Make decisions fit the slots that there are.

    Every component keeps its least degree. Of the rest, the component of the highest priority gets
    all that it asks for, then the next; equal ones get the same part of what they ask for.
    """
    wanted = {made.component: made for made in decisions}
    fixed = sum(degree for name, degree in view.degrees.items() if name not in wanted)
    if view.slots is None or fixed + sum(m.degree for m in wanted.values()) <= view.slots:
        return Shared(tuple(wanted.values()))
    given = _given(view, wanted, view.slots - fixed)
    lacking = {
        name: Shortfall(name, made.degree, given[name])
        for name, made in wanted.items()
        if given[name] < made.degree
    }
    fitting = (_lessened(made, lacking.get(name)) for name, made in wanted.items())
    return Shared(tuple(fitting), tuple(lacking.values()))


def _given(view: View, wanted: dict[str, Decision], slots: int) -> dict[str, int]:
    """Give slots one by one to whom they are worth most."""
    given = {name: min(made.degree, view.node(name).least) for name, made in wanted.items()}
    order = {name: place for place, name in enumerate(wanted)}

    def rank(name: str) -> tuple[float, float, int]:
        return -view.node(name).priority, given[name] / wanted[name].degree, order[name]

    for _ in range(slots - sum(given.values())):
        lacking = [name for name in wanted if given[name] < wanted[name].degree]
        given[min(lacking, key=rank)] += 1
    return given


def _lessened(made: Decision, lacks: Shortfall | None) -> Decision:
    if lacks is None:
        return made
    reason = (
        f"{made.reason}; {lacks.given} of {lacks.wanted} tasks, because slots are scarce: "
        f"{100 * lacks.share:.0f} % of its work cannot be done"
    )
    numbers = {**made.numbers, "lacks": lacks.share}
    return replace(made, degree=lacks.given, reason=reason, numbers=numbers)
