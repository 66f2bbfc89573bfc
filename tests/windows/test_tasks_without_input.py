"""Tasks of a source that have nothing to read do not hold back event time."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.components import BlockSpout
from thalweg.connectors.kafka import kafka
from thalweg.eventtime import SECOND
from thalweg.watermarks import Watermarks

FIELDS = {"at": int}
on_every_runtime = pytest.mark.parametrize(
    "on", ["inline", "local", pytest.param("spark", marks=pytest.mark.spark)]
)


class Parted(BlockSpout):
    """Gives times to its first task; the second one has nothing to read."""

    outputs = FIELDS

    def __init__(self, times: list[int], done: threading.Event) -> None:
        self.times, self.done = times, done

    def __deepcopy__(self, memo: dict[int, Any]) -> Parted:
        return Parted(list(self.times), self.done)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        self.awaited = self.context.task == 0
        if self.done.is_set():
            self.finish()
        return self.make_batch([[self.times.pop(0)]]) if self.awaited and self.times else None


@on_every_runtime
def test_windows_are_told_while_a_task_has_nothing_to_read(on: str) -> None:
    done, found, stuck = threading.Event(), [], []
    flow = tw.Flow("parted")
    source = flow.source("times", Parted([1, 2, 11, 21, 22], done), degree=2, time="at")

    def see(t: Any) -> None:
        found.append(t.n)
        if len(found) == 2:
            done.set()

    def give_up() -> None:
        stuck.append(list(found))
        done.set()

    source.window(tw.tumbling(10)).aggregate(n=tw.agg.count()).sink("out", tw.call(see))
    late = threading.Timer(20, give_up)
    late.start()
    flow.run(on=tw.Spark(spark_session(), places=2) if on == "spark" else on)
    late.cancel()
    assert stuck == []
    assert found == [2, 1, 2]


def test_when_it_has_something_time_waits_for_it() -> None:
    flow = tw.Flow("two")
    source = flow.source("times", tw.items([]), fields=FIELDS, degree=2, time="at")
    source.window(tw.tumbling(10)).aggregate("w", n=tw.agg.count()).sink("out", tw.collect([]))
    marks = Watermarks(flow.build(), 0.0)

    def came(task: int, at: int) -> dict[str, int]:
        marks.saw("times", task, at * SECOND, 0.0)
        return {name: time // SECOND for name, time in marks.look(0.0, lambda _: True).items()}

    assert came(0, 5) == {}
    marks.awaited("times", 1, False)
    assert came(0, 15) == {"w": 15}
    marks.awaited("times", 1, True)
    assert came(0, 45) == {}
    assert came(1, 25) == {"w": 25}


class Messages:
    """In the place of a consumer: which partitions a task has, and no messages."""

    ended = False

    def __init__(self) -> None:
        self.at: dict[str, int] = {}

    def take(self, _limit: int) -> tuple[list[Any], dict[str, int]]:
        return [], dict(self.at)


def test_a_task_without_partitions_is_not_awaited_until_it_has_some() -> None:
    source: Any = kafka("localhost:9092", "orders", fields=FIELDS)
    source._reading = reading = Messages()
    source._reader = type("NoMessages", (), {"batch": lambda _self, _messages: None})()
    source.next_block(10)
    assert not source.awaited
    reading.at = {"orders/4": 0}
    source.next_block(10)
    assert source.awaited
