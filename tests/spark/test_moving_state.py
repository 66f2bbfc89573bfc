"""State that moves to other numbers of places from run to run, with keys that come and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.statelog import Location, Manifest, Manifests
from thalweg.testing import ABORT, ManualClock, source

WORDS = [f"w{n * 7919 % 23}" for n in range(80)]
EVERY = 10_000


def runtime(state: Path, places: int, **options: Any) -> tw.Spark:
    given: dict[str, Any] = {
        "clock": ManualClock(),
        "pump": PumpSettings(rows=20, block_rows=20),
        "limits": Limits(runs=3, versions=4),
    }
    return tw.Spark(spark_session(), places=places, state=str(state), **given | options)


def interrupted(flow: Any, on: tw.Spark) -> None:
    with pytest.raises(tw.Aborted):
        flow.run(on=on)


class UpToThree(tw.Bolt):
    """Counts a word up to three, and then forgets it."""

    kind = tw.Kind.KEYED
    table = "seen"

    def process(self, t: Any) -> None:
        count = self.state.get(t.word, 0) + 1
        if count == 3:
            self.state.delete(t.word)
        else:
            self.state.put(t.word, count)


def forgetting(given: list[Any], **grouping: Any) -> tw.Topology:
    builder = tw.TopologyBuilder("forgetting")
    builder.add_spout("words", source(given), fields={"word": str})
    degree = {"degree": 2} if grouping else {}
    builder.add_bolt("seen", UpToThree(), **degree).fields("words", "word", **grouping)
    return builder.build()


def left(words: list[str]) -> dict[str, int]:
    counts = {word: words.count(word) % 3 for word in words}
    return {word: count for word, count in counts.items() if count}


# --- keys that go ---------------------------------------------------------------------------------


def test_keys_that_were_deleted_stay_deleted_wherever_they_move(tmp_path: Path) -> None:
    given: list[Any] = []
    for places in (2, 3, 1):
        given += WORDS
        interrupted(forgetting([*given, ABORT]), runtime(tmp_path, places))
    given += WORDS[:30]
    table = forgetting(given).run(on=runtime(tmp_path, 2)).table("seen")
    assert table == left(given)


def test_moves_that_follow_at_once_lose_nothing(tmp_path: Path) -> None:
    """There is one batch after each move, in which nothing can have been taken apart."""
    given: list[Any] = []
    for number, places in enumerate((2, 3, 1, 4)):
        given += WORDS[number * 20 : (number + 1) * 20]
        interrupted(forgetting([*given, ABORT]), runtime(tmp_path, places))
    table = forgetting([*given, *WORDS]).run(on=runtime(tmp_path, 2)).table("seen")
    assert table == left([*given, *WORDS])


def test_keys_that_expired_stay_forgotten_wherever_they_move(tmp_path: Path) -> None:
    def counting(given: list[Any]) -> tw.Flow:
        flow = tw.Flow("counting")
        words = flow.source("words", source(given), fields={"word": str})
        words.tally("counts", key="word", ttl="10 s")
        return flow

    clock = ManualClock()
    early, late = [f"e{n}" for n in range(15)], [f"l{n}" for n in range(15)]
    interrupted(counting([*early, *late, ABORT]), runtime(tmp_path, 2, clock=clock))
    clock.advance(8)
    interrupted(counting([*early, *late, *late, ABORT]), runtime(tmp_path, 3, clock=clock))
    clock.advance(8)
    given = [*early, *late, *late, *early[:3]]
    table = counting(given).run(on=runtime(tmp_path, 1, clock=clock)).table("counts")
    assert table == dict.fromkeys(late, 2) | dict.fromkeys(early[:3], 1)


# --- ranges ---------------------------------------------------------------------------------------


def by_range(given: list[Any]) -> tw.Topology:
    return forgetting(given, bounds=("w2",))


def test_state_by_range_is_kept_with_as_many_places(tmp_path: Path) -> None:
    interrupted(by_range([*WORDS, ABORT]), runtime(tmp_path, 2))
    table = by_range([*WORDS, *WORDS]).run(on=runtime(tmp_path, 2)).table("seen")
    assert table == left([*WORDS, *WORDS])


def test_state_by_range_refuses_to_move(tmp_path: Path) -> None:
    interrupted(by_range([*WORDS, ABORT]), runtime(tmp_path, 2))
    before = last_of(tmp_path)
    with pytest.raises(tw.StateError, match=r"(?s)'seen'.*as many places.*fields\(word by range\)"):
        by_range([*WORDS, *WORDS]).run(on=runtime(tmp_path, 3))
    assert last_of(tmp_path) == before


def test_state_by_range_of_a_component_that_is_gone_refuses_to_move_too(tmp_path: Path) -> None:
    interrupted(by_range([*WORDS, ABORT]), runtime(tmp_path, 2))
    other = tw.Flow("forgetting")
    words = other.source("words", source([*WORDS, *WORDS, ABORT]), fields={"word": str})
    words.tally("counts", key="word")
    with pytest.raises(tw.StateError, match=r"(?s)'seen'.*as many places.*fields\(word by range\)"):
        other.run(on=runtime(tmp_path, 3))
    interrupted(other, runtime(tmp_path, 2))
    again = by_range([*WORDS, *WORDS, *WORDS]).run(on=runtime(tmp_path, 2))
    assert again.table("seen") == left([*WORDS, *WORDS])


# --- components that are gone for a while ---------------------------------------------------------


def tallies(given: list[Any], *names: str) -> tw.Flow:
    flow = tw.Flow("tallies")
    words = flow.source("words", source(given), fields={"word": str})
    for name in names:
        words.tally(name, key="word")
    return flow


def last_of(state: Path) -> Manifest:
    found = Manifests(Location.of(state)).latest()
    assert found is not None
    return found


def merged_in(state: Path, since: int) -> set[str]:
    """Name the runs of versions after this one that were made of several others."""
    manifests = Manifests(Location.of(state))
    found = [m for m in manifests.older(EVERY) if m.version > since]
    runs = [ref for m in found for refs in m.runs for ref in refs]
    return {ref.name for ref in runs if ref.first < ref.last and not ref.shared}


def test_the_state_of_a_component_that_was_gone_is_still_there(tmp_path: Path) -> None:
    # So many runs and versions are kept that nothing is merged but what has to be taken apart.
    limits = Limits(runs=EVERY, versions=EVERY)
    given = list(WORDS)
    interrupted(tallies([*given, ABORT], "counts", "gone"), runtime(tmp_path, 2, limits=limits))
    for places in (3, 1):
        before = last_of(tmp_path).version
        given += WORDS * 3
        interrupted(tallies([*given, ABORT], "counts"), runtime(tmp_path, places, limits=limits))
        last = last_of(tmp_path)
        assert not any(ref.shared for refs in last.runs for ref in refs)
        assert len(merged_in(tmp_path, before)) == places
        assert "gone" in last.topology
    given += WORDS
    flow = tallies(given, "counts", "gone")
    result = flow.run(on=runtime(tmp_path, 2, limits=limits))
    assert result.table("counts") == {word: given.count(word) for word in given}
    twice = [*WORDS, *WORDS]
    assert result.table("gone") == {word: twice.count(word) for word in twice}
