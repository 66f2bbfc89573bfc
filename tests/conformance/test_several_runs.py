"""More than one run: one after the other, after a crash, and at the same time; on every runtime."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from conformance.harness import (
    RUNTIMES,
    SAME_PROCESS,
    Observed,
    RuntimeUnderTest,
    Settings,
    nowhere,
)
from thalweg.components import Bolt
from thalweg.connectors.memory import items
from thalweg.errors import Aborted
from thalweg.flow import Flow
from thalweg.testing import ABORT, EOF, source
from thalweg.topology import Topology

every_runtime = pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES)
WORDS = [f"w{i * i % 13}" for i in range(100)]


def same_process(runtime: RuntimeUnderTest) -> None:
    """Skip a test whose bolts talk to it."""
    if SAME_PROCESS in runtime.lacks:
        pytest.skip(f"bolts of this runtime are not in the {SAME_PROCESS}")


def counting(
    body: Any, tap: Callable[[str], object] = lambda word: None, degree: int | None = None
) -> Topology:
    flow = Flow("words")
    words = flow.source("words", body, fields={"word": str}).tap(tap, degree=degree)
    words.tally("counts", key="word", degree=3).sink("out", nowhere())
    return flow.build()


def words_of(seen: Observed) -> list[str]:
    return [word for (word,) in seen.outputs["out"]]


@every_runtime
def test_a_second_run_begins_with_empty_state(runtime: RuntimeUnderTest) -> None:
    topology = counting(items(WORDS))
    for _ in range(2):
        seen = runtime.run(topology, {}, Settings())
        assert dict(seen.tables["counts"]) == Counter(WORDS)


@every_runtime
def test_after_eof_the_next_run_goes_on_behind_it(runtime: RuntimeUnderTest) -> None:
    topology = counting(source([*WORDS[:30], EOF, *WORDS[30:]]))
    first = runtime.run(topology, {}, Settings())
    second = runtime.run(topology, {}, Settings())
    assert Counter(words_of(first)) == Counter(WORDS[:30])
    assert Counter(words_of(second)) == Counter(WORDS[30:])


@every_runtime
def test_after_an_abort_the_next_run_goes_on_behind_it(runtime: RuntimeUnderTest) -> None:
    same_process(runtime)
    seen: list[str] = []
    # One task, as several workers may have blocks at the same time otherwise.
    topology = counting(source([*WORDS[:30], ABORT, *WORDS[30:]]), seen.append, degree=1)
    with pytest.raises(Aborted):
        runtime.run(topology, {}, Settings())
    assert seen == WORDS[:30]
    second = runtime.run(topology, {}, Settings())
    assert Counter(words_of(second)) == Counter(WORDS[30:])


class Careful(Bolt):
    """Notes what it opens and closes."""

    outputs = ("word",)

    def __init__(self, note: Callable[[str], object], broken: bool = False) -> None:
        self.note = note
        self.broken = broken

    def prepare(self, context) -> None:
        self.note(f"open {context.component}/{context.task}")

    def process(self, t) -> None:
        self.emit(t.word)

    def cleanup(self) -> None:
        self.note(f"close {self.context.component}/{self.context.task}")
        if self.broken:
            raise RuntimeError("cannot close")


@every_runtime
@pytest.mark.parametrize("end", [EOF, ABORT], ids=["at its end", "after an abort"])
def test_every_task_is_closed_once(runtime: RuntimeUnderTest, end: Any) -> None:
    same_process(runtime)
    notes: list[str] = []
    flow = Flow("careful")
    words = flow.source("words", source(["a", end]), fields={"word": str})
    careful = words.through("first", Careful(notes.append), degree=2)
    careful.through("second", Careful(notes.append)).sink("out", nowhere())
    try:
        runtime.run(flow.build(), {}, Settings())
    except Aborted:
        assert end is ABORT
    opened = ["open first/0", "open first/1", "open second/0"]
    closed = ["close first/0", "close first/1", "close second/0"]
    assert sorted(notes[:3]) == opened
    assert sorted(notes[3:]) == closed


@every_runtime
def test_an_error_while_closing_does_not_hide_the_error_of_the_run(
    runtime: RuntimeUnderTest,
) -> None:
    same_process(runtime)
    flow = Flow("careful")
    words = flow.source("words", source(["a", ABORT]), fields={"word": str})
    broken = Careful(lambda _text: None, broken=True)
    words.through("broken", broken).sink("out", nowhere())
    with pytest.raises(Aborted):
        runtime.run(flow.build(), {}, Settings())


class Dice(Bolt):
    outputs = ("task", "roll")

    def process(self, t) -> None:
        self.emit(self.context.task, self.context.random.random())


@every_runtime
def test_random_numbers_of_tasks_can_be_repeated_and_differ(runtime: RuntimeUnderTest) -> None:
    def rolls() -> list[tuple[int, float]]:
        flow = Flow("dice")
        words = flow.source("words", items(WORDS), fields={"word": str})
        words.through("dice", Dice(), degree=2).sink("out", nowhere())
        return sorted(runtime.run(flow.build(), {}, Settings()).outputs["out"])

    first = rolls()
    assert first == rolls()
    assert len({roll for _, roll in first}) == len(WORDS)


@every_runtime
def test_two_topologies_run_at_the_same_time(runtime: RuntimeUnderTest) -> None:
    same_process(runtime)
    both_are_running = threading.Barrier(2)
    seen: dict[str, Observed] = {}

    def run(name: str, words: list[str]) -> None:
        first = threading.Lock()  # several workers may come here at the same time

        def meet(word: str) -> None:
            if first.acquire(blocking=False):
                both_are_running.wait()

        try:
            seen[name] = runtime.run(counting(items(words), meet), {}, Settings())
        except BaseException:
            both_are_running.abort()  # so that nobody waits for a run that failed
            raise

    threads = [
        threading.Thread(target=run, args=("some", WORDS)),
        threading.Thread(target=run, args=("others", WORDS[::2])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dict(seen["some"].tables["counts"]) == Counter(WORDS)
    assert dict(seen["others"].tables["counts"]) == Counter(WORDS[::2])
    assert Counter(words_of(seen["others"])) == Counter(WORDS[::2])


@every_runtime
def test_one_topology_runs_twice_at_the_same_time(runtime: RuntimeUnderTest) -> None:
    topology = counting(items(WORDS))
    tables: list[dict[Any, Any]] = []

    def run() -> None:
        tables.append(dict(runtime.run(topology, {}, Settings()).tables["counts"]))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tables == [Counter(WORDS)] * 3
