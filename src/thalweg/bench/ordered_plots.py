"""Pictures of what ordered processing costs and brings, numbered as in the document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from thalweg.drawing.charts import Points, line_chart

_FIGURES = (
    ("8a", "schedulers", "per_second", "Throughput by scheduler", "workers", "tuples/s"),
    ("8b", "schedulers", "latency_ms", "Processing latency by scheduler", "workers", "ms"),
    ("9", "skew", "per_second", "Throughput under skew", "sigma of the keys", "tuples/s"),
    ("10", "latency", "latency_ms", "Processing latency by cost", "us per tuple", "ms"),
    ("12a", "light", "speedup", "Speedup of a light operator", "workers", "times one worker"),
    ("12b", "light", "cost_us", "Cost of a light operator", "workers", "us per tuple"),
    ("13a", "selectivity", "speedup", "Speedup at selectivity 50", "workers", "times one worker"),
    ("13b", "selectivity", "cost_us", "Cost of the first operator", "workers", "us per tuple"),
)


def pictures(results: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give names and pictures.

    >>> measured = {"per_second": 10.0, "latency_ms": 1.0, "cost_us": 5.0}
    >>> parts = ("schedulers", "skew", "latency", "light", "selectivity")
    >>> [name for name, _ in pictures(dict.fromkeys(parts, {"1": {"a": measured}}))][:3]
    ['figure-8a', 'figure-8b', 'figure-9']
    """
    for number, part, measure, title, across, up in _FIGURES:
        by_cost = part == "latency"
        lines = _lines(results[part], measure, 1e6 if by_cost else 1.0)
        yield f"figure-{number}", line_chart(title, lines, across, up, logarithmic=by_cost)


def _lines(figure: Mapping[str, Any], measure: str, factor: float) -> dict[str, Points]:
    first = next(iter(figure.values()))
    return {
        name: [
            (factor * float(value), _value(found[name], first[name], measure))
            for value, found in figure.items()
        ]
        for name in first
    }


def _value(found: Mapping[str, float], first: Mapping[str, float], measure: str) -> float:
    if measure == "speedup":
        return found["per_second"] / first["per_second"]
    return found[measure]
