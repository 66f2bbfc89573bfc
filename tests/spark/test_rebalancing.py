"""Places change in number while a run goes on; state and results do not notice."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import thalweg as tw
from sparksession import spark_session
from thalweg.cli.app import app
from thalweg.events import Event, Noticed, Progress, Reconfigured
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests
from thalweg.statelog.requests import Request, Requests
from thalweg.testing import ManualClock, source

WORDS = [f"w{n * 7919 % 31}" for n in range(600)]


class Asking:
    """Asks for the next number of places after every few batches, and lets time pass."""

    def __init__(self, state: Path, asked: Sequence[int], every: int = 4) -> None:
        self.location, self.asked, self.every = Location.of(state), list(asked), every
        self.clock = ManualClock()
        self.batches = 0
        self.notices: list[str] = []
        self.epochs: list[int] = []

    def listen(self, event: Event) -> None:
        if isinstance(event, Noticed):
            self.notices.append(event.text)
        if isinstance(event, Reconfigured):
            self.epochs.append(event.report["epoch"])
            assert "places in place of" in event.report["reason"]
        if isinstance(event, Progress):
            self.batches += 1
            self.clock.advance(1.0)
            if self.asked and self.batches % self.every == 0:
                Requests(self.location).ask(Request(self.asked.pop(0)))


def runtime(state: Path, clock: ManualClock, places: int = 2) -> tw.Spark:
    return tw.Spark(
        spark_session(),
        places=places,
        state=str(state),
        clock=clock,
        pump=PumpSettings(rows=20, block_rows=20),
        limits=Limits(runs=3, versions=3),
    )


def chaining(words: list[str]) -> tw.Flow:
    """Count words, and chain the numbers of each, which tells whether their order was kept."""
    flow = tw.Flow("chaining")
    given = [(word, f"{number:03}") for number, word in enumerate(words)]
    stream = flow.source("words", source(given), fields={"word": str, "number": str})
    stream.tally("counts", key="word")
    keyed = stream.key_by("word")
    keyed.fold("chain", "", lambda before, number: before + number, order="key")
    return flow


def chains(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        found[word] = found.get(word, "") + f"{number:03}"
    return found


@pytest.mark.parametrize("seed", range(3))
def test_results_are_those_of_a_run_that_never_changed(tmp_path: Path, seed: int) -> None:
    asked = random.Random(seed).choices(range(1, 6), k=5)
    asking = Asking(tmp_path, asked)
    result = chaining(WORDS).run(on=runtime(tmp_path, asking.clock), listen=asking.listen)
    assert result.table("counts") == dict(Counter(WORDS))
    assert result.table("chain") == chains(WORDS)
    assert not asking.asked
    last = Manifests(asking.location).latest()
    assert last is not None
    assert last.places == asked[-1]
    changes = len([a for a, b in zip(asked, [2, *asked], strict=False) if a != b])
    assert last.epoch == changes
    assert asking.epochs == list(range(1, changes + 1))


def test_each_place_soon_has_runs_of_its_own(tmp_path: Path) -> None:
    asking = Asking(tmp_path, [3])
    chaining(WORDS).run(on=runtime(tmp_path, asking.clock), listen=asking.listen)
    last = Manifests(asking.location).latest()
    assert last is not None
    assert len(last.runs) == 3
    assert not any(ref.shared for refs in last.runs for ref in refs)


def test_metrics_count_on(tmp_path: Path) -> None:
    asking = Asking(tmp_path, [4, 1])
    result = chaining(WORDS).run(on=runtime(tmp_path, asking.clock), listen=asking.listen)
    received = {metrics.component: metrics.received for metrics in result.metrics.components}
    assert received["counts"] == received["chain"] == len(WORDS)


def test_state_that_cannot_move_stays_and_says_why(tmp_path: Path) -> None:
    class Seen(tw.Bolt):
        kind = tw.Kind.KEYED
        table = "seen"

        def process(self, t: Any) -> None:
            self.state.put(t.word, self.state.get(t.word, 0) + 1)

    builder = tw.TopologyBuilder("by-range")
    builder.add_spout("words", source(WORDS), fields={"word": str})
    builder.add_bolt("seen", Seen(), degree=2).fields("words", "word", bounds=("w2",))
    asking = Asking(tmp_path, [3])
    builder.build().run(on=runtime(tmp_path, asking.clock), listen=asking.listen)
    last = Manifests(asking.location).latest()
    assert last is not None
    assert last.places == 2
    assert [text for text in asking.notices if text.startswith("places stay 2")]


def test_the_command_line_asks_and_waits(tmp_path: Path) -> None:
    committed, asked = threading.Event(), threading.Event()
    clock = ManualClock()

    def listen(event: Event) -> None:
        if isinstance(event, Progress):
            clock.advance(1.0)
            committed.set()
            if Location.of(tmp_path).exists("requests/places"):
                asked.set()
            elif not asked.is_set():
                asked.wait(0.05)

    stop, on = threading.Event(), runtime(tmp_path, clock)
    run = threading.Thread(target=lambda: chaining(WORDS * 20).run(on=on, listen=listen, stop=stop))
    run.start()
    try:
        while run.is_alive() and not committed.wait(0.05):
            pass
        result = CliRunner().invoke(app, ["rebalance", str(tmp_path), "--places", "3"])
    finally:
        stop.set()
        run.join()
    assert result.exit_code == 0, result.output
    assert "3 places since version" in result.output


def test_without_a_run_the_request_stays_for_the_next(tmp_path: Path) -> None:
    clock = ManualClock()
    chaining(WORDS).run(on=runtime(tmp_path, clock))
    given = ["rebalance", str(tmp_path), "--places", "3", "--patience", "0"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 1
    assert "the next run with this state begins with it" in result.output
    assert Requests(Location.of(tmp_path)).take(now=0.0) == Request(3)
