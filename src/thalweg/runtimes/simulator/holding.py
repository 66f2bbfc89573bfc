"""Windows in the simulator: what a stage makes of its tuples leaves it when a window ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.runtimes.simulator.fifo import Floats, Ints


@dataclass(frozen=True, eq=False)
class Sent:
    """Tuples that end somewhere: when, of which tuple of the source, and their values."""

    times: Floats
    roots: Ints
    values: Ints


class Held:
    """What the window of a stage holds: processed already, so it is not pending.

    >>> held, none = Held(30.0), np.array([], np.int64)
    >>> done = Sent(np.array([4.0, 29.0]), np.array([0, 1]), np.array([0, 0]))
    >>> held.released(done, np.array([0, 0]), 30.0)[0].times.tolist()
    []
    >>> held.released(Sent(np.array([]), none, none), none, 40.0)[0].times.tolist()
    [30.0, 30.0]
    """

    def __init__(self, window: float) -> None:
        self._window = window
        nothing = np.empty(0, np.int64)
        self._kept, self._machines = Sent(np.empty(0), nothing, nothing), nothing

    def released(self, sent: Sent, machines: Ints, end: float) -> tuple[Sent, Ints]:
        """Take in what was made of tuples; give what windows that end before a time let go."""
        times = (np.floor(sent.times / self._window) + 1) * self._window
        times = np.concatenate((self._kept.times, times))
        roots = np.concatenate((self._kept.roots, sent.roots))
        values = np.concatenate((self._kept.values, sent.values))
        machines = np.concatenate((self._machines, machines))
        later = times >= end
        self._kept, self._machines = (
            Sent(times[later], roots[later], values[later]),
            machines[later],
        )
        now = np.flatnonzero(~later)
        now = now[np.argsort(times[now], kind="stable")]
        return Sent(times[now], roots[now], values[now]), machines[now]
