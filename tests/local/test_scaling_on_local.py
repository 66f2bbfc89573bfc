"""Degrees follow a policy while tuples flow: state follows, order stays, decisions are told."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from keyed_counting import Counting, every_way, running

import thalweg as tw
from thalweg.components import Bolt, Kind
from thalweg.control.scaling.history import History
from thalweg.control.scaling.ours import Thalweg
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Decision, Timing, View
from thalweg.control.settings import LocalitySettings
from thalweg.events import Decided, Event, Noticed, Reconfigured
from thalweg.metrics import Counter as Counts
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.local.sampling import Sampling


@dataclass(frozen=True)
class Script:
    """Wants one set of degrees after the other, some time apart."""

    degrees: tuple[Mapping[str, int], ...]
    after: float = 0.0
    timing: Timing = field(default_factory=lambda: Timing(0.05, 0.05, 0.0))
    name: str = "script"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Go by how many changes there were."""
        known = min((s[0].time for s in view.history.values() if s), default=view.now)
        made = len({change.time for change in view.changes})
        due = view.now - known >= self.after
        wanted = self.degrees[min(made, len(self.degrees) - 1)] if due else {}
        return tuple(
            Decision(name, wanted.get(name, now), now, "as written")
            for name, now in view.degrees.items()
            if not view.node(name).is_source
        )


class Followed:
    """Gives numbers until so many changes were told, and so many looks since then."""

    def __init__(self, changes: int, looks: int = 2) -> None:
        self.events: list[Event] = []
        self.given: list[int] = []
        self._changes, self._looks = changes, looks

    @property
    def enough(self) -> bool:
        """Whether all of that was told."""
        changes = [n for n, e in enumerate(self.events) if isinstance(e, Reconfigured)]
        since = self.events[changes[-1] if changes else 0 :]
        looks = sum(isinstance(event, Decided) for event in since)
        return len(changes) >= self._changes and looks >= self._looks

    def told(self, kind: type[Any]) -> list[Any]:
        """Give the events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def numbers(self) -> Iterator[int]:
        """Give numbers."""
        more = 400
        while not self.enough or (more := more - 1):
            self.given.append(len(self.given) ** 2 % 41)
            yield self.given[-1]

    def run(self, topology: tw.Topology, scaling: Any, **settings: Any) -> Any:
        """Run a topology that takes these numbers."""
        small = {"block_rows": 20, "most_block_rows": 20, "workers": 3, "window": 8}
        local = Local(**(small | {"scaling": scaling} | settings))
        return topology.run(on=local, listen=self.events.append)


def counting(followed: Followed, seen: list[Any], **options: Any) -> tw.Topology:
    builder = tw.TopologyBuilder("scaled")
    builder.add_spout("keys", tw.items(followed.numbers), fields={"key": int})
    builder.add_bolt("count", Counting(), **options).fields("keys", "key")
    builder.add_bolt("out", tw.collect(seen), order="total").global_("count")
    return builder.build()


SCRIPT = Script(({"count": 2}, {"count": 5}, {"count": 1}, {"count": 3}))


@every_way
def test_a_policy_changes_degrees_and_no_result(way: dict[str, Any]) -> None:
    followed, seen = Followed(4), list[Any]()
    result = followed.run(counting(followed, seen, degree=1), SCRIPT, **way)
    assert [(t.key, t.count) for t in seen] == running(followed.given)
    assert result.table("counts") == Counter(followed.given)
    assert result.metrics.component("count").degree == 3
    texts = [event.text for event in followed.told(Decided) if event.text]
    assert texts == [
        f"script: count {before} -> {after} because as written"
        for before, after in ((1, 2), (2, 5), (5, 1), (1, 3))
    ]


def test_a_component_without_a_degree_is_scaled_too() -> None:
    followed, seen = Followed(1), list[Any]()
    result = followed.run(counting(followed, seen), Script(({"count": 3},)))
    assert result.table("counts") == Counter(followed.given)
    assert len({t.task for t in seen}) == 3


def test_in_a_dry_run_degrees_stay_and_wishes_are_told() -> None:
    followed, seen = Followed(0, looks=30), list[Any]()
    scaling = Scaling(SCRIPT, dry_run=True, beside=("static",))
    result = followed.run(counting(followed, seen, degree=1), scaling)
    assert result.metrics.component("count").degree == 1
    assert followed.told(Reconfigured) == []
    told = followed.told(Decided)
    assert {event.carried_out for event in told} == {False}
    wanted = {(event.policy, *event.degrees["count"]) for event in told}
    assert wanted == {("script", 1, 2), ("static", 1, 1)}


def test_policies_beside_the_leading_one_see_what_it_has_changed() -> None:
    followed, seen = Followed(1), list[Any]()
    scaling = Scaling(Script(({"count": 2},)), beside=("static",))
    followed.run(counting(followed, seen, degree=1), scaling)
    last = {event.policy: event for event in followed.told(Decided)}
    assert last["static"].degrees["count"] == (2, 2)
    assert [last[name].carried_out for name in ("script", "static")] == [True, False]


def test_what_cannot_be_split_is_refused_with_the_reason() -> None:
    followed, seen = Followed(0, looks=5), list[Any]()
    followed.run(counting(followed, seen, degree=1), Script(({"out": 2},)))
    (text,) = {event.text for event in followed.told(Decided)}
    assert text.startswith("script: out 1 stays because as written; degree in component 'out'")


class Passed(Bolt):
    """Takes what comes."""

    outputs = {"key": int}

    def process(self, t: Any) -> None:
        """Pass on."""
        self.emit(t.key)


def test_where_slots_are_scarce_the_more_valuable_component_gets_its_tasks() -> None:
    followed = Followed(1)
    builder = tw.TopologyBuilder("scarce")
    builder.add_spout("keys", tw.items(followed.numbers), fields={"key": int})
    builder.add_bolt("chart", Passed(), degree=1).shuffle("keys")
    builder.add_bolt("bill", Passed(), degree=1, priority=2).shuffle("keys")
    wants = Script(({"chart": 4, "bill": 4},))
    scaling = Scaling(wants, slots=7)  # one of them for the source
    result = followed.run(builder.build(), scaling, assigning="executors")
    found = {name: result.metrics.component(name) for name in ("bill", "chart")}
    assert [each.degree for each in found.values()] == [4, 2]
    assert {each.received for each in found.values()} == {len(followed.given)}
    first = next(event.text for event in followed.told(Decided) if event.text)
    assert "bill 1 -> 4 because as written" in first
    lacks = "2 of 4 tasks, because slots are scarce: 50 % of its work cannot be done"
    assert f"chart 1 -> 2 because as written; {lacks}" in first


def test_what_lacks_slots_is_told_as_long_as_it_does() -> None:
    followed = Followed(0, looks=5)
    builder = tw.TopologyBuilder("scarce")
    builder.add_spout("keys", tw.items(followed.numbers), fields={"key": int})
    builder.add_bolt("chart", Passed(), degree=1).shuffle("keys")
    scaling = Scaling(Script(({"chart": 4},)), slots=2)
    followed.run(builder.build(), scaling, assigning="executors")
    (text,) = {event.text for event in followed.told(Decided)}
    assert "chart 1 stays because as written; 1 of 4 tasks, because slots are scarce" in text


def test_a_run_goes_by_the_latency_bound_and_the_profile_of_its_topology(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[tuple[str, float | None]] = []

    def decide(policy: Thalweg, _view: View) -> tuple[Decision, ...]:
        used.append((policy.profile, policy.bound))
        return ()

    monkeypatch.setattr(Thalweg, "decide", decide)
    flow = tw.Flow("asked", quality=tw.Quality(latency="2 s", profile="economy"))

    def numbers() -> Iterator[int]:
        while not used:
            yield 1

    flow.source("numbers", tw.items(numbers), fields={"n": int}).sink("out", tw.collect([]))
    flow.run(on=Local(scaling=Scaling(speed=200)))
    assert set(used) == {("economy", 2.0)}


def test_samples_and_decisions_are_kept_and_a_later_run_goes_on_with_them(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    for degrees in (2,), (2, 5):
        followed, seen, degree = Followed(1), list[Any](), degrees[-1]
        script = Script(tuple({"count": degree} for degree in degrees))
        followed.run(counting(followed, seen, degree=1), Scaling(script, history=path))
        assert followed.told(Decided)[-1].degrees["count"] == (degree, degree)
    with History(path, writes=False) as history:
        changes = [(c.component, c.before, c.after) for c in history.changes()]
        assert changes == [("count", 1, 2), ("count", 1, 5)]  # the second knew of the first
        assert {sample.component for sample in history.samples()} == {"keys", "count", "out"}


# --- together with locality -----------------------------------------------------------------------


class Passing(Bolt):
    """Notes where each key was, and passes it on."""

    kind = Kind.KEYED
    outputs = {"key": int, "other": int, "task": int}

    def process(self, t: Any) -> None:
        """Pass on."""
        self.state.put(t.key, 1)
        self.emit(t.key, t.key + 1000, self.context.task)


class Second(Bolt):
    """Says where both keys of a tuple were."""

    kind = Kind.KEYED
    outputs = {"first": int, "second": int}

    def process(self, t: Any) -> None:
        """Compare."""
        self.state.put(t.other, 1)
        self.emit(t.task, self.context.task)


def test_keys_that_occur_together_move_once_with_the_degrees() -> None:
    followed, seen = Followed(1), list[Any]()

    def keys() -> Iterator[int]:
        for at, _ in enumerate(followed.numbers()):
            yield at % 24  # so that four tasks can have as many of them each

    builder = tw.TopologyBuilder("together")
    builder.add_spout("keys", tw.items(keys), fields={"key": int})
    builder.add_bolt("a", Passing(), degree=2).fields("keys", "key")
    builder.add_bolt("b", Second(), degree=2).fields("a", "other")
    builder.add_bolt("out", tw.collect(seen)).global_("b")
    learning = tw.Locality(every=None, sampling=1.0, deciding=LocalitySettings(evidence=100))
    scaling = Script(({"a": 4, "b": 4},), after=1.0)
    followed.run(builder.build(), scaling, locality=learning)
    (told,) = followed.told(Reconfigured)
    assert "'a' from 2 to 4 tasks: " in told.text
    assert "; 'b' from 2 to 4 tasks: " in told.text
    assert followed.told(Noticed) == []
    last = [(t.first, t.second) for t in seen[-300:]]
    assert {first for first, _ in last} == {0, 1, 2, 3}
    assert sum(first == second for first, second in last) >= 0.9 * len(last)


# --- samples --------------------------------------------------------------------------------------


def operator() -> Any:
    link = SimpleNamespace(arrived=0, waiting=0)
    sent = SimpleNamespace(arrived=0)
    return SimpleNamespace(
        component=SimpleNamespace(name="count"),
        degree=1,
        inputs=[link],
        streams={"default": [sent]},
        counters=[Counts("count", 1)],
        tasks=[None],
    )


def test_a_sample_counts_what_was_done_since_the_last_one() -> None:
    one = operator()
    built: Any = SimpleNamespace(spouts={}, sources={}, operators=[one], counters={})
    sampling = Sampling(built, period=10.0)
    assert sampling.take(100.0) == []
    one.inputs[0].arrived, one.inputs[0].waiting = 50, 20
    one.streams["default"][0].arrived = 15
    one.counters[0].per_task[0], one.counters[0].busy, one.counters[0].cpu = 30, 6.0, 2.0
    (sample,) = sampling.take(110.0)
    assert (sample.received, sample.processed, sample.pending) == (50, 30, 20)
    assert (sample.emitted, sample.latency_mean, sample.latency_max) == ({"default": 15}, 0.2, 0.2)
    assert (sample.busy, sample.tasks[0].used) == (6.0, 0.2)
    one.inputs[0].arrived = 100
    (sample,) = sampling.take(122.5)  # a quarter of a period late
    assert (sample.received, sample.time) == (40, 122.5)


@pytest.mark.parametrize("late", [4.0, 16.0])
def test_what_is_no_period_is_no_sample(late: float) -> None:
    built: Any = SimpleNamespace(spouts={}, sources={}, operators=[operator()], counters={})
    sampling = Sampling(built, period=10.0)
    sampling.take(100.0)
    assert sampling.take(100.0 + late) == []


def test_a_task_that_is_new_has_begun_at_nothing() -> None:
    one = operator()
    built: Any = SimpleNamespace(spouts={}, sources={}, operators=[one], counters={})
    sampling = Sampling(built, period=10.0)
    one.counters[0].per_task[0], one.counters[0].busy = 100, 10.0
    sampling.take(0.0)
    one.counters = [Counts("count", 1, busy=3.0), Counts("count", 1, busy=1.0)]
    one.counters[0].per_task[0], one.counters[1].per_task[0] = 10, 10
    one.degree = 2
    (sample,) = sampling.take(10.0)
    assert (sample.busy, sample.latency_mean, sample.latency_max) == (4.0, 0.2, 0.3)


@dataclass(eq=False)
class Task:
    """A task of a source."""

    body: Any
    finished: bool

    @staticmethod
    def call(function: Any) -> Any:
        """Call something of the source."""
        return function()


def source_of(body: Any, **more: Any) -> tuple[Any, Any]:
    """Make a built topology of one source, and what notes how long it is held back."""
    task = Task(body, more.get("finished", False))
    holding = SimpleNamespace(held=0.0)
    holding.seconds = lambda: holding.held
    built: Any = SimpleNamespace(
        spouts={"rows": [task]},
        sources={"rows": {"default": [SimpleNamespace(arrived=0)]}},
        counters={"rows": [Counts("rows", 1)]},
        holdings={"rows": holding},
        operators=[],
        overflows={task: SimpleNamespace(rows=7)} if more else {},
    )
    return built, holding


@pytest.mark.parametrize(
    ("body", "more", "pending", "held"),
    [
        (SimpleNamespace(), {}, 0, 0.6),  # it cannot say
        (SimpleNamespace(backlog=lambda: None), {}, 0, 0.6),
        (SimpleNamespace(backlog=lambda: 40), {}, 40, 0.6),
        (SimpleNamespace(backlog=lambda: 0), {}, 0, 0.0),  # it was held back from nothing
        (SimpleNamespace(backlog=lambda: 3), {"queued": True}, 10, 0.6),
        (SimpleNamespace(), {"finished": True, "queued": True}, 7, 0.6),
    ],
)
def test_a_source_says_what_it_has_left_and_how_long_it_was_held_back(
    body: Any, more: dict[str, Any], pending: int, held: float
) -> None:
    built, holding = source_of(body, **more)
    sampling = Sampling(built, period=10.0)
    sampling.take(100.0)
    holding.held = 6.0
    (sample,) = sampling.take(110.0)
    assert (sample.pending, sample.held) == (pending, held)


class Slowly(Bolt):
    """Takes a while for each tuple."""

    outputs = {"n": int}

    def process(self, t: Any) -> None:
        """Wait."""
        self.context.clock.sleep(0.002)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.usefixtures("all_samples_count")
def test_a_source_that_full_queues_hold_back_makes_degrees_rise(told: bool) -> None:
    """All that may wait is done soon, and no more comes than the tasks can do."""
    risen, reasons = threading.Event(), list[str]()

    def listen(event: Event) -> None:
        if isinstance(event, Decided) and event.degrees["slowly"][1] > 1:
            reasons.append(event.text)
            risen.set()

    class Much(tw.BlockSpout):
        outputs = {"n": int}

        def next_block(self, limit: int) -> Any:
            if risen.is_set():
                self.finish()
            return pa.record_batch({"n": pa.array(range(limit), pa.int64())})

        def backlog(self) -> int | None:
            return 100_000 if told else None

    builder = tw.TopologyBuilder("held")
    builder.add_spout("much", Much())
    builder.add_bolt("slowly", Slowly(), degree=1).shuffle("much")
    small = {"block_rows": 10, "most_block_rows": 10, "queue_rows": 40}
    local = Local(assigning="executors", scaling=Scaling("thalweg", most=4, speed=50), **small)
    builder.build().run(on=local, listen=listen)
    assert "full queues held sources back" in reasons[0]


@pytest.mark.parametrize(("scaling", "most"), [(None, 5000), ("static", 100)])
def test_a_source_is_asked_for_no_more_than_can_be_counted_soon(scaling: Any, most: int) -> None:
    """As long as nobody knows what a tuple takes, that is one block."""
    limits, done = list[int](), threading.Event()

    class Noting(tw.BlockSpout):
        outputs = {"n": int}

        def next_block(self, limit: int) -> Any:
            limits.append(limit)
            if sum(limits) > 5000:
                done.set()
                self.finish()
            return pa.record_batch({"n": pa.array(range(limit), pa.int64())})

    class Waiting(Bolt):
        outputs = {"n": int}

        def process(self, t: Any) -> None:
            """Wait until the source has said everything."""
            done.wait()

    builder = tw.TopologyBuilder("asked")
    builder.add_spout("numbers", Noting())
    builder.add_bolt("waiting", Waiting(), degree=1).shuffle("numbers")
    local = Local(assigning="executors", scaling=scaling, block_rows=100, most_block_rows=5000)
    builder.build().run(on=local)
    assert max(limits) <= most
    assert scaling is not None or max(limits) > 100


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        ("hope", "scaling policy: expected one of"),
        (5, "scaling: expected a policy or its name, got 5"),
        ("thalweg:hope", "scaling policy: expected one of"),
    ],
)
def test_what_is_no_policy_is_refused(scaling: Any, expected: str) -> None:
    with pytest.raises(tw.UsageError, match=expected):
        Local(scaling=scaling)


@pytest.mark.parametrize(
    "given",
    [
        {"speed": 0.0},
        {"most": 0},
        {"most": {"count": 0}},
        {"loss": 1.0},
        {"loss": -0.1},
        {"slots": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(tw.UsageError, match="scaling"):
        Scaling(**given)


def test_a_policy_of_ones_own_can_be_sped_up_if_it_is_a_dataclass() -> None:
    assert Scaling(SCRIPT, speed=5).leading.timing == Timing(0.01, 0.01, 0.0)

    class Plain:
        name, timing = "plain", Timing()

        def decide(self, _view: View) -> tuple[Decision, ...]:
            return ()

    with pytest.raises(tw.UsageError, match="a policy that is a dataclass"):
        Scaling(Plain(), speed=5)


def test_degrees_change_between_snapshots_and_the_next_run_begins_with_them(
    tmp_path: Path,
) -> None:
    followed, seen = Followed(4), list[Any]()
    kept = {"checkpoint": tmp_path, "snapshot_every": 0.05}
    result = followed.run(counting(followed, seen, degree=1), SCRIPT, **kept)
    assert result.table("counts") == Counter(followed.given)
    again = Followed(0, looks=0)
    result = again.run(counting(again, [], degree=1), "static", **kept)
    assert result.metrics.component("count").degree == 3
    assert result.table("counts") == Counter(followed.given)


class Broken(Counting):
    """Cannot begin."""

    def prepare(self, context: Any) -> None:
        """Fail."""
        raise RuntimeError("no service")


def test_a_run_that_cannot_begin_leaves_no_history_open(tmp_path: Path) -> None:
    builder = tw.TopologyBuilder("broken")
    builder.add_spout("keys", tw.items([1]), fields={"key": int})
    builder.add_bolt("count", Broken(), degree=1).fields("keys", "key")
    with pytest.raises(tw.ComponentError, match="no service"):
        builder.build().run(on=Local(scaling=Scaling(history=tmp_path / "kept.db")))
    assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True)
class Noting:
    """Changes nothing, and notes the changes that it sees."""

    seen: list[int]
    timing: Timing = field(default_factory=lambda: Timing(0.05, 0.05, 0.0))
    name: str = "noting"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Look."""
        self.seen.append(len(view.changes))
        return ()


def test_policies_beside_know_when_degrees_have_changed() -> None:
    followed, noting = Followed(2), Noting([])
    script = Script(({"count": 2}, {"count": 3}))
    followed.run(counting(followed, [], degree=1), Scaling(script, beside=(noting,)))
    assert noting.seen == sorted(noting.seen)
    assert noting.seen[-1] == 2
