"""How long components could not go on because their readers had as much waiting as they may."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.events import Event, Progress
from thalweg.runtimes.local.holding import HeldSources, Holding
from thalweg.runtimes.local.running import Running
from thalweg.runtimes.local.runtime import Local


class Watch:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


#: Seconds that pass, then: links that fill (1) or drain (-1) or a look, and the tasks able then.
steps = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from((1, 0, -1)), st.integers(0, 3)), max_size=30
)


@given(steps)
def test_time_counts_for_each_task_that_is_able_while_a_link_is_full(
    steps: list[tuple[int, int, int]],
) -> None:
    watch, able = Watch(), [0]
    holding = Holding(lambda: able[0], watch)
    full, expected, held = 0, 0.0, 0
    for seconds, change, tasks in steps:
        watch.time += seconds
        expected += seconds * held
        able[0], more = tasks, max(change, -full)
        full += more
        {1: holding.fill, 0: holding.look, -1: holding.drain}[more]()
        held = tasks if full else 0
        assert holding.full == full
    watch.time += 5
    assert holding.seconds() == expected + 5 * held


def test_a_source_is_held_for_each_of_its_tasks() -> None:
    watch = Watch()
    holding = Holding(now=watch)
    sources = HeldSources({"posts": holding})
    one, other = (_spout("posts") for _ in range(2))
    assert sources.note(one, True)
    watch.time = 1.0
    assert sources.note(one, True)  # still
    assert sources.note(other, True)
    watch.time = 3.0
    assert not sources.note(one, False)
    assert not sources.note(one, False)
    watch.time = 10.0
    sources.note(other, False)
    watch.time = 100.0
    assert holding.seconds() == 1.0 + 2 * 2.0 + 7.0


@pytest.mark.parametrize(("full", "held"), [(False, 2.0), (True, 12.0)])
def test_a_source_that_has_room_again_is_not_held_by_other_work(full: bool, held: float) -> None:
    watch, running = Watch(), MagicMock()
    holding, task = Holding(now=watch), _spout("posts")
    running._held = HeldSources({"posts": holding})
    running._asking.room.return_value = 1
    running._blocked.return_value = full
    running._eager.return_value = False
    running._may_pull = partial(Running._may_pull, running)

    def work(_worker: int) -> bool:
        watch.time += 10.0
        return True

    running._crew.work.side_effect = work
    running._held.note(task, True)
    watch.time = 2.0
    Running._step(running)
    assert holding.seconds() == held


def _spout(name: str) -> Any:
    class Task:
        class component:
            pass

    task: Any = Task()
    task.component.name = name
    return task


def test_those_before_a_full_queue_are_held_and_those_behind_it_are_not() -> None:
    """The sink goes on when it was seen that the others cannot."""
    seen, stuck = threading.Event(), threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, Progress):
            held = [c.blocked or 0.0 for c in event.snapshot.components[:2]]
            if stuck.is_set() and all(held):
                seen.set()

    def look(_tuple: Any) -> None:
        stuck.set()
        seen.wait()

    flow = tw.Flow("full")
    numbers = flow.source("numbers", tw.items(range(1000)), fields={"n": int})
    numbers.map(lambda n: n + 1, name="plus", fields={"n": int}).sink("out", tw.call(look))
    on = Local(assigning="executors", block_rows=20, queue_rows=10)
    components = flow.run(on=on, listen=listen).metrics.components

    held = {c.component: c.blocked for c in components}
    assert held["numbers"]
    assert held["plus"]
    assert held["out"] == 0.0


def test_with_room_nobody_is_held() -> None:
    flow = tw.Flow("room")
    numbers = flow.source("numbers", tw.items(range(1000)), fields={"n": int})
    numbers.map(lambda n: n + 1, name="plus", fields={"n": int})
    components = flow.run(on=Local(workers=1)).metrics.components
    assert [c.blocked for c in components] == [0.0, 0.0]


def test_where_nothing_waits_for_room_there_is_no_such_figure() -> None:
    flow = tw.Flow("inline")
    flow.source("numbers", tw.items(range(10)), fields={"n": int}).tally("count", key="n")
    components = flow.run(on="inline").metrics.components
    assert [(c.blocked, c.order, c.head_wait) for c in components] == [(None, None, None)] * 2


@pytest.mark.parametrize(
    ("order", "expected"), [("total", "total"), ("key", "key"), ("sender", "none")]
)
def test_a_run_says_which_order_is_in_force(order: Any, expected: str) -> None:
    """What the runtime made of the orders that were asked for: here by its own setting."""
    flow = tw.Flow("orders")
    numbers = flow.source("numbers", tw.items(range(10)), fields={"n": int})
    numbers.sink("out", tw.call(lambda _t: None))
    components = flow.run(on=Local(order=order, workers=1)).metrics.components
    assert [c.order for c in components] == [None, expected]
