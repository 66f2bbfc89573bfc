"""Balanced graph partitioning: few edges between parts, no part with too much of any constraint.

>>> two = Graph.of([[1, 0], [1, 0], [0, 1], [0, 1]], np.array([0, 1]), np.array([2, 3]), [5, 5])
>>> parts = partition(two, even(2), alpha=1.03, seed=1)
>>> bool(parts[0] == parts[2] != parts[1] == parts[3])
True
"""

from __future__ import annotations

import contextlib
from typing import Literal

import numpy as np
import numpy.typing as npt

from thalweg.errors import StateError, UsageError, explain
from thalweg.sketches import metis
from thalweg.sketches.assignment import Tree
from thalweg.sketches.balance import Moving, Shares, greedy, limits, overload
from thalweg.sketches.graphs import Graph, Ints
from thalweg.sketches.mtkahypar import mtkahypar_cut

__all__ = ["Engine", "Graph", "Tree", "even", "partition", "partition_tree"]

Engine = Literal["metis", "mtkahypar"]

#: Graphs with fewer vertices per part are also cut greedily, and the better one is kept.
_FEW = 50
#: Graphs with more edges are cut by summed weights only, which is ten times faster and as good.
_MANY = 50_000
#: Cuts with different seeds; each is repaired, and the best one is kept.
_TRIES = 4


def even(parts: int) -> Shares:
    """Give each part the same share.

    >>> even(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return np.full(parts, 1 / parts)


def partition(
    graph: Graph,
    shares: npt.ArrayLike,
    alpha: float = 1.03,
    seed: int = 1,
    engine: Engine = "metis",
) -> Ints:
    """Give each vertex a part; part i gets its share of every constraint, times alpha at most.

    Where a single vertex weighs more than that, its weight is the limit. The same arguments give
    the same parts.
    """
    fractions = _checked(shares, alpha)
    if len(fractions) == 1 or not graph.vertices:
        return np.zeros(graph.vertices, np.int64)
    most = limits(graph, fractions, alpha)
    found = [
        _improved(graph, parts, most)
        for parts in _candidates(graph, fractions, alpha, seed, engine)
    ]
    return min(found, key=_badness).parts


def partition_tree(
    graph: Graph, tree: Tree, alpha: float = 1.03, seed: int = 1, engine: Engine = "metis"
) -> Ints:
    """Give each vertex a place of a tree; few edges between its outer branches come first.

    The graph is cut among the outer groups by their number of places, then each part within its
    group, so that what cannot be at one place is at least on one host or in one rack.
    """
    places = _places(tree)
    if sorted(places) != list(range(len(places))):
        text = f"each of the places 0 to {len(places) - 1} once"
        raise UsageError(explain("tree of places", expected=text, got=str(tree)))
    # Imbalance multiplies from level to level.
    level_alpha = max(alpha, 1.0) ** (1 / max(_depth(tree), 1))
    return _within(graph, tree, level_alpha, seed, engine)


def _within(graph: Graph, tree: Tree, alpha: float, seed: int, engine: Engine) -> Ints:
    if isinstance(tree, int):
        return np.full(graph.vertices, tree, np.int64)
    sizes = np.array([len(_places(branch)) for branch in tree])
    parts = partition(graph, sizes / sizes.sum(), alpha, seed, engine)
    placed = np.empty(graph.vertices, np.int64)
    for number, branch in enumerate(tree):
        inside = parts == number
        placed[inside] = _within(graph.within(inside), branch, alpha, seed, engine)
    return placed


def _places(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [p for branch in tree for p in _places(branch)]


def _depth(tree: Tree) -> int:
    return 0 if isinstance(tree, int) else 1 + max(map(_depth, tree), default=0)


def _checked(shares: npt.ArrayLike, alpha: float) -> Shares:
    fractions = np.asarray(shares, np.float64)
    if not len(fractions) or fractions.min() <= 0 or alpha < 1:
        text = "one share above 0 per part, and alpha of at least 1"
        raise UsageError(explain("partition", expected=text, got=f"{fractions}, alpha {alpha}"))
    return fractions / fractions.sum()


def _candidates(
    graph: Graph, shares: Shares, alpha: float, seed: int, engine: Engine
) -> list[Ints]:
    found: list[Ints] = []
    if graph.vertices > len(shares) and len(graph.edge_weights):
        heaviest = graph.weights.max(axis=0) / np.maximum(graph.weights.sum(axis=0), 1)
        slack = np.maximum(alpha, 1.001 * heaviest / shares.max())
        for cut, own_seed in _cutters(graph, seed, engine):
            # A cut that Metis gives up on is left out: the others remain, or the greedy one.
            with contextlib.suppress(StateError, RuntimeError):
                found.append(cut(graph, shares, slack, own_seed))
    if not found or graph.vertices < _FEW * len(shares):
        found.append(greedy(graph, limits(graph, shares, alpha)))
    return found


def _cutters(graph: Graph, seed: int, engine: Engine) -> list[tuple[metis.Cutter, int]]:
    """Say what to try. Neither way of cutting is better on all data; both are, by 5 points."""
    if engine == "mtkahypar":
        return [(mtkahypar_cut, seed)]
    summed: list[tuple[metis.Cutter, int]] = [(metis.summed_cut, seed + i) for i in range(_TRIES)]
    if metis.can_balance_several() and len(graph.edge_weights) <= _MANY:
        return [(metis.several_cut, seed), *summed]
    return summed


def _improved(graph: Graph, parts: Ints, most: Ints) -> Moving:
    moving = Moving.of(graph, parts, most)
    moving.repair()
    moving.refine()
    return moving


def _badness(moving: Moving) -> tuple[float, int]:
    return max(overload(moving.loads, moving.most), 1.0), moving.graph.cut(moving.parts)
