"""Policy ``thalweg``: Thalweg's own, and the default.

* The sources' rates are forecast by the best of several models, with its error as a margin, and
  followed through the topology; a component hears of a rise before it arrives.
* Tuples may wait for a given time, and no longer. Those that gather while a reconfiguration pauses
  the tasks count as well; what a pause takes is learnt.
* Where a topology has a latency bound, each component has a budget of it, and no more time.
* A source that full queues held back for most of a period is taken to have more than it sent.
* What a task can do is what tasks have done, also compared with what earlier degrees achieved.
* Degrees rise at once where much more comes than tasks can do; a little more has to add up first.
  They fall only when a smaller one would have done for a while, the forecast agrees and no more
  tuples wait than before.
* Where a stream comes in bursts that nobody can foretell, and may wait for long, what waits is done
  just in time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from thalweg.config import ProfileName
from thalweg.control.scaling.budgets import budgets
from thalweg.control.scaling.deadlines import JustInTime, unsteady
from thalweg.control.scaling.estimating import Combine, combined, kept, latency, unready
from thalweg.control.scaling.experience import JUDGING, Experience, Judging, experience
from thalweg.control.scaling.flows import (
    HOLDING,
    Flow,
    Holding,
    arriving_rates,
    held_back,
    own_rates,
    passed_flows,
    source_flows,
    waiting,
    were_held,
)
from thalweg.control.scaling.outlook import FORECASTING, Forecasting, Outlook, outlook
from thalweg.control.scaling.values import Decision, Node, Stream, Timing, View, amount

_TIMING = Timing(delta=30.0, grace=10.0)


@dataclass(frozen=True)
class Profile:
    """What a topology's owner cares about."""

    #: Share of the capacity that is to be used after a change, and beyond which degrees rise.
    target: float
    limit: float
    #: Seconds that a tuple may wait at one component, and in which a change makes up for what
    #: waits.
    wait: float
    drain: float
    #: Seconds for which a smaller degree must have done before it is taken, errors of the forecast
    #: that it has to leave room for, and the part of the tasks that it has to save.
    delay: float
    margin: float
    gain: float
    #: Samples ahead that are looked at, and for which a new degree has to do.
    ahead: int
    lasts: int
    #: Whether a component's own forecast or that of its parents counts where they differ.
    combine: Combine = "max"
    #: Part of the time to wait after which tasks that cannot quite keep up get help.
    patience: float = 0.8
    #: Seconds after which a tuple of a burst is late, where such streams have rules of their own.
    bursts: float | None = None
    #: Part of a rate by which it changes from sample to sample where it comes in bursts.
    unsteady: float = 0.5
    #: Seconds of waiting that do not stand in the way of a smaller degree.
    calm: float = 1.0
    #: Samples in which a rate that differs by no more than this part of itself only fluctuates: a
    #: smaller degree has to do for the highest of them.
    steady: tuple[int, float] = 6, 0.2
    #: Part of what came when a degree was too small down to which it is not tried again.
    again: float = 0.8
    #: Part of the tasks for what waits in a burst that is taken beyond them.
    spare: float = 0.1
    #: What a change that is made only because tuples wait must leave of the time that they wait.
    worth: float = 0.8

    def lately(self, rates: Sequence[float], period: float) -> float:
        """Give the rate for which a smaller degree has to do: the highest of the last samples.

        >>> PROFILES["balanced"].lately([50, 49, 52, 50, 48, 47], 10.0)
        52
        >>> PROFILES["balanced"].lately([90, 80, 70, 60, 50, 40], 10.0)
        40
        """
        count, part = self.steady
        recent, span = rates[-count:], max(1, round(self.delay / period))
        if max(recent) - min(recent) <= part * max(recent):
            span = max(span, count)
        return max(rates[-span:])

    def faster(self, speed: float) -> Profile:
        """Divide all seconds.

        >>> quick = PROFILES["economy"].faster(10)
        >>> quick.wait, quick.drain, quick.delay, quick.bursts, quick.calm
        (2.0, 24.0, 1.0, 2.6, 0.1)
        """
        return replace(
            self,
            wait=self.wait / speed,
            drain=self.drain / speed,
            delay=self.delay / speed,
            bursts=None if self.bursts is None else self.bursts / speed,
            calm=self.calm / speed,
        )


PROFILES: Mapping[ProfileName, Profile] = {
    "performance": Profile(0.75, 0.9, 5.0, 30.0, 120.0, 2.0, 0.15, 3, 6),
    "balanced": Profile(0.97, 1.3, 15.0, 180.0, 10.0, 0.5, 0.1, 1, 3, patience=0.7),
    "economy": Profile(0.97, 2.0, 20.0, 240.0, 10.0, 0.0, 0.1, 1, 2, "min", bursts=26.0),
}


@dataclass(frozen=True)
class Need:
    """What a component is going to need."""

    outlook: Outlook
    #: Tuples per second that are expected soon, and later; and the most that a smaller degree must
    #: be able to do.
    inflow: float
    later: float
    most: float
    #: Tuples that wait, and whether they become more.
    pending: int
    growing: bool
    #: Tuples per second that one task can do, and seconds that a change takes.
    per_task: float
    pause: float
    #: Share of the last period for which sources were held back, if that counts.
    held: float = 0.0

    def waits(self, degree: int) -> float:
        """Seconds that the last of the waiting tuples waits."""
        return self.pending / (self.per_task * degree)

    def waits_after(self, degree: int) -> float:
        """Seconds that it waits if the degree is changed to this one now."""
        gathered = self.pending + self.inflow * self.pause
        return self.pause + gathered / (self.per_task * degree)

    def tasks(self, rate: float, use: Profile) -> float:
        """Tasks for a rate, and for making up for what waits after the pause of the change.

        That takes a while, in which a stream that falls needs less than the rate says.
        """
        gathered = self.pending + self.inflow * self.pause
        # Nobody can be asked to wait less than the pause itself takes.
        due = gathered / max(use.wait, self.pause)
        return max(rate / use.target, self.later + gathered / use.drain, due) / self.per_task


@dataclass(frozen=True)
class Thalweg:
    """Scales ahead of the stream, and comes down with care."""

    profile: ProfileName = "balanced"
    #: Replaces the values of the profile's name.
    values: Profile | None = None
    #: Seconds that a reconfiguration is expected to take, until one was seen.
    pause: float = 5.0
    #: Seconds of history that costs per tuple are taken from.
    memory: float = 120.0
    #: Seconds that a tuple may take from a source to the last component; None for any.
    bound: float | None = None
    #: Part of that which is left for waiting, though processing alone takes longer.
    least: float = 0.01
    #: How rates are forecast, earlier periods judged, and sources that were held back understood.
    forecasting: Forecasting = FORECASTING
    judging: Judging = JUDGING
    holding: Holding = HOLDING
    timing: Timing = _TIMING
    name: str = "thalweg"

    @property
    def use(self) -> Profile:
        """The values in force."""
        return self.values or PROFILES[self.profile]

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Follow the forecast rates from the sources to the sinks."""
        horizon = self.use.ahead * view.period
        flows = source_flows(view, horizon, self.holding)
        decisions = []
        for node in view.scalable:
            need = self.need(view, node, flows)
            if isinstance(need, str):
                decisions.append(kept(view, node, need))  # and nothing is said about its children
                continue
            made = self._just_in_time(view, node, need) or self._decided(view, node, need)
            decisions.append(made)
            processed = min(need.inflow + need.pending / horizon, need.per_task * made.degree)
            rates = arriving_rates(view, node, flows)
            flows |= passed_flows(view, node, rates, processed - need.outlook.rate, need.held)
        return tuple(decisions)

    def use_at(self, view: View, node: Node) -> Profile:
        """Give the values for a component: it may have less time than the profile says."""
        use = self.use
        if self.bound is None:
            return use
        known = {each.name: latency(view, each, "mean") for each in view.scalable}
        takes = {name: seconds for name, seconds in known.items() if seconds is not None}
        budget = budgets(view.nodes, self.bound, takes)[node.name]
        budget = max(budget, self.least * self.bound)
        bursts = None if use.bursts is None else min(use.bursts, budget)
        return replace(use, wait=min(use.wait, budget), bursts=bursts)

    def need(self, view: View, node: Node, flows: Mapping[Stream, Flow]) -> Need | str:
        """Estimate what a component needs, or say why that is not possible."""
        if reason := unready(view, node):
            return reason
        known = experience(view, node, self.memory, self.pause, self.judging)
        if known is None:
            return "it has not processed anything yet"
        use, rates = self.use, arriving_rates(view, node, flows)
        seen = outlook(rates, use.ahead, use.lasts, self.forecasting)
        own = outlook(own_rates(view, node), use.ahead, use.lasts, self.forecasting)
        more = sum(flows[stream].more for stream in node.inputs if stream in flows)
        held = held_back(node, flows)
        how = "max" if held else use.combine  # what has come is what was let through
        inflow = combined(how, own.rate, max(0.0, seen.rate + more))
        later = combined(how, own.later, max(0.0, seen.later + more))
        most = max(use.lately(rates, view.period), later + use.margin * min(seen.error, own.error))
        what = waiting(view, node)
        return Need(seen, inflow, later, most, *what, known.per_task, known.pause, held)

    def _just_in_time(self, view: View, node: Node, need: Need) -> Decision | None:
        """Decide about a component whose tuples come in bursts; None if they do not."""
        rates, use = own_rates(view, node), self.use_at(view, node)
        if use.bursts is None or not unsteady(rates, use.unsteady) or were_held(view, self.holding):
            return None
        rule = JustInTime(use.bursts, use.gain, use.calm, use.spare)
        known = Experience(need.per_task, need.pause)
        made = rule.decide(view, node, known, sum(rates) / len(rates))
        if made.degree < made.before and need.growing:
            return kept(view, node, f"{made.reason}, but more tuples wait than before")
        return made

    def _decided(self, view: View, node: Node, need: Need) -> Decision:
        degree, use = view.degrees[node.name], self.use_at(view, node)
        busy, waits = need.inflow / (need.per_task * degree), need.waits(degree)
        what = (
            f"{amount(need.inflow)} tuples/s expected ({need.outlook.model}), "
            f"{100 * busy:.0f} % of what the tasks can do; "
            f"{amount(need.pending)} tuples wait, up to {waits:,.1f} s"
        )
        numbers = {"inflow": need.inflow, "per_task": need.per_task, "use": busy, "waits": waits}
        if self.bound is not None:
            what, numbers["wait"] = f"{what} of {amount(use.wait)} s", use.wait
        if need.held:
            what += f"; full queues held sources back for {100 * need.held:.0f} % of the time"
            numbers["held"] = need.held
        more = node.bounded(max(degree, need.tasks(need.later, use)))
        # A little too much does no harm until it has added up.
        over = busy > use.limit or (busy > 1 and waits > use.patience * use.wait)
        if over or (waits > use.wait and need.waits_after(more) < use.worth * waits):
            return Decision(node.name, more, degree, f"{what}: too much", numbers)
        less = node.bounded(need.tasks(need.most, use))
        if degree - less < max(1, use.gain * degree):
            return kept(view, node, what, **numbers)
        if why := self._too_early(view, node, need) or self._outgrown(view, node, need, less):
            return kept(view, node, f"{what}: {less} would do, but {why}", **numbers)
        return Decision(node.name, less, degree, f"{what}: {less} will do", numbers)

    def _outgrown(self, view: View, node: Node, need: Need, degree: int) -> str:
        """Say why a degree is too small: it was left for a higher one when as much came."""
        samples, (count, _) = view.history.get(node.name, ()), self.use.steady
        for change in view.changes:
            if change.component == node.name and degree <= change.before < change.after:
                until = [s.received / view.period for s in samples if s.time <= change.time]
                if until and need.most > self.use.again * max(until[-count:]):
                    return f"{change.before} was too little when as much came"
        return ""

    def _too_early(self, view: View, node: Node, need: Need) -> str:
        """Say why a degree must not fall yet; empty if it may."""
        if need.growing:
            return "more tuples wait than before"
        if need.waits(view.degrees[node.name]) > self.use.calm:
            return "those that wait come first"
        times = [change.time for change in view.changes if change.component == node.name]
        times += [sample.time - view.period for sample in view.history.get(node.name, ())[:1]]
        since = view.now - max(times, default=view.now)
        return "" if since >= self.use.delay else f"only {since:.0f} of {self.use.delay:g} s passed"
