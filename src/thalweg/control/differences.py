"""Which keys a reconfiguration has given another place, for people who look on.

>>> from thalweg.hashing import hash_key
>>> start = RoutingTable.even(places=2)
>>> old, new = ({"count": start.with_keys({"a": place})} for place in (0, 1))
>>> held = {"count": Held(new["count"].hashes, np.array([60]), np.array([9.0]))}
>>> moved = difference(old, new, held)
>>> moved.named({hash_key("a"): "a"}).moves
(KeyMove(component='count', key='a', before=0, after=1, count=9.0),)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from thalweg.events import Difference, KeyMove
from thalweg.hashing import Hashes
from thalweg.migration.plan import Held, Tables
from thalweg.routing.table import Places, RoutingTable, is_in

#: Keys of one reconfiguration that are told one by one.
MOST = 200


@dataclass(frozen=True, eq=False)
class Moved:
    """Keys that have another place, and how many key groups have one."""

    groups: int
    #: Of each key: its component, its hash, where it was and is, how often it was counted.
    components: npt.NDArray[np.object_]
    hashes: Hashes
    before: Places
    after: Places
    counts: npt.NDArray[np.float64]

    @cached_property
    def counted(self) -> frozenset[int]:
        """Hashes of those that occur most often."""
        rows = self._first(np.zeros(len(self.hashes), np.bool_))
        return frozenset(self.hashes[rows[self.counts[rows] > 0]].tolist())

    def named(self, names: Mapping[int, str]) -> Difference:
        """Tell those that occur most often; of equal ones, those that have a name."""
        rows = self._first(~is_in(self.hashes, np.array(sorted(names), np.uint64))).tolist()
        return Difference(len(self.hashes), self.groups, tuple(self._move(r, names) for r in rows))

    def _first(self, last: npt.NDArray[np.bool_]) -> Places:
        """Choose rows: those that occur most often, of equal ones some others last."""
        rows, rank = np.arange(len(self.counts)), -self.counts
        if len(rows) > MOST:  # all that may be among them, so that few have to be sorted
            least = np.partition(rank, MOST - 1)[MOST - 1]
            ends = rank == least
            chosen = (rank < least, ends & ~last, ends & last)
            rows = np.concatenate([np.flatnonzero(some)[:MOST] for some in chosen])
        return rows[np.lexsort((last[rows], rank[rows]))][:MOST]

    def _move(self, row: int, names: Mapping[int, str]) -> KeyMove:
        hash_ = int(self.hashes[row])
        text = names.get(hash_, f"0x{hash_:016x}")
        places = int(self.before[row]), int(self.after[row])
        return KeyMove(self.components[row], text, *places, float(self.counts[row]))


def difference(old: Tables, new: Tables, held: Mapping[str, Held]) -> Moved:
    """Compare tables, for the keys that are known to have state."""
    parts = [_moved(name, old[name], new[name], held[name]) for name in sorted(new)]
    nowhere = RoutingTable.even(1)
    parts.append(_moved("", nowhere, nowhere, Held.nothing()))  # so that there is one
    return Moved(
        sum(part.groups for part in parts),
        np.concatenate([part.components for part in parts]),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.before for part in parts]),
        np.concatenate([part.after for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )


def _moved(name: str, old: RoutingTable, new: RoutingTable, held: Held) -> Moved:
    before, after = old.places_of(held.hashes), new.places_of(held.hashes)
    rows = np.flatnonzero(before != after)
    return Moved(
        int(np.count_nonzero(old.groups != new.groups)),
        np.full(len(rows), name, np.object_),
        held.hashes[rows],
        before[rows],
        after[rows],
        held.heat[rows],
    )
