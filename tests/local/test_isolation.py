"""Tasks in processes of their own: the same results, and nothing is lost when one dies."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from thalweg.components import Bolt, Kind, Shared, Spout
from thalweg.events import Event, Noticed
from thalweg.runtimes.local.runtime import Local
from thalweg.topology import Component, Topology


def in_processes(topology: Topology) -> Topology:
    """Give every bolt but sinks processes of its own."""
    return replace(topology, components=tuple(map(_in_processes, topology)))


def _in_processes(component: Component) -> Component:
    if component.is_spout or not component.outputs:
        return component
    return replace(component, options=replace(component.options, isolation="process"))


def children() -> list[int]:
    """Find the worker processes of this one."""
    found = []
    for task in os.listdir("/proc/self/task"):
        for child in told_of(f"self/task/{task}/children").split():
            if "runtimes.local.child" in told_of(f"{child}/cmdline"):
                found.append(int(child))
    return sorted(found)


def told_of(name: str) -> str:
    """Read what the system tells of a thread or process; nothing of one that has just ended."""
    try:
        return Path("/proc", name).read_text()
    except OSError:
        return ""


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
    due = sorted(random.Random(seed).sample(range(100, len(WORDS)), 5))
    killed: list[int] = []
    told, seen, last = list[str](), list[Any](), 0

    def words() -> Any:
        nonlocal last
        for number, word in enumerate(WORDS):
            # A block that ends three processes ends the run: all before the last kill is done.
            ready = due and number >= due[0] and len(seen) >= last
            if ready and (there := children()):
                del due[0]
                last = number
                killed.append(there[0])
                os.kill(there[0], signal.SIGKILL)
            yield word

    def listen(event: Event) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)

    topology = counting(CountWords(), words, seen)
    local = Local(workers=2, block_rows=50, most_block_rows=50, queue_rows=100)
    result = topology.run(on=local, listen=listen)
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


class Reliable(Shared, Spout):
    """Emits words with their numbers as ids, and notes how they end."""

    outputs = {"word": str}

    def __init__(self, words: list[str]) -> None:
        self.words, self.acked, self.failed = words, list[int](), list[int]()

    def prepare(self, context: Any) -> None:
        self.next = 0

    def next_tuple(self) -> None:
        if self.next < len(self.words):
            self.emit(self.words[self.next], id=self.next)
            self.next += 1
        elif len(self.acked) + len(self.failed) == len(self.words):
            self.finish()

    def ack(self, id: Any) -> None:
        self.acked.append(id)

    def fail(self, id: Any) -> None:
        self.failed.append(id)


class Later(CountWords):
    """Acknowledges when it has seen three more; does not like one word."""

    auto_ack = False

    def prepare(self, context: Any) -> None:
        self.kept: list[Any] = []

    def process(self, t: Any) -> None:
        super().process(t)
        self.kept.append(t)
        if len(self.kept) > 3:
            self.end_one()

    def end_one(self) -> None:
        t = self.kept.pop(0)
        (self.fail if t.word == "w9" else self.ack)(t)

    def process_tick(self) -> None:
        while self.kept:
            self.end_one()


@pytest.mark.parametrize("killed", [False, True], ids=["calm", "killed"])
def test_bolts_in_processes_acknowledge_when_they_like(killed: bool) -> None:
    source, seen = Reliable(WORDS), list[Any]()
    builder = tw.TopologyBuilder("reliable")
    builder.add_spout("words", source)
    later = builder.add_bolt("later", Later(), isolation="process", tick=0.05)
    later.fields("words", "word")

    def see(t: Any) -> None:
        if killed and len(seen) == 1000:
            os.kill(children()[0], signal.SIGKILL)
        seen.append(t)

    builder.add_bolt("out", tw.call(see)).global_("later")
    local = Local(workers=2, block_rows=50, most_block_rows=50)
    metrics = builder.build().run(on=local).metrics
    bad = [number for number, word in enumerate(WORDS) if word == "w9"]
    assert sorted(source.failed) == bad
    assert sorted([*source.acked, *source.failed]) == list(range(len(WORDS)))
    assert (metrics.acked, metrics.failed) == (len(source.acked), len(bad))
    assert len(seen) == len(WORDS)


def test_no_process_outlives_a_run_that_fails() -> None:
    before = threading.active_count()
    with pytest.raises(tw.ComponentError):
        counting(Raises(), WORDS, []).run(on=Local(workers=2))
    assert children() == []
    assert threading.active_count() == before
