"""Where boxes and arrows go: a layered layout from top to bottom (Sugiyama, Tagawa, Toda, 1981).

Every box is one layer below the lowest box it reads. An arrow that passes a layer gets a lane of
its own there, and every label a slot above the box it leads to, so that nothing covers anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

MARGIN = 24.0
#: Height left for arrows to bend, between a layer and the labels of the next one.
BEND = 36.0
#: From the bottom of a label to the box: room for the head of the arrow.
HEAD = 16.0
_GAP = 36.0
_LANE = 12.0
_LABEL_GAP = 16.0
_SWEEPS = 4

Point = tuple[float, float]


@dataclass(frozen=True)
class Node:
    """A box to place."""

    name: str
    width: float
    height: float


@dataclass(frozen=True)
class Edge:
    """An arrow to draw, with the size of its label."""

    source: str
    target: str
    label_width: float = 0.0
    label_height: float = 0.0


@dataclass(frozen=True)
class Route:
    """An arrow: points joined in turn by a straight line and a bend, a straight line last."""

    points: tuple[Point, ...]
    #: Middle of the upper side of the label.
    label: Point


@dataclass(frozen=True)
class Layout:
    """The finished drawing plan: left upper corner, width and height by name; arrows as given."""

    boxes: Mapping[str, tuple[float, float, float, float]]
    routes: tuple[Route, ...]
    width: float
    height: float


def arrange(nodes: Sequence[Node], edges: Sequence[Edge]) -> Layout:
    """Place boxes and arrows; ``nodes`` come in an order in which sources precede targets."""
    return _Plan(nodes, edges).layout()


class _Plan:
    """One layout under way."""

    def __init__(self, nodes: Sequence[Node], edges: Sequence[Edge]) -> None:
        self._edges = edges
        self._nodes = {node.name: node for node in nodes}
        self._widths = {node.name: self._wide_enough(node) for node in nodes}
        level = _levels(nodes, edges)
        self._layers: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
        for name, number in level.items():
            self._layers[number].append(name)
        self._chains = [self._chain(i, edge, level) for i, edge in enumerate(edges)]
        self._links = [pair for chain in self._chains for pair in pairwise(chain)]

    def _wide_enough(self, node: Node) -> float:
        labels = [e.label_width + _LABEL_GAP for e in self._edges if e.target == node.name]
        leaving = [e for e in self._edges if e.source == node.name]
        return max(node.width, sum(labels), _LABEL_GAP * len(leaving))

    def _chain(self, number: int, edge: Edge, level: Mapping[str, int]) -> list[str]:
        """Give an edge a lane in each layer that it passes."""
        lanes = []
        for passed in range(level[edge.source] + 1, level[edge.target]):
            lane = f"{number}/{passed}"
            self._widths[lane] = _LANE
            self._layers[passed].append(lane)
            lanes.append(lane)
        return [edge.source, *lanes, edge.target]

    def layout(self) -> Layout:
        self._sort_layers()
        centres = self._centres()
        left = min((centres[n] - self._widths[n] / 2 for n in centres), default=0.0)
        centres = {name: x - left + MARGIN for name, x in centres.items()}
        rows, height = self._rows()
        boxes = {
            node.name: (
                centres[node.name] - self._widths[node.name] / 2,
                rows[node.name].top,
                self._widths[node.name],
                node.height,
            )
            for node in self._nodes.values()
        }
        right = max((centres[n] + self._widths[n] / 2 for n in centres), default=0.0)
        routes = _Router(self._edges, self._chains, centres, rows).routes()
        return Layout(boxes, routes, right + MARGIN, height)

    def _sort_layers(self) -> None:
        """Reduce crossings: sort each layer by the mean place of its neighbours, to and fro."""
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            layers = self._layers if down else self._layers[::-1]
            for before, layer in pairwise(layers):
                place = {name: float(i) for i, name in enumerate(before)}
                own = {name: float(i) for i, name in enumerate(layer)}
                wanted = {n: _mean(self._neighbours(n, down), place, own[n]) for n in layer}
                layer.sort(key=wanted.__getitem__)

    def _neighbours(self, name: str, above: bool) -> list[str]:
        if above:
            return [source for source, target in self._links if target == name]
        return [target for source, target in self._links if source == name]

    def _centres(self) -> dict[str, float]:
        """Pull each box towards the middle of its neighbours, keeping order and distance."""
        centres: dict[str, float] = {}
        for layer in self._layers:
            centres |= self._spread(layer, dict.fromkeys(layer, 0.0))
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for layer in self._layers if down else self._layers[::-1]:
                wanted = {n: _mean(self._neighbours(n, down), centres, centres[n]) for n in layer}
                centres |= self._spread(layer, wanted)
        return centres

    def _spread(self, layer: Sequence[str], wanted: Mapping[str, float]) -> dict[str, float]:
        centres: dict[str, float] = {}
        edge = float("-inf")
        for name in layer:
            half = self._widths[name] / 2
            centres[name] = max(wanted[name], edge + half)
            edge = centres[name] + half + _GAP
        error = sum(wanted[n] - centres[n] for n in layer) / max(1, len(layer))
        return {name: x + error for name, x in centres.items()}

    def _rows(self) -> tuple[dict[str, _Row], float]:
        """Give the heights of everything in each name's layer, and the height of all."""
        rows: dict[str, _Row] = {}
        y = MARGIN
        for number, layer in enumerate(self._layers):
            labels = [e.label_height for e in self._edges if e.target in layer]
            bend_end = y + (BEND if number else 0.0)
            top = bend_end + (max(labels, default=0.0) + HEAD if number else 0.0)
            heights = {name: self._nodes[name].height for name in layer if name in self._nodes}
            y = top + max(heights.values())
            rows |= {n: _Row(bend_end, top, top + heights.get(n, 0.0), y) for n in layer}
        return rows, y + MARGIN


@dataclass(frozen=True)
class _Row:
    """Heights in a layer: where bends end, labels end, the box itself ends, all boxes end."""

    bend_end: float
    top: float
    box_end: float
    bottom: float


@dataclass(frozen=True)
class _Router:
    """Draws arrows through lanes, and gives each its port at both ends."""

    edges: Sequence[Edge]
    chains: Sequence[Sequence[str]]
    centres: Mapping[str, float]
    rows: Mapping[str, _Row]

    def routes(self) -> tuple[Route, ...]:
        starts = self._ports(out=True)
        ends = self._ports(out=False)
        return tuple(self._route(i, starts[i], ends[i]) for i in range(len(self.edges)))

    def _ports(self, out: bool) -> dict[int, float]:
        """Spread the arrows of each box along its side, in the order of where they go."""
        ports: dict[int, float] = {}
        for name in dict.fromkeys(edge.source if out else edge.target for edge in self.edges):
            mine = [i for i, e in enumerate(self.edges) if (e.source if out else e.target) == name]
            mine.sort(key=lambda i: self.centres[self.chains[i][1 if out else -2]])
            widths = [_LABEL_GAP + (0.0 if out else self.edges[i].label_width) for i in mine]
            x = self.centres[name] - sum(widths) / 2
            for i, width in zip(mine, widths, strict=True):
                ports[i] = x + width / 2
                x += width
        return ports

    def _route(self, number: int, start: float, end: float) -> Route:
        edge, chain = self.edges[number], self.chains[number]
        source, target = self.rows[edge.source], self.rows[edge.target]
        points = [(start, source.box_end), (start, source.bottom)]
        for lane in chain[1:-1]:
            x, row = self.centres[lane], self.rows[lane]
            points += [(x, row.bend_end), (x, row.bottom)]
        points += [(end, target.bend_end), (end, target.top)]
        return Route(tuple(points), (end, target.top - HEAD - edge.label_height))


def _levels(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for node in nodes:
        above = [levels[edge.source] for edge in edges if edge.target == node.name]
        levels[node.name] = max(above, default=-1) + 1
    return levels


def _mean(names: Iterable[str], places: Mapping[str, float], otherwise: float) -> float:
    found = [places[name] for name in names]
    return sum(found) / len(found) if found else otherwise
