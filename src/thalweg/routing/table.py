"""The routing table: which place owns a key, in which epoch.

Routing looks only at a key's 64-bit hash: single keys by an exact map, all others by key group.

>>> eu = np.array([hash_key("eu")], dtype=np.uint64)
>>> table = RoutingTable.even(places=4)
>>> int(table.places_of(eu)[0]) in range(4)
True
>>> moved = table.with_keys({"eu": 3})
>>> int(moved.places_of(eu)[0]), moved.epoch
(3, 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from thalweg.errors import ThalwegError, UsageError, explain
from thalweg.hashing import KEY_GROUPS, Hashes, hash_key, key_groups
from thalweg.keys import Key

Places = npt.NDArray[np.int64]


def distinct(hashes: Hashes) -> Hashes:
    """Give each hash once, ascending.

    By sorting: NumPy's own ways, which hash, take many times as long on a million hashes.
    """
    ascending = np.sort(hashes)
    if not len(ascending):
        return ascending
    return ascending[np.append(True, ascending[1:] != ascending[:-1])]


def united(a: Hashes, b: Hashes) -> Hashes:
    """Give the hashes that are in either, ascending."""
    return distinct(np.concatenate((a, b)))


def is_in(hashes: Hashes, ascending: Hashes) -> npt.NDArray[np.bool_]:
    """Say of each hash whether it is among the ascending ones."""
    return positions(ascending, hashes)[1]


def positions(ascending: Hashes, hashes: Hashes) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Say where each hash is among ascending ones, and whether it is there at all."""
    if not len(ascending):
        return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.bool_)
    at = np.minimum(np.searchsorted(ascending, hashes), len(ascending) - 1)
    return at, ascending[at] == hashes


@dataclass(frozen=True, eq=False)
class RoutingTable:
    """Immutable; a new epoch is a new table."""

    epoch: int
    places: int
    #: Place of each key group.
    groups: Places
    #: Hashes of the keys with a place of their own, sorted, and those places.
    hashes: Hashes
    key_places: Places

    @classmethod
    def even(cls, places: int, groups: int = KEY_GROUPS) -> RoutingTable:
        """Give each place an equal share of the key groups."""
        if places < 1 or groups < places:
            raise ThalwegError(
                explain("routing table", "", f"1 to {groups} places (key groups)", str(places))
            )
        owners = np.arange(groups, dtype=np.int64) * places // groups
        none = np.empty(0, dtype=np.uint64)
        return cls(0, places, owners, none, none.astype(np.int64))

    def with_keys(self, places: Mapping[Key, int]) -> RoutingTable:
        """Make the next epoch, in which exactly these keys have a place of their own."""
        hashes = np.array([hash_key(key) for key in places], dtype=np.uint64)
        return self.with_hashes(hashes, np.array(list(places.values()), dtype=np.int64))

    def with_hashes(self, hashes: Hashes, places: Places) -> RoutingTable:
        """Make the next epoch, in which exactly the keys with these hashes have such a place."""
        if len(places) and not (places.min() >= 0 and places.max() < self.places):
            text = explain("routing table", expected=f"places below {self.places}", got=str(places))
            raise ThalwegError(text)
        # Of two keys with one hash the last one counts, as in a dictionary.
        kept, last = np.unique(hashes[::-1], return_index=True)
        return replace(self, epoch=self.epoch + 1, hashes=kept, key_places=places[::-1][last])

    def resized(self, places: int, sharing: bool = True) -> RoutingTable:
        """Make the next epoch, with another number of places; few key groups move.

        Each place gets its share of the groups. Single keys keep their places, if these remain;
        but those whose group goes to a new place go with it, so that it has its share of them too.
        Not so without ``sharing``, for who gives them other places anyway.

        >>> RoutingTable.even(places=2, groups=6).resized(3).groups.tolist()
        [0, 0, 2, 1, 1, 2]
        """
        share, left = divmod(len(self.groups), max(places, 1))
        if places < 1 or not share:
            expected = f"1 to {len(self.groups)} places (key groups)"
            raise UsageError(explain("routing table", "", expected, str(places)))
        has = np.bincount(self.groups, minlength=places)[:places]
        gets = np.full(places, share)
        gets[np.argsort(-has, kind="stable")[:left]] += 1
        owned = [np.flatnonzero(self.groups == place)[gets[place] :] for place in range(places)]
        free = np.concatenate([*owned, np.flatnonzero(self.groups >= places)])
        groups = self.groups.copy()
        groups[np.sort(free)] = np.repeat(np.arange(places), np.maximum(gets - has, 0))
        stays = self.key_places < places
        if sharing:
            stays &= groups[key_groups(self.hashes, len(groups))] < self.places
        return RoutingTable(
            self.epoch + 1, places, groups, self.hashes[stays], self.key_places[stays]
        )

    def places_of(self, hashes: Hashes) -> Places:
        """Give the place of each key, by its hash."""
        owners = self.groups[key_groups(hashes, len(self.groups))]
        if len(self.hashes):
            at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
            owners = np.where(self.hashes[at] == hashes, self.key_places[at], owners)
        return owners


def check_places(name: str, table: RoutingTable, tasks: int) -> None:
    """Refuse a table that does not fit the tasks of a component."""
    subject = f"routing table of {name!r}"
    if table.places != tasks:
        raise UsageError(explain(subject, "", f"{tasks} places, its tasks", str(table.places)))
    used = np.concatenate([table.groups, table.key_places])
    wrong = used[(used < 0) | (used >= tasks)]
    if len(wrong):
        raise UsageError(explain(subject, "", f"places from 0 to {tasks - 1}", str(wrong[0])))
