"""What will be needed later: for what has to be asked for before it is there."""

from __future__ import annotations

import math

from thalweg.control.scaling.experience import experience
from thalweg.control.scaling.flows import own_rates
from thalweg.control.scaling.outlook import outlook
from thalweg.control.scaling.values import Node, View

#: Windows of history that the cost of a tuple is taken from.
_WINDOWS = 4


def foreseen(view: View, seconds: float) -> int:
    """Give the highest degree that a component is expected to need within some seconds.

    It goes by the rates alone, whatever the policy; 0 as long as too little is known.
    """
    return max((_needed(view, node, seconds) for node in view.scalable), default=0)


def _needed(view: View, node: Node, seconds: float) -> int:
    window = view.windows.get(node.name)
    if node.least == node.most or window is None or not window.complete:
        return 0
    known = experience(view, node, _WINDOWS * view.delta, 0.0)
    if known is None:
        return 0
    rates = own_rates(view, node)
    # Models are tried on the samples there are; further ahead than half of them nobody could tell.
    ahead = max(1, min(math.ceil(seconds / view.period), len(rates) // 2))
    return node.bounded(outlook(rates, ahead).rate / known.per_task)
