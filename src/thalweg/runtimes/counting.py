"""What tasks have done, as the totals that built-in metrics are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thalweg.blocks import Block
from thalweg.groupings import All
from thalweg.metrics import Counter, Tally
from thalweg.registered import TaskKey
from thalweg.runtimes.block_tasks import AnyBoltTask
from thalweg.runtimes.inline_routing import Edge
from thalweg.runtimes.reporting import Look
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.stats import Totals


def spout_totals(tally: Tally) -> Totals:
    """Give what a task of a spout has done."""
    return Totals(
        emitted=tally.emitted,
        transferred=tally.transferred,
        acked=tally.acked,
        failed=tally.failed,
        complete=tally.seconds,
    )


def bolt_totals(executed: int, busy: float, emitted: int, tally: Tally, settles: bool) -> Totals:
    """Give what a task of a bolt has done; ``settles`` if it acknowledges tuples itself.

    Where it does not, a tuple is done when the bolt has executed it.

    >>> tally = Tally(acked=50)
    >>> bolt_totals(100, 2.0, 0, tally, settles=False).process  # seconds of 50 tuples
    1.0
    """
    share = tally.acked / executed if executed else 0.0
    return Totals(
        emitted=emitted,
        transferred=tally.transferred,
        executed=executed,
        acked=tally.acked,
        failed=tally.failed,
        execute=busy,
        process=tally.seconds if settles else busy * share,
    )


def count_sent(
    tasks: Sequence[AnySpoutTask | AnyBoltTask], blocks: Sequence[Block], edges: Sequence[Edge]
) -> None:
    """Count what tasks of a component have sent, and who gets it; on the inline runtime."""
    all_ = (edge for edge in edges if isinstance(edge.input.grouping, All))
    copies = len(edges) + sum(edge.reader.degree - 1 for edge in all_)
    for block in blocks:
        tally = tasks[block.origin.task].tally
        tally.emitted += len(block)
        tally.transferred += copies * len(block)


def looked(
    spouts: Mapping[str, Sequence[AnySpoutTask]],
    bolts: Mapping[str, Sequence[AnyBoltTask]],
    counters: Mapping[str, Counter],
) -> Look:
    """Look at all tasks of the inline runtime, where nothing waits."""
    found: dict[TaskKey, Totals] = {
        (name, at): spout_totals(task.tally)
        for name, tasks in spouts.items()
        for at, task in enumerate(tasks)
    }
    waiting: dict[TaskKey, int] = {}
    for name, of_bolt in bolts.items():
        executed = counters[name].per_task
        for at, task in enumerate(of_bolt):
            tally, settles = task.tally, not getattr(task.body, "auto_ack", True)
            done = bolt_totals(executed[at], tally.busy, tally.emitted, tally, settles)
            found[name, at], waiting[name, at] = done, 0
    return Look(found, waiting)
