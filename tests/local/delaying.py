"""Delays of threads at named points, the same for the same seed."""

from __future__ import annotations

import random
import time
from typing import Any

from thalweg.runtimes.local.scheduling import Scheduling


class Delays:
    """Lets a thread that comes to a point give way to others, at random.

    The decisions are drawn one after the other from one generator, whoever asks for the next one.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        #: How often threads came to each point.
        self.points: dict[str, int] = {}

    def __call__(self, point: str) -> None:
        self.points[point] = self.points.get(point, 0) + 1
        for _ in range(self._chance.choice((0, 0, 0, 1, 4, 15))):
            time.sleep(0)


def delayed(seed: int) -> dict[str, Any]:
    """Give settings for a run with delays, in which workers share all there is, however little."""
    return {"pause": Delays(seed), "scheduling": Scheduling(alone=0.0)}
