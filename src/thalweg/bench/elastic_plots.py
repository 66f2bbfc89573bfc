"""Pictures of the elasticity benchmark: degrees, throughput and latency over time, by policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from thalweg.bench.elastic_cases import BURSTY, LITERAL
from thalweg.drawing.charts import Points, line_chart
from thalweg.runtimes.simulator.outcome import Outcome

#: Not drawn: there are only so many colours that one can tell apart.
_LEFT_OUT = (LITERAL, "ds2")


def pictures(name: str, critical: str, found: Mapping[str, Outcome]) -> Iterator[tuple[str, str]]:
    """Give names and pictures of a scenario."""
    outcomes = {
        label: outcome
        for label, outcome in found.items()
        if label not in _LEFT_OUT and not label.endswith(BURSTY)
    }
    degrees = {label: _degrees(outcome, critical) for label, outcome in outcomes.items()}
    yield f"{name}-degree", line_chart(f"{name}: tasks of {critical}", degrees, "minutes", "tasks")
    first = next(iter(outcomes.values()))
    rates: dict[str, Points] = {
        "input": [(m.time / 60, m.emitted / _period(first)) for m in first.course]
    }
    rates |= {label: _throughput(outcome) for label, outcome in outcomes.items()}
    yield f"{name}-throughput", line_chart(f"{name}: throughput", rates, "minutes", "tuples/s")
    waits = {label: _latency(outcome) for label, outcome in outcomes.items()}
    yield f"{name}-latency", line_chart(f"{name}: mean latency", waits, "minutes", "seconds")


def _period(outcome: Outcome) -> float:
    return outcome.course[0].time


def _degrees(outcome: Outcome, critical: str) -> Points:
    return [(moment.time / 60, moment.degrees[critical]) for moment in outcome.course]


def _throughput(outcome: Outcome) -> Points:
    period = _period(outcome)
    return [(moment.time / 60, moment.done / period) for moment in outcome.course]


def _latency(outcome: Outcome) -> Points:
    """Give latencies up to a minute; what congests would hide all the others."""
    return [
        (moment.time / 60, min(moment.latency, 60.0))
        for moment in outcome.course
        if moment.latency is not None
    ]
