"""What a crew shows to its scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from thalweg.clock import ManualClock
from thalweg.runtimes.local.crew import MAIN, Crew
from thalweg.runtimes.local.holding import Holding
from thalweg.runtimes.local.scheduling import Choice, Meter, OperatorView, Scheduling
from thalweg.runtimes.local.settings import CrewLimits
from thalweg.runtimes.local.worklists import HybridWorklist


class Noting:
    """Chooses the last operator that has something, and notes what it was shown."""

    name = "noting"

    def __init__(self) -> None:
        self.views: list[OperatorView] = []

    def choose(self, operators: Sequence[OperatorView]) -> Choice:
        self.views = self.views or list(operators)
        return Choice([view.index for view in operators if view.waiting][-1], "the last")


def operator(index: int, rows: int, worked_on: list[int], limit: int = 1) -> Any:
    worklist = HybridWorklist[str](1)
    if rows:
        worklist.add(0, "item", rows)

    def work(taken: Any, worker: int) -> tuple[int, int, float]:
        worked_on.append(index)
        return taken.rows, 0, 0.001

    return SimpleNamespace(
        component=SimpleNamespace(name=str(index)),
        pooled=False,
        counters=[SimpleNamespace(cpu=0.0)],
        index=index,
        worklist=worklist,
        workers=0,
        limit=limit,
        blocked=False,
        holding=Holding(lambda: 1),
        python=True,
        waits=False,
        output=0,
        bound=100,
        work=work,
        look=lambda took, cpu: None,
    )


def test_a_scheduler_sees_all_operators_and_what_this_worker_can_take() -> None:
    """Thresholds of QST are shares of the whole chain, not of those with input."""
    worked_on: list[int] = []
    operators = [operator(i, rows, worked_on) for i, rows in enumerate((5, 0, 7))]
    operators.append(operator(3, 9, worked_on, limit=0))  # nobody more may work on it
    scheduler, settings = Noting(), Scheduling()
    meter = Meter(4, settings, ManualClock())
    crew = Crew(operators, scheduler, meter, CrewLimits(1, 1, settings.slice, 100))
    assert crew.work(MAIN)
    assert [(view.index, view.waiting) for view in scheduler.views] == [
        (0, 5),
        (1, 0),
        (2, 7),
        (3, 0),
    ]
    assert worked_on == [2, 0]  # there was time left for the other one


def crew_with(rows: int, cost: float | None, *, waits: bool = False, alone: float = 0.005) -> Crew:
    """Make a crew whose one operator has rows waiting, at a cost that was measured or not."""
    made = operator(0, rows, [])
    made.waits = waits
    meter = Meter(1, Scheduling(), ManualClock())
    if cost is not None:
        meter.record(0, rows=1000, sent=0, seconds=1000 * cost)
    limits = CrewLimits(2, 2, Scheduling().slice, 100, alone=alone)
    crew = Crew([made], Noting(), meter, limits)
    crew.python_lock = True
    return crew


def test_work_is_shared_when_one_worker_would_need_long_for_it() -> None:
    assert not crew_with(4900, cost=1e-6).worth_sharing
    assert crew_with(5000, cost=1e-6).worth_sharing
    assert not crew_with(0, cost=1e-6).worth_sharing


def test_work_is_shared_when_nobody_knows_its_cost_or_it_waits_for_something() -> None:
    assert crew_with(1, cost=None).worth_sharing
    assert crew_with(1, cost=1e-6, waits=True).worth_sharing


def test_without_pythons_lock_all_work_is_shared() -> None:
    crew = crew_with(1, cost=1e-6)
    crew.python_lock = False
    assert crew.worth_sharing


def test_all_work_is_shared_where_that_is_asked_for() -> None:
    assert crew_with(1, cost=1e-6, alone=0.0).worth_sharing
