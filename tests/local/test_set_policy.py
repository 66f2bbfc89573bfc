"""Another scaling policy takes over while a topology runs: told, obeyed, and refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import thalweg as tw
from thalweg.control.loop import Plan
from thalweg.control.scaling.policies import NAMES
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Decision, Node, Sample, Stream, Timing, View
from thalweg.events import Decided, Event, Noticed
from thalweg.runtimes.deciding import Around, Deciding, Watching
from thalweg.runtimes.local.runtime import Local

#: All seconds that policies go by become hundredths.
SPEED = 100.0


class Slow(tw.Bolt):
    """Takes its time for every tuple, so that one task is not enough."""

    outputs = {"n": int}

    def process(self, t: Any) -> None:
        self.context.clock.sleep(0.002)


class Told:
    """Keeps what is told, and lets the run go on until something was."""

    def __init__(
        self, react: Callable[[Event, tw.Steering], None], enough: Callable[[Event], bool]
    ) -> None:
        self.events: list[Event] = []
        self.steering = tw.Steering()
        self._react, self._enough = react, enough

    def listen(self, event: Event) -> None:
        self.events.append(event)
        self._react(event, self.steering)

    def numbers(self) -> Iterator[int]:
        number = 0
        while not self.over:
            yield number
            number += 1

    @property
    def over(self) -> bool:
        return any(self._enough(event) for event in list(self.events))

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def run(self, on: Local) -> None:
        builder = tw.TopologyBuilder("slow")
        builder.add_spout("numbers", tw.items(self.numbers), fields={"n": int})
        builder.add_bolt("slow", Slow(), degree=1).shuffle("numbers")
        builder.build().run(on=on, steering=self.steering, listen=self.listen)


def once(kind: type[Event], policy: str) -> Callable[[Event, tw.Steering], None]:
    """Ask for a policy when something is told for the first time."""
    asked: list[str] = []

    def react(event: Event, steering: tw.Steering) -> None:
        if isinstance(event, kind) and not asked:
            asked.append(policy)
            steering.set_policy(policy, by="a test")

    return react


@pytest.mark.usefixtures("all_samples_count")
def test_the_new_policy_decides_from_then_on_and_the_log_says_who_asked() -> None:
    def by_ds2(event: Event) -> bool:
        return isinstance(event, Decided) and event.policy == "ds2" and event.replaces is None

    told = Told(once(Decided, "ds2"), by_ds2)
    scaling = Scaling("static", most=4, speed=SPEED)
    told.run(Local(assigning="executors", scaling=scaling, block_rows=16, queue_rows=64))
    decided = told.of(Decided)
    change = next(event for event in decided if event.replaces is not None)
    assert change.text == "policy ds2 leads in place of static, as asked by a test"
    assert (change.policy, change.replaces, dict(change.degrees)) == ("ds2", "static", {})
    at = decided.index(change)
    assert {event.policy for event in decided[:at]} == {"static"}
    assert {event.policy for event in decided[at:]} == {"ds2"}
    assert decided[-1].carried_out


@pytest.mark.usefixtures("all_samples_count")
def test_a_name_that_is_none_is_refused_with_those_that_are_and_nothing_changes() -> None:
    told = Told(once(Decided, "ds3"), lambda event: isinstance(event, Noticed))
    told.run(
        Local(
            assigning="executors",
            scaling=Scaling("static", speed=SPEED),
            block_rows=16,
            queue_rows=64,
        )
    )
    notice = told.of(Noticed)[0].text
    assert notice.startswith("nothing changes: scaling policy: expected one of ")
    assert "got 'ds3'" in notice
    assert all(repr(name) in notice for name in NAMES)
    assert {event.policy for event in told.of(Decided)} == {"static"}


def test_a_run_without_a_policy_gets_one() -> None:
    def react(event: Event, steering: tw.Steering) -> None:
        if len(told.events) == 1:
            steering.set_policy("thalweg:economy")

    told = Told(react, lambda event: isinstance(event, Decided))
    told.run(Local(assigning="executors", block_rows=16, queue_rows=64))
    assert told.of(Decided)[0].text == (
        "policy thalweg:economy leads in place of static, as asked by a program"
    )


class Still:
    """A runtime in which nothing happens."""

    degrees = {"numbers": 1, "slow": 2}
    busy = False


def deciding(how: Scaling, window: float = 0.0) -> tuple[Deciding, list[Event]]:
    told: list[Event] = []
    runtime = Watching(Still())  # type: ignore[arg-type]
    inputs = (Stream("numbers", "default"),)
    nodes = [Node("numbers"), Node("slow", inputs, most=8, window=window)]
    return Deciding(how, nodes, runtime, Around(), told.append), told


class Moving(Still):
    """A runtime that is busy from the first change on."""

    def realise(self, plan: Plan) -> Plan:
        self.busy = True
        return plan


@dataclass(frozen=True)
class Wants:
    """A policy that always wants the same degree."""

    name: str
    degree: int
    timing: ClassVar[Timing] = Timing(delta=10.0, period=10.0, grace=10.0)

    def decide(self, view: View) -> tuple[Decision, ...]:
        return (Decision("slow", self.degree, view.degrees["slow"], "it says so"),)


def samples(at: float) -> list[Sample]:
    given = Sample("numbers", at, 1, received=100, processed=100)
    return [given, Sample("slow", at, 2, 100, 100, latency_mean=0.01, latency_max=0.01)]


@pytest.mark.parametrize("policy", NAMES)
def test_what_was_seen_stays_known_where_the_period_is_the_same(policy: str) -> None:
    made, _ = deciding(Scaling("static"))
    for at in (10.0, 20.0, 30.0):
        made.decide(at, samples(at))
    period = made.period
    made.lead(policy, 31.0, "a test")
    known = [sample.time for sample in made.view(31.0).history["slow"]]
    assert known == ([10.0, 20.0, 30.0] if made.period == period else [])


def test_policies_that_are_asked_beside_change_places_with_the_one_that_leads() -> None:
    made, told = deciding(Scaling("static", beside=("ds2", "autoscale")))
    made.lead("ds2", 1.0, "a test")
    told.clear()
    for at in range(1, 14):
        made.decide(10.0 * at, samples(10.0 * at))
    last = [event for event in told if isinstance(event, Decided)][-3:]
    assert [event.policy for event in last] == ["ds2", "static", "autoscale"]
    assert [event.carried_out for event in last] == [True, False, False]


def test_all_policies_are_asked_at_the_look_at_which_the_leading_one_acts() -> None:
    told: list[Event] = []
    how = Scaling(Wants("first", 4), beside=(Wants("second", 1), Wants("third", 2)))
    nodes = [Node("numbers"), Node("slow", (Stream("numbers", "default"),), most=8)]
    made = Deciding(how, nodes, Moving(), Around(), told.append)
    assert made.decide(10.0, samples(10.0)).changes
    asked = [event for event in told if isinstance(event, Decided)]
    assert {event.policy: event.degrees["slow"] for event in asked} == {
        "first": (2, 4),
        "second": (2, 1),
        "third": (2, 2),
    }
    assert [event.carried_out for event in asked] == [True, False, False]
    made.decide(20.0, samples(20.0))  # what was begun is under way: nobody is asked
    assert len(told) == len(asked)


def test_the_policy_that_leads_already_is_left_alone() -> None:
    made, told = deciding(Scaling("ds2"))
    made.lead("ds2", 1.0, "a test")
    text = "policy ds2 leads already, as asked by a test"
    assert told == [Decided(text, "ds2", 1.0, {}, replaces="ds2")]


def test_a_longer_delta_of_the_policy_that_takes_over_is_told() -> None:
    made, told = deciding(Scaling("static"), window=45.0)
    assert told == []  # a minute is longer
    made.lead("thalweg", 1.0, "a test")
    text = "Delta is 50 s, not 30 s: the window of 'slow' is 45 s, and Delta has to be longer"
    assert Noticed(text) in told
