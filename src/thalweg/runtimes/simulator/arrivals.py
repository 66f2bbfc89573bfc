"""The source: tuples at the times that a profile says, with irregularities, and replays."""

from __future__ import annotations

import numpy as np

from thalweg.connectors.profiles import Profile
from thalweg.runtimes.simulator.fifo import Floats, Ints
from thalweg.workloads.stages import Law

#: Seconds within which a rate counts as constant.
_STEP = 1.0


class Arrivals:
    """Makes the tuples of a period; the same for every policy that is compared.

    They come at random (a Poisson process). ``noise`` is the deviation of the rate itself, which
    stays for a period.
    """

    def __init__(self, profile: Profile, law: Law, noise: float, seed: int) -> None:
        self._profile = profile
        self._law = np.cumsum(law.shares)
        self._noise = noise
        self._random = np.random.default_rng((seed, 1))

    def between(self, begin: float, end: float) -> tuple[Floats, Ints]:
        """Give times, ascending, and values of the tuples in [begin, end)."""
        random = self._random
        edges = np.linspace(begin, end, max(1, round((end - begin) / _STEP)) + 1)
        wanted = np.diff(areas(self._profile, edges)) * (1 + self._noise * random.normal())
        counts = random.poisson(np.maximum(wanted, 0.0))
        starts = np.repeat(edges[:-1], counts)
        times = np.sort(starts + random.random(len(starts)) * (edges[1] - edges[0]))
        draws = random.random(len(times))
        values = np.minimum(np.searchsorted(self._law, draws, "right"), len(self._law) - 1)
        return times, values


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
