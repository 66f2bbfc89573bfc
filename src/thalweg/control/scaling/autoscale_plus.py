"""Policy ``autoscale+``: AUTOSCALE+ of the elasticity document, chapter 6.

One pass from the sources to the sinks, with the best of three regression models, and with the CPU
that a task can really get beside the others on its core. With load-aware grouping it is DABS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from thalweg.control.scaling.estimating import (
    Combine,
    Outputs,
    combined,
    from_parents,
    kept,
    latency,
    passed_on,
    source_outputs,
    unready,
)
from thalweg.control.scaling.forecasting import MODELS, ModelName, best_fit, coming
from thalweg.control.scaling.values import Decision, Node, TaskLoad, Timing, View

_TIMING = Timing(delta=90.0, grace=90.0)


def usable_cpu(task: TaskLoad, alpha: float) -> float:
    """Estimate the share of a core that a task can get (UtilCPU).

    >>> usable_cpu(TaskLoad(used=0.5, reserved=0.2, others=2, others_used=0.5), alpha=0.5)
    0.5
    >>> usable_cpu(TaskLoad(used=0.1, reserved=0.2), alpha=0.3)
    1.0
    """
    if not task.others:
        return 1.0
    idle = (1 - task.others_used) / task.others
    return min(1.0, max(0.0, alpha * max(task.used, task.reserved) + idle))


@dataclass(frozen=True)
class AutoscalePlus:
    """Keeps a degree within its working interval, and finds another one beyond it.

    ``sizing="literal"`` sizes with ``alpha`` times the reserved CPU, as the document does, which
    gives about ``1 / (alpha * reserved)`` times the tasks that are needed; ``"corrected"`` sizes
    with the same usable CPU that the working interval is about.
    """

    #: How much of what a task uses or has reserved is counted on.
    alpha: float = 0.3
    #: The least share of the tasks that must be needed; below it the degree comes down.
    beta: float = 0.75
    combine: Combine = "max"
    sizing: Literal["corrected", "literal"] = "corrected"
    models: tuple[ModelName, ...] = MODELS
    timing: Timing = _TIMING
    name: str = "autoscale+"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Estimate every component, with what its parents are going to send."""
        outputs = source_outputs(view, self.models)
        decisions = []
        for node in view.scalable:
            made, processed = self._decide(view, node, outputs)
            decisions.append(made)
            if processed is not None:
                outputs |= passed_on(view, node, processed)
        return tuple(decisions)

    def _decide(self, view: View, node: Node, outputs: Outputs) -> tuple[Decision, float | None]:
        """Give the decision and what is going to be processed, if that is known."""
        seconds = None if (reason := unready(view, node)) else latency(view, node, "mean")
        if seconds is None:
            return kept(view, node, reason or "it has not processed anything yet"), None
        expected = self._input(view, node, outputs)
        ideal_rate = view.delta / seconds
        usable = min((usable_cpu(t, self.alpha) for t in self._tasks(view, node)), default=1.0)
        per_task = ideal_rate * max(usable, 1e-9)
        ideal = expected / per_task
        degree, reason = self._sized(view.degrees[node.name], node, ideal, expected / ideal_rate)
        numbers = {"input": expected, "per_task": per_task, "usable_cpu": usable, "ideal": ideal}
        numbers["reserved"] = node.reserved
        made = Decision(node.name, degree, view.degrees[node.name], reason, numbers)
        # The document's bound, capacity times Delta, is none.
        bound = per_task * degree * (view.delta if self.sizing == "literal" else 1)
        return made, min(expected, bound)

    def _input(self, view: View, node: Node, outputs: Outputs) -> float:
        window = view.windows[node.name]
        arrived = [sample.received for sample in window.samples]
        own = coming(best_fit(arrived, self.models).at, len(arrived))
        first = all(view.node(parent).is_source for parent in node.parents)
        upstream = None if first else from_parents(node, outputs)
        return combined(self.combine, own, upstream) + window.pending

    def _sized(self, k: int, node: Node, ideal: float, cores: float) -> tuple[int, str]:
        interval = (
            f"{ideal:.2f} tasks are needed, the working interval is [{self.beta * k:.2f}, {k}]"
        )
        if self.beta * k <= ideal <= k:
            return node.bounded(k), interval
        literal = self.sizing == "literal"
        sized = node.bounded(cores / (node.reserved * self.alpha) if literal else ideal)
        if (sized > k) != (ideal > k) and sized != k:
            return node.bounded(k), f"{interval}; {sized} would be the wrong direction"
        return sized, interval

    @staticmethod
    def _tasks(view: View, node: Node) -> Sequence[TaskLoad]:
        return view.windows[node.name].last.tasks
