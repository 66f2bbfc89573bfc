"""State that goes from one task to another, in this process or in others.

What a bolt keeps outside of its state does not move.

>>> from thalweg.routing.table import RoutingTable
>>> old, state = RoutingTable.even(places=1, groups=2), MemoryState()
>>> for number in range(6): state.put(number, "x")
>>> units = Units.between(old, old.resized(2))
>>> wanted = Wanted.of(units, frozenset(units.moved().tolist()))
>>> given = wanted.give(state)
>>> len(given) + len(state), census(state).keys == len(state)
(6, True)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from thalweg.control.links import GUESSED_KEY_BYTES
from thalweg.hashing import Hashes
from thalweg.migration.units import Units
from thalweg.state import Kept, MemoryState
from thalweg.statelog.keying import hash_keys

# Keys of a state that are written down to guess the size of the others.
_LOOK_AT = 16


class Census(msgspec.Struct, frozen=True):
    """The keys of a task's state, and the mean bytes of one."""

    #: Hashes, as the bytes of an array.
    hashes: bytes = b""
    size: float = GUESSED_KEY_BYTES
    #: Number of keys, also where hashes were not asked for.
    keys: int = 0


def census(state: Any, hashes: bool = True) -> Census:
    """Count the keys of a state, and guess their size."""
    if not isinstance(state, MemoryState):
        return Census()
    keys = state.keys() if hashes else []
    return Census(hash_keys(keys).tobytes(), _mean_bytes(state), len(state))


def _mean_bytes(state: MemoryState) -> float:
    try:
        entries = state.entries(state.keys()[:_LOOK_AT])
    except Exception:  # values that cannot be written down may still be kept here
        return GUESSED_KEY_BYTES
    sizes = [len(key) + len(value) for key, value in entries]
    return sum(sizes) / len(sizes) if sizes else GUESSED_KEY_BYTES


class Wanted(msgspec.Struct, frozen=True):
    """Units of state that leave a task; plain enough for a process to be told."""

    #: What the numbers mean: hashes of the units that are single keys, and how many units.
    keys: bytes
    count: int
    units: bytes

    @classmethod
    def of(cls, units: Units, wanted: Iterable[int]) -> Wanted:
        """Name some units."""
        numbers = np.fromiter(wanted, np.int64)
        return cls(units.hashes.tobytes(), len(units), numbers.tobytes())

    def give(self, state: MemoryState) -> list[Kept]:
        """Take the keys of these units out of a state."""
        keys = state.keys()
        nowhere = np.zeros(self.count, np.int64)
        units = Units(np.frombuffer(self.keys, np.uint64), nowhere, nowhere)
        wanted = np.zeros(self.count, np.bool_)
        wanted[np.frombuffer(self.units, np.int64)] = True
        found = np.flatnonzero(wanted[units.of(hash_keys(keys))])
        return state.give_away([keys[row] for row in found.tolist()])


class Handed(msgspec.Struct, frozen=True):
    """State on its way: what was given away, or its bytes where tasks are in processes."""

    content: list[Kept] | bytes
    keys: int
    size: int


def hashes_in(found: Census) -> Hashes:
    """Read the hashes of a census."""
    return np.frombuffer(found.hashes, np.uint64)
