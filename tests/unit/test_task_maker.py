"""What tasks know of the run they belong to."""

from __future__ import annotations

import thalweg as tw
from thalweg.clock import ManualClock
from thalweg.execution import Run
from thalweg.metrics import Counter
from thalweg.runtimes.making import TaskMaker


def test_all_tasks_of_a_run_know_the_same_end_of_it() -> None:
    builder = tw.TopologyBuilder("ending")
    builder.add_spout("numbers", tw.items([1]), degree=1, fields={"n": int})
    builder.add_bolt("out", tw.stdout(), degree=2).shuffle("numbers")
    topology, run = builder.build(), Run()
    maker = TaskMaker(topology, ManualClock(), 0, 16, run)
    first, second = maker.bolts(topology.component("out"), Counter("out", 2))
    assert first.context.stopped_at() is second.context.stopped_at() is None
    run.stop.set()
    since = second.context.stopped_at()
    assert since is not None
    assert first.context.stopped_at() == second.context.stopped_at() == since
