"""Placing keys that a table does not know yet with the keys that they arrive with.

A table is made from what was seen; keys that come later go by their key group, and most of their
tuples travel. A new key is better placed where its partners are, as soon as they are known.
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
    number_of_places,
    places_of,
    positions,
)
from thalweg.hashing import Hashes
from thalweg.routing.table import Places, RoutingTable
from thalweg.sketches.pairs import PairCounts

Flags = npt.NDArray[np.bool_]


def adopt(
    recent: Pairs, tables: Tables, known: Mapping[str, Hashes], alpha: float = 1.1
) -> dict[str, RoutingTable] | None:
    """Place new keys with the partners they arrive with most; None when there is nothing to do.

    A key is new when no table has it and ``known`` (sorted hashes, by component) has not either.
    A partner counts when it is in a table, or is a partition of a source. No place of a component
    gets more than ``alpha`` times the mean of the ``recent`` tuples through this. All tables of
    the answer are of the next epoch.
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
        """Place new keys of a component (right) with their partners (left)."""
        rows = self._new(component, counts.right) & self._placed(partner, counts.left)
        if not rows.any():
            return
        places = number_of_places(self.tables)
        keys, at = np.unique(counts.right[rows], return_inverse=True)
        cells = at * places + places_of(partner, counts.left[rows], self.tables)
        towards = np.bincount(cells, counts.count[rows], len(keys) * places)
        target = towards.reshape(len(keys), places).argmax(axis=1)
        fits = self._fitting(component, keys, target)
        if fits.any():
            table = self.tables[component]
            self.tables[component] = table.with_hashes(
                np.concatenate((table.hashes, keys[fits])),
                np.concatenate((table.key_places, target[fits])),
            )

    def _new(self, component: str, hashes: Hashes) -> Flags:
        none = np.empty(0, np.uint64)
        in_table = positions(self.tables[component].hashes, hashes)[1]
        return ~in_table & ~positions(self.known.get(component, none), hashes)[1]

    def _placed(self, component: str, hashes: Hashes) -> Flags:
        if component.startswith(SOURCE):
            return places_of(component, hashes, self.tables) >= 0
        return positions(self.tables[component].hashes, hashes)[1]

    def _fitting(self, component: str, keys: Hashes, target: Places) -> Flags:
        """Say which keys leave their place's balance within bounds; heavy ones come first."""
        table, (known, counts) = self.tables[component], self.weights[component]
        loads = np.bincount(table.places_of(known), counts, table.places)
        most = self.alpha * loads.mean()
        heavy, now = counts[np.searchsorted(known, keys)], table.places_of(keys)
        fits = np.zeros(len(keys), bool)
        for i in np.argsort(-heavy, kind="stable").tolist():
            if now[i] == target[i] or loads[target[i]] + heavy[i] <= most:
                fits[i] = True
                loads[now[i]] -= heavy[i]
                loads[target[i]] += heavy[i]
        return fits
