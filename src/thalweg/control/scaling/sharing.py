"""Scarce resources: when not every wish fits, capacity goes to the most valuable components first.

What a component lacks is shed, and said so: how many tuples it cannot process is known before they
are lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from thalweg.control.scaling.values import Decision, Node, Sample, View


@dataclass(frozen=True)
class Shed:
    """A component that gets less than it needs."""

    component: str
    wanted: int
    given: int

    @property
    def share(self) -> float:
        """The share of its tuples that cannot be processed, if it needs all that it wants."""
        return 1 - self.given / self.wanted


@dataclass(frozen=True)
class Shared:
    """Decisions that fit, and what that costs."""

    decisions: tuple[Decision, ...]
    shed: tuple[Shed, ...] = ()


def share(view: View, decisions: Iterable[Decision]) -> Shared:
    """Make decisions fit the slots that there are.

    Every component keeps its least degree. Of the rest, the component of the highest priority gets
    all that it asks for, then the next; equal ones get the same part of what they ask for.
    """
    wanted = {made.component: made for made in decisions}
    fixed = sum(degree for name, degree in view.degrees.items() if name not in wanted)
    if view.slots is None or fixed + sum(m.degree for m in wanted.values()) <= view.slots:
        return Shared(tuple(wanted.values()))
    given = _given(view, wanted, view.slots - fixed)
    shed = [
        Shed(name, made.degree, given[name])
        for name, made in wanted.items()
        if given[name] < made.degree
    ]
    return Shared(tuple(_lessened(m, given[name]) for name, m in wanted.items()), tuple(shed))


def _given(view: View, wanted: dict[str, Decision], slots: int) -> dict[str, int]:
    """Give slots one by one to whom they are worth most."""
    given = {name: min(made.degree, view.node(name).least) for name, made in wanted.items()}
    order = {name: place for place, name in enumerate(wanted)}

    def rank(name: str) -> tuple[float, float, int]:
        return -view.node(name).priority, given[name] / wanted[name].degree, order[name]

    for _ in range(slots - sum(given.values())):
        lacking = [name for name in wanted if given[name] < wanted[name].degree]
        given[min(lacking, key=rank)] += 1
    return given


def _lessened(made: Decision, degree: int) -> Decision:
    if degree == made.degree:
        return made
    reason = f"{made.reason}; {degree} of {made.degree} tasks, because slots are scarce"
    return replace(made, degree=degree, reason=reason)


def learnt_cores(samples: Iterable[Sample], node: Node, after: int = 30) -> float:
    """Estimate the cores that a task needs: what was reserved at first, then what it used.

    The use that counts is that of the busiest task of a sample, exceeded in one of twenty samples;
    after as many samples as ``after`` it has replaced the declared value altogether.

    >>> from thalweg.control.scaling.values import TaskLoad
    >>> half = Sample("count", 0.0, 1, 10, 10, tasks=(TaskLoad(used=0.5),))
    >>> [learnt_cores([half] * n, Node("count", reserved=0.2)) for n in (0, 15, 60)]
    [0.2, 0.35, 0.5]
    """
    return _learnt([_most(s, "used") for s in samples if s.tasks], node.reserved, after)


def learnt_memory(samples: Iterable[Sample], declared: float, after: int = 30) -> float:
    """Estimate the bytes that a task needs, in the same way."""
    return _learnt([_most(s, "memory") for s in samples if s.tasks], declared, after)


def _most(sample: Sample, what: str) -> float:
    return max(getattr(task, what) for task in sample.tasks)


def _learnt(seen: list[float], declared: float, after: int) -> float:
    if not seen:
        return declared
    high = sorted(seen)[min(len(seen) - 1, int(0.95 * len(seen)))]
    trust = min(1.0, len(seen) / after)
    return trust * high + (1 - trust) * declared
