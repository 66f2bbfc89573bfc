"""Giving up tuples of sources at random."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

from thalweg.blocks import Rows
from thalweg.runtimes.outputs import Emission


class Shedder:
    """Lets a part of all rows go; for the thread that runs the topology."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 (a sample, no secret)
        #: The share that goes.
        self.share = 0.0

    def split(self, emission: Emission) -> tuple[Emission, int, list[Any]]:
        """Give what stays, how many rows go, and the ids of those that have one."""
        count = emission.batch.num_rows
        stays = np.array([self._random.random() >= self.share for _ in range(count)], np.bool_)
        ids = [] if emission.ids is None else list(emission.ids)
        gone = [ids[row] for row in np.flatnonzero(~stays) if ids and ids[row] is not None]
        return _taken(emission, np.flatnonzero(stays)), count - int(stays.sum()), gone


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
