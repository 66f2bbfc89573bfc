"""Reconfigurations for the suite: keys get random places between blocks, and nobody may notice."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from thalweg.control.rerouting import Cost, Rerouting, Seen, Tables
from thalweg.errors import StateError
from thalweg.execution import Rebalance, Reroute, Steering
from thalweg.hashing import Hashes, hash_key
from thalweg.routing.table import RoutingTable
from thalweg.topology import Topology

# Spouts of cases emit these; what comes from inputs is found there.
_USUAL = range(130)


class Anywhere:
    """Gives random places to keys that occur, and takes back those that it gave before."""

    sampling = 1.0

    def __init__(
        self,
        inputs: Mapping[str, Iterable[Any]],
        seed: int,
        *,
        moments: Collection[int] | None = None,
        groups: bool = True,
        budget: int = 1 << 62,
    ) -> None:
        """Move keys after every wave, or after these; also whole key groups, where that goes."""
        self.random = random.Random(seed)
        self.moments, self.groups, self.budget = moments, groups, budget
        self.seen: list[Seen] = []
        self.known = {hash_key(number) for number in _USUAL}
        for given in inputs.values():
            self.known.update(h for item in given for h in hashes_in(item))

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Note the keys of a wave; decide."""
        self.seen.append(seen)
        for pairs in seen.pairs.values():
            self.known.update(pairs.left.tolist(), pairs.right.tolist())
        due = self.moments is None or len(self.seen) in self.moments
        if seen.moving or not due or not tables:
            return None
        new = {name: self.anywhere(table) for name, table in tables.items()}
        return Rerouting(new, {name: Cost(size=10.0) for name in new}, self.budget)

    def anywhere(self, table: RoutingTable) -> RoutingTable:
        """Make a table."""
        places = np.random.default_rng(self.random.randrange(1 << 32))
        chosen = self.random.sample(sorted(self.known), len(self.known) // 2)
        hashes: Hashes = np.array(chosen, dtype=np.uint64)
        made = table.with_hashes(hashes, places.integers(table.places, size=len(hashes)))
        if not self.groups:
            return made
        return replace(made, groups=places.integers(table.places, size=len(table.groups)))

    @property
    def moved(self) -> int:
        """How many times a key changed its place."""
        return sum(seen.moved_keys for seen in self.seen)


class Restless(Steering):
    """Asks for other degrees of any bolts, as soon as the last ones are there."""

    def __init__(self, topology: Topology, seed: int, times: int = 20) -> None:
        super().__init__()
        self.random, self.left = random.Random(seed), times
        self.names = [component.name for component in topology if not component.is_spout]

    def take(self) -> Rebalance | Reroute | None:
        """Think of another one."""
        if not self.left:
            return None
        self.left -= 1
        return Rebalance(self.random.choice(self.names), self.random.randint(1, 4))


def hashes_in(item: Any) -> list[int]:
    """Hash all that may be a key in an item: its fields, and runs of them."""
    fields = item if isinstance(item, tuple) else (item,)
    runs = [fields[i:j] for i in range(len(fields)) for j in range(i + 2, len(fields) + 1)]
    found = []
    for key in (*fields, *runs):
        try:
            found.append(hash_key(key))
        except StateError:  # no key, then
            continue
    return found
