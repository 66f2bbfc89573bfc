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
