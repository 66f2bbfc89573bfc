"""Moving vertices between parts, so that no part holds too much and little is cut.

A part has a limit per constraint: ``alpha`` times its share, or the heaviest vertex where that is
more, since no partition can do better. What is over its limit gives the vertices away whose edges
lose least; where single vertices do not fit anywhere, all are packed again, heavy ones first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from thalweg.sketches.graphs import Graph, Ints

Shares = npt.NDArray[np.float64]

#: Vertices whose edges to all parts are looked at together; bounds memory with many parts.
_CELLS = 1 << 24


def limits(graph: Graph, shares: Shares, alpha: float) -> Ints:
    """Give the most that each part may hold, one row per part, one column per constraint."""
    totals, heaviest = graph.weights.sum(axis=0), graph.weights.max(axis=0)
    return np.maximum(np.floor(alpha * np.outer(shares, totals)), heaviest).astype(np.int64)


def overload(loads: Ints, most: Ints) -> float:
    """Say by what factor the worst part is over its limit; at most 1 when all is well."""
    return float((loads / np.maximum(most, 1)).max(initial=0.0))


@dataclass(eq=False)
class Moving:
    """A partition that is being improved."""

    graph: Graph
    parts: Ints
    most: Ints
    loads: Ints
    rows: tuple[Ints, Ints, Ints]

    @classmethod
    def of(cls, graph: Graph, parts: Ints, most: Ints) -> Self:
        """Begin with these parts; they are not changed."""
        return cls(graph, parts.copy(), most, graph.loads(parts, len(most)), graph.rows())

    def repair(self) -> None:
        """Bring every part within its limits, where that is possible."""
        for constraint in range(self.graph.constraints):
            over = self.loads[:, constraint] - self.most[:, constraint]
            for part in np.argsort(-over, kind="stable")[: np.count_nonzero(over > 0)]:
                self._relieve(int(part), constraint)
            if (self.loads[:, constraint] > self.most[:, constraint]).any():
                self._pack(constraint)

    def refine(self, rounds: int = 4) -> None:
        """Move vertices to the part that most of their edges lead to, where there is room."""
        for _ in range(rounds):
            if not sum(self._improve(chunk) for chunk in self._chunks()):
                return

    def _chunks(self) -> list[Ints]:
        # Constraint by constraint: vertices of one component are not each other's neighbours.
        groups = [np.flatnonzero(column) for column in self.graph.weights.T]
        groups.append(np.flatnonzero(~self.graph.weights.any(axis=1)))
        step = max(1, _CELLS // len(self.most))
        return [group[i : i + step] for group in groups for i in range(0, len(group), step)]

    def _improve(self, vertices: Ints) -> int:
        towards = self._edges_to_parts(vertices)
        now = towards[np.arange(len(vertices)), self.parts[vertices]]
        gain = towards.max(axis=1) - now
        moved = 0
        for i in np.argsort(-gain, kind="stable")[: np.count_nonzero(gain > 0)]:
            vertex = int(vertices[i])
            best = np.where(self._has_room(vertex), towards[i], -1)
            target = int(best.argmax())
            if best[target] > now[i]:
                self._move(vertex, target)
                moved += 1
        return moved

    def _relieve(self, part: int, constraint: int) -> None:
        weights = self.graph.weights[:, constraint]
        vertices = np.flatnonzero((self.parts == part) & (weights > 0))
        towards = self._edges_to_parts(vertices)
        loss = towards[:, [part]] - towards
        loss[:, part] = np.iinfo(np.int64).max
        over = self.loads[part, constraint] - self.most[part, constraint]
        price = loss.min(axis=1) / np.minimum(weights[vertices], over)
        for i in np.argsort(price, kind="stable"):
            if self.loads[part, constraint] <= self.most[part, constraint]:
                return
            room = self._has_room(int(vertices[i]))
            room[part] = False
            if room.any():
                cheapest = np.where(room, loss[i], np.iinfo(np.int64).max).argmin()
                self._move(int(vertices[i]), int(cheapest))

    def _pack(self, constraint: int) -> None:
        """Place the vertices of a constraint anew, heavy ones first; keep the better of two."""
        before = self.parts.copy()
        found: list[tuple[float, int, Ints]] = []
        for sticky in (True, False):
            self._restore(before)
            self._pack_anew(constraint, sticky)
            worst = overload(self.loads[:, [constraint]], self.most[:, [constraint]])
            found.append((max(worst, 1.0), len(found), self.parts.copy()))
        self._restore(min(found)[2])

    def _pack_anew(self, constraint: int, sticky: bool) -> None:
        weights = self.graph.weights[:, constraint]
        vertices = np.flatnonzero(weights)
        vertices = vertices[np.argsort(-weights[vertices], kind="stable")]
        np.subtract.at(self.loads, self.parts[vertices], self.graph.weights[vertices])
        for vertex in vertices.tolist():
            loads = self.loads[:, constraint] + weights[vertex]
            target = int((loads / np.maximum(self.most[:, constraint], 1)).argmin())
            if sticky and loads[self.parts[vertex]] <= self.most[self.parts[vertex], constraint]:
                target = int(self.parts[vertex])
            self.parts[vertex] = target
            self.loads[target] += self.graph.weights[vertex]

    def _restore(self, parts: Ints) -> None:
        self.parts = parts.copy()
        self.loads = self.graph.loads(parts, len(self.most))

    def _has_room(self, vertex: int) -> npt.NDArray[np.bool_]:
        return (self.loads + self.graph.weights[vertex] <= self.most).all(axis=1)

    def _move(self, vertex: int, target: int) -> None:
        self.loads[self.parts[vertex]] -= self.graph.weights[vertex]
        self.loads[target] += self.graph.weights[vertex]
        self.parts[vertex] = target

    def _edges_to_parts(self, vertices: Ints) -> Ints:
        """Give the weight of each vertex's edges to each part."""
        starts, others, weights = self.rows
        number = starts[vertices + 1] - starts[vertices]
        own = np.repeat(np.arange(len(vertices)), number)
        begin = np.cumsum(number) - number
        at = np.repeat(starts[vertices] - begin, number) + np.arange(len(own))
        cells = own * len(self.most) + self.parts[others[at]]
        sums = np.bincount(cells, weights[at], len(vertices) * len(self.most))
        return sums.astype(np.int64).reshape(len(vertices), len(self.most))


def greedy(graph: Graph, most: Ints) -> Ints:
    """Place the vertices one by one, heavy ones first, with their neighbours where there is room.

    For graphs that are too small for Metis to coarsen, such as six keys on six places.
    """
    parts = np.full(graph.vertices, -1, np.int64)
    starts, others, weights = graph.rows()
    loads = np.zeros_like(most)
    relative = (graph.weights / np.maximum(graph.weights.sum(axis=0), 1)).max(axis=1)
    for vertex in np.argsort(-relative, kind="stable").tolist():
        near = slice(starts[vertex], starts[vertex + 1])
        placed = parts[others[near]] >= 0
        pull = np.bincount(parts[others[near]][placed], weights[near][placed], len(most))
        after = (loads + graph.weights[vertex]) / np.maximum(most, 1)
        worst = after.max(axis=1)
        # The part it is drawn to most among those with room; else the one that suffers least.
        target = int(np.lexsort((worst, np.where(worst <= 1, -pull, np.inf)))[0])
        parts[vertex] = target
        loads[target] += graph.weights[vertex]
    return parts
