"""Queues of single servers, all at once: when each tuple starts and ends.

A server takes its tuples in the order of arrival, so a tuple starts when it has arrived and the one
before it has ended. With the work W before each tuple that is ``start = W + max(arrival - W)`` over
the tuples up to it: a running maximum instead of a loop.

>>> servers, arrivals = np.array([0, 0, 1]), np.array([1.0, 1.5, 0.0])
>>> starts(servers, arrivals, np.array([2.0, 1.0, 1.0]), free=np.array([0.0, 5.0])).tolist()
[1.0, 3.0, 5.0]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def starts(servers: Ints, arrivals: Floats, service: Floats, free: Floats) -> Floats:
    """Give the start of each tuple; rows are in the order of servers, then of arrival.

    ``free`` says for each server when it has ended what it had before.
    """
    if not len(servers):
        return np.empty(0)
    first = np.flatnonzero(np.diff(servers, prepend=-1))
    counts = np.diff(first, append=len(servers))
    before = np.cumsum(service) - service
    before -= np.repeat(before[first], counts)
    slack = arrivals - before
    slack[first] = np.maximum(slack[first], free[servers[first]])
    # Each server's rows are lifted above those of the one before: one running maximum does all.
    height = float(slack.max() - slack.min()) + 1.0
    lift = np.repeat(np.arange(len(first)) * height, counts)
    return np.maximum.accumulate(slack + lift) - lift + before


def overflowing(servers: Ints, arrivals: Floats, begin: Floats, limit: int) -> Flags:
    """Say which tuples find ``limit`` others waiting before them, if none is turned away."""
    found = np.zeros(len(servers), np.bool_)
    if len(servers) > limit:
        same = servers[limit:] == servers[:-limit]
        found[limit:] = same & (begin[:-limit] > arrivals[limit:])
    return found


def admitted(arrivals: Floats, service: Floats, free: float, limit: int) -> Flags:
    """Say which tuples one server takes when those are turned away that find its queue full.

    >>> admitted(np.array([0.0, 0.1, 0.2, 3.0]), np.ones(4), free=0.0, limit=1).tolist()
    [True, True, False, True]
    """
    taken: list[float] = []
    kept = []
    for arrival, seconds in zip(arrivals.tolist(), service.tolist(), strict=True):
        fits = len(taken) < limit or taken[-limit] <= arrival
        kept.append(fits)
        if fits:
            begin = max(arrival, free)
            taken.append(begin)
            free = begin + seconds
    return np.array(kept, np.bool_)


def in_time(arrivals: Floats, service: Floats, deadlines: Floats, free: float, end: float) -> Flags:
    """Say which tuples one server does not skip when it skips those that would start too late.

    Tuples that would start at ``end`` or after it are left alone.

    >>> late = np.array([9.0, 0.5, 9.0])
    >>> in_time(np.zeros(3), np.ones(3), late, free=0.0, end=5.0).tolist()
    [True, False, True]
    """
    kept = np.ones(len(arrivals), np.bool_)
    rows = zip(arrivals.tolist(), service.tolist(), deadlines.tolist(), strict=True)
    for row, (arrival, seconds, deadline) in enumerate(rows):
        begin = max(arrival, free)
        if begin >= end:
            break
        kept[row] = begin <= deadline
        if begin <= deadline:
            free = begin + seconds
    return kept


def shares(demand: Floats, units: Ints, number: int) -> Floats:
    """Give the share of its unit that each task can have while it works.

    That is what the others leave, and at least an equal share among those that ask for some.

    >>> shares(np.array([0.9, 0.3, 0.5]), np.array([0, 0, 1]), 2).round(2).tolist()
    [0.7, 0.5, 1.0]
    """
    together = np.bincount(units, demand, number)[units]
    asking = np.bincount(units, demand > 0, number)[units]
    return np.maximum(1.0 - (together - demand), 1.0 / np.maximum(asking, 1.0))
