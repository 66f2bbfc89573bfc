"""The source: tuples at the times that a profile says, with irregularities, and replays."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from thalweg.connectors.profiles import Profile
from thalweg.runtimes.simulator.fifo import Floats, Ints
from thalweg.workloads.stages import Law

#: Seconds within which a rate counts as constant.
_STEP = 1.0


class Irregular(Protocol):
    """What a world says about arrivals."""

    @property
    def bursty(self) -> bool:
        """Whether tuples come at random, not evenly."""

    @property
    def noise(self) -> float:
        """Relative deviation of the rate from one period to the next."""

    @property
    def seed(self) -> int:
        """The seed of all that is random."""


class Arrivals:
    """Makes the tuples of a period; the same for every policy that is compared.

    They come evenly, as from a source that is told how many to send each second, or at random
    (``bursty``: a Poisson process). ``noise`` is the deviation of the rate, which stays for a
    period.
    """

    def __init__(self, profile: Profile, law: Law, world: Irregular) -> None:
        self._profile = profile
        self._law = np.cumsum(law.shares)
        self._world = world
        self._random = np.random.default_rng((world.seed, 1))
        #: What is due of the next tuple, where they come evenly.
        self._due = 0.0

    def between(self, begin: float, end: float) -> tuple[Floats, Ints]:
        """Give times, ascending, and values of the tuples in [begin, end)."""
        random = self._random
        edges = np.linspace(begin, end, max(1, round((end - begin) / _STEP)) + 1)
        wanted = np.diff(areas(self._profile, edges)) * (1 + self._world.noise * random.normal())
        make = self._at_random if self._world.bursty else self._evenly
        times = make(edges, np.maximum(wanted, 0.0))
        draws = random.random(len(times))
        values = np.minimum(np.searchsorted(self._law, draws, "right"), len(self._law) - 1)
        return times, values

    def _evenly(self, edges: Floats, wanted: Floats) -> Floats:
        """Let a tuple come whenever one more is due."""
        due = self._due + np.concatenate(([0.0], np.cumsum(wanted)))
        self._due = float(due[-1] % 1)
        whole = np.arange(1, math.floor(due[-1]) + 1)
        # The one that is due at the very end comes just before it.
        return np.minimum(np.interp(whole, due, edges), np.nextafter(edges[-1], 0.0))

    def _at_random(self, edges: Floats, wanted: Floats) -> Floats:
        counts = self._random.poisson(wanted)
        starts = np.repeat(edges[:-1], counts)
        return np.sort(starts + self._random.random(len(starts)) * (edges[1] - edges[0]))


def areas(profile: Profile, times: Floats) -> Floats:
    """Give the expected number of tuples up to each time.

    >>> from thalweg.connectors.profiles import ramp
    >>> areas(ramp(0, 10, "10 s"), np.array([0.0, 2.0, 10.0, 11.0])).tolist()
    [0.0, 2.0, 50.0, 50.0]
    """
    inside = np.minimum(times, profile.end)
    at = np.maximum(np.searchsorted(profile.starts, inside, "right") - 1, 0)
    since = inside - profile.starts[at]
    return profile.counts[at] + since * (profile.rates[at] + profile.slopes[at] * since / 2)
