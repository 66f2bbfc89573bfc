"""Policy ``incremental``: one task more or less, by how input and throughput compare (incr)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from thalweg.control.scaling.estimating import kept, latency, unready
from thalweg.control.scaling.values import ONE_MINUTE, Decision, Node, Timing, View


@dataclass(frozen=True)
class Incremental:
    """A step of one when input / throughput leaves ``[least, most]``.

    ``against="throughput"`` compares with what was processed, as the documents do: without pending
    tuples that is about 1 however large the degree is, so that it seldom comes down. ``"capacity"``
    compares with what could have been processed.
    """

    least: float = 0.8
    most: float = 1.0
    against: Literal["throughput", "capacity"] = "throughput"
    timing: Timing = ONE_MINUTE
    name: str = "incremental"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Compare each component's input with its throughput."""
        return tuple(self._decide(view, node) for node in view.scalable)

    def _decide(self, view: View, node: Node) -> Decision:
        if reason := unready(view, node):
            return kept(view, node, reason)
        received, done = view.windows[node.name].received, self._throughput(view, node)
        if done is None or (received == 0 and done == 0):
            return kept(view, node, "nothing arrived and nothing was processed")
        ratio = received / max(done, 1e-9)
        degree = view.degrees[node.name]
        step = 1 if ratio > self.most else -1 if ratio < self.least else 0
        bounds = f"[{self.least:g}, {self.most:g}]"
        side = {1: "above", -1: "below", 0: "within"}[step]
        reason = f"input / {self.against} is {ratio:.2f}, {side} {bounds}"
        return Decision(node.name, node.bounded(degree + step), degree, reason, {"ratio": ratio})

    def _throughput(self, view: View, node: Node) -> float | None:
        if self.against == "throughput":
            return view.windows[node.name].processed
        seconds = latency(view, node, "mean")
        return view.delta / seconds * view.degrees[node.name] if seconds else None
