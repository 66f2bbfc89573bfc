"""What two routing tables of a component differ in, as units of its state.

A *unit* is what has one place in each of two tables: a single key that one of them gives a place
of its own, or a key group, which stands for all other keys in it. Units are numbered: first the
keys in the order of their hashes, then the groups.

>>> old = RoutingTable.even(places=2, groups=4)
>>> units = Units.between(old, old.with_keys({"eu": 0, "us": 1}))
>>> len(units.hashes), len(units)
(2, 6)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.errors import UsageError, explain
from thalweg.hashing import Hashes, key_groups
from thalweg.routing.table import Places, RoutingTable

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a component's state between two tables, and their places in both."""

    #: Hashes of the units that are single keys, sorted.
    hashes: Hashes
    #: Place of each unit in the old and in the new table.
    sources: Places
    targets: Places

    @classmethod
    def between(cls, old: RoutingTable, new: RoutingTable) -> Units:
        """Compare two tables of one component."""
        if len(old.groups) != len(new.groups):
            expected = f"{len(old.groups)} key groups, as before"
            hint = "their number is fixed for the life of a topology"
            text = explain("new routing table", "", expected, str(len(new.groups)), hint)
            raise UsageError(text)
        hashes = _union(old.hashes, new.hashes)
        sources, targets = (
            np.concatenate([table.places_of(hashes), table.groups]) for table in (old, new)
        )
        return cls(hashes, sources, targets)

    def __len__(self) -> int:
        return len(self.sources)

    def of(self, hashes: Hashes) -> Numbers:
        """Give the unit of each key, by its hash."""
        keys = len(self.hashes)
        units = keys + key_groups(hashes, len(self) - keys)
        if keys:
            at = np.minimum(np.searchsorted(self.hashes, hashes), keys - 1)
            units = np.where(self.hashes[at] == hashes, at, units)
        return units

    def moved(self) -> Numbers:
        """Give the units that the two tables place differently."""
        return np.flatnonzero(self.sources != self.targets)

    def table(self, epoch: int, places: int, owners: Places) -> RoutingTable:
        """Make the table that gives each unit this place."""
        keys = len(self.hashes)
        return RoutingTable(epoch, places, owners[keys:], self.hashes, owners[:keys])


def _union(one: Hashes, other: Hashes) -> Hashes:
    # Merging two sorted arrays is many times faster than np.union1d, which hashes them.
    both = np.sort(np.concatenate([one, other]), kind="stable")
    first = np.ones(len(both), dtype=np.bool_)
    first[1:] = both[1:] != both[:-1]
    return both[first]
