"""A step of the ORACL loop for runtimes whose components share their places."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from thalweg.control.loop import Made, Plan
from thalweg.control.scaling.values import View
from thalweg.control.steps import with_degrees


@dataclass(frozen=True)
class Together:
    """One degree for all components that share places: the largest that any of them needs.

    >>> from thalweg.control.scaling.monitor import Monitor
    >>> from thalweg.control.scaling.values import Decision, Node
    >>> view = Monitor([Node("split"), Node("count")]).view(0.0, {"split": 2, "count": 2})
    >>> above = Plan((Decision("split", 1, 2, "idle"), Decision("count", 3, 2, "too much")))
    >>> [made] = Together({"split", "count"}).decide(view, above)
    >>> made.component, made.degree, made.reason
    ('split', 3, "idle; 'count' needs 3 of the places that all share")
    """

    sharing: Collection[str]

    def decide(self, _view: View, above: Plan) -> Sequence[Made]:
        """Say who gets another degree than a policy wanted."""
        shared = [made for made in above.degrees if made.component in self.sharing]
        if not any(made.changes for made in shared):
            return ()
        most = max(shared, key=lambda made: made.degree)
        why = f"{most.component!r} needs {most.degree} of the places that all share"
        return [
            replace(made, degree=most.degree, reason=f"{made.reason}; {why}")
            for made in shared
            if made.degree != most.degree
        ]

    def revised(self, view: View, made: Sequence[Made]) -> View:
        """Show the degrees that were decided."""
        return with_degrees(view, made)
