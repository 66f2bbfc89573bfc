"""Latency budgets: how long tuples may wait at each component, so that they are in time in the end.

What a topology promises is a bound for the way from a source to the last component. What tuples
take to process on the longest way through a component is spent; the rest is shared out evenly
among the components on it. So on no way the waits and the processing are more than the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from thalweg.control.scaling.values import Node


def budgets(
    nodes: Sequence[Node], bound: float, takes: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Give the seconds that a tuple may wait at each component but the sources.

    ``nodes`` come in topological order; ``takes`` are the seconds that a tuple takes to process.

    >>> from thalweg.control.scaling.values import Stream
    >>> def reads(name, *parents):
    ...     return Node(name, tuple(Stream(parent, "out") for parent in parents))
    >>> chain = [Node("posts"), reads("split", "posts"), reads("count", "split")]
    >>> budgets(chain, 6.0)
    {'split': 3.0, 'count': 3.0}
    >>> budgets(chain, 6.0, {"count": 2.0})
    {'split': 2.0, 'count': 2.0}
    >>> budgets([*chain, reads("log", "posts")], 6.0)
    {'split': 3.0, 'count': 3.0, 'log': 6.0}
    """
    work = {
        node.name: 0.0 if node.is_source else (takes or {}).get(node.name, 0.0) for node in nodes
    }
    steps = {node.name: 0.0 if node.is_source else 1.0 for node in nodes}
    spent, passed = _longest(nodes, work), _longest(nodes, steps)
    return {
        node.name: max(0.0, bound - spent[node.name]) / passed[node.name]
        for node in nodes
        if not node.is_source
    }


def _longest(nodes: Sequence[Node], lengths: Mapping[str, float]) -> dict[str, float]:
    """Give the length of the longest way through each component, from a source to an end."""
    before: dict[str, float] = {}
    behind: dict[str, float] = dict.fromkeys(lengths, 0.0)
    for node in nodes:
        before[node.name] = lengths[node.name] + _most(before[p] for p in node.parents)
    for node in reversed(nodes):
        for parent in node.parents:
            whole = lengths[node.name] + behind[node.name]
            behind[parent] = max(behind[parent], whole)
    return {name: before[name] + behind[name] for name in lengths}


def _most(values: Iterable[float]) -> float:
    return max(values, default=0.0)
