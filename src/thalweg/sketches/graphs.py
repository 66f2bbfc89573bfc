"""Undirected graphs with weights, as arrays.

>>> graph = Graph.of(np.array([[1], [1], [2]]), np.array([0, 1, 0]), np.array([1, 0, 2]),
...                  np.array([3.0, 4.0, 5.0]))
>>> graph.vertices, graph.constraints, graph.edge_weights.tolist()
(3, 1, [7, 5])
>>> graph.cut(np.array([0, 0, 1]))
5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from thalweg.errors import UsageError, explain

Ints = npt.NDArray[np.int64]

#: Metis adds weights up in 32 bits where it is built so; smaller sums leave room for its slack.
_LARGEST_SUM = 1 << 30


@dataclass(frozen=True, eq=False)
class Graph:
    """Each edge once, without loops; weights are whole numbers that add up to at most 2^30."""

    #: One row per vertex, one column per balance constraint.
    weights: Ints
    #: The ends of each edge, and its weight (above 0).
    left: Ints
    right: Ints
    edge_weights: Ints

    @classmethod
    def of(
        cls, weights: npt.ArrayLike, left: Ints, right: Ints, edge_weights: npt.ArrayLike
    ) -> Self:
        """Make a graph; parallel edges become one, and weights are scaled where they are large."""
        by_vertex = np.asarray(weights, np.float64)
        if by_vertex.ndim != 2 or len(left) != len(right):
            text = "a matrix of vertices and constraints, and two ends of each edge"
            got = f"{by_vertex.ndim} dimensions, {len(left)} and {len(right)} ends"
            raise UsageError(explain("key graph", expected=text, got=got))
        vertices = len(by_vertex)
        low, high = np.minimum(left, right), np.maximum(left, right)
        real = low != high
        codes, at = np.unique(low[real] * vertices + high[real], return_inverse=True)
        given = np.asarray(edge_weights, np.float64)[real]
        heavy = np.bincount(at, given, len(codes)).astype(np.float64)
        codes, heavy = codes[heavy > 0], heavy[heavy > 0]
        wide = max(vertices, 1)
        return cls(_whole(by_vertex), codes // wide, codes % wide, _whole(heavy))

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        return len(self.weights)

    @property
    def constraints(self) -> int:
        """How many sums of weights are to be balanced."""
        return self.weights.shape[1]

    def rows(self) -> tuple[Ints, Ints, Ints]:
        """Give where each vertex's neighbours begin, its neighbours, and the edges' weights."""
        ends = np.concatenate((self.left, self.right))
        order = np.argsort(ends, kind="stable")
        starts = np.zeros(self.vertices + 1, np.int64)
        np.cumsum(np.bincount(ends, minlength=self.vertices), out=starts[1:])
        others = np.concatenate((self.right, self.left))[order]
        return starts, others, np.concatenate((self.edge_weights, self.edge_weights))[order]

    def together(self) -> Ints:
        """Give one weight per vertex, in which each constraint counts alike, whatever its unit."""
        totals = np.maximum(self.weights.sum(axis=0), 1)
        shares = (self.weights / totals).sum(axis=1) / max(self.constraints, 1)
        return np.rint(shares * (_LARGEST_SUM >> 1)).astype(np.int64)

    def cut(self, parts: Ints) -> int:
        """Give the weight of the edges between different parts."""
        return int(self.edge_weights[parts[self.left] != parts[self.right]].sum())

    def loads(self, parts: Ints, number: int) -> Ints:
        """Give the weight in each part, one row per part, one column per constraint."""
        loads = np.zeros((number, self.constraints), np.int64)
        np.add.at(loads, parts, self.weights)
        return loads

    def within(self, kept: npt.NDArray[np.bool_]) -> Self:
        """Give the graph of these vertices only, numbered anew in the same order."""
        number = np.cumsum(kept) - 1
        inside = kept[self.left] & kept[self.right]
        ends = (number[self.left[inside]], number[self.right[inside]])
        return type(self)(self.weights[kept], *ends, self.edge_weights[inside])


def _whole(weights: npt.NDArray[np.float64]) -> Ints:
    """Scale columns to whole numbers with a bounded sum; what weighs something still does."""
    if not weights.size:
        return weights.astype(np.int64)
    largest = max(float(np.atleast_1d(weights.sum(axis=0)).max()), 1.0)
    whole = np.equal(np.mod(weights, 1), 0).all()
    # Fractions are scaled up, so that what rounding takes is small against the weights.
    scale = 1.0 if whole and largest <= _LARGEST_SUM else (_LARGEST_SUM - weights.size) / largest
    return np.where(weights > 0, np.maximum(np.rint(weights * scale), 1), 0).astype(np.int64)
