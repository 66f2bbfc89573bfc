"""Which tuples of a stage take which of its streams: a number from 0 to 1 for each of them."""

from __future__ import annotations

import numpy as np

from thalweg.runtimes.simulator.fifo import Floats, Ints

#: Multiples of it, without their whole parts, fill the range from 0 to 1 evenly at any time.
_GOLDEN = (5**0.5 - 1) / 2


class InTurns:
    """Streams take turns: whatever part of the tuples a stream has, it gets them evenly.

    >>> [bool(draw < 1 / 3) for draw in InTurns().draws("source", np.arange(9))]
    [True, False, True, False, False, True, False, True, False]
    """

    def __init__(self) -> None:
        self._sent: dict[str, int] = {}

    def draws(self, stage: str, roots: Ints) -> Floats:
        """Go on where the stage's last call ended."""
        first = self._sent.get(stage, 0)
        self._sent[stage] = first + len(roots)
        turns = np.arange(first, first + len(roots), dtype=np.float64)
        return turns * _GOLDEN % 1.0


class AtRandom:
    """Chance decides. It depends on the tuple and the stage alone, whatever a policy does."""

    def draws(self, stage: str, roots: Ints) -> Floats:
        """Mix the bits of tuple and stage."""
        salt = int.from_bytes(stage.encode()[:8], "little") | 1
        mixed = (roots.astype(np.uint64) + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
