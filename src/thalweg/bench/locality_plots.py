"""Pictures of what locality brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from thalweg.drawing.charts import Points, line_chart

#: What is varied, and what the axis across is called then.
AXES = {
    "hosts": "hosts",
    "padding": "bytes of padding",
    "locality": "locality of the tuples",
    "rate": "Mbit/s",
}
_RATE, _UP = "tuples_per_second", "tuples/s"


def pictures(results: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give names and pictures."""
    for source, ways in results.get("ways", {}).items():
        title = f"Throughput by batch, {source} source"
        yield f"ways-{source}", line_chart(title, _batches(ways), "batch", _UP)
    for name, across in AXES.items():
        rows = results.get(name, [])
        for source in rows[0]["ways"] if rows else ():
            title = f"Throughput by {name}, {source} source"
            lines, up = _lines(name, rows, source), _UP
            if name == "padding":  # without any, tuples are a hundred times as fast
                lines, up = _against_hash(lines), "times that of hash"
            yield f"{name}-{source}", line_chart(title, lines, across, up)
    for source, course in results.get("timeline", {}).items():
        title = f"A reconfiguration in the middle of a run, {source} source"
        yield f"timeline-{source}", line_chart(title, _course(course), "seconds", _UP)


def _batches(ways: Mapping[str, Any]) -> dict[str, Points]:
    return {
        name: [(i + 1, way["rows"] / seconds) for i, seconds in enumerate(way["seconds"])]
        for name, way in ways.items()
    }


def _lines(name: str, rows: Sequence[Mapping[str, Any]], source: str) -> dict[str, Points]:
    return {
        way: [(_number(row[name]), row["ways"][source][way][_RATE]) for row in rows]
        for way in rows[0]["ways"][source]
    }


def _against_hash(lines: Mapping[str, Points]) -> dict[str, Points]:
    bases = [y for _, y in lines["hash"]]
    return {
        way: [(x, y / base) for (x, y), base in zip(points, bases, strict=True)]
        for way, points in lines.items()
    }


def _course(course: Mapping[str, Any]) -> dict[str, Points]:
    """Give one line; what came before the reconfiguration and after has colours of its own."""
    batches = course["batches"]
    lines: dict[str, Points] = {}
    for way in dict.fromkeys(batch["way"] for batch in batches):
        lines[way] = [(b["at_seconds"], b[_RATE]) for b in batches if b["way"] == way]
    return lines


def _number(value: Any) -> float:
    """Read a value of a sweep; rates are in Mbit/s.

    >>> _number("200mbit"), _number("1gbit"), _number(0.6)
    (200.0, 1000.0, 0.6)
    """
    if not isinstance(value, str):
        return float(value)
    factor = 1000 if value.endswith("gbit") else 1
    return factor * float(value.removesuffix("mbit").removesuffix("gbit"))
