"""What locality is decided from: pairs of keys on links, traffic, and sizes of state.

A link says between which two components pairs were counted. Its sender is a keyed component, the
sibling of the reader where one stream feeds both, or the partitions of a source, written "@name".

>>> Link("@posts", "by_region").from_source, Link("by_region", "by_tag").from_source
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.hashing import Hashes, hash_columns
from thalweg.routing.table import Places, RoutingTable, distinct, positions
from thalweg.sketches.pairs import PairCounts, Weights, summed

Pairs = Mapping["Link", PairCounts]
Tables = Mapping[str, RoutingTable]
KeyWeights = Mapping[str, tuple[Hashes, Weights]]

SOURCE = "@"
#: Bytes that a key is thought to hold where a component's state was not measured.
GUESSED_KEY_BYTES = 100.0


class Link(NamedTuple):
    """Pairs are (key of the sender, key of the reader)."""

    sender: str
    reader: str

    @property
    def from_source(self) -> bool:
        """Whether the left keys are the numbers of a source's partitions."""
        return self.sender.startswith(SOURCE)


@dataclass(frozen=True, eq=False)
class KeyBytes:
    """Bytes of state by key of one component."""

    #: Sorted.
    hashes: Hashes
    sizes: Weights
    #: Bytes of a key that is not listed; 0 when all keys are.
    others: float = 0.0

    @classmethod
    def unknown(cls) -> KeyBytes:
        """Give a guess that is the same for all keys."""
        return cls(np.empty(0, np.uint64), np.empty(0), GUESSED_KEY_BYTES)

    def of(self, hashes: Hashes) -> Weights:
        """Give the bytes of each of these keys."""
        at, found = positions(self.hashes, hashes)
        sizes = np.full(len(hashes), self.others)
        sizes[found] = self.sizes[at[found]]
        return sizes


@dataclass(frozen=True, eq=False)
class Observed:
    """What a decision is made from; all links and components of one topology."""

    #: Pairs to make a table from.
    fit: Pairs
    #: Recent pairs that are not among those, to judge the table by.
    held_out: Pairs
    #: Tuples per second and mean bytes of a tuple, by link.
    rates: Mapping[Link, float]
    tuple_bytes: Mapping[Link, float]
    #: Bytes of state by component; a component that is missing is guessed.
    state: Mapping[str, KeyBytes] = field(default_factory=dict)
    #: Share of the tuples that were counted.
    sampling: float = 1.0

    def state_of(self, component: str) -> KeyBytes:
        """Give what is known of a component's state."""
        return self.state.get(component) or KeyBytes.unknown()

    def traffic(self, link: Link) -> float:
        """Give the bytes per second on a link."""
        return self.rates.get(link, 0.0) * self.tuple_bytes.get(link, 0.0)

    def sent_by(self, sender: str) -> float:
        """Give the bytes per second on all links from a component or source."""
        return sum(self.traffic(link) for link in self.fit if link.sender == sender)


def comparable(tables: Tables) -> Tables:
    """Give the tables that can be compared: those with the most places."""
    most = max((table.places for table in tables.values()), default=1)
    return {name: table for name, table in tables.items() if table.places == most}


def parted(ends: Iterable[tuple[str, str]], tables: Tables) -> str:
    """Say between whose keys nobody looks for pairs as places differ; empty where they do not.

    >>> parted([("a", "b")], {"a": RoutingTable.even(2), "b": RoutingTable.even(3)})
    'keys are brought together only while a and b have as many tasks'
    """
    found = dict.fromkeys(
        name
        for sender, reader in ends
        if sender in tables and reader in tables
        if tables[sender].places != tables[reader].places
        for name in (sender, reader)
    )
    names = " and ".join(found)
    return f"keys are brought together only while {names} have as many tasks" if names else ""


def number_of_places(tables: Tables) -> int:
    """Give the number of places, which is the same for all tables."""
    return next(iter(tables.values())).places


def places_of(component: str, hashes: Hashes, tables: Tables) -> Places:
    """Give the place of each key of a component, or of each partition of a source.

    Partition i of a source lies at place i; what lies nowhere has place -1.
    """
    if not component.startswith(SOURCE):
        return tables[component].places_of(hashes)
    numbers = np.arange(number_of_places(tables))
    partitions = hash_columns([pa.array(numbers)])
    order = np.argsort(partitions)
    at, found = positions(partitions[order], hashes)
    return np.where(found, numbers[order][at], -1)


def key_weights(pairs: Pairs) -> dict[str, tuple[Hashes, Weights]]:
    """Give the keys of each component, sorted, with how many tuples each receives.

    What arrives on several links adds up; what leaves on several was one tuple before.
    """
    arriving: dict[str, list[PairCounts]] = {}
    found: dict[str, list[tuple[Hashes, Weights]]] = {}
    for link, counts in pairs.items():
        arriving.setdefault(link.reader, []).append(counts)
        if not link.from_source:
            found.setdefault(link.sender, []).append(counts.left_weights())
    for reader, parts in arriving.items():
        keys = np.concatenate([part.right for part in parts])
        heavy = np.concatenate([part.count for part in parts])
        found.setdefault(reader, []).append(summed(keys, heavy))
    return {component: _largest(parts) for component, parts in sorted(found.items())}


def _largest(parts: list[tuple[Hashes, Weights]]) -> tuple[Hashes, Weights]:
    keys = distinct(np.concatenate([part[0] for part in parts]))
    weights = np.zeros(len(keys))
    for hashes, counts in parts:
        at = np.searchsorted(keys, hashes)
        weights[at] = np.maximum(weights[at], counts)
    return keys, weights
