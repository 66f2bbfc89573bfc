"""Metrics that components register reach the consumers of a run, each value once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vocabulary import RUNTIMES, Numbers, Pass, chain

import thalweg as tw
from thalweg.consumers import LoggingConsumer, MetricsConsumer
from thalweg.events import Noticed
from thalweg.registered import KINDS, DataPoint, MeanMetric, Registry, TaskInfo, make_metric
from thalweg.runtimes.delivering import Delivering
from thalweg.testing import ManualClock


class Told(MetricsConsumer):
    """Keeps all points, with whose they are."""

    def __init__(self) -> None:
        self.points: list[tuple[Any, str, Any]] = []
        self.calls: list[str] = []

    def prepare(self, topology: str) -> None:
        self.calls.append(f"prepare {topology}")

    def handle(self, task_info: Any, points: Any) -> None:
        self.points += [(task_info, point.name, point.value) for point in points]

    def cleanup(self) -> None:
        self.calls.append("cleanup")

    def values(self, name: str) -> list[Any]:
        return [value for _, found, value in self.points if found == name]


class Measuring(Pass):
    """Notes something in a metric of each kind."""

    def prepare(self, context: tw.TaskContext) -> None:
        self.hits = context.metric("hits")
        self.ends = context.metric("ends", "multi-count")
        self.sizes = context.metric("sizes", "mean")
        self.last = context.metric("last", "gauge")

    def process(self, t: Any) -> None:
        self.hits.incr()
        self.ends.incr("odd" if t.n % 2 else "even")
        self.sizes.update(t.n)
        self.last.set({"n": t.n})


def check(told: Told, count: int) -> None:
    assert sum(told.values("hits")) == count
    ends: Counter[str] = Counter()
    for value in told.values("ends"):
        ends.update(value)
    assert ends == {"odd": count // 2, "even": count // 2}
    assert all(0 <= value < count for value in told.values("sizes") if value is not None)
    assert any(value == {"n": count - 1} for value in told.values("last"))


@pytest.mark.parametrize("name", RUNTIMES)
def test_all_kinds_are_told_at_intervals_and_at_the_end(name: str) -> None:
    told = Told()
    chain(Measuring(), Numbers(1000), degree=2).run(
        on=RUNTIMES[name](), consumers=[told], metrics_every=0.01
    )
    check(told, 1000)
    assert told.calls == ["prepare chain", "cleanup"]
    infos = [info for info, found, _ in told.points if found == "hits"]
    assert {(info.component, info.task) for info in infos} == {("bolt", 0), ("bolt", 1)}


def test_tasks_in_processes_note_as_others_do() -> None:
    told = Told()
    topology = chain(Measuring(), Numbers(1000, 100), degree=2, isolation="process")
    topology.run(on=tw.Local(block_rows=100), consumers=[told], metrics_every=0.01)
    check(told, 1000)


def test_a_component_that_any_worker_takes_has_one_metric() -> None:
    class Function(tw.BlockBolt):
        outputs = {"n": int}

        def prepare(self, context: tw.TaskContext) -> None:
            self.rows = context.metric("rows")

        def process_block(self, batch: Any) -> Any:
            self.rows.incr(batch.num_rows)
            return batch

    told = Told()
    spout = tw.items(range(5000))
    topology = chain(Function(), spout, {"fields": {"n": int}})
    topology.run(on=tw.Local(workers=4, block_rows=10), consumers=[told])
    assert sum(told.values("rows")) == 5000


def test_a_metric_may_have_an_interval_of_its_own() -> None:
    clock, told = ManualClock(), Told()

    class Twice(tw.Bolt):
        def prepare(self, context: tw.TaskContext) -> None:
            self.often = context.metric("often", every="1 s")
            self.seldom = context.metric("seldom")

        def process_tick(self) -> None:
            self.often.incr()
            self.seldom.incr()

        def process(self, t: Any) -> None:
            """Take it in."""

    class Ten(tw.Spout):
        outputs = {"n": int}

        def next_tuple(self) -> None:
            if self.context.clock.now() >= 10.05:
                self.finish()

    run = {"consumers": [told], "metrics_every": 5.0}
    chain(Twice(), Ten(), tick=0.5).run(on=tw.Inline(clock=clock), **run)
    assert sum(told.values("often")) == sum(told.values("seldom")) == 20
    assert len(told.values("seldom")) == 3  # at 5 and 10 seconds, and at the end
    assert len(told.values("often")) >= 10
    lengths = [info.interval for info, name, _ in told.points if name == "often"]
    assert all(1.0 <= length < 1.2 for length in lengths[:-1])


def test_a_slow_consumer_is_told_more_at_once_and_holds_nobody_up() -> None:
    go_on = threading.Event()

    class Slow(Told):
        def handle(self, task_info: Any, points: Any) -> None:
            go_on.wait()
            super().handle(task_info, points)

    class Ends(Measuring):
        def process_end(self) -> None:
            go_on.set()  # all tuples were processed while the consumer waited

    told = Slow()
    topology = chain(Ends(), Numbers(2000), {"max_pending": 20})
    topology.run(on=tw.Local(), consumers=[told], metrics_every=0.001)
    check(told, 2000)


def test_the_last_points_are_told_also_to_one_that_was_late_with_all_others() -> None:
    told, busy = Told(), threading.Event()

    class Late(Told):
        def handle(self, task_info: Any, points: Any) -> None:
            busy.wait()
            told.handle(task_info, points)

    delivering = Delivering([Late()], notice=print)
    delivering.begin("t")
    info = TaskInfo("t", "c", 0, 0.0, 1.0)
    given = 0
    while delivering.ready or given < 9:  # one is being told, and as many wait as may
        delivering.give([(info, [DataPoint("hits", 1)])])
        given += 1
    soon = threading.Timer(0.01, busy.set)
    soon.start()
    delivering.give([(info, [DataPoint("hits", 1)])])
    delivering.close()
    soon.join()
    assert sum(told.values("hits")) == given + 1


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("error", [OSError("disk full"), SystemExit("disk full")], ids=type)
def test_a_consumer_that_raises_is_told_no_more_and_the_run_goes_on(
    name: str, error: BaseException
) -> None:
    class Broken:
        calls = 0

        def handle(self, task_info: Any, points: Any) -> None:
            self.calls += 1
            raise error

    broken, told, notices = Broken(), Told(), []
    chain(Measuring(), Numbers(100)).run(
        on=RUNTIMES[name](),
        consumers=[broken, told],
        metrics_every=0.001,
        listen=lambda event: notices.append(event) if isinstance(event, Noticed) else None,
    )
    check(told, 100)
    assert broken.calls == 1
    assert [n for n in notices if "disk full" in n.text]


@pytest.mark.parametrize("name", RUNTIMES)
def test_whoever_fails_at_the_notice_of_a_broken_consumer_ends_the_run(name: str) -> None:
    class Broken:
        def handle(self, task_info: Any, points: Any) -> None:
            raise OSError("disk full")

    def listen(event: Any) -> None:
        if isinstance(event, Noticed):
            raise ValueError("no notices, please")

    with pytest.raises(ValueError, match="no notices, please"):
        chain(Measuring(), Numbers(100)).run(
            on=RUNTIMES[name](), consumers=[Broken(), Told()], metrics_every=0.001, listen=listen
        )


def test_the_end_does_not_wait_for_those_who_would_be_told_after_such_a_failure() -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    class Broken:
        def handle(self, task_info: Any, points: Any) -> None:
            raise OSError("disk full")

    delivering = Delivering([Broken(), Told()], notice=fail)
    delivering.begin("t")
    for _ in range(20):  # more than may wait
        delivering.give([(TaskInfo("t", "c", 0, 0.0, 1.0), [DataPoint("hits", 1)])])
    delivering.close()
    with pytest.raises(ValueError, match="disk full"):
        delivering.check()


def test_the_logging_consumer_writes_json_lines(tmp_path: Any) -> None:
    path = tmp_path / "logs" / "metrics.jsonl"
    chain(Measuring()).run(consumers=[LoggingConsumer(path)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    of_bolt = next(line for line in lines if line["component"] == "bolt")
    assert of_bolt["points"]["hits"] == 10
    assert of_bolt["points"]["last"] == {"n": 9}
    assert of_bolt["points"]["__execute-count"] == 10


def test_without_consumers_metrics_may_be_noted_all_the_same() -> None:
    assert chain(Measuring()).run().metrics.component("bolt").received == 10


def test_the_same_name_with_another_kind_is_refused() -> None:
    class Confused(Pass):
        def prepare(self, context: tw.TaskContext) -> None:
            context.metric("hits")
            context.metric("hits", "mean")

    with pytest.raises(tw.UsageError, match=r"'hits'.*'bolt'.*a count, as before, got a mean"):
        chain(Confused()).run()


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(tw.UsageError, match=r"one of .*'count'"):
        make_metric("hits", "counter")


@pytest.mark.parametrize("wrong", [[Told], [3], [object()]])
def test_what_is_no_consumer_is_refused(wrong: Any) -> None:
    with pytest.raises(tw.UsageError, match="metrics consumer"):
        chain(Pass()).run(consumers=wrong)


def test_spark_refuses_consumers() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(tw.UsageError, match="consumers"):
        chain(Pass()).run(on=tw.Spark(), consumers=[Told()])


values = st.lists(st.integers(-1000, 1000), max_size=30)


@given(st.lists(st.tuples(st.sampled_from("ab"), values), max_size=6), st.data())
def test_what_tasks_note_elsewhere_adds_up(parts: list[Any], data: st.DataObject) -> None:
    """However often it is taken over: sums, counts and means are those of one metric."""
    here, there = Registry(), Registry()
    for name, numbers in parts:
        for number in numbers:
            there.register(("c", 0), "count").incr(number)
            there.register(("c", 0), "multi", "multi-count").incr(name, number)
            there.register(("c", 0), "mean", "mean").update(number)
        if data.draw(st.booleans()):
            here.merge(("c", 0), there.take())
    here.merge(("c", 0), there.take())
    points = {p.name: p.value for p in here.collect(0.0, True).get((("c", 0), None), [])}
    flat = [number for _, numbers in parts for number in numbers]
    sums: Counter[str] = Counter()
    for name, numbers in parts:
        sums[name] += sum(numbers)
    assert points.get("count", 0) == sum(flat)
    assert {k: v for k, v in points.get("multi", {}).items() if v} == {
        k: v for k, v in sums.items() if v
    }
    if flat:
        assert points["mean"] == pytest.approx(sum(flat) / len(flat))


def test_many_threads_may_note_at_once() -> None:
    metric, mean = make_metric("n", "count"), MeanMetric()

    def note() -> None:
        for _ in range(5000):
            metric.incr()
            mean.update(2.0)

    threads = [threading.Thread(target=note) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metric.take() == 20_000
    assert mean.take() == (40_000.0, 20_000)


@pytest.mark.parametrize("kind", KINDS)
def test_a_metric_nobody_used_can_be_told(kind: str) -> None:
    metric = make_metric("m", kind)
    assert metric.value(metric.take()) in (0, None, {})
