"""Sources that say where they are: they go on there, and hear what is processed."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.components import BlockSpout
from thalweg.contexts import TaskContext
from thalweg.runtimes.positions import Passing


class Queues(BlockSpout):
    """Several queues, read in turns that nobody can foresee; it says how far each was read."""

    outputs = {"queue": int, "n": int}
    replays = False
    #: What tasks of this run have heard to be processed.
    heard: list[dict[str, int]] = []

    def __init__(self, rows: int, seed: int, bad: bool = False) -> None:
        self.rows, self.seed, self.bad = rows, seed, bad

    def prepare(self, context: TaskContext) -> None:
        self.at = {str(queue): 0 for queue in range(3)}
        self.random = random.Random(self.seed)

    def next_block(self, limit: int) -> Any:
        left = [queue for queue, at in self.at.items() if at < self.rows]
        if not left:
            self.finish()
            return None
        queue = self.random.choice(left)
        start = self.at[queue]
        stop = min(start + self.random.randint(1, limit), self.rows)
        self.at = self.at | {queue: stop}
        return self.make_batch([[int(queue)] * (stop - start), list(range(start, stop))])

    def position(self) -> dict[str, int]:
        return self.at

    def seek(self, position: dict[str, int]) -> None:
        self.at = dict(position)

    def processed(self, position: dict[str, int]) -> None:
        self.heard.append(position)


class Flood(Queues):
    """Gives its rows in any case."""

    slowable = False


@pytest.fixture(autouse=True)
def _nothing_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Queues, "heard", [])


ROWS = 200


def build(seed: int, see: Any, **options: Any) -> tw.Flow:
    flow = tw.Flow("queues")
    rows = flow.source("in", Queues(ROWS, seed), **options)
    rows.tally("counts", key=["queue", "n"]).sink("out", tw.call(see))
    return flow


def ends(heard: list[dict[str, int]]) -> None:
    """What is processed only grows, to the end."""
    assert heard[-1] == {"0": ROWS, "1": ROWS, "2": ROWS}
    for before, after in itertools.pairwise(heard):
        assert all(before[queue] <= after[queue] for queue in before)


@pytest.mark.parametrize("on", [tw.Inline(block_rows=7), tw.Local(block_rows=7, workers=2)])
def test_without_a_checkpoint_a_source_hears_what_is_processed(on: Any) -> None:
    seen: Counter[int] = Counter()
    early: list[dict[str, int]] = []

    def see(t: Any) -> None:
        seen[t.queue] += 1
        early.extend(at for at in Queues.heard[-1:] if any(at[str(q)] > seen[q] for q in range(3)))

    build(1, see).run(on=on)
    ends(Queues.heard)
    assert not early, "nothing is told before the sink has it"


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), stops=st.lists(st.integers(1, 300), max_size=3))
def test_runs_that_stop_anywhere_count_each_row_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, stops: list[int]
) -> None:
    folder = str(tmp_path_factory.mktemp("checkpoint"))
    Queues.heard.clear()
    for attempt, after in enumerate([*stops, None]):
        stop, seen = threading.Event(), []

        def see(t: Any, seen: list[Any] = seen, stop: Any = stop, after: Any = after) -> None:
            seen.append(t)
            if len(seen) == after:
                stop.set()

        local = tw.Local(checkpoint=folder, block_rows=20, most_block_rows=20, workers=1)
        result = build(seed + attempt, see).run(on=local, stop=stop)
    assert set(result.table("counts").values()) == {1}
    assert len(result.table("counts")) == 3 * ROWS
    ends(Queues.heard)


def test_rows_that_may_be_dropped_are_logged_with_the_position_and_runs_may_differ(
    tmp_path: Path,
) -> None:
    for after, overflow in ((100, "drop_oldest"), (100, "block"), (100, "fail"), (None, "block")):
        stop, seen = threading.Event(), []
        flow = tw.Flow("flood")
        rows = flow.source("in", Flood(ROWS, after or 0), overflow=overflow)

        def see(t: Any, seen: list[Any] = seen, stop: Any = stop, after: Any = after) -> None:
            seen.append(t)
            if len(seen) == after:
                stop.set()

        rows.tally("counts", key=["queue", "n"]).sink("out", tw.call(see))
        local = tw.Local(checkpoint=str(tmp_path), workers=1, block_rows=20, most_block_rows=20)
        result = flow.run(on=local, stop=stop)
    assert set(result.table("counts").values()) == {1}
    assert len(result.table("counts")) == 3 * ROWS


@given(st.data())
def test_a_position_is_told_when_all_units_before_it_have_ended(data: st.DataObject) -> None:
    begun, open_, told = 0, set[int](), list[int]()

    class Body:
        at = 0

        def position(self) -> int:
            return self.at

        def seek(self, position: int) -> None: ...

        def processed(self, position: int) -> None:
            told.append(position)

    class Task:
        body = Body()

        def call(self, function: Any, *arguments: Any) -> Any:
            return function(*arguments)

    task: Any = Task()
    passing = Passing(lambda: begun, lambda: min(open_, default=begun))
    for _ in range(data.draw(st.integers(0, 20))):
        if open_ and data.draw(st.booleans()):
            open_.remove(data.draw(st.sampled_from(sorted(open_))))
        else:
            task.body.at += 1
            passing.given(task)
            open_.add(begun)
            begun += 1
        passing.step()
        first = min(open_, default=begun)
        assert told == list(range(1, first + 1))
