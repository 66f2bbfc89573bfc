"""Line charts as self-contained SVG pictures.

>>> "polyline" in line_chart("locality", {"hash": [(1, 0.2), (2, 0.2)]}, "period", "share")
True
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 720, 400, 70, 50, 170, 60
# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# Beyond so many points of a line, dots would touch each other.
_MOST_DOTS = 60


def line_chart(
    title: str, series: Mapping[str, Points], across: str, up: str, logarithmic: bool = False
) -> str:
    """Draw named series of points; ``logarithmic`` is the axis across."""
    points = [point for line in series.values() for point in line]
    xs = [_scaled(x, logarithmic) for x, _ in points] or [0.0]
    ys = [y for _, y in points] or [0.0]
    frame = (min(xs), max(*xs, min(xs) + 1e-9), 0.0, max(_round_up(max(ys)), 1e-9))
    parts = [*_opening(title, across, up), *_grid(frame, logarithmic)]
    for number, (name, line) in enumerate(series.items()):
        scaled = [(_scaled(x, logarithmic), y) for x, y in line]
        parts += _line(name, [_at(frame, x, y) for x, y in scaled], number)
    return "\n".join([*parts, "</svg>", ""])


def _opening(title: str, across: str, up: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="Helvetica, Arial, sans-serif">'
    )
    yield f"<title>{escape(title)}</title>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    yield f'<text x="{_LEFT}" y="28" font-size="15" font-weight="bold">{escape(title)}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield _text(middle, _HEIGHT - 16, across, "middle")
    yield f'<text x="{_LEFT}" y="44" font-size="12">{escape(up)}</text>'


def _grid(frame: tuple[float, float, float, float], logarithmic: bool) -> Iterator[str]:
    for i in range(5):
        x = frame[0] + (frame[1] - frame[0]) * i / 4
        y = frame[2] + (frame[3] - frame[2]) * i / 4
        left, height = _at(frame, frame[0], y)
        yield (
            f'<line x1="{left:.1f}" x2="{_WIDTH - _RIGHT}" y1="{height:.1f}" y2="{height:.1f}" '
            'stroke="#dddddd"/>'
        )
        yield _text(left - 8, height + 4, _number(y, frame[3]), "end")
        shown, most = (10**x, math.inf) if logarithmic else (x, frame[1])
        yield _text(_at(frame, x, 0)[0], _HEIGHT - _BOTTOM + 18, _number(shown, most), "middle")


def _line(name: str, points: Points, number: int) -> Iterator[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in points if len(points) <= _MOST_DOTS else ():
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'
    height = _TOP + 10 + 20 * number
    left = _WIDTH - _RIGHT + 14
    yield f'<rect x="{left}" y="{height - 5}" width="14" height="4" fill="{colour}"/>'
    yield _text(left + 20, height + 1, name, "start")


def _number(value: float, most: float) -> str:
    """Write a number of an axis that goes up to some other.

    >>> _number(0.25, 1.0), _number(2.0, 6.0), _number(12500.0, 50_000.0)
    ('0.25', '2', '12,500')
    """
    return f"{value:.3g}" if most < 100 else f"{value:,.0f}"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _at(frame: tuple[float, float, float, float], x: float, y: float) -> tuple[float, float]:
    across = (x - frame[0]) / (frame[1] - frame[0])
    up = (y - frame[2]) / (frame[3] - frame[2])
    return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (
        _HEIGHT - _TOP - _BOTTOM
    )


def _scaled(x: float, logarithmic: bool) -> float:
    return math.log10(max(x, 1.0)) if logarithmic else float(x)


def _round_up(value: float) -> float:
    if value <= 0:
        return 0.0
    step = 10.0 ** math.floor(math.log10(value)) / 2
    return math.ceil(value / step) * step
