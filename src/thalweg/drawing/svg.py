"""A topology as a self-contained SVG picture."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from thalweg.drawing.facts import COLOURS, edge_label, streams, unusual_traits, wrapped
from thalweg.drawing.layout import Edge, Layout, Node, Point, Route, arrange
from thalweg.topology import Component, Topology

_TITLE, _TEXT, _LABEL = 15, 12, 11
_LINE = 1.4
_DESCENT = 0.4
_PADDING = 12
_WRAP = 46
# A record with a hundred fields would fill the picture; a reader wants the first ones.
_FIELD_LINES = 6

_STYLE = """
  text { font-family: "Helvetica Neue", Helvetica, Arial, sans-serif; fill: #212121; }
  .name { font-size: 15px; font-weight: bold; }
  .about { font-size: 12px; fill: #555555; }
  .fields { font-size: 12px; }
  .label { font-size: 11px; fill: #37474f; text-anchor: middle; }
  .edge { fill: none; stroke: #78909c; stroke-width: 1.5; }
"""
_HEAD = (
    '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M 0 0 L 10 5 L 0 10 z" fill="#78909c"/></marker>'
)


def svg(topology: Topology) -> str:
    """Draw a topology as an SVG document."""
    inputs = [(component, input_) for component in topology for input_ in component.inputs]
    labels = [edge_label(input_) for _, input_ in inputs]
    nodes = [_node(component) for component in topology]
    edges = [
        Edge(input_.component, component.name, *_size(label, _LABEL))
        for (component, input_), label in zip(inputs, labels, strict=True)
    ]
    layout = arrange(nodes, edges)
    parts = [*_opening(topology.name, layout)]
    parts += [_arrow(route) for route in layout.routes]
    for route, label in zip(layout.routes, labels, strict=True):
        parts += _edge_text(route, label)
    for component in topology:
        parts += _box(component, layout.boxes[component.name])
    return "\n".join([*parts, "</svg>", ""])


def _opening(name: str, layout: Layout) -> Iterator[str]:
    width, height = f"{layout.width:.0f}", f"{layout.height:.0f}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">'
    )
    yield f"<title>Topology {_safe(name)}</title>"
    yield f"<style>{_STYLE}</style>"
    yield f"<defs>{_HEAD}</defs>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'


def _about(component: Component) -> list[str]:
    return wrapped(", ".join(unusual_traits(component)), _WRAP)


def _fields(component: Component) -> list[str]:
    lines: list[str] = []
    for stream, fields in streams(component):
        shown = wrapped(f"{stream}: ({fields})" if stream else f"({fields})", _WRAP)
        lines += shown if len(shown) <= _FIELD_LINES else [*shown[: _FIELD_LINES - 1], "…)"]
    return lines


def _node(component: Component) -> Node:
    sizes = [_size([component.name], _TITLE, bold=True)]
    sizes += [_size([line], _TEXT) for line in (*_about(component), *_fields(component))]
    width = max(width for width, _ in sizes) + 2 * _PADDING
    return Node(component.name, width, sum(height for _, height in sizes) + 2 * _PADDING)


def _box(component: Component, place: tuple[float, float, float, float]) -> Iterator[str]:
    x, y, width, height = place
    fill, line = COLOURS[component.role]
    yield (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="8" '
        f'fill="{fill}" stroke="{line}" stroke-width="1.5"/>'
    )
    left = x + _PADDING
    base = y + _PADDING
    texts = [("name", component.name, _TITLE)]
    texts += [("about", line, _TEXT) for line in _about(component)]
    texts += [("fields", line, _TEXT) for line in _fields(component)]
    for kind, text, size in texts:
        base += size * _LINE
        y = base - size * _DESCENT
        yield f'<text class="{kind}" x="{left:.1f}" y="{y:.1f}">{_safe(text)}</text>'


def _arrow(route: Route) -> str:
    return f'<path class="edge" d="{_path(route.points)}" marker-end="url(#head)"/>'


def _path(points: Sequence[Point]) -> str:
    """Join points in turn by a straight line and a bend."""
    (x, y), *rest = points
    steps = [f"M {x:.1f} {y:.1f}"]
    for number, (to_x, to_y) in enumerate(rest):
        middle = (y + to_y) / 2
        bend = f"C {x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
        steps.append(bend if number % 2 else f"L {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    return " ".join(steps)


def _edge_text(route: Route, label: Sequence[str]) -> Iterator[str]:
    width, height = _size(label, _LABEL)
    x, y = route.label
    yield (
        f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        'fill="#ffffff"/>'
    )
    for number, line in enumerate(label, 1):
        base = y + number * _LABEL * _LINE - _LABEL * _DESCENT
        yield f'<text class="label" x="{x:.1f}" y="{base:.1f}">{_safe(line)}</text>'


def _size(lines: Sequence[str], size: int, bold: bool = False) -> tuple[float, float]:
    """Estimate the room that lines of text need; fonts differ, so rather too much."""
    widest = max(sum(_letter(letter) for letter in line) for line in lines)
    return widest * size * (1.1 if bold else 1.0), len(lines) * size * _LINE


def _letter(letter: str) -> float:
    return 1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.58


def _safe(text: str) -> str:
    """Escape for XML, which knows no way at all to write control characters."""
    return escape("".join(letter if letter.isprintable() else "\ufffd" for letter in text))
