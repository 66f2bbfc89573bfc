"""Policies while a topology runs, whatever the runtime: they are asked, obeyed, told and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from thalweg.control.loop import Loop, Plan, Realiser, Step
from thalweg.control.ordering import Reorder, rewired
from thalweg.control.scaling.history import History, Origin, Recorded
from thalweg.control.scaling.monitor import Monitor
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Decision, Node, Policy, Sample, View
from thalweg.control.steps import Replicate
from thalweg.errors import StateError
from thalweg.events import Decided, Event, Noticed
from thalweg.topology import Topology

#: Seconds of an earlier run that count, for policies that look so far back.
_REMEMBERED = 1800.0


@dataclass
class Watching:
    """Does nothing of what a policy decides, but keeps it."""

    runtime: Realiser
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


@dataclass(frozen=True)
class Around:
    """The steps around what policies say."""

    #: Before any policy is asked.
    first: Sequence[Step] = ()
    #: Before the leading one is, besides.
    above: Sequence[Step] = ()
    #: After any policy.
    shared: Sequence[Step] = ()
    #: After the leading one, because they look at what there is.
    below: Sequence[Step] = ()


class Deciding:
    """Asks policies when there are samples, and has done what the leading one says."""

    def __init__(
        self,
        how: Scaling,
        nodes: Sequence[Node],
        runtime: Realiser,
        around: Around,
        listen: Callable[[Event], None],
        topology: Topology | None = None,
    ) -> None:
        self._nodes, self._runtime, self._around, self._listen = nodes, runtime, around, listen
        self._topology = "" if topology is None else topology.name
        self._quality = None if topology is None else topology.quality
        self._history: History | None = None
        self._use(how)

    def _use(self, how: Scaling) -> None:
        """Begin with policies that know nothing yet."""
        self._how, around = how, self._around
        self._policies: list[Policy] = how.policies(self._quality)
        self.period = how.leading.timing.period
        timings = [replace(policy.timing, period=self.period) for policy in self._policies]
        self._monitors = [Monitor(self._nodes, timing, slots=how.slots) for timing in timings]
        if self._monitors[0].notice:
            self._listen(Noticed(self._monitors[0].notice))
        steps: list[list[Step]] = [
            [*around.first, Replicate(policy), *around.shared] for policy in self._policies
        ]
        steps[0] = [*around.above, *steps[0], *around.below]
        #: What each policy that is only asked has said last, by component.
        self._wished: list[dict[str, tuple[int, int]]] = [{} for _ in self._policies]
        self._loops = [Loop(*each) for each in zip(self._monitors, steps, strict=True)]

    def open(self, now: float) -> None:
        """Go on with what earlier runs have kept; whoever calls this closes it."""
        if self._how.history is None:
            return
        self._history = History(Path(self._how.history))
        since = now - _REMEMBERED
        # Samples of another period, or of another topology, mean something else.
        samples = self._history.samples(since, self._origin)
        changes = self._history.changes(since, self._origin)
        for monitor in self._monitors:
            monitor.remember(samples, changes)

    def close(self) -> None:
        """Let the file go."""
        if self._history is not None:
            self._history.close()

    def lead(self, policy: str, now: float, by: str) -> None:
        """Let another policy lead, between two decisions; what was seen so far, it knows."""
        before, period, seen = self._how.called, self.period, self._monitors[0]
        how, text = self._how.led_by(policy), f"policy {policy} leads already, as asked by {by}"
        if policy != before:
            self._loops[0].noted(now, Plan())  # what was begun is done
            self._nodes, view = seen.nodes, self.view(now)
            self._use(how)
            for monitor in self._monitors if self.period == period else ():
                monitor.remember(chain.from_iterable(view.history.values()), view.changes)
            text = f"policy {policy} leads in place of {before}, as asked by {by}"
        self._listen(Decided(text, policy, now, {}, not how.dry_run, replaces=before))

    def view(self, now: float) -> View:
        """Show what the leading policy sees."""
        return self._monitors[0].view(now, self._runtime.degrees)

    def decide(self, now: float, samples: Sequence[Sample]) -> Plan:
        """Ask all policies, and do what the leading one says unless it is only to be told.

        Gives what is being done.
        """
        leads = not self._how.dry_run
        asked = range(int(leads), len(self._policies))
        # They come first, for what the leading one begins would keep them waiting.
        plans, done = {number: self._wish(number, now, samples) for number in asked}, Plan()
        if leads:
            done = plans[0] = self._loops[0].turn(now, samples, self._runtime)
            self._note(now, done)
        wishes = [each for number in asked for each in self._wishes(now, number, plans[number])]
        for number, policy in enumerate(self._policies):
            self._tell(now, policy.name, plans[number], number not in asked)
        self._keep(now, samples, done, wishes)
        return done

    def _wish(self, number: int, now: float, samples: Sequence[Sample]) -> Plan:
        """Ask a policy of which nothing is done."""
        watching = Watching(self._runtime)
        plan = self._loops[number].turn(now, samples, watching)
        return watching.plan if watching.plan.made else plan

    def given_up(self, now: float, why: str) -> None:
        """Take back what was begun: it cannot be done after all, so nothing has changed."""
        begun, *_ = [loop.given_up() for loop in self._loops]
        made = [each for each in begun.degrees if each.changes]
        self._tell(now, self._policies[0].name, Plan(tuple(refused(m, why) for m in made)), True)
        reason = f"it was not done: {why}"
        back = (Decision(m.component, m.before, m.degree, reason) for m in made)
        self._keep(now, (), Plan(tuple(back)))

    def _note(self, now: float, plan: Plan) -> None:
        """Let the others know what has changed."""
        for loop in self._loops[1:] if plan.changes else ():
            loop.noted(now, plan)
        for made in (each for each in plan.of(Reorder) if each.changes):
            for monitor in self._monitors:
                monitor.rewired(rewired(monitor.nodes, made))

    def _wishes(self, now: float, number: int, plan: Plan) -> list[Recorded]:
        """Give what a policy wishes anew; what it has said already is not kept again."""
        said, policy = self._wished[number], self._policies[number].name
        new = [m for m in plan.degrees if said.get(m.component) != (m.before, m.degree)]
        said.update({made.component: (made.before, made.degree) for made in new})
        return [Recorded(now, policy, made, wish=True) for made in new]

    def _keep(
        self, now: float, samples: Sequence[Sample], plan: Plan, wishes: Sequence[Recorded] = ()
    ) -> None:
        """Write a look to the history; a stream does not end because that is not possible."""
        if self._history is None:
            return
        policy = self._policies[0].name
        try:
            made = [Recorded(now, policy, each) for each in plan.degrees]
            self._history.add(samples, [*made, *wishes], self._origin)
        except StateError as error:
            self._history.close()
            self._history = None
            self._listen(Noticed(f"{error}; the run goes on without a history"))

    @property
    def _origin(self) -> Origin:
        return Origin(self._topology, self.period)

    def _tell(self, now: float, policy: str, plan: Plan, carried_out: bool) -> None:
        made = plan.degrees
        if not plan.made:  # something is under way
            return
        # What there is no room for is told as well.
        wished = {each.component: each.degree for each in reversed(plan.of(Decision))}
        lacks = {each.component for each in made if each.degree < wished[each.component]}
        told = (m for m in made if m.changes or m.component in lacks or "refused" in m.numbers)
        texts = [_in_words(each) for each in told]
        beside = (each for each in plan.made if not isinstance(each, Decision))
        texts += [m.reason for m in beside if m.changes or (isinstance(m, Reorder) and m.refused)]
        text = f"{policy}: {'; '.join(texts)}" if texts else ""
        degrees = {each.component: (each.before, each.degree) for each in made}
        self._listen(Decided(text, policy, now, degrees, carried_out))


def refused(made: Decision, why: str) -> Decision:
    """Give a decision that is not carried out; one for no change stays as it is."""
    if not made.changes:
        return made
    numbers = {**made.numbers, "refused": float(made.degree)}
    return replace(made, degree=made.before, reason=f"{made.reason}; {why}", numbers=numbers)


def _in_words(made: Decision) -> str:
    change = f"{made.before} -> {made.degree}" if made.changes else f"{made.before} stays"
    return f"{made.component} {change} because {made.reason}"
