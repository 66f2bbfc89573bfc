"""Chance as a function of row numbers, so that any row can be made without those before it.

>>> fraction = scatter(np.arange(4), salt=1)
>>> np.array_equal(scatter(np.arange(2, 4), salt=1), fraction[2:])
True
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]
Small = npt.NDArray[np.int32]

# Large odd numbers (splitmix64), which scatter what they multiply.
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MIX = np.uint64(0x94D049BB133111EB)
#: Least number of entries of a law, and entries per value: shares are exact to 1 in so many.
_LEAST_ENTRIES, _ENTRIES_PER_VALUE = 1 << 16, 8


def scatter(numbers: Numbers, salt: int) -> Bits:
    """Give 64 random bits for each number; another salt gives others (the end of splitmix64)."""
    mixed = numbers.astype(np.uint64)
    mixed += np.uint64((salt + 1) * _GOLDEN % 2**64)
    mixed ^= mixed >> np.uint64(30)
    mixed *= _FIRST_MIX
    mixed ^= mixed >> np.uint64(27)
    mixed *= _SECOND_MIX
    mixed ^= mixed >> np.uint64(31)
    return mixed


def bits(given: Bits, first: int, count: int) -> Numbers:
    """Take some of the bits as a number: from bit ``first`` on, ``count`` of them.

    >>> bits(np.array([0b11010], np.uint64), first=1, count=3).tolist()
    [5]
    """
    return ((given >> np.uint64(first)) & np.uint64((1 << count) - 1)).view(np.int64)


def below(given: Bits, bound: int) -> Numbers:
    """Turn the high 32 bits into a number from 0 to below ``bound``."""
    return (((given >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)).view(np.int64)


class Law:
    """Draws values 1 to ``size`` by Zipf's law; which of them are frequent is a matter of chance.

    A table has each value as often as its share says, so that drawing is one look.
    """

    def __init__(self, size: int, skew: float, seed: int) -> None:
        width = max(_LEAST_ENTRIES, _ENTRIES_PER_VALUE * size)
        self._bits = (width - 1).bit_length()
        weights = np.arange(1, size + 1, dtype=np.float64) ** -skew
        ends = np.cumsum(weights) / weights.sum()
        middles = (np.arange(1 << self._bits) + 0.5) / (1 << self._bits)
        ranks = np.minimum(np.searchsorted(ends, middles), size - 1)
        self._values = (np.random.default_rng(seed).permutation(size) + 1)[ranks].astype(np.int32)

    def draw(self, given: Bits) -> Small:
        """Draw a value for each row, of its high bits."""
        return self._values[(given >> np.uint64(64 - self._bits)).view(np.int64)]


class Pieces:
    """Cuts runs of ``length`` rows into ``count`` pieces at random places.

    A run follows one of 1024 patterns. For each of its rows a pattern has the piece, the first row
    of the piece, and how many rows of the piece are still to come.
    """

    _PATTERNS = 1024

    def __init__(self, length: int, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        order = rng.random((self._PATTERNS, length - 1)).argsort(axis=1)[:, : count - 1]
        starts = np.zeros((self._PATTERNS, length), dtype=np.int64)
        np.put_along_axis(starts, order + 1, 1, axis=1)
        rows = np.arange(length)
        begins = np.maximum.accumulate(np.where(starts, rows, 0), axis=1)
        ends = np.where(np.roll(starts, -1, axis=1), rows, length - 1)
        ends[:, -1] = length - 1
        ends = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        self.length, self.count = length, count
        self._piece = np.cumsum(starts, axis=1).astype(np.int32).ravel()
        self._begin = begins.astype(np.int32).ravel()
        self._left = (ends - rows).astype(np.int32).ravel()

    def entries(self, runs: Numbers, rows: Numbers, salt: int) -> Numbers:
        """Give where in the patterns the rows of runs stand."""
        return bits(scatter(runs, salt), 40, 10) * self.length + rows

    def piece(self, entries: Numbers) -> Small:
        """Give the number of the piece in its run."""
        return self._piece[entries]

    def begin(self, entries: Numbers) -> Small:
        """Give the first row of the piece."""
        return self._begin[entries]

    def left(self, entries: Numbers) -> Small:
        """Give how many rows of the piece come after this one."""
        return self._left[entries]


def shuffled(positions: Numbers, width: int, total: int, salt: int) -> Numbers:
    """Say which row stands at each position, when blocks of ``width`` rows (2, 4, 8 ...) are mixed.

    The rows behind the last whole block stay where they are.

    >>> sorted(shuffled(np.arange(10), 4, 10, salt=1).tolist()) == list(range(10))
    True
    """
    size = width.bit_length() - 1
    block, x = positions >> size, positions & (width - 1)
    chance = scatter(block, salt)
    # Each step can be undone on numbers of so many bits: together they are a permutation.
    for first in (1, 21):
        x = x * (2 * bits(chance, first, 20) + 1) + bits(chance, 43, 20) & width - 1
        x ^= x >> (size + 1) // 2
    whole = positions < (total >> size << size)
    return np.where(whole, (block << size) | x, positions)
