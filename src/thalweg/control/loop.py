"""The ORACL loop: collect, evaluate, decide, realise.

Decisions are made in steps, from the top down: *Order* operators, *Replicate* them, *Assign* their
tasks, *Customise* them locally. What one step changes, those below go by: they see the view as it
will be. The loop knows neither clock nor runtime; both are arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from thalweg.control.assigning import Moved
from thalweg.control.scaling.monitor import Monitor
from thalweg.control.scaling.values import Decision, Sample, View


class Made(Protocol):
    """Something that was decided, be it that nothing changes."""

    @property
    def reason(self) -> str:
        """Why."""

    @property
    def changes(self) -> bool:
        """Whether anything is to be done."""


Kind = TypeVar("Kind", bound=Made)


@dataclass(frozen=True)
class Plan:
    """All that was decided in one turn, from the top down."""

    made: tuple[Made, ...] = ()

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Give the decisions of one kind."""
        return [each for each in self.made if isinstance(each, kind)]

    @property
    def changes(self) -> bool:
        """Whether anything is to be done."""
        return any(each.changes for each in self.made)

    @property
    def degrees(self) -> tuple[Decision, ...]:
        """Give the last word about the degree of each component.

        >>> plan = Plan((Decision("count", 4, 1, "too much"), Decision("count", 2, 1, "no room")))
        >>> [made.degree for made in plan.degrees]
        [2]
        """
        return tuple({made.component: made for made in self.of(Decision)}.values())


class Step(Protocol):
    """One of the four steps."""

    def decide(self, view: View, above: Plan) -> Sequence[Made]:
        """Decide, knowing what the steps above have decided in this turn."""

    def revised(self, view: View, made: Sequence[Made]) -> View:
        """Show what the view will be once that is done; the steps below go by it."""


class Realiser(Protocol):
    """Whoever makes decisions real: a runtime."""

    @property
    def degrees(self) -> Mapping[str, int]:
        """Degrees in force, of every component."""

    @property
    def busy(self) -> bool:
        """Whether a reconfiguration is under way; nothing is decided meanwhile."""

    def realise(self, plan: Plan) -> Plan:
        """Begin to do what is planned; gives the plan as it is carried out, refusals and all."""


class Loop:
    """Turns samples into decisions, and remembers what was done."""

    def __init__(self, monitor: Monitor, steps: Sequence[Step]) -> None:
        self._monitor, self._steps = monitor, steps
        #: What is being done.
        self._begun = Plan()

    def turn(self, now: float, samples: Sequence[Sample], realiser: Realiser) -> Plan:
        """Go round once; gives what is being done, and what is not, with reasons."""
        self._monitor.add(*samples)
        if realiser.busy:
            return Plan()
        self._end(now)
        plan = self._decided(self._monitor.view(now, realiser.degrees))
        if plan.changes:
            plan = self._begun = realiser.realise(plan)
            if not realiser.busy:
                self._end(now)
        return plan

    def noted(self, now: float, plan: Plan) -> None:
        """Take note of what somebody else has begun to change; what was begun before is done."""
        self._end(now)
        self._begun = plan

    def given_up(self) -> Plan:
        """Forget what was begun, since it cannot be done after all; gives what that was."""
        begun, self._begun = self._begun, Plan()
        return begun

    def _end(self, now: float) -> None:
        """Take note of what has been done; from now on there is grace."""
        done, self._begun = self._begun, Plan()
        self._monitor.changed(now, done.degrees)
        for each in done.of(Moved):
            self._monitor.moved(now, each.components)

    def _decided(self, view: View) -> Plan:
        plan = Plan()
        for step in self._steps:
            made = tuple(step.decide(view, plan))
            view, plan = step.revised(view, made), Plan(plan.made + made)
        return plan
