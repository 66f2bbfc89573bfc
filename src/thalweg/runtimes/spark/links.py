"""Which keys are counted together: what one tuple, or a tuple and its outcome, brings along.

A *link* names two components. Either the first sends to the second, perhaps through stateless
bolts, and a pair is (key there, key here); or both read one stream, and a pair is one tuple's two
keys; or the first is the partitions of a source, written ``@name``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from thalweg.blocks import Rows
from thalweg.hashing import Hashes, hash_columns, hash_key
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.pairing import has_movable_keys
from thalweg.runtimes.spark.planning import Edge, Plan
from thalweg.topology import Component


@dataclass(frozen=True)
class Links:
    """Where pairs of keys are counted in a plan."""

    #: Components whose keys may have a place of their own.
    movable: frozenset[str]
    #: Components whose outputs reach such keys: it must be known what they stem from.
    leading: frozenset[str]
    #: For each stream, the readers whose keys one tuple brings together.
    beside: Mapping[tuple[str, str], tuple[tuple[Edge, Edge], ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Links:
        """Find them."""
        movable = frozenset(c.name for c in plan.topology if is_movable(c, plan.places))
        beside = {}
        for stream, edges in plan.edges.items():
            ends = {edge.reader: edge for edge in edges if ends_at(edge, movable)}
            beside[stream] = tuple(pairwise(ends.values()))
        return cls(movable, _leading(plan, movable), beside)


def is_movable(component: Component, places: int) -> bool:
    """Say whether keys of a component can be given a place one by one.

    Its tasks and the places must be the same thing, and a key's hash must tell its task.
    """
    return component.degree == places and has_movable_keys(component)


def ends_at(edge: Edge, movable: frozenset[str]) -> bool:
    """Say whether a stream brings keys to a component that may move them."""
    return edge.how == "exchange" and edge.reader in movable


def _leading(plan: Plan, movable: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for component in reversed(plan.topology.components):
        edges = (
            edge for stream in component.outputs for edge in plan.edges[component.name, stream]
        )
        if any(ends_at(e, movable) or (e.how == "here" and e.reader in found) for e in edges):
            found.add(component.name)
    return frozenset(found)


@dataclass(frozen=True)
class Behind:
    """The keys that the rows of a block had at the last keyed component."""

    component: str
    #: The key's columns there; a partition of a source has its one hash instead.
    columns: tuple[pa.Array, ...]
    hash: Hashes | None = None
    #: The row there of each row here; None when they are the same.
    rows: Rows | None = None

    @classmethod
    def partition(cls, source: str, number: int) -> Behind:
        """Make the one of a partition of a source."""
        return cls(f"@{source}", (), np.array([hash_key(number)], dtype=np.uint64))

    def of(self, emission: Emission) -> Behind | None:
        """Follow a bolt, if it is known which rows its own stem from."""
        if emission.parents is None or emission.whole:
            return None
        return self._at(emission.parents)

    def run(self, start: int, rows: int) -> Behind:
        """Follow a run of neighbouring rows."""
        return self._at(np.arange(start, start + rows, dtype=np.int64))

    def _at(self, chosen: Rows) -> Behind:
        rows = chosen if self.rows is None else self.rows[chosen]
        return Behind(self.component, self.columns, self.hash, rows)

    def hashes(self, chosen: Rows) -> Hashes:
        """Give the hashes of some rows."""
        if self.hash is not None:
            return self.hash.repeat(len(chosen))
        return hash_columns(self.keys(chosen))

    def keys(self, chosen: Rows) -> list[pa.Array]:
        """Give the columns of the key of some rows; those of a partition have none."""
        rows = pa.array(chosen if self.rows is None else self.rows[chosen])
        return [column.take(rows) for column in self.columns]
