"""Built-in metrics: Storm's counts and latencies, over sliding windows."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vocabulary import RUNTIMES, Later, Numbers, Pass, chain

import thalweg as tw
from thalweg.consumers import MetricsConsumer
from thalweg.events import Progress
from thalweg.stats import BUCKETS, WINDOWS, Stats, Totals, Windows, together
from thalweg.testing import ManualClock

ALL = "all time"


@pytest.fixture(params=list(RUNTIMES))
def runtime(request: pytest.FixtureRequest) -> Any:
    return RUNTIMES[request.param]()


def stats_of(result: tw.Result, component: str, window: str = ALL) -> Stats:
    return result.metrics.component(component).stats[window]


def test_counts_are_those_of_the_stream(runtime: Any) -> None:
    result = chain(Pass(odd_fail=True), Numbers(100), degree=2).run(on=runtime)
    spout, bolt = stats_of(result, "numbers"), stats_of(result, "bolt")
    assert (spout.emitted, spout.transferred, spout.executed) == (100, 100, 0)
    assert (spout.acked, spout.failed) == (50, 50)
    assert (bolt.executed, bolt.emitted, bolt.transferred) == (100, 100, 0)  # nobody reads it
    assert (bolt.acked, bolt.failed) == (50, 50)


def test_a_tuple_counts_as_transferred_once_for_each_task_that_gets_it(runtime: Any) -> None:
    builder = tw.TopologyBuilder("fan")
    builder.add_spout("numbers", Numbers(30))
    builder.add_bolt("pass", Pass(), degree=2).shuffle("numbers")
    builder.add_bolt("all", Pass(), degree=3).all("pass")
    builder.add_bolt("some", Pass(), degree=3).shuffle("pass")
    result = builder.build().run(on=runtime)
    assert stats_of(result, "numbers").transferred == 30
    assert stats_of(result, "pass").emitted == 30
    assert stats_of(result, "pass").transferred == 30 * (3 + 1)


def test_tasks_add_up_to_their_component(runtime: Any) -> None:
    result = chain(Pass(), Numbers(100), degree=3).run(on=runtime)
    metrics = result.metrics.component("bolt")
    assert len(metrics.task_stats) == 3
    for name in ("executed", "emitted", "acked"):
        assert sum(getattr(task[ALL], name) for task in metrics.task_stats) == 100
    busiest = max(task[ALL].capacity or 0.0 for task in metrics.task_stats)
    assert metrics.stats[ALL].capacity == busiest


def test_without_ids_nothing_is_acked_and_there_are_no_such_latencies(runtime: Any) -> None:
    result = chain(Pass(), tw.items(range(10)), {"fields": {"n": int}}).run(on=runtime)
    spout, bolt = stats_of(result, "numbers"), stats_of(result, "bolt")
    assert spout.acked == bolt.acked == 0
    assert spout.complete_latency is bolt.process_latency is None
    assert bolt.execute_latency is not None


@pytest.mark.quiet
def test_a_bolt_that_acks_late_has_a_long_process_latency_and_a_short_execute_latency(
    runtime: Any,
) -> None:
    result = chain(Later(ticks=3), Numbers(20), tick=0.05).run(on=runtime)
    spout, bolt = stats_of(result, "numbers"), stats_of(result, "bolt")
    assert bolt.acked == spout.acked == 20
    # The first tick may be due when tuples come; the third is a while after it.
    assert bolt.process_latency > 10 * bolt.execute_latency
    assert spout.complete_latency >= 0.9 * bolt.process_latency


@pytest.mark.quiet
def test_latencies_of_late_acks_come_back_from_processes() -> None:
    topology = chain(Later(ticks=3), Numbers(20, 20), tick=0.05, isolation="process", degree=1)
    result = topology.run(on=tw.Local())
    bolt = stats_of(result, "bolt")
    assert (bolt.executed, bolt.acked) == (20, 20)
    # The first tick may be due when they come; the third is a while after it.
    assert bolt.process_latency > 0.02
    assert stats_of(result, "numbers").complete_latency >= 0.9 * bolt.process_latency


def test_complete_latency_is_by_the_clock_of_the_run() -> None:
    """A tuple that waits for a tick after 5 seconds takes them, to a step of the clock."""
    result = chain(Later(), Numbers(1), tick=5.0).run(on=tw.Inline(clock=ManualClock()))
    assert stats_of(result, "numbers").complete_latency == pytest.approx(5.0, abs=0.2)


def test_complete_latency_covers_the_whole_tree() -> None:
    builder = tw.TopologyBuilder("tree")
    builder.add_spout("numbers", Numbers(4))
    builder.add_bolt("soon", Pass()).shuffle("numbers")
    builder.add_bolt("later", Later(), tick=3.0).shuffle("soon")
    result = builder.build().run(on=tw.Inline(clock=ManualClock()))
    assert stats_of(result, "numbers").complete_latency == pytest.approx(3.0, abs=0.2)
    assert stats_of(result, "soon").acked == stats_of(result, "later").acked == 4


def test_snapshots_have_stats_while_a_run_goes_on() -> None:
    seen: list[Any] = []
    done = threading.Event()

    class Endless(tw.Spout):
        outputs = {"n": int}

        def next_tuple(self) -> None:
            if done.is_set():
                self.finish()
            else:
                self.emit(1)

    def listen(event: Any) -> None:
        if isinstance(event, Progress):
            seen.append(event.snapshot.component("bolt").stats["10 min"])
            if seen[-1].executed:
                done.set()

    chain(Pass(), Endless()).run(on=tw.Local(), listen=listen)
    assert seen[-1].executed > 0
    assert all(a.executed <= b.executed for a, b in pairwise(seen))


class Told(MetricsConsumer):
    def __init__(self) -> None:
        self.points: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def handle(self, task_info: Any, points: Any) -> None:
        key = task_info.component, task_info.task
        self.points.setdefault(key, []).append({p.name: p.value for p in points})


def test_consumers_get_them_under_storms_names(runtime: Any) -> None:
    told = Told()
    chain(Pass(), Numbers(100), degree=2).run(on=runtime, consumers=[told], metrics_every=0.01)
    bolts = [points for (name, _), all_ in told.points.items() if name == "bolt" for points in all_]
    for name in ("__emit-count", "__execute-count", "__ack-count"):
        assert sum(points[name] for points in bolts) == 100
    assert all(points["__receive"]["population"] >= 0 for points in bolts)
    assert all(0 <= points["__capacity"] <= 1.5 for points in bolts)
    executed = [points for points in bolts if points["__execute-count"]]
    assert all(points["__execute-latency"] > 0 for points in executed)
    spout = told.points["numbers", 0]
    assert sum(points["__ack-count"] for points in spout) == 100
    assert any("__complete-latency" in points for points in spout)
    assert all("__execute-count" not in points for points in spout)


# --- windows --------------------------------------------------------------------------------------

steps = st.lists(st.tuples(st.floats(0.5, 20_000.0), st.integers(0, 1000)), min_size=1, max_size=60)


@given(steps)
def test_a_window_holds_what_was_done_in_it(given_steps: list[tuple[float, int]]) -> None:
    """It is never shorter than its name says, and longer only by how seldom somebody looks."""
    windows: Windows[str] = Windows(0.0)
    now, done, history = 0.0, 0, [(0.0, 0)]
    for length, more in given_steps:
        now, done = now + length, done + more
        history.append((now, done))
        totals = {"a": Totals(executed=done)}
        windows.look(now, totals)
        for name, whole in WINDOWS.items():
            seconds, found = windows.since(name, now, totals)
            assert any(
                abs(now - seconds - then) < 1e-6 and found["a"].executed == done - before
                for then, before in history
            )
            if now > whole:
                longest = max(b - a for (a, _), (b, _) in pairwise(history))
                assert whole - 1e-6 <= seconds <= whole * (1 + 1 / BUCKETS) + 2 * longest
            else:
                assert seconds == pytest.approx(now)


def test_memory_is_bounded() -> None:
    windows: Windows[str] = Windows(0.0)
    for second in range(0, 200_000, 10):
        windows.look(float(second), {"a": Totals()})
    assert all(len(looks) <= BUCKETS + 2 for looks in windows._looks.values())


def test_a_task_that_came_later_counts_from_its_beginning() -> None:
    windows: Windows[str] = Windows(0.0)
    for minute in range(30):
        windows.look(60.0 * minute, {"a": Totals(executed=minute)})
    _, found = windows.since("10 min", 1800.0, {"a": Totals(executed=30), "b": Totals(executed=4)})
    assert (found["a"].executed, found["b"].executed) == (10, 4)


totals = st.builds(
    Totals,
    **dict.fromkeys(("emitted", "executed", "acked", "failed"), st.integers(0, 1000)),
    execute=st.floats(0, 100),
)


@given(st.lists(st.tuples(totals, st.just(10.0)), min_size=1, max_size=5))
def test_capacity_of_a_component_is_that_of_its_busiest_task(tasks: list[Any]) -> None:
    whole = together(tasks)
    single = [Stats.of(*pair) for pair in tasks]
    assert whole.executed == sum(stats.executed for stats in single)
    if whole.executed:
        assert whole.capacity == max(stats.capacity or 0.0 for stats in single)
        executed = sum(each.execute for each, _ in tasks)
        assert whole.execute_latency == pytest.approx(executed / whole.executed)
