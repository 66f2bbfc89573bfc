"""Tuples on their way: columns of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from thalweg.runtimes.simulator.fifo import Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """Tuples that wait for a stage, or travel to it."""

    #: When each arrives.
    times: Floats
    #: The tuple of the source that it stems from.
    roots: Ints
    values: Ints
    #: The task that receives it.
    tasks: Ints

    @classmethod
    def none(cls) -> Self:
        """Give no tuples."""
        empty = np.empty(0, np.int64)
        return cls(np.empty(0), empty, empty, empty)

    def __len__(self) -> int:
        return len(self.times)

    def take(self, which: Ints | Flags) -> Rows:
        """Keep some of them."""
        return Rows(self.times[which], self.roots[which], self.values[which], self.tasks[which])


def joined(parts: Sequence[Rows]) -> Rows:
    """Put tuples behind each other."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.roots for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.tasks for part in parts]),
    )
