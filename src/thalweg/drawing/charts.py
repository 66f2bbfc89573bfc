"""Line charts as self-contained SVG pictures.

>>> "polyline" in line_chart("locality", {"hash": [(1, 0.2), (2, 0.2)]}, "period", "share")
True

A value that is not a number is a gap in its line. A page that shows them can give their parts other
colours: the background is of the class ``back``, lines of the grid are of ``grid``, and the n-th
series is of ``line-n``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

# Narrow enough for a telephone, where it is half as large.
_WIDTH, _PLOT, _LEFT, _TOP, _RIGHT, _BOTTOM = 560, 220, 66, 52, 18, 46
# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# Beyond so many points of a line, dots would touch each other.
_MOST_DOTS = 60
# Room of a letter in the legend, of what stands before a name, and of a line of names.
_LETTER, _SIGN, _ROW = 8.0, 36.0, 20.0
# Marks of an axis, at most.
_ACROSS, _UP = 7, 5


def line_chart(
    title: str,
    series: Mapping[str, Points],
    across: str,
    up: str,
    logarithmic: bool = False,
    span: Sequence[float] = (),
) -> str:
    """Draw named series of points; ``logarithmic`` is the axis across, which holds ``span``."""
    points = [point for line in series.values() for point in line]
    xs = [_scaled(x, logarithmic) for x in (*(x for x, _ in points), *span)] or [0.0]
    frame = _Frame.of(xs, [y for _, y in points if not math.isnan(y)] or [0.0])
    places = list(_legend(series))
    height = frame.bottom + _BOTTOM + _ROW * (places[-1][1] + 1 if places else 0)
    parts = [*_opening(title, height), *_axes(frame, across, up), *_grid(frame, logarithmic)]
    for number, (line, place) in enumerate(zip(series.items(), places, strict=True)):
        name, given = line
        parts += _line([frame.at(_scaled(x, logarithmic), y) for x, y in given], number)
        parts += _named(name, number, place[0], frame.bottom + _BOTTOM + 8 + _ROW * place[1])
    return "\n".join([*parts, "</svg>", ""])


def steps(points: Points) -> Points:
    """Let each value hold until the next one: it is drawn as steps.

    >>> steps([(0.0, 1.0), (2.0, 3.0)])
    [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]
    """
    made = list(points[:1])
    for (_, before), (x, y) in pairwise(points):
        made += [(x, before), (x, y)] if y != before else [(x, y)]
    return made


@dataclass(frozen=True)
class _Frame:
    """What the axes span, and the distances of their marks."""

    left: float
    right: float
    top: float
    across: float
    up: float
    bottom: float = _TOP + _PLOT

    @classmethod
    def of(cls, xs: Sequence[float], ys: Sequence[float]) -> _Frame:
        left, right, most = min(xs), max(*xs, min(xs) + 1e-9), max(*ys, 1e-9)
        up = _step(most, _UP)
        if all(y == int(y) for y in ys):  # there is no half of a task
            up = max(1.0, up)
        top = max(1, math.ceil(most / up - 1e-9)) * up
        return cls(left, right, top, _step(right - left, _ACROSS), up)

    def at(self, x: float, y: float) -> tuple[float, float]:
        share = (x - self.left) / (self.right - self.left)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT), self.bottom - y / self.top * _PLOT

    def marks_across(self) -> list[float]:
        first = math.ceil(self.left / self.across - 1e-9)
        last = math.floor(self.right / self.across + 1e-9)
        return [n * self.across for n in range(first, last + 1)]

    def marks_up(self) -> list[float]:
        return [n * self.up for n in range(round(self.top / self.up) + 1)]


def _step(span: float, most: int) -> float:
    """Give a round distance of marks: 1, 2 or 5, or one of these with zeros.

    >>> _step(699.0, 7), _step(1.0, 5), _step(35_000.0, 5)
    (100.0, 0.2, 10000.0)
    """
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(n * power for n in (1, 2, 5, 10) if n * power * most >= span * (1 - 1e-9))


def _legend(names: Mapping[str, Points]) -> Iterator[tuple[float, int]]:
    """Give each name its place below the picture: how far to the right, and in which row."""
    x, row = float(_LEFT), 0
    for name in names:
        room = _SIGN + _LETTER * len(name)
        if x + room > _WIDTH and x > _LEFT:
            x, row = float(_LEFT), row + 1
        yield x, row
        x += room


def _opening(title: str, height: float) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'width="{_WIDTH}" height="{height:.0f}" font-family="Helvetica, Arial, sans-serif">'
    )
    yield f"<title>{escape(title)}</title>"
    yield '<rect class="back" width="100%" height="100%" fill="#ffffff"/>'
    yield f'<text x="{_LEFT}" y="24" font-size="15" font-weight="bold">{escape(title)}</text>'


def _axes(frame: _Frame, across: str, up: str) -> Iterator[str]:
    yield f'<text x="{_LEFT}" y="42" font-size="12">{escape(up)}</text>'
    yield _text((_LEFT + _WIDTH - _RIGHT) / 2, frame.bottom + 38, across, "middle")


def _grid(frame: _Frame, logarithmic: bool) -> Iterator[str]:
    for y in frame.marks_up():
        left, height = frame.at(frame.left, y)
        yield (
            f'<line class="grid" x1="{left:.1f}" x2="{_WIDTH - _RIGHT}" y1="{height:.1f}" '
            f'y2="{height:.1f}" stroke="#dddddd"/>'
        )
        yield _text(left - 8, height + 4, _number(y, frame.top), "end")
    for x in frame.marks_across():
        shown, most = (10**x, math.inf) if logarithmic else (x, frame.right)
        yield _text(frame.at(x, 0)[0], frame.bottom + 18, _number(shown, most), "middle")


def _line(points: Points, number: int) -> Iterator[str]:
    colour, line = _COLOURS[number % len(_COLOURS)], f"line-{number % len(_COLOURS)}"
    pieces = [list(each) for missing, each in groupby(points, _is_missing) if not missing]
    for piece in pieces:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in piece)
        yield (
            f'<polyline class="{line}" points="{path}" fill="none" stroke="{colour}" '
            'stroke-width="2"/>'
        )
        # A line of one point is not seen.
        for x, y in piece if len(points) <= _MOST_DOTS or len(piece) == 1 else ():
            yield f'<circle class="{line}" cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'


def _is_missing(point: tuple[float, float]) -> bool:
    return math.isnan(point[1])


def _named(name: str, number: int, left: float, height: float) -> Iterator[str]:
    colour, line = _COLOURS[number % len(_COLOURS)], f"line-{number % len(_COLOURS)}"
    yield (
        f'<rect class="{line}" x="{left:.1f}" y="{height - 5:.1f}" width="14" height="4" '
        f'fill="{colour}"/>'
    )
    yield _text(left + 20, height + 1, name, "start")


def _number(value: float, most: float) -> str:
    """Write a number of an axis that goes up to some other; large ones are short.

    >>> _number(0.25, 1.0), _number(2.0, 6.0), _number(12500.0, 50_000.0)
    ('0.25', '2', '12,500')
    >>> _number(0.0, 1e6), _number(200_000.0, 1e6), _number(15e9, 20e9), _number(1e6, math.inf)
    ('0', '0.2 M', '15 G', '1 M')
    """
    size = value if math.isinf(most) else most
    for unit, name in ((1e9, " G"), (1e6, " M")):
        if size >= unit:
            return f"{value / unit:.12g}{name}" if value else "0"
    return f"{value:.3g}" if most < 100 else f"{value:,.0f}"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _scaled(x: float, logarithmic: bool) -> float:
    return math.log10(max(x, 1.0)) if logarithmic else float(x)
