"""Giving up tuples of sources, or windows of them, at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.blocks import Rows
from thalweg.config import Quality
from thalweg.runtimes.outputs import Emission


class Shedder:
    """Lets a part of all rows go; for the thread that runs the topology.

    Where whole windows go, it is decided for each as it begins, and for all sources.
    """

    def __init__(
        self, seed: int, quality: Quality | None = None, now: Callable[[], float] = float
    ) -> None:
        self._random = random.Random(seed)  # noqa: S311 (a sample, no secret)
        self._now = now
        #: Seconds of a window; None where single rows go.
        self.window: float | None = None if quality is None else quality.length
        self._number, self._goes = -1, False
        #: The share that goes.
        self.share = 0.0

    def sheds(self) -> bool:
        """Say whether of what comes now something may go."""
        if self.window is None:
            return self.share > 0
        number = int(self._now() // self.window)
        if number != self._number:
            self._number, self._goes = number, self._random.random() < self.share
        return self._goes

    def split(self, emission: Emission) -> tuple[Emission, int, list[Any]]:
        """Give what stays, how many rows go, and the ids of those that have one."""
        count = emission.batch.num_rows
        stays = np.zeros(count, np.bool_) if self.window is not None else self._chosen(count)
        ids = [] if emission.ids is None else list(emission.ids)
        gone = [ids[row] for row in np.flatnonzero(~stays) if ids and ids[row] is not None]
        return _taken(emission, np.flatnonzero(stays)), count - int(stays.sum()), gone

    def _chosen(self, count: int) -> npt.NDArray[np.bool_]:
        return np.array([self._random.random() >= self.share for _ in range(count)], np.bool_)


def _taken(emission: Emission, rows: Rows) -> Emission:
    targets, ids = emission.targets, emission.ids
    listed = rows.tolist()
    return replace(
        emission,
        batch=emission.batch.take(rows),
        targets=None if targets is None else targets[rows],
        ids=None if ids is None else [ids[row] for row in listed],
        lists={name: [values[row] for row in listed] for name, values in emission.lists.items()},
    )
