"""Places that follow a policy on Spark; state and results do not notice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_streams import _callbacks, _no_calls_are_left  # noqa: F401 (fixtures for every stream)

import thalweg as tw
from sparksession import spark_session
from thalweg.control.scaling.history import History
from thalweg.control.scaling.values import Decision, Timing, View
from thalweg.control.settings import LocalitySettings
from thalweg.errors import StateError
from thalweg.events import Decided, Event, Noticed, Progress
from thalweg.hashing import hash_key
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests
from thalweg.statelog.tables import load_tables
from thalweg.testing import ManualClock, source

TIMING = Timing(delta=1.0, period=1.0, grace=0.0)
WORDS = [f"w{n * 7919 % 31}" for n in range(600)]


@dataclass(frozen=True)
class Scripted:
    """Wants the next number of tasks every three seconds."""

    wanted: tuple[int, ...] = (3, 1, 4, 2)
    timing: Timing = TIMING
    name: str = "scripted"

    def decide(self, view: View) -> tuple[Decision, ...]:
        degree = self.wanted[int(view.now) // 3 % len(self.wanted)]
        return tuple(
            Decision(node.name, node.bounded(degree), view.degrees[node.name], "it is written")
            for node in view.scalable
        )


class Listener:
    """Lets a second pass with every batch, and keeps what is told."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.decided: list[Decided] = []
        self.notices: list[str] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.clock.advance(1.0)
        if isinstance(event, Decided):
            self.decided.append(event)
        if isinstance(event, Noticed):
            self.notices.append(event.text)


def chaining(words: list[str]) -> tw.Flow:
    """Count words, and chain the numbers of each, which tells whether their order was kept."""
    flow = tw.Flow("chaining")
    given = [(word, f"{number:03}") for number, word in enumerate(words)]
    stream = flow.source("words", source(given), fields={"word": str, "number": str})
    stream.tally("counts", key="word")
    stream.key_by("word").fold("chain", "", lambda before, number: before + number, order="key")
    return flow


def chains(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        found[word] = found.get(word, "") + f"{number:03}"
    return found


def run(state: Path, listener: Listener, scaling: tw.Scaling, **options: Any) -> tw.Result:
    on = tw.Spark(
        spark_session(),
        places=2,
        state=str(state),
        clock=listener.clock,
        pump=PumpSettings(rows=20, block_rows=20),
        limits=Limits(runs=3, versions=3),
        scaling=scaling,
        **options,
    )
    return chaining(WORDS).run(on=on, listen=listener)


def check(result: tw.Result) -> None:
    assert result.table("counts") == dict(Counter(WORDS))
    assert result.table("chain") == chains(WORDS)


def test_places_follow_the_policy_and_results_are_the_same(tmp_path: Path) -> None:
    listener = Listener()
    check(run(tmp_path, listener, tw.Scaling(Scripted(), most=4)))
    degrees = [event.degrees["counts"][0] for event in listener.decided]
    assert set(degrees) == {1, 2, 3, 4}
    assert all(event.degrees["counts"] == event.degrees["chain"] for event in listener.decided)
    texts = [event.text for event in listener.decided if event.text]
    assert "counts 2 -> " in texts[0]
    assert "because it is written" in texts[0]


def test_most_bounds_the_places(tmp_path: Path) -> None:
    listener = Listener()
    check(run(tmp_path, listener, tw.Scaling(Scripted(), most=3)))
    assert {event.degrees["counts"][0] for event in listener.decided} == {1, 2, 3}


def test_without_most_places_are_as_many_as_tasks_run_at_once(tmp_path: Path) -> None:
    listener = Listener()
    check(run(tmp_path, listener, tw.Scaling(Scripted())))
    assert {event.degrees["counts"][0] for event in listener.decided} == {1, 2}


def test_a_dry_run_changes_nothing_and_says_what_it_would_do(tmp_path: Path) -> None:
    listener = Listener()
    scaling = tw.Scaling(Scripted(), most=4, dry_run=True, beside=("static",))
    check(run(tmp_path, listener, scaling))
    last = Manifests(Location.of(tmp_path)).latest()
    assert last is not None
    assert (last.places, last.epoch) == (2, 0)
    wanted = {e.degrees["counts"] for e in listener.decided if e.policy == "scripted"}
    assert wanted == {(2, degree) for degree in (1, 2, 3, 4)}
    assert {e.degrees["counts"] for e in listener.decided if e.policy == "static"} == {(2, 2)}
    assert not any(event.carried_out for event in listener.decided)


def test_samples_and_decisions_are_kept(tmp_path: Path) -> None:
    listener, path = Listener(), tmp_path / "history.db"
    check(run(tmp_path / "state", listener, tw.Scaling(Scripted(), most=4, history=path)))
    with History(path, writes=False) as history:
        samples = [s for s in history.samples() if s.component == "counts"]
        changes = [c for c in history.changes() if c.component == "counts"]
    assert {sample.degree for sample in samples} == {1, 2, 3, 4}
    assert 0 < sum(sample.processed for sample in samples) <= len(WORDS)
    assert {change.after for change in changes} == {1, 2, 3, 4}


def test_keys_that_occur_together_stay_so_with_other_places(tmp_path: Path) -> None:
    pairs = [(f"c{n % 40}", f"i{n % 40}") for n in range(4_000)]
    flow = tw.Flow("shop")
    stream = flow.source("sales", source(pairs), fields={"customer": str, "item": str})
    stream.tally("by_customer", key="customer").tally("by_item", key="item")
    learning = tw.Locality(every=4.0, sampling=1.0, cost=1.0, deciding=LocalitySettings(gain=0.0))
    listener = Listener()
    on = tw.Spark(
        spark_session(),
        places=2,
        shorten=False,
        state=str(tmp_path),
        clock=listener.clock,
        pump=PumpSettings(rows=200, block_rows=200),
        scaling=tw.Scaling(Scripted((2, 2, 2, 4, 4, 4, 4, 4)), most=4),
        locality=learning,
    )
    result = flow.run(on=on, listen=listener)
    assert result.table("by_customer") == dict(Counter(customer for customer, _ in pairs))
    assert result.table("by_item") == dict(Counter(item for _, item in pairs))
    last = Manifests(Location.of(tmp_path)).latest()
    assert last is not None
    assert last.tables is not None
    assert last.places == 4
    tables = load_tables(Location.of(tmp_path), last.tables).tables(last.tables.step)
    customers = np.array([hash_key(f"c{n}") for n in range(40)], dtype=np.uint64)
    items = np.array([hash_key(f"i{n}") for n in range(40)], dtype=np.uint64)
    at = tables["by_customer"].places_of(customers)
    assert set(at.tolist()) == {0, 1, 2, 3}
    assert np.mean(at == tables["by_item"].places_of(items)) > 0.9


def test_streaming_dataframes_are_followed_too(tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    for number in range(12):
        lines = (f'{{"word": "{word}"}}' for word in WORDS[number * 50 : (number + 1) * 50])
        (tmp_path / "input" / f"{number:02}.json").write_text("\n".join(lines))

    def read(spark: Any) -> Any:
        reader = spark.readStream.schema("word string").option("maxFilesPerTrigger", 1)
        return reader.json(str(tmp_path / "input"))

    flow, listener = tw.Flow("streamed"), Listener()
    flow.source("words", tw.spark_source(read), fields={"word": str}).tally("counts", key="word")
    on = tw.Spark(
        spark_session(),
        places=2,
        trigger="available-now",
        clock=listener.clock,
        scaling=tw.Scaling(Scripted(), most=4),
    )
    result = flow.run(on=on, listen=listener)
    assert result.table("counts") == dict(Counter(WORDS))
    assert len({event.degrees["counts"][0] for event in listener.decided}) > 1


def test_state_that_cannot_move_is_no_state_to_scale(tmp_path: Path) -> None:
    class Seen(tw.Bolt):
        kind = tw.Kind.KEYED

        def process(self, t: Any) -> None:
            self.state.put(t.word, 1)

    builder = tw.TopologyBuilder("by-range")
    builder.add_spout("words", source(WORDS), fields={"word": str})
    builder.add_bolt("seen", Seen(), degree=2).fields("words", "word", bounds=("w2",))
    on = tw.Spark(spark_session(), places=2, state=str(tmp_path), scaling="thalweg")
    with pytest.raises(StateError, match="'seen': expected as many places and tasks as before"):
        builder.build().run(on=on)


def test_another_policy_takes_over_between_two_batches(tmp_path: Path) -> None:
    listener, steering = Listener(), tw.Steering()

    def listen(event: Event) -> None:
        listener(event)
        if isinstance(event, Decided) and len(listener.decided) == 1:
            steering.set_policy("none", by="a test")
            steering.rebalance("counts", 3)
            steering.reroute()
            steering.set_policy("static", by="a test")

    on = tw.Spark(
        spark_session(),
        places=2,
        state=str(tmp_path),
        clock=listener.clock,
        pump=PumpSettings(rows=20, block_rows=20),
        scaling=tw.Scaling(Scripted(), most=4),
    )
    check(chaining(WORDS).run(on=on, steering=steering, listen=listen))
    (change,) = (event for event in listener.decided if event.replaces is not None)
    assert change.text == "policy static leads in place of scripted, as asked by a test"
    later = listener.decided[listener.decided.index(change) + 1 :]
    assert {event.policy for event in later} == {"static"}
    places = {event.degrees["counts"] for event in later}
    assert len(places) == 1, places
    told = [text for text in listener.notices if "spreading state" not in text]
    unknown, other, learns = told
    assert "nothing changes: scaling policy: expected one of" in unknown
    assert "expected the local runtime" in other
    assert "does not learn which keys belong together" in learns
