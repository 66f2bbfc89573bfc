"""Policy ``ds2``: the degrees that the sources' rates ask for, in one step.

Kalavri et al., "Three steps is all you need: fast, accurate, automatic scaling decisions for
distributed streaming dataflows", OSDI 2018. The true rate of a task is what it processes per second
of useful work; the rates of the sources are followed through the topology.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.control.scaling.estimating import from_parents, kept, selectivity, unready
from thalweg.control.scaling.values import ONE_MINUTE, Decision, Node, Stream, Timing, View, amount


@dataclass(frozen=True)
class Ds2:
    """Divides target rates by true rates."""

    #: Share of a task's time that may be useful work; below 1 leaves room.
    utilisation: float = 1.0
    timing: Timing = ONE_MINUTE
    name: str = "ds2"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Follow the rates from the sources to the sinks."""
        rates = _source_rates(view)
        decisions = []
        for node in view.scalable:
            decisions.append(self._decide(view, node, rates))
            target = from_parents(node, rates)
            for stream in view.streams(node.name):
                ratio = selectivity(view, stream)
                if target is not None and ratio is not None:
                    rates[stream] = target * ratio
        return tuple(decisions)

    def _decide(self, view: View, node: Node, rates: dict[Stream, float]) -> Decision:
        if reason := unready(view, node):
            return kept(view, node, reason)
        target, true = from_parents(node, rates), true_rate(view, node)
        if target is None or true is None:
            return kept(view, node, "the rates of its inputs or its own are not known")
        degree = node.bounded(target / (true * self.utilisation))
        reason = f"{amount(target)} tuples/s are to be processed, a task can do {amount(true)}/s"
        numbers = {"target": target, "true_rate": true}
        return Decision(node.name, degree, view.degrees[node.name], reason, numbers)


def true_rate(view: View, node: Node) -> float | None:
    """Give tuples per second of useful work of one task; None if it never worked."""
    window = view.windows[node.name].samples
    for samples in (window, view.history.get(node.name, ())):
        busy = sum(sample.busy for sample in samples)
        processed = sum(sample.processed for sample in samples)
        if busy > 0 and processed:
            return processed / busy
    return None


def _source_rates(view: View) -> dict[Stream, float]:
    return {
        stream: view.windows[node.name].emitted(stream.name) / view.delta
        for node in view.nodes
        if node.is_source and not unready(view, node)
        for stream in view.streams(node.name)
    }
