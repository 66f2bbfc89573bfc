"""Policy ``autoscale``: AUTOSCALE of the elasticity document, chapter 5.

What arrives within the next Delta is estimated by linear regression, and compared with what the
tasks can do. Where a parent is going to be congested, and will send more once it is scaled out, its
children are estimated again with what it is going to send (the global activity level, GAL).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Literal

from thalweg.control.scaling.estimating import (
    Combine,
    arriving,
    combined,
    from_parents,
    kept,
    latency,
    passed_on,
    source_outputs,
    unready,
)
from thalweg.control.scaling.forecasting import linear
from thalweg.control.scaling.values import ONE_MINUTE, Decision, Node, Sample, Timing, View, amount


class State(Enum):
    """How busy a component is going to be."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


@dataclass(frozen=True)
class Activity:
    """What is estimated of a component for the next Delta."""

    degree: int
    #: Tuples that arrive (EstimR, or combined with what the parents send), and that wait already.
    received: float
    pending: int
    #: Tuples that one task can process, and what the trend adds for all of them.
    per_task: float
    trend: float
    rising: bool

    @property
    def input(self) -> float:
        """All tuples that are to be processed (EstimInput)."""
        return self.received + self.pending

    @property
    def capacity(self) -> float:
        """Tuples that all tasks can process, with the trend (EstimCapacity)."""
        return self.per_task * self.degree + self.trend

    @property
    def level(self) -> float:
        """The activity level: LAL, or GAL where parents have had a say."""
        return self.input / self.capacity

    def state(self, low: float, high: float) -> State:
        """Name the level."""
        if self.level > 1:
            return State.CRITICAL
        if self.level > high:
            return State.HIGH
        return State.LOW if self.level <= low else State.MEDIUM


@dataclass(frozen=True)
class Autoscale:
    """Scales before it congests.

    ``literal`` follows the document where it was corrected: the trend of the capacity is a
    covariance, what a component passes on is bounded by its present capacity times Delta, which
    is no bound at all, and only the children of a congested component hear of it, not theirs.
    """

    #: Whether parents have a say: by what they will send, by what is done to them, or not at all.
    consistency: Literal["gal", "straight", "local"] = "gal"
    combine: Combine = "max"
    #: Activity levels below which a component is low, and above which it is high.
    low: float = 0.3
    high: float = 0.8
    #: Part by which a trend may raise or lower a capacity at most; one outlier is no trend.
    clip: float = 0.5
    literal: bool = False
    timing: Timing = ONE_MINUTE
    name: str = "autoscale"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Estimate every component from the sources to the sinks."""
        outputs, felt = source_outputs(view), set[str]()
        decisions = []
        for node in view.scalable:
            found = self.estimate(view, node)
            if isinstance(found, str):
                decisions.append(kept(view, node, found))
                continue
            local = found
            if self.consistency == "gal" and felt.intersection(node.parents):
                upstream = from_parents(node, outputs)
                found = replace(found, received=combined(self.combine, found.received, upstream))
            decisions.append(self._decided(node, found))
            outputs |= passed_on(view, node, self._processed(view, found, decisions[-1].degree))
            if found.state(self.low, self.high) is State.CRITICAL or self._passes(local, found):
                felt.add(node.name)
        return straightened(view, decisions) if self.consistency == "straight" else tuple(decisions)

    def estimate(self, view: View, node: Node) -> Activity | str:
        """Estimate a component by its own samples, or say why that is not possible."""
        if reason := unready(view, node):
            return reason
        seconds = latency(view, node, "max")
        if seconds is None:
            return "it has not processed anything yet"
        window, degree = view.windows[node.name], view.degrees[node.name]
        per_task = view.delta / seconds
        if self.literal:
            trend = _covariance(_capacities(window.samples, view.delta))
        else:
            trend = degree * _trend(view, node)
        most = self.clip * per_task * degree
        trend = min(max(trend, -most), most)
        rising = window.trend.slope > 0
        return Activity(degree, arriving(window), window.pending, per_task, trend, rising)

    def _decided(self, node: Node, found: Activity) -> Decision:
        state = found.state(self.low, self.high)
        degree, action = float(found.degree), "nothing to do"
        if state is State.CRITICAL:
            degree, action = found.degree * found.level, "scale out"
        elif state is State.HIGH and found.rising:
            degree, action = found.degree + 1, "scale out"
        elif state is State.LOW and not found.rising:
            degree, action = found.degree * found.level, "scale in"
        trend = "rising" if found.rising else "not rising"
        reason = (
            f"{state.value} activity {found.level:.2f}, input {trend}: "
            f"{amount(found.input)} tuples expected, capacity {amount(found.capacity)}; {action}"
        )
        numbers = {"level": found.level, "input": found.input, "capacity": found.capacity}
        return Decision(node.name, node.bounded(degree), found.degree, reason, numbers)

    def _passes(self, local: Activity, found: Activity) -> bool:
        """Say whether a component passes on what its parents' congestion does to it."""
        return not self.literal and local.received != found.received

    def _processed(self, view: View, found: Activity, degree: int) -> float:
        """Estimate what is processed (EstimProcessed)."""
        if self.literal:
            return min(found.input, found.per_task * found.degree * view.delta)
        return min(found.input, found.per_task * degree)


def straightened(view: View, decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Make decisions consistent by what is done upstream, without looking at numbers of tuples."""
    made: dict[str, Decision] = {}
    for own in decisions:
        node = view.node(own.component)
        parents = [made[name] for name in node.parents if name in made]
        factor = max((p.degree / p.before for p in parents if p.degree > p.before), default=1.0)
        if factor > 1 and own.degree <= own.before and not unready(view, node):
            scales_in = own.degree < own.before
            degree = own.before if scales_in else node.bounded(own.before * factor)
            what = "scaling in is off" if scales_in else f"scale out by {factor:.2f} as well"
            reason = f"{own.reason}; upstream scales out: {what}"
            made[own.component] = replace(own, degree=degree, reason=reason)
        else:
            made[own.component] = own
    return tuple(made.values())


def _capacities(samples: Sequence[Sample], delta: float) -> list[float]:
    return [delta / s.latency_max for s in samples if s.latency_max]


def _trend(view: View, node: Node) -> float:
    """Give what one task will do more within Delta, going by all since the last change."""
    since = -1.0 if view.changed is None else view.changed
    samples = view.history.get(node.name) or view.windows[node.name].samples
    capacities = _capacities([s for s in samples if s.time > since], view.delta)
    return linear(capacities).slope * view.delta / view.period


def _covariance(values: Sequence[float]) -> float:
    """Give the covariance of values with those before them."""
    pairs = list(pairwise(values))
    if not pairs:
        return 0.0
    first = sum(a for a, _ in pairs) / len(pairs)
    second = sum(b for _, b in pairs) / len(pairs)
    return sum((a - first) * (b - second) for a, b in pairs) / len(pairs)
