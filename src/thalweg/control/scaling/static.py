"""Policy ``static``: degrees stay as they are; only people change them."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.control.scaling.estimating import kept
from thalweg.control.scaling.values import ONE_MINUTE, Decision, Timing, View


@dataclass(frozen=True)
class Static:
    """Changes nothing."""

    timing: Timing = ONE_MINUTE
    name: str = "static"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Keep every degree."""
        return tuple(kept(view, node, "degrees are static") for node in view.scalable)
