"""Tasks in processes of their own: the same results, and nothing is lost when one dies."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from conformance.harness import Case, local
from conformance.test_conformance import CASES, slug
from thalweg.components import Bolt, Kind
from thalweg.events import Event, Noticed
from thalweg.runtimes.local.runtime import Local
from thalweg.topology import Component, Topology

# Some of all cases: every process takes about a second to start.
SOME = [case for case in CASES if not case.needs][::18]


def in_processes(topology: Topology) -> Topology:
    """Give every bolt but sinks processes of its own."""
    return replace(topology, components=tuple(map(_in_processes, topology)))


def _in_processes(component: Component) -> Component:
    if component.is_spout or not component.outputs:
        return component
    return replace(component, options=replace(component.options, isolation="process"))


@pytest.mark.parametrize("case", SOME, ids=slug)
def test_a_case_has_the_same_result_in_processes(case: Case) -> None:
    seen = local(workers=2)(in_processes(case.build()), case.inputs, case.settings)
    for expectation in case.expect:
        expectation.check(seen)


def children() -> list[int]:
    """Find the worker processes of this one."""
    found = []
    for task in os.listdir("/proc/self/task"):
        for child in Path(f"/proc/self/task/{task}/children").read_text().split():
            if "runtimes.local.child" in Path(f"/proc/{child}/cmdline").read_text():
                found.append(int(child))
    return sorted(found)


class CountWords(Bolt):
    """Counts in its state, one by one."""

    kind = Kind.KEYED
    outputs = {"word": str, "count": int}
    table = "counts"

    def process(self, t: Any) -> None:
        count = self.state.get(t.word, 0) + 1
        self.state.put(t.word, count)
        self.emit(t.word, count)


WORDS = [f"w{i * i % 13}" for i in range(4000)]


def counting(bolt: Bolt, words: Any, seen: list[Any], **options: Any) -> Topology:
    builder = tw.TopologyBuilder("killed")
    builder.add_spout("words", tw.items(words), fields={"word": str})
    made = builder.add_bolt("count", bolt, isolation="process", **options)
    made.fields("words", "word")
    builder.add_bolt("out", tw.collect(seen)).global_("count")
    return builder.build()


@pytest.mark.parametrize("seed", range(3))
def test_a_process_that_is_killed_is_restarted_and_nothing_is_lost(seed: int) -> None:
    due, killed = [700 + seed, 1900, 3100 + 7 * seed], list[int]()
    told, seen = list[str](), list[Any]()

    def words() -> Any:
        for number, word in enumerate(WORDS):
            # The one that is there for longest; none is while both are being restarted.
            if due and number >= due[0] and (there := children()):
                del due[0]
                killed.append(there[0])
                os.kill(there[0], signal.SIGKILL)
            yield word

    def listen(event: Event) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)

    topology = counting(CountWords(), words, seen)
    result = topology.run(on=Local(workers=2, block_rows=50, most_block_rows=50), listen=listen)
    assert result.table("counts") == Counter(WORDS)
    by_word: dict[str, list[int]] = {}
    for word, count in seen:
        by_word.setdefault(word, []).append(count)
    assert by_word == {word: list(range(1, n + 1)) for word, n in Counter(WORDS).items()}
    assert len(told) == len(set(killed)) >= 2
    assert all("restarted" in text for text in told)


class Poisoned(CountWords):
    """Ends its process on one word."""

    def process(self, t: Any) -> None:
        if t.word == "w9":
            os._exit(3)
        super().process(t)


def test_a_tuple_that_ends_every_process_ends_the_run() -> None:
    with pytest.raises(tw.ComponentError, match="died 3 times"):
        counting(Poisoned(), WORDS, []).run(on=Local(workers=2))


class Raises(CountWords):
    """Does not like a word."""

    def process(self, t: Any) -> None:
        if t.word == "w9":
            text = "not this word"
            raise ValueError(text)
        super().process(t)


def test_an_error_in_a_process_tells_where_it_was() -> None:
    with pytest.raises(tw.ComponentError, match=r"(?s)not this word.*word='w9'") as caught:
        counting(Raises(), WORDS, []).run(on=Local(workers=2))
    assert caught.value.component == "count"


def test_tuples_that_are_refused_in_a_process_are_told_and_kept(tmp_path: Path) -> None:
    letters, refused = tmp_path / "letters.jsonl", list[Event]()
    topology = counting(Raises(), WORDS, [], on_error=tw.dead_letter(letters))

    def listen(event: Event) -> None:
        if isinstance(event, tw.events.TupleRefused):
            refused.append(event)

    result = topology.run(on=Local(workers=2), listen=listen)
    bad = WORDS.count("w9")
    assert len(letters.read_text().splitlines()) == len(refused) == bad
    assert result.metrics.component("count").errors == bad


class KeepsTuples(CountWords):
    """Acknowledges by itself."""

    auto_ack = False


def test_bolts_that_acknowledge_by_themselves_stay_in_threads() -> None:
    with pytest.raises(tw.UsageError, match="auto_ack"):
        counting(KeepsTuples(), WORDS, []).run(on=Local(workers=2))


def test_no_process_outlives_a_run_that_fails() -> None:
    before = threading.active_count()
    with pytest.raises(tw.ComponentError):
        counting(Raises(), WORDS, []).run(on=Local(workers=2))
    assert children() == []
    assert threading.active_count() == before
