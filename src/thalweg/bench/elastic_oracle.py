"""The least that any policy can spend on a stream without losing a tuple, knowing all of it.

Degrees change between periods. In the period after a change nobody works; the new tasks are paid
for all the same. Tuples flow like water, and what arrived is processed within as many periods as a
tuple may take. Among all courses of degrees that do so the cheapest is found, by dynamic
programming over the degree and what waits. What waits is rounded down, and the time that a tuple
takes to process is not counted: the oracle is a little better than anybody can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.runtimes.simulator.fifo import Floats

#: Parts of the most that can wait between which the oracle can tell.
_STEPS = 1000


@dataclass(frozen=True)
class Tasks:
    """What is known of the tasks of a component."""

    #: Tuples that one of them can process in a period.
    each: float
    #: How many there can be, and how many there are at the start.
    most: int
    start: int
    #: Periods within which a tuple has to be processed.
    within: int


def least_tasks(arrivals: Sequence[float], tasks: Tasks) -> float:
    """Give the least sum of degrees over all periods; infinite if some tuple is lost in any case.

    >>> least_tasks([5.0, 5.0, 25.0, 5.0, 5.0], Tasks(each=10.0, most=4, start=1, within=3))
    5.0
    >>> least_tasks([5.0] + [25.0] * 20 + [0.0] * 3, Tasks(10.0, most=4, start=1, within=3))
    56.0
    """
    # Never more than this can wait: it would be late.
    rolling = [sum(arrivals[max(0, at - tasks.within + 1) : at + 1]) for at in range(len(arrivals))]
    step = max(*rolling, 1.0) / _STEPS
    degrees = np.arange(1, tasks.most + 1, dtype=np.float64)
    cost = np.full((tasks.most, _STEPS + 1), np.inf)
    cost[tasks.start - 1, 0] = 0.0
    for arrived, limit in zip(arrivals, rolling, strict=True):
        cost = _period(cost, arrived / step, degrees * tasks.each / step)
        cost[:, int(limit / step) + 1 :] = np.inf
        cost += degrees[:, None]
    return float(cost.min())


def _period(cost: Floats, arrived: float, capacity: Floats) -> Floats:
    """Go on by a period, with each degree: it was the same before, or there is a pause."""
    changed = _moved(cost.min(axis=0), arrived)
    kept = [_moved(own, arrived - able) for own, able in zip(cost, capacity.tolist(), strict=True)]
    return np.minimum(np.stack(kept), changed)


def _moved(cost: Floats, by: float) -> Floats:
    """Let more or less wait; nothing is the least, and what is beyond the most is late."""
    found = np.full(len(cost), np.inf)
    at = np.maximum(np.arange(len(cost)) + by, 0.0).astype(np.int64)
    known = at < len(cost)
    np.minimum.at(found, at[known], cost[known])
    return found
