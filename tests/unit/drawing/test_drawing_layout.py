"""Whatever the graph: nothing covers anything, and arrows lead downwards."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.drawing.layout import HEAD, Edge, Layout, Node, arrange

#: What rounding may add up to.
GAP = 1e-6
Rectangle = tuple[float, float, float, float]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Node], list[Edge]]:
    size = draw(st.integers(1, 8))
    sizes = st.floats(10, 200)
    nodes = [Node(f"n{i}", draw(sizes), draw(sizes)) for i in range(size)]
    pairs = list(combinations(range(size), 2))
    # A pair may be chosen twice: two streams from one component to another.
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    labels = st.floats(0, 120)
    edges = [Edge(f"n{a}", f"n{b}", draw(labels), draw(st.floats(0, 40))) for a, b in chosen]
    return nodes, edges


def overlap(a: Rectangle, b: Rectangle) -> bool:
    across = a[0] + GAP < b[0] + b[2] and b[0] + GAP < a[0] + a[2]
    return across and a[1] + GAP < b[1] + b[3] and b[1] + GAP < a[1] + a[3]


def labels_of(layout: Layout, edges: list[Edge]) -> list[Rectangle]:
    return [
        (route.label[0] - e.label_width / 2, route.label[1], e.label_width, e.label_height)
        for route, e in zip(layout.routes, edges, strict=True)
    ]


@settings(deadline=None)
@given(graphs())
def test_boxes_and_labels_have_room_of_their_own(graph: tuple[list[Node], list[Edge]]) -> None:
    nodes, edges = graph
    layout = arrange(nodes, edges)
    rectangles = [*layout.boxes.values(), *labels_of(layout, edges)]
    assert not any(overlap(a, b) for a, b in combinations(rectangles, 2))
    for x, y, width, height in rectangles:
        assert x >= -GAP
        assert y >= -GAP
        assert x + width <= layout.width + GAP
        assert y + height <= layout.height + GAP


@settings(deadline=None)
@given(graphs())
def test_arrows_run_down_from_box_to_box(graph: tuple[list[Node], list[Edge]]) -> None:
    nodes, edges = graph
    layout = arrange(nodes, edges)
    for route, edge in zip(layout.routes, edges, strict=True):
        heights = [y for _, y in route.points]
        assert heights == sorted(heights)
        x, y, width, height = layout.boxes[edge.source]
        assert x - GAP <= route.points[0][0] <= x + width + GAP
        assert route.points[0][1] == y + height
        x, y, width, _ = layout.boxes[edge.target]
        assert x - GAP <= route.points[-1][0] <= x + width + GAP
        assert route.points[-1][1] == y
        assert route.points[-2][1] <= y - HEAD + GAP


@settings(deadline=None)
@given(graphs())
def test_arrows_pass_no_box_and_no_label(graph: tuple[list[Node], list[Edge]]) -> None:
    nodes, edges = graph
    layout = arrange(nodes, edges)
    labels = labels_of(layout, edges)
    for number, route in enumerate(layout.routes):
        others = [*layout.boxes.values(), *labels[:number], *labels[number + 1 :]]
        # Bends stay in the free space between layers; what could touch are the straight parts.
        for (x, top), (_, bottom) in zip(route.points[::2], route.points[1::2], strict=True):
            line = (x, top, 1e-3, bottom - top)
            assert not any(overlap(line, other) for other in others)


def test_a_chain_is_a_straight_line() -> None:
    nodes = [Node(name, width, 20) for name, width in (("a", 50), ("b", 90), ("c", 30))]
    layout = arrange(nodes, [Edge("a", "b"), Edge("b", "c")])
    assert len({round(x, 6) for route in layout.routes for x, _ in route.points}) == 1


def test_nothing_to_draw() -> None:
    assert arrange([], []).boxes == {}
