"""Runs that go on from the state of earlier ones, also when something has changed."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import ABORT, ManualClock, source

WORDS = [f"w{n * 7919 % 31}" for n in range(200)]


def runtime(state: Path, places: int = 2, **options: Any) -> tw.Spark:
    given: dict[str, Any] = {
        "clock": ManualClock(),
        "pump": PumpSettings(rows=20, block_rows=20),
        "limits": Limits(runs=3, versions=4),
    }
    return tw.Spark(spark_session(), places=places, state=str(state), **given | options)


def counting(given: list[Any], name: str = "counting", **options: Any) -> tw.Flow:
    """Count words, and chain the numbers of each, which tells whether their order was kept."""
    flow = tw.Flow(name)
    words = flow.source("words", source(given), fields={"word": str})
    words.tally("counts", key="word", **options)
    words.key_by("word").fold("seen", "", lambda before, word: before + word[-1], **options)
    return flow


def interrupted(flow: tw.Flow, on: tw.Spark) -> None:
    with pytest.raises(tw.Aborted):
        flow.run(on=on)


def expected(words: list[str]) -> tuple[dict[str, int], dict[str, str]]:
    counts = dict(Counter(words))
    return counts, {word: word[-1] * count for word, count in counts.items()}


# --- other numbers of places and tasks ------------------------------------------------------------


def test_state_follows_its_keys_to_other_numbers_of_places(tmp_path: Path) -> None:
    given: list[Any] = []
    for places in (2, 3, 1, 2):
        given += WORDS
        interrupted(counting([*given, ABORT]), runtime(tmp_path, places))
    result = counting([*given, *WORDS]).run(on=runtime(tmp_path, 2))
    assert (result.table("counts"), result.table("seen")) == expected(WORDS * 5)


def test_state_follows_its_keys_to_other_numbers_of_tasks(tmp_path: Path) -> None:
    given: list[Any] = []
    for degree in (1, 5, 3):
        given += WORDS
        interrupted(counting([*given, ABORT], degree=degree), runtime(tmp_path))
    result = counting([*given, *WORDS], degree=2).run(on=runtime(tmp_path))
    assert (result.table("counts"), result.table("seen")) == expected(WORDS * 4)


# --- other topologies -----------------------------------------------------------------------------


def test_the_code_of_a_component_may_change(tmp_path: Path) -> None:
    def chain(given: list[Any], step: Any) -> tw.Flow:
        flow = tw.Flow("chain")
        words = flow.source("words", source(given), fields={"word": str})
        words.key_by("word").fold("total", 0, step)
        return flow

    interrupted(chain([*WORDS, ABORT], lambda before, word: before + 1), runtime(tmp_path))
    changed = chain([*WORDS, *WORDS], lambda before, word: before + 100)
    table = changed.run(on=runtime(tmp_path)).table("total")
    assert table == {word: count * 101 for word, count in Counter(WORDS).items()}


def test_a_component_may_come_and_another_go(tmp_path: Path) -> None:
    def first(given: list[Any], table: str) -> tw.Flow:
        flow = tw.Flow("renamed")
        words = flow.source("words", source(given), fields={"word": str})
        words.tally("counts", key="word").tally(table, key="word")
        return flow

    told: list[Any] = []
    interrupted(first([*WORDS, ABORT], "old"), runtime(tmp_path))
    result = first([*WORDS, *WORDS], "new").run(on=runtime(tmp_path), listen=told.append)
    assert result.table("counts") == dict(Counter(WORDS * 2))
    assert result.table("new") == dict(Counter(WORDS))
    texts = [event.text for event in told if hasattr(event, "text")]
    assert "component 'new' is new" in texts
    assert "component 'old' is gone, its state is no longer used" in texts


def test_the_state_of_another_topology_is_refused_with_the_difference(tmp_path: Path) -> None:
    interrupted(counting([*WORDS, ABORT]), runtime(tmp_path))
    other = tw.Flow("other")
    other.source("posts", tw.items(["a"]), fields={"tag": str}).tally("by_tag", key="tag")
    with pytest.raises(tw.StateError, match=r"'counts', 'seen', 'words'.*'by_tag', 'posts'"):
        other.run(on=runtime(tmp_path))


def test_a_checkpoint_of_the_local_runtime_is_refused(tmp_path: Path) -> None:
    counting(WORDS).run(on=tw.Local(checkpoint=tmp_path))
    with pytest.raises(tw.StateError, match="one of the Spark runtime, got one of 'local'"):
        counting(WORDS).run(on=runtime(tmp_path / "state"))


def test_another_type_of_key_is_refused(tmp_path: Path) -> None:
    interrupted(counting([*WORDS, ABORT]), runtime(tmp_path))
    flow = tw.Flow("counting")
    flow.source("words", tw.items([1]), fields={"word": int}).tally("counts", key="word")
    with pytest.raises(tw.StateError, match="key type of 'counts' was string, is int64"):
        flow.run(on=runtime(tmp_path))


def test_another_key_is_refused(tmp_path: Path) -> None:
    interrupted(counting([*WORDS, ABORT]), runtime(tmp_path))
    flow = tw.Flow("counting")
    flow.source("words", tw.items(["a"]), fields={"tag": str}).tally("counts", key="tag")
    with pytest.raises(tw.StateError, match="key of 'counts' was word, is tag"):
        flow.run(on=runtime(tmp_path))


# --- what state holds -----------------------------------------------------------------------------


def test_keys_that_nobody_wrote_for_long_are_forgotten(tmp_path: Path) -> None:
    clock = ManualClock()
    interrupted(counting(["a", "b", ABORT], ttl="10 s"), runtime(tmp_path, clock=clock))
    clock.advance(8)
    interrupted(counting(["a", "b", "b", ABORT], ttl="10 s"), runtime(tmp_path, clock=clock))
    clock.advance(8)  # "a" was written 16 seconds ago, "b" 8
    flow = counting(["a", "b", "b", "c"], ttl="10 s")
    assert flow.run(on=runtime(tmp_path, clock=clock)).table("counts") == {"b": 2, "c": 1}


def test_long_keys_are_keys(tmp_path: Path) -> None:
    long = [letter * 10_000 + str(n) for letter in "ab" for n in range(5)] + ["ä" * 10_000]
    interrupted(counting([*long, *long, ABORT]), runtime(tmp_path))
    table = counting([*long * 2, *long]).run(on=runtime(tmp_path, 3)).table("counts")
    assert table == dict.fromkeys(long, 3)


def test_a_run_that_has_ended_does_not_end_again(tmp_path: Path) -> None:
    """The last words of a bolt are said once, however often the run is started."""

    def ending(said: list[Any]) -> tw.Flow:
        flow = tw.Flow("ending")
        words = flow.source("words", tw.items(WORDS), fields={"word": str})
        words.through("last", LastWords()).sink("out", tw.collect(said))
        return flow

    first: list[Any] = []
    second: list[Any] = []
    ending(first).run(on=runtime(tmp_path))
    ending(second).run(on=runtime(tmp_path))
    assert ([tuple(t) for t in first], second) == ([(len(WORDS),)], [])


class LastWords(tw.Bolt):
    kind = tw.Kind.GLOBAL
    outputs = ["total"]

    def process(self, t: Any) -> None:
        self.state.put("total", self.state.get("total", 0) + 1)

    def process_end(self) -> None:
        self.emit(self.state.get("total"))


# --- side by side ---------------------------------------------------------------------------------


def test_two_topologies_run_at_the_same_time_in_one_session(tmp_path: Path) -> None:
    found: dict[str, Any] = {}

    def run(name: str, words: list[str]) -> None:
        result = counting(words, name).run(on=runtime(tmp_path / name))
        found[name] = result.table("counts"), result.table("seen")

    halves = {"one": WORDS[:100], "two": WORDS[100:] * 2}
    threads = [threading.Thread(target=run, args=item) for item in halves.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {name: expected(words) for name, words in halves.items()}
