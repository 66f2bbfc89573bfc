"""Metrics of a run for OpenTelemetry (``pip install thalweg[otel]``), as a consumer of metrics.

What is counted becomes counters, all else gauges: the value of the last interval. Attributes are
the topology, the component and the task; a metric with names of its own (multi-count) has them as
an attribute, up to :data:`MOST_NAMES`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from thalweg.consumers import MetricsConsumer
from thalweg.errors import UsageError, explain
from thalweg.registered import DataPoint, TaskInfo
from thalweg.version import __version__

#: Names of one metric that are told apart; the others share the name "other".
MOST_NAMES = 100
#: Built-in metrics that count.
_COUNTERS = {
    "__emit-count": "thalweg.emitted",
    "__transfer-count": "thalweg.transferred",
    "__execute-count": "thalweg.executed",
    "__ack-count": "thalweg.acked",
    "__fail-count": "thalweg.failed",
}
#: Built-in metrics that do not, and their units.
_GAUGES = {
    "__execute-latency": ("thalweg.execute.latency", "ms"),
    "__process-latency": ("thalweg.process.latency", "ms"),
    "__complete-latency": ("thalweg.complete.latency", "ms"),
    "__capacity": ("thalweg.capacity", "1"),
    "__receive": ("thalweg.waiting", "{tuple}"),
}
#: The line that sets the provider of a process.
_SET = "before it: opentelemetry.metrics.set_meter_provider(MeterProvider([reader]))"


class OpenTelemetryConsumer(MetricsConsumer):
    """Hands metrics to a meter provider: the given one, or that of the process."""

    def __init__(self, provider: Any = None) -> None:
        try:
            from opentelemetry import metrics  # noqa: PLC0415 (an extra)
        except ImportError as error:
            hint = "pip install 'thalweg[otel]'"
            raise UsageError(explain("OpenTelemetry", "", "its SDK", "none", hint)) from error
        self._provider = _of_the_process(metrics) if provider is None else provider
        self._meter = self._provider.get_meter("thalweg", __version__)
        self._instruments: dict[str, Any] = {}
        self._names: dict[str, set[str]] = {}

    def handle(self, task_info: TaskInfo, points: Sequence[DataPoint]) -> None:
        """Take the points of one task."""
        about = {
            "topology": task_info.topology,
            "component": task_info.component,
            "task": task_info.task,
        }
        for point in points:
            self._take(point, about)

    def cleanup(self) -> None:
        """Let the provider send what it has."""
        flush = getattr(self._provider, "force_flush", None)
        if flush is not None:
            flush()

    def _take(self, point: DataPoint, about: Mapping[str, Any]) -> None:
        name, value = point.name, point.value
        if name in _COUNTERS:
            self._counter(_COUNTERS[name]).add(value, about)
        elif name in _GAUGES:
            told = value["population"] if isinstance(value, Mapping) else value
            self._gauge(*_GAUGES[name]).set(told, about)
        elif isinstance(value, Mapping):
            for each, number in value.items():
                if is_number(number):
                    told = {**about, "name": self._bounded(name, str(each))}
                    self._counter(own_name(name)).add(number, told)
        elif is_number(value):
            self._gauge(own_name(name), "").set(value, about)

    def _bounded(self, metric: str, name: str) -> str:
        names = self._names.setdefault(metric, set())
        if len(names) < MOST_NAMES:
            names.add(name)
        return name if name in names else "other"

    def _counter(self, name: str) -> Any:
        if name not in self._instruments:
            self._instruments[name] = self._meter.create_counter(name)
        return self._instruments[name]

    def _gauge(self, name: str, unit: str) -> Any:
        if name not in self._instruments:
            self._instruments[name] = self._meter.create_gauge(name, unit)
        return self._instruments[name]


def _of_the_process(metrics: Any) -> Any:
    """Find the provider that was set; the one that is there without that sends nothing."""
    found = metrics.get_meter_provider()
    if not hasattr(found, "force_flush"):
        expected, hint = "a provider that sends them", f"{_SET}, or OpenTelemetryConsumer(provider)"
        got = f"{type(found).__name__}, which sends nothing"
        raise UsageError(explain("metrics for OpenTelemetry", "", expected, got, hint))
    return found


def own_name(name: str) -> str:
    """Make a name that OpenTelemetry takes of that of a registered metric.

    >>> own_name("hits per user")
    'thalweg.user.hits_per_user'
    """
    return "thalweg.user." + re.sub(r"[^A-Za-z0-9_.\-/]", "_", name)[:200]


def is_number(value: object) -> bool:
    """Whether a value can be measured.

    >>> is_number(2.5), is_number(True), is_number("2"), is_number(None)
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool)
