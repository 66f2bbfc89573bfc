"""What the tasks of a run on this machine have done, and how much waits for them."""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.metrics import Counter
from thalweg.registered import TaskKey
from thalweg.runtimes.counting import bolt_totals, spout_totals
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.reporting import Look
from thalweg.stats import Totals


def looked(built: Built) -> Look:
    """Look at all tasks."""
    found: dict[TaskKey, Totals] = {}
    waiting: dict[TaskKey, int] = {}
    for name, tasks in built.spouts.items():
        for at, task in enumerate(tasks):
            found[name, at] = spout_totals(task.tally)
    for operator in built.operators:
        name, own = operator.component.name, not getattr(operator.component.body, "auto_ack", True)
        for at, counter in _counters(built, operator):
            tally, rows = counter.tally, counter.received
            totals = bolt_totals(rows, counter.busy, counter.emitted, tally, own)
            found[name, at] = found.get((name, at), Totals()).plus(totals)
        waiting |= {(name, at): rows for at, rows in _waiting(operator)}
    return Look(found, waiting)


def _counters(built: Built, operator: Operator) -> Iterator[tuple[int, Counter]]:
    """Give the counters of an operator with their tasks; those of a pool are one to people."""
    own = operator.counters
    before = [c for c in built.counters[operator.component.name] if all(c is not o for o in own)]
    for counters in (before, own):
        for at, counter in enumerate(counters):
            yield (0 if operator.pooled else at), counter


def _waiting(operator: Operator) -> Iterator[tuple[int, int]]:
    worklist = operator.worklist
    if operator.pooled or not hasattr(worklist, "waiting"):
        yield 0, worklist.rows
        return
    for at in range(operator.degree):
        yield at, worklist.waiting(at)
