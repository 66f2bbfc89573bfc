"""Following the rates of the sources through a topology, sample by sample.

A component that gets what its parents send is told so before it arrives, and also when a congested
parent holds it back. Windowed operators send in bursts, which are spread over their windows.

A source that full queues hold back sends what the tasks can do, whatever it has. If it knows how
much it has, that counts. If not, and it was held back for most of a period, it is taken to have as
much more as it would have sent in the rest of the time, up to a bound: so degrees rise step by
step, until it is not held back any more, or until a step has brought it no further.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from thalweg.control.scaling.estimating import selectivity
from thalweg.control.scaling.values import Node, Sample, Stream, View


@dataclass(frozen=True)
class Holding:
    """What is made of sources that were held back."""

    #: Share of a period beyond which such a source has more to send than it could.
    share: float = 0.5
    #: It is taken to have so many times what it sent at most: beyond the limit of every profile.
    most: float = 2.5
    #: How many times as much it has to send after degrees have risen for another rise.
    helped: float = 1.1


HOLDING = Holding()


@dataclass(frozen=True)
class Flow:
    """What a stream has carried, in tuples per second, and what it will carry beyond that."""

    rates: Sequence[float]
    more: float = 0.0
    #: The share of the last period for which the sources before it were held back, if that counts.
    held: float = 0.0


Flows = dict[Stream, Flow]


def source_flows(view: View, catch_up: float, holding: Holding = HOLDING) -> Flows:
    """Give what sources have to send: what they sent, and what they hold back.

    Those of which samples are missing are left out: what they sent before says nothing about now.
    """
    flows: Flows = {}
    for node in view.nodes:
        samples = view.history.get(node.name, ()) if node.is_source else ()
        if samples and view.windows[node.name].complete:
            vain = _in_vain(view, samples, holding)
            held = 0.0 if vain or samples[-1].held <= holding.share else samples[-1].held
            # In vain, what they were held back for counts for nothing.
            rule = replace(holding, share=math.inf) if vain else holding
            pairs = [(samples[0], samples[0]), *pairwise(samples)]
            for stream in view.streams(node.name):
                rates = [_offered(a, b, stream.name, rule) / view.period for a, b in pairs]
                flows[stream] = Flow(rates, samples[-1].pending / catch_up, held)
    return flows


def _offered(before: Sample, sample: Sample, stream: str, holding: Holding) -> float:
    """Give what a source had to send in a period."""
    sent, grown = sample.emitted.get(stream, 0), max(0, sample.pending - before.pending)
    if sample.held <= holding.share:
        return sent + grown
    if sample.pending:  # it knows what it has
        return sent + grown + sample.lost
    return sent * min(holding.most, 1 / max(1 - sample.held, 1e-9))


def _in_vain(view: View, samples: Sequence[Sample], holding: Holding) -> bool:
    """Say whether a source was held back before degrees rose last, and sends no more since.

    As long as nobody knows, it is not tried again.
    """
    last = [change for change in view.changes if change.time == view.changed]
    if not any(change.after > change.before for change in last):
        return False
    then = last[0].time + view.period / 2  # clocks are early or late by part of a period
    before = [sample for sample in samples if sample.time < then][-1:]
    after = [sample for sample in samples if sample.time > then][-1:]
    if not before or before[0].held <= holding.share:
        return False
    return not after or after[0].processed < holding.helped * before[0].processed


def were_held(view: View, holding: Holding = HOLDING) -> bool:
    """Say whether a source was held back as far as is known: nobody has seen all that came."""
    sources = (view.history.get(node.name, ()) for node in view.nodes if node.is_source)
    return any(sample.held > holding.share for samples in sources for sample in samples)


def passed_flows(
    view: View, node: Node, rates: Sequence[float], more: float, held: float = 0.0
) -> Flows:
    """Give what a component passes on of what it gets."""
    ratios = {stream: selectivity(view, stream) for stream in view.streams(node.name)}
    return {
        stream: Flow([rate * ratio for rate in rates], more * ratio, held)
        for stream, ratio in ratios.items()
        if ratio is not None
    }


def held_back(node: Node, flows: Mapping[Stream, Flow]) -> float:
    """Give the longest share of a period for which a source before a component was held back."""
    return max((flows[stream].held for stream in node.inputs if stream in flows), default=0.0)


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
    parents = [view.node(parent) for parent in node.parents]
    longest = max(each.window if each.bursts is None else each.bursts for each in parents)
    return max(1, round(longest / view.period))
