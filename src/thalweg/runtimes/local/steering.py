"""What changes a run while tuples flow: those who ask for it, and a rerouter that learns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from thalweg.control.learning import Learner
from thalweg.control.scaling.policies import named
from thalweg.control.scaling.settings import Scaling
from thalweg.errors import ThalwegError, UsageError, explain
from thalweg.events import Event, Noticed
from thalweg.execution import Asked, Rebalance, Run, SetPolicy
from thalweg.migration.report import Report
from thalweg.runtimes.local.beginning import state_at
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.crew import Crew
from thalweg.runtimes.local.executors import Executors
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.local.learning import NOBODY, Learning
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.pairs import Pairs
from thalweg.runtimes.local.reconfiguring import Change, Reconfiguring, no_answer
from thalweg.runtimes.local.reordering import Reordering
from thalweg.runtimes.local.rescaling import BUDGET, check_degree
from thalweg.runtimes.local.scaling import Rescaler, Scaler
from thalweg.runtimes.local.shedding import Shedder
from thalweg.runtimes.local.units import Call
from thalweg.runtimes.local.widening import Widening
from thalweg.statelog.requests import Requests


@dataclass(frozen=True)
class RunHands:
    """What a run does for a reconfiguration."""

    announce: Callable[[str, int, Call], None]
    opened: Callable[[AnyTask], None]
    crew: Crew | Executors
    shedder: Shedder
    #: Finishes what is under way.
    drain: Callable[[], None]

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
            self._learning.listen = run.listen
        self._scaler: Scaler | None = None
        if settings.scales is not None:
            self._scaler = self._scaled(settings.scales)

    @property
    def active(self) -> bool:
        """Whether a reconfiguration is under way."""
        return self._changing.active

    @property
    def due(self) -> float:
        """When it has to look again, whatever happens."""
        return inf if self._scaler is None else self._scaler.due

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
        if self._steering is not None and not self._is_busy():
            self._obey(self._steering.take())
        if self._left is not None and not self._is_busy():
            self._look_for_requests(self._left)
        if not self._is_busy() and self._scaler is None:
            self._widen()
        if self._scaler is not None:
            self._scaler.look()
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
        if self._scaler is not None:
            self._scaler.close()
        self._tell(self._changing.take_report())

    def _rescale(self, change: Change) -> None:
        """Change degrees, together with the tables of keys that occur together."""
        if self._learning is None:
            self._changing.begin(change)
        else:
            self._learning.rescale(change)

    def _is_busy(self) -> bool:
        return self.active or (self._learning is not None and self._learning.rescaling)

    def _widen(self) -> None:
        """Split a component that waits."""
        wanted = self._widening.look(time.perf_counter())
        if wanted is not None:
            degrees = {wanted.component: wanted.degree}
            reason = wanted.reason
            change = Change(degrees=degrees, budget=BUDGET, reason=reason, lasting=False)
            self._changing.begin(change)

    def _look_for_requests(self, left: Requests) -> None:
        """Do what ``thalweg rebalance`` or ``reroute`` have left beside the state, and answer."""
        try:
            request = left.take(time.monotonic())
        except ThalwegError as error:
            self._notice(str(error))
            return
        if request is None:
            return
        answer = partial(left.answer, request)
        try:
            if request.reroute is not None:
                self._reroute(request.reroute == "always", answer)
            elif request.degrees:
                self._rebalance(request.degrees, answer)
            else:
                self._notice("request: expected degrees; only Spark has places")
        except ThalwegError as error:
            self._notice(f"nothing changes: {error}")
            answer(f"nothing changes: {error}", ok=False)

    def _obey(self, request: Asked | None) -> None:
        try:
            if isinstance(request, Rebalance):
                self._rebalance({request.component: request.degree}, no_answer)
            elif isinstance(request, SetPolicy):
                self._lead(request)
            elif request is not None:
                self._reroute(request.always, self._notice)
        except ThalwegError as error:
            self._notice(f"nothing changes: {error}")

    def _scaled(self, how: Scaling) -> Scaler:
        """Make what lets degrees follow the stream."""
        reordering = Reordering(self._built, self._hands.drain)
        shedder = self._hands.shedder
        rescaler = Rescaler(self._built, self._rescale, self._is_busy, shedder, reordering)
        return Scaler(how, self._built, rescaler, self._listen)

    def _lead(self, request: SetPolicy) -> None:
        """Let another policy decide; until now, degrees may have been what they were."""
        named(request.policy)
        if self._scaler is None:
            self._scaler = self._scaled(Scaling("static", loss=0.0, order=False))
        self._scaler.lead(request.policy, request.by)
        self._built.arranging.keep()  # in the next run nobody widens

    def _reroute(self, always: bool, answer: Callable[[str], None]) -> None:
        if self._learning is None:
            answer(f"reroute: {NOBODY}")
        else:
            self._learning.ask(always, answer)

    def _rebalance(self, degrees: Mapping[str, int], answer: Callable[[str], None]) -> None:
        """Begin with other degrees, all of them or none; who asked hears when they are there."""
        found = {name: self._bolt(name) for name in degrees}
        for name, operator in found.items():
            check_degree(operator, degrees[name])
        limits = {name: degrees[name] for name, operator in found.items() if operator.pooled}
        tasks = {name: degree for name, degree in degrees.items() if name not in limits}
        texts = [self._limit(found[name], degree) for name, degree in limits.items()]
        if not tasks:
            answer("; ".join(texts))
            return
        reason = ", ".join(
            f"{name!r} has {degree} tasks in place of {found[name].degree}"
            for name, degree in tasks.items()
        )
        apart = "" if self._learning is None else self._learning.parted(tasks)
        if apart:
            self._notice(apart)
        told = partial(_answer_all, answer, texts, [apart] if apart else [])
        self._rescale(Change(degrees=tasks, budget=BUDGET, reason=reason, answer=told))

    def _bolt(self, name: str) -> Operator:
        names = [operator.component.name for operator in self._built.operators]
        if name in self._built.spouts:
            expected = f"a bolt, one of {names}"
            hint = "what a source has read belongs to its task: a run begins with the degree it has"
            raise UsageError(explain(f"component {name!r}", "", expected, "a spout", hint))
        if name not in names:
            raise UsageError(explain(f"bolt {name!r}", expected=f"one of {names}"))
        return self._built.operator(name)

    def _limit(self, operator: Operator, degree: int) -> str:
        """Let fewer or more workers work on what any of them may take."""
        self._hands.resize(operator, degree)
        name = operator.component.name
        reason = f"{name!r} has {degree} workers at most"
        report = Report(self._built.arranging.next_epoch([name]), reason, 0, 0, 0, 0.0)
        self._tell(report)
        return report.text()

    def _tell(self, report: Report | None) -> None:
        if report is not None:
            self._changing.tell(report)

    def _notice(self, text: str) -> None:
        self._listen(Noticed(text))


def _answer_all(
    answer: Callable[[str], None], before: Sequence[str], after: Sequence[str], text: str
) -> None:
    answer("; ".join([*before, text, *after]))
