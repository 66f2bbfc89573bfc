"""Placing keys with the keys that they arrive with, between two decisions.

A table is made from what was seen; keys that come later go by their key group, and most of their
tuples travel. A key is better placed where its partners are, as soon as they are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from thalweg.control.links import (
    SOURCE,
    KeyWeights,
    Pairs,
    Tables,
    key_weights,
    places_of,
)
from thalweg.hashing import Hashes
from thalweg.routing.table import Places, RoutingTable, positions
from thalweg.sketches.pairs import PairCounts

Flags = npt.NDArray[np.bool_]


def adopt(
    recent: Pairs, tables: Tables, known: Mapping[str, Hashes], alpha: float = 1.3
) -> dict[str, RoutingTable] | None:
    """Place keys with the partners they arrive with most; None when there is nothing to do.

    Keys in ``known`` (sorted hashes, by component) stay where they are: those that were seen
    before the tables were made, when only new keys are to be placed; none, when all keys may
    follow partners that have changed. A partner counts when it is in a table, or is a partition
    of a source. No place of a component gets more than ``alpha`` times the mean of the ``recent``
    tuples through this. All tables of the answer are of the next epoch.
    """
    work = _Adopting(dict(tables), known, key_weights(recent), alpha)
    # Readers follow senders first, as tuples do. Twice: a key that was just adopted is a partner.
    for _ in range(2):
        for link, counts in recent.items():
            work.follow(link.reader, link.sender, counts)
            if not link.from_source:
                turned = replace(counts, left=counts.right, right=counts.left)
                work.follow(link.sender, link.reader, turned)
    if all(work.tables[name] is table for name, table in tables.items()):
        return None
    return {name: replace(work.tables[name], epoch=tables[name].epoch + 1) for name in tables}


@dataclass(eq=False)
class _Adopting:
    """Tables that are being extended."""

    tables: dict[str, RoutingTable]
    known: Mapping[str, Hashes]
    weights: KeyWeights
    alpha: float

    def follow(self, component: str, partner: str, counts: PairCounts) -> None:
        """Place free keys of a component (right) with their partners (left)."""
        rows = self._free(component, counts.right) & self._placed(partner, counts.left)
        if not rows.any():
            return
        table = self.tables[component]
        keys, at = np.unique(counts.right[rows], return_inverse=True)
        cells = at * table.places + places_of(partner, counts.left[rows], self.tables)
        drawn = np.bincount(cells, counts.count[rows], len(keys) * table.places)
        towards = drawn.reshape(len(keys), table.places)
        now, best, own = table.places_of(keys), towards.argmax(axis=1), np.arange(len(keys))
        better = towards[own, best] > towards[own, now]
        target = np.where(better, best, now)
        # A key that is well placed already is listed, so that it is a partner for others.
        wanted = better | ~positions(table.hashes, keys)[1]
        chosen = self._fitting(component, keys[wanted], target[wanted])
        if chosen.any():
            # Of two entries for one key the later one counts.
            self.tables[component] = table.with_hashes(
                np.concatenate((table.hashes, keys[wanted][chosen])),
                np.concatenate((table.key_places, target[wanted][chosen])),
            )

    def _free(self, component: str, hashes: Hashes) -> Flags:
        known = self.known.get(component, np.empty(0, np.uint64))
        return ~positions(known, hashes)[1]

    def _placed(self, component: str, hashes: Hashes) -> Flags:
        if component.startswith(SOURCE):
            return places_of(component, hashes, self.tables) >= 0
        return positions(self.tables[component].hashes, hashes)[1]

    def _fitting(self, component: str, keys: Hashes, target: Places) -> Flags:
        """Say which keys leave their place's balance within bounds; heavy ones come first."""
        table, (seen, counts) = self.tables[component], self.weights[component]
        loads = np.bincount(table.places_of(seen), counts, table.places)
        most = self.alpha * loads.mean()
        heavy, now = counts[np.searchsorted(seen, keys)], table.places_of(keys)
        fits = np.zeros(len(keys), bool)
        for i in np.argsort(-heavy, kind="stable").tolist():
            if now[i] == target[i] or loads[target[i]] + heavy[i] <= most:
                fits[i] = True
                loads[now[i]] -= heavy[i]
                loads[target[i]] += heavy[i]
        return fits
