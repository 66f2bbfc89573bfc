"""Estimates that policies share: what will arrive, how fast a task is, what is passed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from thalweg.control.scaling.forecasting import ModelName, best_fit, coming
from thalweg.control.scaling.values import Decision, Node, Sample, Stream, View, Window

#: Of two estimates of an input: the larger one favours performance, the smaller one resources.
Combine = Literal["max", "min"]
#: Tuples that are expected of a stream within the next Delta; streams of which nothing is known
#: are left out.
Outputs = dict[Stream, float]


def unready(view: View, node: Node) -> str:
    """Say why nothing can be decided about a component now; empty if it can."""
    if view.in_grace:
        return f"within {view.grace:g} s of a reconfiguration"
    window = view.windows.get(node.name)
    if window is None or not window.complete:
        got, expected = (len(window.samples), window.expected) if window else (0, 0)
        return f"samples are missing: {got} of {expected}"
    return ""


def kept(view: View, node: Node, reason: str, **numbers: float) -> Decision:
    """Decide for no change, within the bounds."""
    degree = view.degrees[node.name]
    within = node.bounded(degree)
    if within != degree:
        reason = f"{node.least} to {node.most} are allowed; {reason}"
    return Decision(node.name, within, degree, reason, numbers)


def latency(view: View, node: Node, of: Literal["mean", "max"]) -> float | None:
    """Give seconds per tuple in the window, or before it; None if it never processed anything."""
    window = view.windows[node.name]
    found = window.latency_mean if of == "mean" else window.latency_max
    if found is not None:
        return found or None
    return last_known(view.history.get(node.name, ()), of)


def last_known(samples: Iterable[Sample], of: Literal["mean", "max"]) -> float | None:
    """Give the newest seconds per tuple that any sample has."""
    for sample in reversed(tuple(samples)):
        found = sample.latency_mean if of == "mean" else sample.latency_max
        if found:
            return found
    return None


def selectivity(view: View, stream: Stream) -> float | None:
    """Give tuples sent per tuple processed (SF); None if nothing was ever processed."""
    window = view.windows[stream.component]
    samples = window.samples if window.processed else view.history.get(stream.component, ())
    processed = sum(sample.processed for sample in samples)
    emitted = sum(sample.emitted.get(stream.name, 0) for sample in samples)
    return emitted / processed if processed else None


def arriving(window: Window) -> int:
    """Estimate what arrives within the next Delta by linear regression (EstimR)."""
    return coming(window.trend.at, len(window.samples))


def source_outputs(view: View, models: Sequence[ModelName] = ("linear",)) -> Outputs:
    """Estimate what every source sends within the next Delta."""
    found: Outputs = {}
    for node in view.nodes:
        if node.is_source and not unready(view, node):
            samples = view.windows[node.name].samples
            for stream in view.streams(node.name):
                sent = [sample.emitted.get(stream.name, 0) for sample in samples]
                found[stream] = coming(best_fit(sent, models).at, len(samples))
    return found


def passed_on(view: View, node: Node, processed: float) -> Outputs:
    """Estimate what a component sends when it processes as many tuples (EstimOutput)."""
    ratios = {stream: selectivity(view, stream) for stream in view.streams(node.name)}
    return {stream: processed * ratio for stream, ratio in ratios.items() if ratio is not None}


def from_parents(node: Node, outputs: Mapping[Stream, float]) -> float | None:
    """Add up what all parents send; None if that is not known of each."""
    if not all(stream in outputs for stream in node.inputs):
        return None
    return sum(outputs[stream] for stream in node.inputs)


def combined(how: Combine, own: float, upstream: float | None) -> float:
    """Take the larger or the smaller of two estimates, or the only one.

    >>> combined("max", 100, 250), combined("min", 100, 250), combined("min", 100, None)
    (250, 100, 100)
    """
    if upstream is None:
        return own
    return max(own, upstream) if how == "max" else min(own, upstream)
