"""Hooks hear what the tasks of a component do, and nobody else pays for it."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest
from vocabulary import RUNTIMES, Later, Numbers, Pass, chain

import thalweg as tw
from thalweg.anchored import AnchoredBolt
from thalweg.hooks import TaskHook
from thalweg.runtimes import hooked_tasks
from thalweg.runtimes.making import TaskMaker


class Heard(TaskHook):
    """Keeps everything that it is told, for all tasks together."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def prepare(self, context: tw.TaskContext) -> None:
        self.calls.append(("prepare", (context.component, context.task)))

    def cleanup(self) -> None:
        self.calls.append(("cleanup", None))

    def emit(self, info: Any) -> None:
        self.calls.append(("emit", info))

    def spout_ack(self, info: Any) -> None:
        self.calls.append(("spout_ack", info))

    def spout_fail(self, info: Any) -> None:
        self.calls.append(("spout_fail", info))

    def bolt_execute(self, info: Any) -> None:
        self.calls.append(("bolt_execute", info))

    def bolt_ack(self, info: Any) -> None:
        self.calls.append(("bolt_ack", info))

    def bolt_fail(self, info: Any) -> None:
        self.calls.append(("bolt_fail", info))

    def of(self, call: str) -> list[Any]:
        return [info for name, info in self.calls if name == call]


@pytest.fixture(params=list(RUNTIMES))
def runtime(request: pytest.FixtureRequest) -> Any:
    return RUNTIMES[request.param]()


def test_a_hook_of_a_run_hears_all_components(runtime: Any) -> None:
    hook = Heard()
    chain(Pass()).run(on=runtime, hooks=[hook])
    emitted = [(info.component, info.values) for info in hook.of("emit")]
    assert sorted(emitted) == sorted(
        (name, (n,)) for name in ("numbers", "bolt") for n in range(10)
    )
    assert sorted(info.tuple.n for info in hook.of("bolt_execute")) == list(range(10))
    assert sorted(info.tuple.n for info in hook.of("bolt_ack")) == list(range(10))
    assert sorted(info.id for info in hook.of("spout_ack")) == list(range(10))
    assert hook.of("bolt_fail") == hook.of("spout_fail") == []


def test_a_hook_of_a_component_hears_nobody_else(runtime: Any) -> None:
    hook = Heard()
    chain(Pass(), hooks=[hook]).run(on=runtime)
    assert {info.component for info in hook.of("emit")} == {"bolt"}
    assert hook.of("spout_ack") == []


def test_each_task_prepares_hooks_before_its_component_and_cleans_up_after_it(runtime: Any) -> None:
    order: list[str] = []

    class Noting(Pass):
        def __deepcopy__(self, memo: Any) -> Noting:
            return self

        def prepare(self, context: tw.TaskContext) -> None:
            order.append("component prepares")

        def cleanup(self) -> None:
            order.append("component cleans up")

    class Hook:
        def prepare(self, context: tw.TaskContext) -> None:
            order.append("hook prepares")

        def cleanup(self) -> None:
            order.append("hook cleans up")

    chain(Noting(), hooks=[Hook()]).run(on=runtime)
    assert order == [
        "hook prepares",
        "component prepares",
        "component cleans up",
        "hook cleans up",
    ]


def test_tuples_that_fail_are_told_as_such(runtime: Any) -> None:
    hook = Heard()
    chain(Pass(odd_fail=True)).run(on=runtime, hooks=[hook])
    assert sorted(info.tuple.n for info in hook.of("bolt_fail")) == [1, 3, 5, 7, 9]
    assert sorted(info.tuple.n for info in hook.of("bolt_ack")) == [0, 2, 4, 6, 8]
    assert sorted(info.id for info in hook.of("spout_fail")) == [1, 3, 5, 7, 9]
    assert sorted(info.id for info in hook.of("spout_ack")) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("error", [ValueError("three"), SystemExit(3)], ids=type)
def test_a_tuple_on_which_a_bolt_raises_was_executed_and_fails(
    runtime: Any, error: BaseException
) -> None:
    class Raises(Pass):
        def process(self, t: Any) -> None:
            if t.n == 3:
                raise error

    hook = Heard()
    chain(Raises(), on_error="skip").run(on=runtime, hooks=[hook])
    assert len(hook.of("bolt_execute")) == 10
    assert [info.tuple.n for info in hook.of("bolt_fail")] == [3]
    assert [info.id for info in hook.of("spout_fail")] == [3]


@pytest.mark.quiet
def test_a_late_ack_is_told_when_it_happens_with_the_time_since_the_tuple_came(
    runtime: Any,
) -> None:
    hook = Heard()
    chain(Later(), tick=0.03).run(on=runtime, hooks=[hook])
    executed = [info.execute_latency for info in hook.of("bolt_execute")]
    acked = [info.process_latency for info in hook.of("bolt_ack")]
    completed = [info.complete_latency for info in hook.of("spout_ack")]
    assert len(executed) == len(acked) == len(completed) == 10
    assert min(acked) > max(executed)
    assert min(completed) >= min(acked) - 0.01


def test_hooks_of_vectorised_components_hear_of_blocks(runtime: Any) -> None:
    class Double(tw.BlockBolt):
        outputs = {"n": int}

        def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
            return batch

    hook = Heard()
    spout = tw.items(range(100))
    topology = chain(Double(), spout, {"fields": {"n": int}})
    topology.run(on=runtime, hooks=[hook])
    for call in ("bolt_execute", "bolt_ack"):
        assert sum(info.count for info in hook.of(call)) == 100
        assert all(isinstance(info.tuple, pa.RecordBatch) for info in hook.of(call))
    emitted = [info for info in hook.of("emit") if info.component == "bolt"]
    assert sorted(n for info in emitted for n in info.values["n"].to_pylist()) == list(range(100))


def test_hooks_of_bolts_in_storms_manner_hear_numbers(runtime: Any) -> None:
    class Anchored(AnchoredBolt):
        outputs = {"n": int}

        def process_tuples(self, first: int, block: Any) -> None:
            for number, n in enumerate(block.values("n"), first):
                self.emit([n], anchors=[number])
                self.ack(number) if n % 2 == 0 else self.fail(number)

    hook = Heard()
    chain(Anchored()).run(on=runtime, hooks=[hook])
    emitted = [info.values for info in hook.of("emit") if info.component == "bolt"]
    assert sorted(emitted) == [(n,) for n in range(10)]
    assert sum(info.count for info in hook.of("bolt_execute")) == 10
    assert len(hook.of("bolt_ack")) == len(hook.of("bolt_fail")) == 5
    assert len(hook.of("spout_ack")) == len(hook.of("spout_fail")) == 5


def test_an_emit_to_a_chosen_task_is_told_with_that_task(runtime: Any) -> None:
    class Choosing(Numbers):
        direct_streams = frozenset({"default"})

        def next_tuple(self) -> None:
            self.emit_direct(1, 7)
            self.finish()

    builder = tw.TopologyBuilder("direct")
    hook = Heard()
    builder.add_spout("numbers", Choosing(1), hooks=[hook])
    builder.add_bolt("bolt", Pass(), degree=2).direct("numbers")
    builder.build().run(on=runtime)
    assert [(info.values, info.direct) for info in hook.of("emit")] == [((7,), 1)]


class Counting(TaskHook):
    """Tells through a file how often it was called, from whatever process it is in."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self.executed = 0

    def bolt_execute(self, info: Any) -> None:
        self.executed += 1

    def cleanup(self) -> None:
        self.path.write_text(str(self.executed))


def test_hooks_go_along_with_tasks_in_processes(tmp_path: Any) -> None:
    hook = Counting(tmp_path / "executed")
    chain(Pass(), isolation="process", degree=1, hooks=[hook]).run(on=tw.Local())
    assert hook.path.read_text() == "10"
    assert hook.executed == 0  # a copy was told, over there


def test_an_error_of_a_hook_is_one_of_its_component() -> None:
    class Broken:
        def bolt_execute(self, info: Any) -> None:
            raise RuntimeError("no room")

    with pytest.raises(tw.ComponentError, match=r"'bolt'.*no room"):
        chain(Pass(), hooks=[Broken()]).run()


@pytest.mark.parametrize("wrong", [[Heard], [object()], "emit", 3])
def test_what_is_no_hook_is_refused(wrong: Any) -> None:
    with pytest.raises(tw.TopologyError, match="hook"):
        chain(Pass(), hooks=wrong)
    with pytest.raises(tw.TopologyError, match="hook"):
        chain(Pass()).run(hooks=wrong)


def test_spark_refuses_hooks_before_it_begins() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(tw.UsageError, match="hooks"):
        chain(Pass()).run(on=tw.Spark(), hooks=[Heard()])
    with pytest.raises(tw.UsageError, match="hooks"):
        chain(Pass(), hooks=[Heard()]).run(on=tw.Spark())


def test_without_hooks_tasks_are_the_ones_that_know_nothing_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[type] = []
    plain = TaskMaker.bolt

    def noting(*arguments: Any) -> Any:
        task = plain(*arguments)
        made.append(type(task))
        return task

    monkeypatch.setattr(TaskMaker, "bolt", noting)
    chain(Pass()).run(on=tw.Inline())
    chain(Pass()).run(on=tw.Inline(), hooks=[Heard()])
    assert made == [hooked_tasks.BoltTask, hooked_tasks.HookedBoltTask]


def test_a_latency_is_that_of_the_call(runtime: Any) -> None:
    class Slow(Pass):
        def process(self, t: Any) -> None:
            until = time.perf_counter() + 0.002
            while time.perf_counter() < until:
                pass

    hook = Heard()
    chain(Slow()).run(on=runtime, hooks=[hook])
    assert all(info.execute_latency >= 0.002 for info in hook.of("bolt_execute"))
