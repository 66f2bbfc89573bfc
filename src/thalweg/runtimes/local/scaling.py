"""Degrees that follow the stream: the part of the thread that runs a topology."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from thalweg.control.loop import Loop, Made, Plan, Step
from thalweg.control.ordering import Reorder, rewired
from thalweg.control.scaling.history import History
from thalweg.control.scaling.monitor import Monitor
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Decision, Policy
from thalweg.control.shedding import Shed, Shedding
from thalweg.control.steps import Order, Replicate
from thalweg.errors import ThalwegError
from thalweg.events import Decided, Event, Noticed
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.reconfiguring import Change
from thalweg.runtimes.local.reordering import Reordering
from thalweg.runtimes.local.rescaling import BUDGET
from thalweg.runtimes.local.sampling import Sampling, nodes_of
from thalweg.runtimes.local.shedding import Shedder

#: Seconds of an earlier run that count, for policies that look so far back.
_REMEMBERED = 1800.0


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
        self.shedder, self.reordering = shedder, reordering

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
        made = [each for each in plan.degrees if each.changes]
        if not made:
            return plan
        reason = ", ".join(f"{m.component!r} has {m.degree} tasks, not {m.before}" for m in made)
        change = Change(
            degrees={each.component: each.degree for each in made}, budget=BUDGET, reason=reason
        )
        try:
            self._begin(change)
        except ThalwegError as error:
            return Plan((*(_refused(each, str(error)) for each in plan.degrees), *beside))
        return plan

    def _ordered(self, made: Made) -> Made:
        if isinstance(made, Reorder) and made.changes:
            return self.reordering.change(made)
        return made


@dataclass
class Watching:
    """Does nothing of what a policy decides, but keeps it."""

    runtime: Rescaler
    plan: Plan = field(default_factory=Plan)

    @property
    def degrees(self) -> Mapping[str, int]:
        """Degrees in force."""
        return self.runtime.degrees

    @property
    def busy(self) -> bool:
        """Whether somebody else's decisions are being carried out."""
        return self.runtime.busy

    def realise(self, plan: Plan) -> Plan:
        """Keep a plan."""
        self.plan = plan
        return Plan()


class Scaler:
    """Asks policies once per sample period, and does what the leading one says."""

    def __init__(
        self, how: Scaling, built: Built, runtime: Rescaler, listen: Callable[[Event], None]
    ) -> None:
        self._how, self._runtime, self._listen = how, runtime, listen
        self._clock = built.settings.clock
        self._policies: list[Policy] = [how.leading, *how.others]
        self._period = how.leading.timing.period
        nodes = nodes_of(built, how)
        timings = [replace(policy.timing, period=self._period) for policy in self._policies]
        self._monitors = monitors = [Monitor(nodes, timing) for timing in timings]
        steps: list[list[Step]] = [[Replicate(policy)] for policy in self._policies]
        if how.order and runtime.reordering.chains:
            ordering = runtime.reordering
            steps[0].insert(0, Order(ordering.chains, ordering.order))
        loss = _allowed(how, built)
        if loss:
            steps[0].append(Shed(loss, lambda: runtime.shedder.share, runtime.shedder.window))
        self._loops = [Loop(*each) for each in zip(monitors, steps, strict=True)]
        self._sampling = Sampling(built, self._period)
        #: When to look next.
        self.due = 0.0
        self._history: History | None = None
        if monitors[0].notice:
            listen(Noticed(monitors[0].notice))

    def look(self) -> None:
        """Take samples and decide, if it is time."""
        now = self._clock.now()
        if now < self.due:
            return
        if not self.due and self._how.history is not None:
            self._history = self._opened(Path(self._how.history), now - _REMEMBERED)
        late = now - self.due > self._period / 2
        self.due = (now if late else self.due) + self._period
        samples = self._sampling.take(now)
        if self._history is not None and samples:
            self._history.add(samples)
        for number, policy in enumerate(self._policies if samples else ()):
            alone = number == 0 and not self._how.dry_run
            watching = Watching(self._runtime)
            plan = self._loops[number].turn(now, samples, self._runtime if alone else watching)
            if alone:
                self._note(now, plan)
            self._tell(now, policy.name, plan if alone else _wanted(plan, watching.plan), alone)

    def _opened(self, path: Path, since: float) -> History:
        """Go on with what earlier runs have kept; only now, when the run is sure to close it."""
        history = History(path)
        for monitor in self._monitors:
            monitor.remember(history.samples(since), history.changes(since))
        return history

    def close(self) -> None:
        """Let the file go."""
        if self._history is not None:
            self._history.close()

    def _note(self, now: float, plan: Plan) -> None:
        """Let the others know what has changed, and those who read the history."""
        for loop in self._loops[1:] if plan.changes else ():
            loop.noted(now, plan)
        for made in (each for each in plan.of(Reorder) if each.changes):
            for monitor in self._monitors:
                monitor.rewired(rewired(monitor.nodes, made))
            self._sampling.restart()
        if self._history is not None:
            self._history.decided(now, self._policies[0].name, plan.degrees)

    def _tell(self, now: float, policy: str, plan: Plan, carried_out: bool) -> None:
        made = plan.degrees
        if not made:  # something is under way
            return
        texts = [_in_words(each) for each in made if each.changes or "refused" in each.numbers]
        texts += [each.reason for each in plan.of(Shedding) if each.changes]
        texts += [each.reason for each in plan.of(Reorder) if each.changes or each.refused]
        text = "" if not texts else f"{policy}: {'; '.join(texts)}"
        degrees = {each.component: (each.before, each.degree) for each in made}
        self._listen(Decided(text, policy, now, degrees, carried_out))


def _allowed(how: Scaling, built: Built) -> float:
    """Give the share of tuples that may be given up: what the run says, as far as is allowed."""
    quality = built.topology.quality
    if quality is None:
        return how.loss or 0.0
    # Rows are counted for a checkpoint, to find them again.
    return 0.0 if built.settings.checkpoint is not None else quality.allowed(how.loss)


def _wanted(plan: Plan, kept: Plan) -> Plan:
    """Give what was decided and not done; without a change the plan has it all."""
    return kept if kept.made else plan


def _refused(made: Decision, why: str) -> Decision:
    if not made.changes:
        return made
    numbers = {**made.numbers, "refused": float(made.degree)}
    return replace(made, degree=made.before, reason=f"{made.reason}; {why}", numbers=numbers)


def _in_words(made: Decision) -> str:
    change = f"{made.before} -> {made.degree}" if made.changes else f"{made.before} stays"
    return f"{made.component} {change} because {made.reason}"
