"""Load-aware grouping in the simulator: what tasks answer after their number has changed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from thalweg.hashing import hash_columns
from thalweg.routing.load_aware import OsgSettings, State
from thalweg.runtimes.simulator.balancing import LeastWork
from thalweg.runtimes.simulator.fifo import Ints

#: What every tuple takes, so that no estimate is ever wrong.
COST = 0.5
#: Tasks report after 16 tuples, then after 16 more.
OFTEN = OsgSettings(every=8)


def values(count: int) -> Ints:
    return np.zeros(count, np.int64)


def execute(balancer: LeastWork, tasks: Ints) -> None:
    balancer.executed(np.sort(tasks), values(len(tasks)), np.full(len(tasks), COST))


def reported(tasks: int) -> LeastWork:
    """Make a balancer that has just heard, for the second time, what values cost."""
    balancer = LeastWork(tasks, hash_columns([pa.array([0])]), OFTEN)
    for _ in range(32):
        execute(balancer, balancer.assign(values(tasks)))
    assert balancer.scheduler.state is State.SEND_ALL
    return balancer


def resized(balancer: LeastWork, *degrees: int) -> None:
    """Send tuples, behind which markers go, and take all of them back as the degree changes."""
    for degree in degrees:
        waiting = balancer.assign(values(10 * balancer.scheduler.tasks))
        balancer.resize(degree, waiting, values(len(waiting)))


def test_markers_behind_tuples_that_were_taken_back_are_not_in_the_way_of_later_ones() -> None:
    balancer = reported(2)
    resized(balancer, 2)
    execute(balancer, balancer.assign(values(4)))
    assert balancer.scheduler.state is State.RUN


@pytest.mark.parametrize("degrees", [(2,), (3, 2), (1, 2), (3, 1, 2)], ids=str)
def test_what_tasks_answer_after_a_change_is_about_what_came_since(
    degrees: tuple[int, ...],
) -> None:
    """Nothing was estimated wrongly, so no answer, however late it comes, corrects anything."""
    balancer = reported(2)
    resized(balancer, *degrees)
    before = np.array(balancer.scheduler.loads)
    sent = np.zeros(2)
    for _ in range(7):
        tasks = balancer.assign(values(4))
        sent += np.bincount(tasks, minlength=2)
        execute(balancer, tasks)
    assert balancer.scheduler.loads == pytest.approx(before + COST * sent)
