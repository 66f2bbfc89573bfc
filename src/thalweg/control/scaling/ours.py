"""Policy ``thalweg``: Thalweg's own, and the default.

* The sources' rates are forecast by the best of several models, with its error as a margin, and
  followed through the topology; a component hears of a rise before it arrives.
* Tuples may wait for a given time, and no longer. Those that gather while a reconfiguration pauses
  the tasks count as well; what a pause takes is learnt.
* What a task can do is what tasks have done, also compared with what earlier degrees achieved.
* Degrees rise at once where much more comes than tasks can do; a little more has to add up first.
  They fall only when a smaller one would have done for a while, the forecast agrees and no more
  tuples wait than before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from thalweg.control.scaling.estimating import Combine, combined, kept, unready
from thalweg.control.scaling.experience import experience
from thalweg.control.scaling.flows import (
    Flow,
    arriving_rates,
    own_rates,
    passed_flows,
    source_flows,
    waiting,
)
from thalweg.control.scaling.outlook import Outlook, outlook
from thalweg.control.scaling.values import Decision, Node, Stream, Timing, View

ProfileName = Literal["performance", "balanced", "economy"]
_TIMING = Timing(delta=30.0, grace=10.0)
#: Seconds of waiting that do not stand in the way of a smaller degree.
_CALM = 1.0
#: What a change that is made only because tuples wait must leave of the time that they wait.
_WORTH = 0.8


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


PROFILES: Mapping[ProfileName, Profile] = {
    "performance": Profile(0.75, 0.9, 5.0, 30.0, 120.0, 2.0, 0.15, 3, 6),
    "balanced": Profile(0.97, 1.3, 15.0, 180.0, 10.0, 0.5, 0.1, 1, 3, patience=0.7),
    "economy": Profile(0.97, 2.0, 20.0, 240.0, 10.0, 0.0, 0.1, 1, 2, "min"),
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
    timing: Timing = _TIMING
    name: str = "thalweg"

    @property
    def use(self) -> Profile:
        """The values in force."""
        return self.values or PROFILES[self.profile]

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Follow the forecast rates from the sources to the sinks."""
        horizon = self.use.ahead * view.period
        flows = source_flows(view, horizon)
        decisions = []
        for node in view.scalable:
            need = self.need(view, node, flows)
            if isinstance(need, str):
                decisions.append(kept(view, node, need))
                flows |= passed_flows(view, node, own_rates(view, node), 0.0)
                continue
            made = self._decided(view, node, need)
            decisions.append(made)
            processed = min(need.inflow + need.pending / horizon, need.per_task * made.degree)
            rates = arriving_rates(view, node, flows)
            flows |= passed_flows(view, node, rates, processed - need.outlook.rate)
        return tuple(decisions)

    def need(self, view: View, node: Node, flows: Mapping[Stream, Flow]) -> Need | str:
        """Estimate what a component needs, or say why that is not possible."""
        if reason := unready(view, node):
            return reason
        known = experience(view, node, self.memory, self.pause)
        if known is None:
            return "it has not processed anything yet"
        use, rates = self.use, arriving_rates(view, node, flows)
        seen = outlook(rates, use.ahead, use.lasts)
        own = outlook(own_rates(view, node), use.ahead, use.lasts)
        more = sum(flows[stream].more for stream in node.inputs if stream in flows)
        inflow = combined(use.combine, own.rate, max(0.0, seen.rate + more))
        later = combined(use.combine, own.later, max(0.0, seen.later + more))
        lately = rates[-max(1, round(use.delay / view.period)) :]
        most = max(*lately, later + use.margin * min(seen.error, own.error))
        what = waiting(view, node)
        return Need(seen, inflow, later, most, *what, known.per_task, known.pause)

    def _decided(self, view: View, node: Node, need: Need) -> Decision:
        degree, use = view.degrees[node.name], self.use
        busy, waits = need.inflow / (need.per_task * degree), need.waits(degree)
        what = (
            f"{need.inflow:.4g} tuples/s expected ({need.outlook.model}), {100 * busy:.0f} % of "
            f"what the tasks can do; {need.pending} tuples wait, up to {waits:.1f} s"
        )
        numbers = {"inflow": need.inflow, "per_task": need.per_task, "use": busy, "waits": waits}
        more = node.bounded(max(degree, need.tasks(need.later, use)))
        # A little too much does no harm until it has added up.
        over = busy > use.limit or (busy > 1 and waits > use.patience * use.wait)
        if over or (waits > use.wait and need.waits_after(more) < _WORTH * waits):
            return Decision(node.name, more, degree, f"{what}: too much", numbers)
        less = node.bounded(need.tasks(need.most, use))
        if degree - less < max(1, use.gain * degree):
            return kept(view, node, what, **numbers)
        if why := self._too_early(view, node, need):
            return kept(view, node, f"{what}: {less} would do, but {why}", **numbers)
        return Decision(node.name, less, degree, f"{what}: {less} will do", numbers)

    def _too_early(self, view: View, node: Node, need: Need) -> str:
        """Say why a degree must not fall yet; empty if it may."""
        if need.growing:
            return "more tuples wait than before"
        if need.waits(view.degrees[node.name]) > _CALM:
            return "those that wait come first"
        times = [change.time for change in view.changes if change.component == node.name]
        times += [sample.time - view.period for sample in view.history.get(node.name, ())[:1]]
        since = view.now - max(times, default=view.now)
        return "" if since >= self.use.delay else f"only {since:.0f} of {self.use.delay:g} s passed"
