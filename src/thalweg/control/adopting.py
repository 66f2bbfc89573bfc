"""Placing keys with the keys that they arrive with, between two decisions.

A table is made from what was seen; keys that come later go by their key group, and most of their
tuples travel. A key is better placed where its partners are, as soon as they are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from thalweg.control.links import (
    SOURCE,
    Pairs,
    Tables,
    key_weights,
    places_of,
)
from thalweg.hashing import Hashes
from thalweg.routing.table import Places, RoutingTable, distinct, is_in, positions, united
from thalweg.sketches.pairs import PairCounts, Weights

Flags = npt.NDArray[np.bool_]

_NO_KEYS = np.empty(0, np.uint64)
#: Keys that were seen less often are hardly known: the next tuples say as much about them.
FEW = 5
#: Numbers to be kept of new keys of a component; beyond, those that came so far stay.
_CAPACITY = 4_000_000


def adopt(
    recent: Pairs, tables: Tables, known: Mapping[str, Hashes], alpha: float = 1.3
) -> dict[str, RoutingTable] | None:
    """Place keys with the partners they arrive with most; None when there is nothing to do.

    Keys in ``known`` (sorted hashes, by component) stay where they are. No place of a component
    gets more than ``alpha`` times the mean of the ``recent`` tuples through this.
    """
    return Adopter(known, alpha).after(recent, tables)


class Adopter:
    """Places keys that come after tables were made, and remembers why they are where they are.

    A new key goes where it met most partners so far, and moves on when others have become more. A
    partner counts when it is in a table, or is a partition of a source, for the place where it
    was at the time. Known keys stay where they are.
    """

    def __init__(
        self, known: Mapping[str, Hashes], alpha: float = 1.3, capacity: int = _CAPACITY
    ) -> None:
        #: Hashes by component, sorted.
        self._known = dict(known)
        self._alpha = alpha
        self._capacity = capacity
        self._met: dict[str, _Met] = {}
        #: Tuples of each place, by component.
        self._loads: dict[str, Weights] = {}

    @classmethod
    def since(cls, seen: Pairs, tables: Tables, alpha: float = 1.3, few: int = FEW) -> Adopter:
        """Begin with tables that were made from these pairs: most of their keys are known.

        Those seen less than ``few`` times are as good as new, but for the partners they have met.
        """
        heavy = key_weights(seen)
        made = cls({name: keys[counts >= few] for name, (keys, counts) in heavy.items()}, alpha)
        made._weigh(seen, tables)
        for component, partner, counts in _both_ways(seen):
            made._remember(component, partner, counts, tables)
        return made

    def after(self, recent: Pairs, tables: Tables) -> dict[str, RoutingTable] | None:
        """Take note of pairs that came by these tables; give new ones, or None to keep them.

        No place gets more than ``alpha`` times the mean of all that was seen so far through this.
        All tables of the answer are of the next epoch.
        """
        self._weigh(recent, tables)
        made = dict(tables)
        # Readers follow senders first, as tuples do. Twice: a key just adopted is a partner.
        for _ in range(2):
            for component, partner, counts in _both_ways(recent):
                self._follow(component, partner, counts, made)
            if not _changed(made, tables):
                break
        for component, partner, counts in _both_ways(recent):
            self._remember(component, partner, counts, made)
        self._forget()
        if not _changed(made, tables):
            return None
        return {name: replace(made[name], epoch=tables[name].epoch + 1) for name in tables}

    def is_new(self, component: str, hashes: Hashes) -> Flags:
        """Say which keys are not known."""
        return ~is_in(hashes, self._known.get(component, _NO_KEYS))

    # --- what was seen -------------------------------------------------------------------------

    def _weigh(self, pairs: Pairs, tables: Tables) -> None:
        for name, (keys, counts) in key_weights(pairs).items():
            table = tables[name]
            loads = np.bincount(table.places_of(keys), counts, table.places)
            if len(self._loads.get(name, loads)) != table.places:
                # The number of places has changed: what was seen at others says nothing.
                del self._loads[name]
                self._met.pop(name, None)
            self._loads[name] = self._loads.get(name, np.zeros(table.places)) + loads
            new = self.is_new(name, keys)
            if new.any():
                met = self._met.get(name, _Met.nobody(table.places))
                self._met[name] = met.with_weights(keys[new], counts[new])

    def _remember(self, component: str, partner: str, counts: PairCounts, tables: Tables) -> None:
        drawn = self._drawn(component, partner, counts, tables)
        if drawn is not None:
            keys, towards = drawn
            self._met[component].towards[np.searchsorted(self._met[component].keys, keys)] = towards

    def _forget(self) -> None:
        for name, met in list(self._met.items()):
            if met.towards.size > self._capacity:
                self._known[name] = united(self._known.get(name, _NO_KEYS), met.keys)
                del self._met[name]

    # --- places --------------------------------------------------------------------------------

    def _follow(
        self, component: str, partner: str, counts: PairCounts, tables: dict[str, RoutingTable]
    ) -> None:
        """Place new keys of a component (right) with their partners (left)."""
        drawn = self._drawn(component, partner, counts, tables)
        if drawn is None:
            return
        keys, towards = drawn
        table = tables[component]
        now, own = table.places_of(keys), np.arange(len(keys))
        target = self._fitting(component, keys, now, towards)
        # A key that is well placed already is listed, so that it is a partner for others.
        well = towards[own, now] >= towards.max(axis=1)
        chosen = (target != now) | (well & ~is_in(keys, table.hashes))
        if chosen.any():
            # Of two entries for one key the later one counts.
            tables[component] = table.with_hashes(
                np.concatenate((table.hashes, keys[chosen])),
                np.concatenate((table.key_places, target[chosen])),
            )

    def _drawn(
        self, component: str, partner: str, counts: PairCounts, tables: Tables
    ) -> tuple[Hashes, Weights] | None:
        """Give the new keys among these that have a partner, and what draws them where so far."""
        rows = self.is_new(component, counts.right) & _placed(partner, counts.left, tables)
        if not rows.any():
            return None
        keys, places = distinct(counts.right[rows]), tables[component].places
        cells = np.searchsorted(keys, counts.right[rows]) * places
        cells += places_of(partner, counts.left[rows], tables)
        here = np.bincount(cells, counts.count[rows], len(keys) * places)
        met = self._met[component]
        return keys, met.towards[np.searchsorted(met.keys, keys)] + here.reshape(-1, places)

    def _fitting(self, component: str, keys: Hashes, now: Places, towards: Weights) -> Places:
        """Give each key the place that draws it most and has room; heavy ones come first."""
        met, loads = self._met[component], self._loads[component]
        most = self._alpha * loads.mean()
        heavy, target = met.weights[np.searchsorted(met.keys, keys)], now.copy()
        better = np.flatnonzero(towards.max(axis=1) > towards[np.arange(len(keys)), now])
        for i in better[np.argsort(-heavy[better], kind="stable")].tolist():
            drawing = towards[i] > towards[i, now[i]]
            room = loads + heavy[i] <= most
            if (drawing & room).any():
                target[i] = int(np.where(drawing & room, towards[i], -1.0).argmax())
                loads[now[i]] -= heavy[i]
                loads[target[i]] += heavy[i]
        return target


@dataclass(frozen=True, eq=False)
class _Met:
    """New keys of a component."""

    #: Sorted.
    keys: Hashes
    #: Tuples of each key.
    weights: Weights
    #: How often each key (row) met partners at each place (column).
    towards: Weights

    @classmethod
    def nobody(cls, places: int) -> _Met:
        return cls(_NO_KEYS, np.empty(0), np.empty((0, places)))

    def with_weights(self, keys: Hashes, counts: Weights) -> _Met:
        """Let these keys (sorted) weigh more; those that are not here join."""
        at, here = positions(self.keys, keys)
        joins = ~here
        if joins.any():
            # Where each goes among those that are here.
            behind = np.searchsorted(self.keys, keys[joins])
            grown = _Met(
                np.insert(self.keys, behind, keys[joins]),
                np.insert(self.weights, behind, 0.0),
                np.insert(self.towards, behind, 0.0, axis=0),
            )
            return grown.with_weights(keys, counts)
        self.weights[at] += counts
        return self


def _changed(new: Tables, old: Tables) -> bool:
    return any(new[name] is not table for name, table in old.items())


def _both_ways(pairs: Pairs) -> Iterator[tuple[str, str, PairCounts]]:
    """Give who may follow whom: readers their senders, and the other way round."""
    for link, counts in pairs.items():
        yield link.reader, link.sender, counts
        if not link.from_source:
            yield link.sender, link.reader, replace(counts, left=counts.right, right=counts.left)


def _placed(component: str, hashes: Hashes, tables: Tables) -> Flags:
    if component.startswith(SOURCE):
        return places_of(component, hashes, tables) >= 0
    return is_in(hashes, tables[component].hashes)
