"""Tables of the elasticity benchmark: ``python -m thalweg.bench.elastic_tables FILE`` prints them.

The file is what ``thalweg bench elastic --json`` or ``elastic-real --json`` wrote.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Results = Mapping[str, Any]

#: Measures, how they are headed, and how they are written.
_MEASURES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "lost": ("lost, %", lambda share: f"{100 * share:.2f}"),
    "resource_seconds": ("core-seconds", lambda seconds: f"{seconds:,.0f}"),
    "oracle_ratio": ("core-seconds, by those of the oracle", lambda ratio: f"{ratio:.2f}"),
    "latency_mean": ("mean latency, s", lambda seconds: f"{seconds:.2f}"),
    "latency_p99": ("99 % of tuples are faster than, s", lambda seconds: f"{seconds:.1f}"),
    "reconfigurations": ("changes", lambda count: f"{count:.0f}"),
    "scale_ins_while_growing": (
        "degrees that fell while more and more tuples waited",
        lambda count: f"{count:.1f}",
    ),
}


def table(results: Results, scenarios: Sequence[str], measure: str) -> str:
    """Write one measure of some scenarios, a policy a row; published losses stand in brackets.

    >>> found = {"x": {"policies": {"static": {"lost": 0.5}}, "published_lost": {"static": 0.4}}}
    >>> print(table(found, ["x"], "lost"))
    | lost, % | x |
    |---|---|
    | static | 50.00 (40) |
    """
    title, written = _MEASURES[measure]
    labels = dict.fromkeys(label for name in scenarios for label in results[name]["policies"])
    lines = [f"| {title} | {' | '.join(scenarios)} |", "|---" * (len(scenarios) + 1) + "|"]
    for label in labels:
        cells = []
        for name in scenarios:
            row = results[name]["policies"].get(label)
            published = results[name].get("published_lost", {}).get(label)
            known = measure == "lost" and published is not None
            beside = f" ({100 * published:g})" if known else ""
            cells.append("" if row is None else written(row[measure]) + beside)
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def groups(results: Results) -> Iterator[list[str]]:
    """Put scenarios together that have the same policies, and losses to compare with or not."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, each in results.items():
        published = "published" if each.get("published_lost") else ""
        found.setdefault((published, *sorted(each["policies"])), []).append(name)
    yield from found.values()


def tables(results: Results) -> str:
    """Write all measures of all scenarios."""
    made = []
    for scenarios in groups(results):
        rows = next(iter(results[scenarios[0]]["policies"].values()))
        made += [table(results, scenarios, measure) for measure in _MEASURES if measure in rows]
    return "\n\n".join(made)


if __name__ == "__main__":
    sys.stdout.write(tables(json.loads(Path(sys.argv[1]).read_text("utf-8"))["results"]) + "\n")
