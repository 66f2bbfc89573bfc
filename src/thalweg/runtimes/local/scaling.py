"""Degrees that follow the stream: the part of the thread that runs a topology."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from thalweg.control.joining import Customise
from thalweg.control.loop import Made, Plan, Step
from thalweg.control.ordering import Reorder
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Decision
from thalweg.control.shedding import Shed, Shedding
from thalweg.control.steps import Learn, Order, Share
from thalweg.errors import ThalwegError
from thalweg.events import Event
from thalweg.operators.join_ways import Way
from thalweg.runtimes.deciding import Around, Deciding, refused
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.joining import Joins
from thalweg.runtimes.local.reconfiguring import Change
from thalweg.runtimes.local.reordering import Reordering
from thalweg.runtimes.local.rescaling import BUDGET
from thalweg.runtimes.local.sampling import Sampling, nodes_of
from thalweg.runtimes.local.shedding import Shedder


class Rescaler:
    """Begins changes of degrees; a runtime as the loop sees it."""

    def __init__(
        self,
        built: Built,
        begin: Callable[[Change], None],
        is_busy: Callable[[], bool],
        shedder: Shedder,
        reordering: Reordering,
    ) -> None:
        self._built, self._begin, self._is_busy = built, begin, is_busy
        self.shedder, self.reordering, self.joins = shedder, reordering, Joins(built)

    @property
    def degrees(self) -> Mapping[str, int]:
        """Degrees in force."""
        found = {name: len(tasks) for name, tasks in self._built.spouts.items()}
        return found | {o.component.name: o.degree for o in self._built.operators}

    @property
    def busy(self) -> bool:
        """Whether keys or tasks are on their way."""
        return self._is_busy()

    def realise(self, plan: Plan) -> Plan:
        """Change orders, and then all degrees at once, so that keys move once."""
        plan = Plan(tuple(map(self._ordered, plan.made)))
        beside = [each for each in plan.made if not isinstance(each, Decision)]
        shedding = plan.of(Shedding)
        for share in shedding:
            self.shedder.share = share.share
        for way in plan.of(Way):
            self.joins.change(way)
        made = [each for each in plan.degrees if each.changes]
        if not made:
            return plan
        reason = "; ".join(
            f"{m.component!r} from {m.before} to {m.degree} tasks: {m.reason}" for m in made
        )
        change = Change(
            degrees={each.component: each.degree for each in made}, budget=BUDGET, reason=reason
        )
        try:
            self._begin(change)
        except ThalwegError as error:
            return Plan((*(refused(each, str(error)) for each in plan.degrees), *beside))
        return plan

    def _ordered(self, made: Made) -> Made:
        if isinstance(made, Reorder) and made.changes:
            return self.reordering.change(made)
        return made


class Scaler:
    """Asks policies once per sample period, and does what the leading one says."""

    def __init__(
        self, how: Scaling, built: Built, runtime: Rescaler, listen: Callable[[Event], None]
    ) -> None:
        self._built, self._clock = built, built.settings.clock
        below = [*_customise(how, runtime), *_shed(_allowed(how, built), runtime)]
        first = [Learn()] if how.learns else []
        around = Around(first, _order(how, runtime), [Share()], below)
        self._joins = runtime.joins
        nodes = nodes_of(built, how)
        self._deciding = Deciding(how, nodes, runtime, around, listen, built.topology)
        self._period = self._deciding.period
        self._sampling = Sampling(built, self._period)
        #: When to look next.
        self.due = 0.0

    def look(self) -> None:
        """Take samples and decide, if it is time."""
        now = self._clock.now()
        if now < self.due:
            return
        if not self.due:
            self._deciding.open(now)
        late = now - self.due > self._period / 2
        self.due = (now if late else self.due) + self._period
        samples = self._sampling.take(now)
        done = self._deciding.decide(now, samples) if samples else Plan()
        if any(made.changes for made in done.of(Reorder)):
            self._sampling.restart()

    def lead(self, policy: str, by: str) -> None:
        """Let another policy decide from now on; one that is not known is refused."""
        now = self._clock.now()
        self._deciding.lead(policy, now, by)
        if self._deciding.period != self._period:
            self._period = self._deciding.period
            self._sampling = Sampling(self._built, self._period)
            self.due = min(self.due, now)

    def close(self) -> None:
        """Let the history go, and the joins."""
        self._deciding.close()
        self._joins.close()


def _order(how: Scaling, runtime: Rescaler) -> list[Step]:
    ordering = runtime.reordering
    return [Order(ordering.chains, ordering.order)] if how.order and ordering.chains else []


def _customise(how: Scaling, runtime: Rescaler) -> list[Step]:
    """Decide how joins find pairs, unless nothing is to be done; then they do it themselves."""
    joins = {} if how.dry_run else runtime.joins.steer()
    return [Customise(joins)] if joins else []


def _shed(loss: float, runtime: Rescaler) -> list[Step]:
    shedder = runtime.shedder
    return [Shed(loss, lambda: shedder.share, shedder.window)] if loss else []


def _allowed(how: Scaling, built: Built) -> float:
    """Give the share of tuples that may be given up: what the run says, as far as is allowed."""
    quality = built.topology.quality
    if quality is None:
        return how.loss or 0.0
    # Rows are counted for a checkpoint, to find them again.
    return 0.0 if built.settings.checkpoint is not None else quality.allowed(how.loss)
