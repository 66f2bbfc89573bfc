"""What changes a run while tuples flow: those who ask for it, and a rerouter that learns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from thalweg.control.learning import Learner
from thalweg.errors import ThalwegError, UsageError, explain
from thalweg.events import Event, Noticed
from thalweg.execution import Rebalance, Reroute, Run
from thalweg.migration.report import Report
from thalweg.runtimes.local.beginning import state_at
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.crew import Crew
from thalweg.runtimes.local.executors import Executors
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.local.learning import NOBODY, Learning
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.pairs import Pairs
from thalweg.runtimes.local.reconfiguring import Change, Reconfiguring
from thalweg.runtimes.local.rescaling import BUDGET, check_degree
from thalweg.runtimes.local.units import Call
from thalweg.runtimes.local.widening import Widening
from thalweg.statelog.requests import Requests


@dataclass(frozen=True)
class RunHands:
    """What a run does for a reconfiguration."""

    announce: Callable[[str, int, Call], None]
    opened: Callable[[AnyTask], None]
    crew: Crew | Executors

    def resize(self, operator: Operator, tasks: int) -> None:
        """Have workers for so many tasks of an operator."""
        self.crew.resize(operator, tasks)

    def tell(self) -> None:
        """Wake the thread that runs the topology."""
        self.crew.tell()


class Steered:
    """Begins reconfigurations, and brings them forward; for the thread that runs the topology."""

    def __init__(self, built: Built, run: Run, hands: RunHands, pairs: Pairs | None) -> None:
        self._built, self._hands, self._steering = built, hands, run.steering
        self._listen: Callable[[Event], None] = run.listen
        self._changing = Reconfiguring(built, hands, run.listen)
        self._learning: Learning | None = None
        self._advancing = False
        settings = built.settings
        self._left = None if settings.checkpoint is None else Requests(state_at(settings))
        self._widening = Widening(built.operators, settings)
        rerouter = settings.rerouter or (Learner(settings.locality) if settings.locality else None)
        if rerouter is not None and pairs is not None:
            clock = settings.clock
            self._learning = Learning(rerouter, self._changing, pairs, clock, self._notice)

    @property
    def active(self) -> bool:
        """Whether a reconfiguration is under way."""
        return self._changing.active

    def is_changing(self, component: str) -> bool:
        """Say whether keys or tasks of a component are on their way."""
        return component in self._changing.components

    def entered(self) -> None:
        """Note that a block of a source has come."""
        if self._learning is not None:
            self._learning.entered()

    def step(self) -> bool:
        """Bring forward what is under way, and begin what is asked for."""
        moved = self.advance()
        if self._steering is not None and not self.active:
            self._obey(self._steering.take())
        if self._left is not None and self._learning is not None:
            self._look_for_requests(self._left)
        if not self.active:
            self._widen()
        if self._learning is not None:
            bolts = [counter for o in self._built.operators for counter in o.counters]
            self._learning.look(sum(counter.busy for counter in bolts))
        return moved

    def advance(self) -> bool:
        """Bring forward what is under way; not again while that waits for room."""
        if self._advancing:
            return False
        self._advancing = True
        try:
            moved = self._changing.active and self._changing.advance()
        finally:
            self._advancing = False
        if not self._changing.active and self._learning is None:
            self._tell(self._changing.take_report())
        return moved

    def close(self) -> None:
        """End what is beside the stream; what was not told yet is."""
        if self._learning is not None:
            self._learning.close()
        self._tell(self._changing.take_report())

    def _widen(self) -> None:
        """Split a component that waits."""
        wanted = self._widening.look(time.perf_counter())
        if wanted is not None:
            degrees = {wanted.component: wanted.degree}
            self._changing.begin(Change(degrees=degrees, budget=BUDGET, reason=wanted.reason))

    def _look_for_requests(self, left: Requests) -> None:
        """Take what ``thalweg reroute`` has left beside the state."""
        request = left.take(time.monotonic())
        if request is not None and request.reroute is not None and self._learning is not None:
            self._learning.ask(request.reroute == "always", partial(left.answer, request))
        elif request is not None:
            self._notice("request: expected thalweg reroute; degrees are changed by tw.Steering")

    def _obey(self, request: Rebalance | Reroute | None) -> None:
        try:
            if isinstance(request, Rebalance):
                self._rebalance(request.component, request.degree)
            elif request is not None and self._learning is None:
                self._notice(f"reroute: {NOBODY}")
            elif request is not None and self._learning is not None:
                self._learning.ask(request.always, self._notice)
        except ThalwegError as error:
            self._notice(f"nothing changes: {error}")

    def _rebalance(self, name: str, degree: int) -> None:
        names = [operator.component.name for operator in self._built.operators]
        if name not in names:
            raise UsageError(explain(f"bolt {name!r}", expected=f"one of {names}"))
        operator = self._built.operator(name)
        if not operator.pooled:
            reason = f"{name!r} has {degree} tasks in place of {operator.degree}"
            self._changing.begin(Change(degrees={name: degree}, budget=BUDGET, reason=reason))
            return
        check_degree(operator, degree)
        self._hands.resize(operator, degree)
        self._changing.epoch += 1
        reason = f"{name!r} has {degree} workers at most"
        self._tell(Report(self._changing.epoch, reason, 0, 0, 0, 0.0))

    def _tell(self, report: Report | None) -> None:
        if report is not None:
            self._changing.tell(report)

    def _notice(self, text: str) -> None:
        self._listen(Noticed(text))
