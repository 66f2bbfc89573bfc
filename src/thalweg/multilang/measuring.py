"""Metrics that components report of themselves, without having registered them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thalweg.contexts import TaskContext
from thalweg.errors import UsageError, explain, shorten
from thalweg.events import Noticed
from thalweg.registered import KINDS, MetricKind

#: What kind a metric has by its first value; all else is a gauge.
_GUESSED: dict[type, MetricKind] = {type(None): "count", int: "count", float: "mean"}


class Measures:
    """The metrics of one task. Each has one kind: the one it was given, or that of its first value.

    Whole numbers are counts, others have a mean, and what is no number is a gauge. Later values are
    made to fit; one that cannot is left out, and that is said once.
    """

    def __init__(self, context: TaskContext, kinds: Mapping[str, MetricKind] | None = None) -> None:
        self.context = context
        self._kinds = dict(kinds or {})
        self._metrics: dict[str, tuple[str, Any]] = {}
        self._refused: set[str] = set()

    def note(self, name: str, value: Any) -> None:
        """Note a value."""
        if name not in self._metrics:
            self._metrics[name] = self._found(name, value)
        try:
            _add(*self._metrics[name], value)
        except (TypeError, ValueError, OverflowError):
            self._refuse(name, value)

    def _found(self, name: str, value: Any) -> tuple[str, Any]:
        """Give the metric of a name; a task that was here before may have chosen its kind."""
        chosen = self._kinds.get(name) or _GUESSED.get(type(value), "gauge")
        for kind in (chosen, *KINDS):
            try:
                return kind, self.context.metric(name, kind)  # type: ignore[arg-type]  # one of them
            except UsageError:
                continue
        return chosen, self.context.metric(name, chosen)

    def _refuse(self, name: str, value: Any) -> None:
        if name not in self._refused:
            self._refused.add(name)
            where = f"component {self.context.component!r}, task {self.context.task}"
            text = explain(f"metric {name!r}", where, "a number, as before", shorten(value, 80))
            self.context.tell(Noticed(f"{text}; it is left out"))


def _add(kind: str, metric: Any, value: Any) -> None:
    match kind:
        case "count":
            metric.incr(_number(value))
        case "multi-count":
            counts = value if isinstance(value, dict) else {str(value): 1}
            for each, count in counts.items():
                metric.incr(each, _number(count))
        case "mean":
            metric.update(_number(value))
        case _:
            metric.set(value)


def _number(value: Any) -> int | float:
    """Make a number of a value; nothing at all counts as one."""
    if value is None:
        return 1
    return value if isinstance(value, int | float) else float(value)
