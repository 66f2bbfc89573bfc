"""What a set of routing tables is worth: locality, imbalance, heavy keys, what a change moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from thalweg.control.links import (
    KeyBytes,
    KeyWeights,
    Link,
    Pairs,
    Tables,
    key_weights,
    number_of_places,
    places_of,
)
from thalweg.routing.table import RoutingTable, united


@dataclass(frozen=True)
class Locality:
    """Share of the tuples whose two keys are at the same place."""

    overall: float
    by_link: Mapping[Link, float]


@dataclass(frozen=True)
class HeavyKey:
    """A key that alone is more than a place should get."""

    component: str
    key_hash: int
    #: Share of the component's tuples.
    share: float


@dataclass(frozen=True)
class Outlook:
    """Tables, measured on pairs."""

    locality: Locality
    #: Most loaded place against the mean, by component.
    imbalance: Mapping[str, float]

    @property
    def worst(self) -> float:
        """Imbalance of the component that is balanced worst."""
        return max(self.imbalance.values(), default=1.0)


def locality(pairs: Pairs, tables: Tables) -> Locality:
    """Measure which share of the pairs stays at one place, by link and in all."""
    local, seen = {}, {}
    for link, counts in pairs.items():
        left = places_of(link.sender, counts.left, tables)
        same = left == places_of(link.reader, counts.right, tables)
        local[link], seen[link] = float(counts.count[same].sum()), float(counts.count.sum())
    by_link = {link: local[link] / seen[link] if seen[link] else 0.0 for link in pairs}
    total = sum(seen.values())
    return Locality(sum(local.values()) / total if total else 0.0, by_link)


def imbalance(weights: KeyWeights, tables: Tables) -> dict[str, float]:
    """Measure the most loaded place of each component against the mean of its places."""
    places, found = number_of_places(tables), {}
    for component, (keys, counts) in weights.items():
        loads = np.bincount(places_of(component, keys, tables), counts, places)
        found[component] = float(places * loads.max() / loads.sum()) if loads.any() else 1.0
    return found


def outlook(pairs: Pairs, tables: Tables) -> Outlook:
    """Measure tables on pairs."""
    return Outlook(locality(pairs, tables), imbalance(key_weights(pairs), tables))


def heavy_keys(weights: KeyWeights, above: float, number: int) -> tuple[HeavyKey, ...]:
    """Give the keys whose share of their component's tuples is above a bound, heaviest first."""
    found = []
    for component, (keys, counts) in weights.items():
        shares = counts / max(float(counts.sum()), 1e-300)
        for i in np.flatnonzero(shares > above).tolist():
            found.append(HeavyKey(component, int(keys[i]), float(shares[i])))
    return tuple(sorted(found, key=lambda key: (-key.share, key.component, key.key_hash))[:number])


def moved(old: RoutingTable, new: RoutingTable, state: KeyBytes) -> tuple[int, float]:
    """Give the number of keys with state that change their place, and their bytes."""
    keys = united(old.hashes, new.hashes)
    sizes = state.of(keys[old.places_of(keys) != new.places_of(keys)])
    return int(np.count_nonzero(sizes)), float(sizes.sum())
