"""Keys that are too heavy for one task, on Spark: what goes on from what, and what travels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.groupings import Choices
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import ABORT, ManualClock, source

WORDS = ["hot" if n % 2 else f"w{n * 7919 % 31}" for n in range(120)]


def runtime(state: Path, places: int, rows: int = 40) -> tw.Spark:
    pump, clock = PumpSettings(rows=rows, block_rows=rows), ManualClock()
    return tw.Spark(spark_session(), places=places, state=str(state), clock=clock, pump=pump)


def interrupted(flow: tw.Flow, on: tw.Spark) -> None:
    with pytest.raises(tw.Aborted):
        flow.run(on=on)


def counting(given: list[Any], spread: bool) -> tw.Flow:
    flow = tw.Flow("counting")
    keyed = flow.source("words", source(given), fields={"word": str}).key_by("word")
    keyed.count("counts", spread=spread)
    fold = keyed.fold
    fold("seen", 0, lambda seen: seen + 1, merge=lambda a, b: a + b, spread=spread)
    return flow


def test_tables_go_on_at_other_places_spread_or_not(tmp_path: Path) -> None:
    given: list[Any] = []
    for places, spread in ((2, False), (3, True), (1, True), (2, False)):
        given += WORDS
        interrupted(counting([*given, ABORT], spread), runtime(tmp_path, places))
    result = counting([*given, *WORDS], spread=True).run(on=runtime(tmp_path, 3))
    assert result.table("counts") == result.table("seen") == Counter(WORDS * 5)


def test_a_heavy_key_is_folded_before_it_travels(tmp_path: Path) -> None:
    words, sent = WORDS * 200, {}
    for spread, sender in ((False, "words"), (True, "seen.parts")):
        flow = tw.Flow("counting")
        keyed = flow.source("words", source(words), fields={"word": str}).key_by("word")
        keyed.fold("seen", 0, lambda n: n + 1, merge=lambda a, b: a + b, spread=spread)
        result = flow.run(on=runtime(tmp_path / sender, 2, rows=5000))
        assert result.table("seen") == Counter(words)
        metrics = result.metrics.component(sender)
        sent[spread] = metrics.shuffled + metrics.local
    assert sent[False] == len(words)
    # One value per key, task and block; how many blocks there are is the source's affair.
    assert sent[True] < len(words) / 10


class Halves(tw.Bolt):
    kind = tw.Kind.KEYED
    table = "counts"

    def process(self, t: Any) -> None:
        self.state.put(t.word, self.state.get(t.word, 0) + 1)

    @staticmethod
    def merge(a: int, b: int) -> int:
        return a + b


def halves(given: list[Any], choices: Choices) -> tw.Flow:
    flow = tw.Flow("halves")
    words = flow.source("words", source(given), fields={"word": str})
    words.grouped(tw.groupings.PartialKey(("word",), choices)).sink("halves", Halves(), degree=4)
    return flow


def test_partial_keys_go_on_with_other_choices(tmp_path: Path) -> None:
    given: list[Any] = []
    for choices in (2, "heavy"):
        given += WORDS
        interrupted(halves([*given, ABORT], choices), runtime(tmp_path, 2))
    result = halves([*given, *WORDS], 2).run(on=runtime(tmp_path, 2))
    assert result.table("counts") == Counter(WORDS * 3)
