"""Following the rates of the sources through a topology, sample by sample.

A component that gets what its parents send is told so before it arrives, and also when a congested
parent holds it back. Windowed operators send in bursts, which are spread over their windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from thalweg.control.scaling.estimating import selectivity
from thalweg.control.scaling.values import Node, Sample, Stream, View


@dataclass(frozen=True)
class Flow:
    """What a stream has carried, in tuples per second, and what it will carry beyond that."""

    rates: Sequence[float]
    more: float = 0.0


Flows = dict[Stream, Flow]


def source_flows(view: View, catch_up: float) -> Flows:
    """Give what sources have to send: what they sent, and what they hold back."""
    flows: Flows = {}
    for node in view.nodes:
        samples = view.history.get(node.name, ()) if node.is_source else ()
        if samples:
            grown = (max(0, b.pending - a.pending) for a, b in pairwise(samples))
            held = [0, *grown]
            for stream in view.streams(node.name):
                sent = (sample.emitted.get(stream.name, 0) for sample in samples)
                rates = [(s + h) / view.period for s, h in zip(sent, held, strict=True)]
                flows[stream] = Flow(rates, samples[-1].pending / catch_up)
    return flows


def passed_flows(view: View, node: Node, rates: Sequence[float], more: float) -> Flows:
    """Give what a component passes on of what it gets."""
    ratios = {stream: selectivity(view, stream) for stream in view.streams(node.name)}
    return {
        stream: Flow([rate * ratio for rate in rates], more * ratio)
        for stream, ratio in ratios.items()
        if ratio is not None
    }


def arriving_rates(view: View, node: Node, flows: Mapping[Stream, Flow]) -> list[float]:
    """Give what arrives at a component, going by the sources; by itself if they are unknown."""
    if not all(stream in flows for stream in node.inputs):
        return own_rates(view, node)
    read = [flows[stream].rates for stream in node.inputs]
    length = min(map(len, read))
    return [sum(rates) for rates in zip(*(r[len(r) - length :] for r in read), strict=True)]


def own_rates(view: View, node: Node) -> list[float]:
    """Give what arrived at a component."""
    rates = [sample.received / view.period for sample in _samples(view, node)]
    burst = _burst(view, node)
    ends = range(1, len(rates) + 1)
    return [sum(part := rates[max(0, end - burst) : end]) / len(part) for end in ends]


def waiting(view: View, node: Node) -> tuple[int, bool]:
    """Say how many tuples wait, and whether they become more; a burst is no backlog."""
    seen = [sample.pending for sample in _samples(view, node)]
    burst = _burst(view, node)
    least = min(seen[-burst:])
    return least, least > min(seen[-2 * burst : -burst], default=least)


def _samples(view: View, node: Node) -> Sequence[Sample]:
    return view.history.get(node.name) or view.windows[node.name].samples


def _burst(view: View, node: Node) -> int:
    """Give the samples from one burst of the parents to the next."""
    longest = max(view.node(parent).window for parent in node.parents)
    return max(1, round(longest / view.period))
