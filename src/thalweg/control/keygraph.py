"""From pairs of keys to routing tables: the key graph, its partition, and the places of parts.

Vertices are (component, key), weighted by how many tuples they receive; balance is required per
component. Edges are pairs, weighted by the bytes that travel between them. Partitions of a source
are vertices without weight, whose place is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from thalweg.control.links import (
    SOURCE,
    Link,
    Observed,
    Pairs,
    Tables,
    key_weights,
    number_of_places,
    places_of,
)
from thalweg.control.settings import LocalitySettings
from thalweg.hashing import Hashes
from thalweg.routing.table import RoutingTable, distinct
from thalweg.sketches.assignment import assign_tree
from thalweg.sketches.graphs import Graph, Ints
from thalweg.sketches.pairs import Weights
from thalweg.sketches.partition import partition_tree


@dataclass(frozen=True, eq=False)
class KeyGraph:
    """The graph of all links, and which key each vertex is."""

    graph: Graph
    #: Keys of each component or source, sorted; its vertices have consecutive numbers.
    keys: dict[str, Hashes]
    #: The number of the first vertex of each.
    first: dict[str, int]

    @classmethod
    def of(cls, pairs: Pairs, observed: Observed, edges: int) -> KeyGraph:
        """Build the graph of the heaviest pairs."""
        kept = _heaviest(_costs(pairs, observed), edges)
        sides: dict[str, list[Hashes]] = {}
        for link, chosen in kept.items():
            sides.setdefault(link.sender, []).append(pairs[link].left[chosen])
            sides.setdefault(link.reader, []).append(pairs[link].right[chosen])
        keys = {name: distinct(np.concatenate(side)) for name, side in sorted(sides.items())}
        begins = np.cumsum([0, *map(len, keys.values())]).tolist()
        first = dict(zip(keys, begins[:-1], strict=True))
        return cls(_graph(pairs, observed, kept, keys), keys, first)

    def of_component(self, name: str, values: Ints) -> Ints:
        """Take from one value per vertex those of a component."""
        return values[self.first[name] : self.first[name] + len(self.keys[name])]


def fitted(
    pairs: Pairs, observed: Observed, tables: Tables, how: LocalitySettings
) -> dict[str, RoutingTable]:
    """Make tables of the next epoch in which pairs share a place as often as balance permits."""
    key_graph = KeyGraph.of(pairs, observed, how.edges)
    tree = tuple(range(number_of_places(tables))) if how.tree is None else how.tree
    parts = partition_tree(key_graph.graph, tree, how.alpha, how.seed, how.engine)
    kept = _kept_bytes(key_graph, parts, observed, tables, how.horizon)
    places = assign_tree(tree, kept)[parts]
    made = {}
    for component, table in tables.items():
        if component in key_graph.keys:
            own = key_graph.of_component(component, places)
            made[component] = table.with_hashes(key_graph.keys[component], own)
        else:
            made[component] = replace(table, epoch=table.epoch + 1)
    return made


def _costs(pairs: Pairs, observed: Observed) -> dict[Link, Weights]:
    """Give the bytes of each pair; where sizes are unknown, a tuple is a tuple."""
    return {
        link: counts.count * max(observed.tuple_bytes.get(link, 1.0), 1.0)
        for link, counts in pairs.items()
    }


def _heaviest(costs: Mapping[Link, Weights], edges: int) -> dict[Link, npt.NDArray[np.bool_]]:
    """Say which pairs of each link are among the heaviest of all."""
    together = np.concatenate([np.empty(0), *costs.values()])
    chosen = np.zeros(len(together), bool)
    chosen[np.argsort(-together, kind="stable")[:edges]] = True
    ends = np.cumsum([len(cost) for cost in costs.values()])
    return dict(zip(costs, np.split(chosen, ends[:-1]), strict=True))


def _graph(
    pairs: Pairs,
    observed: Observed,
    kept: Mapping[Link, npt.NDArray[np.bool_]],
    keys: Mapping[str, Hashes],
) -> Graph:
    begins = dict(zip(keys, np.cumsum([0, *map(len, keys.values())]).tolist(), strict=False))
    costs = _costs(pairs, observed)

    def numbers(name: str, hashes: Hashes) -> Ints:
        return begins[name] + np.searchsorted(keys[name], hashes)

    left = [numbers(link.sender, pairs[link].left[at]) for link, at in kept.items()]
    right = [numbers(link.reader, pairs[link].right[at]) for link, at in kept.items()]
    cost = [costs[link][at] for link, at in kept.items()]
    none = np.empty(0, np.int64)
    ends = (np.concatenate([none, *left]), np.concatenate([none, *right]))
    return Graph.of(_vertex_weights(pairs, keys), *ends, np.concatenate([none, *cost]))


def _vertex_weights(pairs: Pairs, keys: Mapping[str, Hashes]) -> Weights:
    """Give one row per vertex with its weight in the column of its component."""
    all_weights = key_weights(pairs)
    columns = [name for name in keys if not name.startswith(SOURCE)]
    rows = []
    for name, hashes in keys.items():
        row = np.zeros((len(hashes), len(columns)))
        if name in columns:
            known, weights = all_weights[name]
            row[:, columns.index(name)] = weights[np.searchsorted(known, hashes)]
        rows.append(row)
    return np.concatenate(rows) if rows else np.zeros((0, 1))


def _kept_bytes(
    key_graph: KeyGraph, parts: Ints, observed: Observed, tables: Tables, horizon: float
) -> Weights:
    """Give what stays, or need not travel, when a part (row) becomes a place (column)."""
    places = number_of_places(tables)
    kept = np.zeros((places, places))
    for name, hashes in key_graph.keys.items():
        own, now = key_graph.of_component(name, parts), places_of(name, hashes, tables)
        if name in tables:
            # A byte more per key: among ways that keep the same bytes, fewer keys move.
            np.add.at(kept, (own, now), observed.state_of(name).of(hashes) + 1.0)
        else:
            here = now >= 0
            sent = _sent(key_graph, name, parts, places) * observed.sent_by(name) * horizon
            np.add.at(kept.T, now[here], sent[here])
    return kept


def _sent(key_graph: KeyGraph, source: str, parts: Ints, places: int) -> Weights:
    """Give the share of a source's traffic from each of its partitions to each part."""
    graph, begin = key_graph.graph, key_graph.first[source]
    number = len(key_graph.keys[source])
    found = np.zeros((number, places))
    for end, other in ((graph.left, graph.right), (graph.right, graph.left)):
        of_source = (end >= begin) & (end < begin + number)
        cells = (end[of_source] - begin, parts[other[of_source]])
        np.add.at(found, cells, graph.edge_weights[of_source])
    return found / max(float(found.sum()), 1.0)
