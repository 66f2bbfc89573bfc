"""What a task needs: what was declared at first, then what its tasks have used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from thalweg.control.scaling.values import Node, Sample, View, Window


def learnt_cores(samples: Iterable[Sample], declared: float, after: int = 30) -> float:
    """Estimate the cores that a task needs: what was reserved at first, then what it used.

    The use that counts is that of the busiest task of a sample, exceeded in one of twenty samples;
    after as many samples as ``after`` it has replaced the declared value altogether.

    >>> from thalweg.control.scaling.values import TaskLoad
    >>> half = Sample("count", 0.0, 1, 10, 10, tasks=(TaskLoad(used=0.5),))
    >>> [learnt_cores([half] * n, declared=0.2) for n in (0, 15, 60)]
    [0.2, 0.35, 0.5]
    """
    return _learnt([max(t.used for t in s.tasks) for s in samples if s.tasks], declared, after)


def learnt_memory(samples: Iterable[Sample], declared: float, after: int = 30) -> float:
    """Estimate the bytes that a task needs, in the same way; a task of which none are known has 0.

    >>> from thalweg.control.scaling.values import TaskLoad
    >>> unknown = Sample("count", 0.0, 1, 10, 10, tasks=(TaskLoad(used=0.5),))
    >>> learnt_memory([unknown] * 60, declared=512e6)
    512000000.0
    """
    most = (max(task.memory for task in sample.tasks) for sample in samples if sample.tasks)
    return _learnt([memory for memory in most if memory], declared, after)


def with_learnt_cores(view: View) -> View:
    """Show what tasks need in place of what was declared, to policies that go by what is reserved.

    >>> from thalweg.control.scaling.monitor import Monitor
    >>> from thalweg.control.scaling.values import TaskLoad
    >>> monitor = Monitor([Node("count", reserved=1.0)])
    >>> load = TaskLoad(used=0.25)
    >>> monitor.add(*(Sample("count", 10.0 * k, 1, 9, 9, tasks=(load,)) for k in range(1, 31)))
    >>> seen = with_learnt_cores(monitor.view(300.0))
    >>> seen.node("count").reserved, seen.windows["count"].last.tasks[0].reserved
    (0.25, 0.25)
    """
    nodes = tuple(
        replace(node, reserved=learnt_cores(view.history.get(node.name, ()), node.reserved))
        for node in view.nodes
    )
    windows = {node.name: _reserving(view.windows[node.name], node) for node in nodes}
    return replace(view, nodes=nodes, windows=windows)


def _reserving(window: Window, node: Node) -> Window:
    """Let the newest sample say what a task needs; policies look at no other one for that."""
    if not window.samples or not window.last.tasks:
        return window
    tasks = tuple(replace(task, reserved=node.reserved) for task in window.last.tasks)
    newest = replace(window.last, tasks=tasks)
    return replace(window, samples=(*window.samples[:-1], newest))


def _learnt(seen: list[float], declared: float, after: int) -> float:
    if not seen:
        return declared
    high = sorted(seen)[min(len(seen) - 1, int(0.95 * len(seen)))]
    trust = min(1.0, len(seen) / after)
    return trust * high + (1 - trust) * declared
