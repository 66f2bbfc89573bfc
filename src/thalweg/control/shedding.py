"""Load shedding: when the highest degrees do not do, sources give up some of their tuples.

The last step of the loop, and only where somebody allows it. Tuples, or windows of them, are given
up at random, so that counts can be scaled up; by how much these may be wrong is said beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from thalweg.control.loop import Made, Plan
from thalweg.control.scaling.values import Node, View

#: Shares are whole percents; what is less is not worth a change.
_STEP = 0.01


@dataclass(frozen=True)
class Shedding:
    """The share of the sources' tuples to give up from now on, and why."""

    share: float
    #: The share in force when it was decided.
    before: float
    reason: str
    #: Relative standard error of the number of tuples of one window, scaled up from what is left.
    error: float = 0.0

    @property
    def changes(self) -> bool:
        """Whether anything is to be done."""
        return self.share != self.before


def relative_error(share: float, tuples: float) -> float:
    """Estimate how wrong a count is that is scaled up after shedding, as a part of it.

    Where whole windows go, they are what is counted, if about as many tuples come in each.
    Of n tuples each stays with probability p = 1 - share; the number of those, divided by p, has
    the standard deviation sqrt(n (1 - p) / p).

    >>> round(relative_error(0.5, 400), 3), relative_error(0.0, 400)
    (0.05, 0.0)
    """
    return math.sqrt(share / ((1 - share) * tuples)) if tuples else 0.0


@dataclass(frozen=True)
class Shed:
    """Gives up as much as the slowest component lacks at its highest degree."""

    #: The largest share that may be given up, and the one in force.
    allowed: float
    in_force: Callable[[], float]
    #: Seconds of a window, where whole windows are given up.
    window: float | None = None

    def decide(self, view: View, _above: Plan) -> Sequence[Made]:
        """Compare what components at their highest degree get with what they can do."""
        before = self.in_force()
        kept = self._kept(view, before)
        known = [(self._part(view, node, kept), node.name) for node in view.scalable]
        parts = [(part, name) for part, name in known if part is not None]
        if view.in_grace or not (parts or before):
            return ()
        if not parts:
            return self._unneeded(view, before)
        part, name = min(parts)
        lacks = math.ceil((1 - part) / _STEP - 1e-9) * _STEP
        share = round(min(max(0.0, lacks), self.allowed), 4)
        error = relative_error(share, self._chances(view, before))
        full = view.degrees[name] >= view.node(name).most
        limit = "at its highest degree" if full else "with the slots that there are"
        text = f"{name!r} can do {100 * part:.0f} % of what comes {limit}"
        if share:
            text += (
                f": {100 * share:.0f} % of all {self._what} are given up (allowed: "
                f"{100 * self.allowed:.0f} %), counts of {view.delta:g} s are wrong by about "
                f"{100 * error:.1f} %"
            )
        return (Shedding(share, before, text, error),)

    def revised(self, view: View, _made: Sequence[Made]) -> View:
        """Show the same: nothing is below."""
        return view

    @property
    def _what(self) -> str:
        return "tuples" if self.window is None else f"windows of {self.window:g} s"

    def _chances(self, view: View, before: float) -> float:
        """Say how often it was decided within Delta what goes."""
        if self.window is not None:
            return view.delta / self.window
        tuples = sum(view.windows[n.name].received for n in view.nodes if n.is_source)
        return tuples / (1 - before)

    def _kept(self, view: View, before: float) -> float:
        """Give the share of tuples that was kept; of few windows, it is not the expected one."""
        sources = [view.windows[node.name] for node in view.nodes if node.is_source]
        kept = sum(window.received for window in sources)
        lost = sum(sample.lost for window in sources for sample in window.samples)
        return 1 - before if self.window is None or not kept else kept / (kept + lost)

    @staticmethod
    def _unneeded(view: View, before: float) -> Sequence[Made]:
        """Let all come again where every component can have more tasks."""
        known = all(view.windows[node.name].complete for node in view.scalable)
        can_grow = all(_can_grow(view, node) for node in view.scalable)
        text = "every component can have more tasks: nothing is given up"
        return (Shedding(0.0, before, text),) if known and can_grow else ()

    @staticmethod
    def _part(view: View, node: Node, kept: float) -> float | None:
        """Give the part of its input that a component can do; None if nobody knows, or it can grow.

        Its input is what would come without shedding, and what waits, within Delta.
        """
        window, degree = view.windows[node.name], view.degrees[node.name]
        busy = sum(sample.busy for sample in window.samples)
        if _can_grow(view, node) or not window.complete or not busy or not window.processed:
            return None
        can = window.processed / busy * degree * view.delta
        comes = window.received / kept + window.pending
        return min(1.0, can / comes) if comes else 1.0


def _can_grow(view: View, node: Node) -> bool:
    """Say whether a component can have more tasks than were decided, going by all that is known."""
    free = view.slots is None or sum(view.degrees.values()) < view.slots
    return free and view.degrees[node.name] < node.most
