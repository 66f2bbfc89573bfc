"""Tasks know how many of them there are, also after that has changed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keyed_counting import WAYS
from test_isolation import children
from test_rescaling import Changes

import thalweg as tw
from thalweg.components import Bolt, Kind
from thalweg.events import Event, Noticed


class Says(Bolt):
    """Says how many tasks there are, by its own context and by the one that it was given."""

    kind = Kind.KEYED
    outputs = {"key": int, "own": int, "given": int}

    def prepare(self, context: tw.TaskContext) -> None:
        self.given = context

    def process(self, t: Any) -> None:
        self.emit(t.key, self.context.degree, self.given.degree)


def saying(rows: Any, seen: list[Any], isolation: str) -> tw.Topology:
    builder = tw.TopologyBuilder("told")
    builder.add_spout("keys", tw.items(rows), fields={"key": int})
    builder.add_bolt("says", Says(), degree=2, isolation=isolation).fields("keys", "key")
    builder.add_bolt("out", tw.collect(seen)).global_("says")
    return builder.build()


@pytest.mark.parametrize(
    ("way", "isolation"),
    [*((way, "thread") for way in WAYS.values()), ({}, "process")],
    ids=[*WAYS, "process"],
)
def test_all_tasks_know_of_another_degree(way: dict[str, Any], isolation: str) -> None:
    changes, seen = Changes("says", [3, 1]), list[Any]()
    changes.run(saying(changes.numbers, seen, isolation), **way)
    assert seen[0].own == 2
    assert {t.own for t in seen} == {1, 2, 3}
    assert {(t.own, t.given) for t in seen[-100:]} == {(1, 1)}
    assert [t.own for t in seen] == [t.given for t in seen]


def test_a_process_that_is_restarted_knows_it_as_well() -> None:
    changes, seen = Changes("says", [1]), list[Any]()

    def rows() -> Iterator[int]:
        yield from changes.numbers()
        for pid in children():
            os.kill(pid, signal.SIGKILL)
        yield from range(200)

    changes.run(saying(rows, seen, "process"))
    told = [event.text for event in changes.events if isinstance(event, Noticed)]
    assert any("restarted" in text for text in told)
    assert {(t.own, t.given) for t in seen[-100:]} == {(1, 1)}


@pytest.mark.parametrize("sink", ["table", "files"])
def test_a_sink_with_a_file_for_each_task_keeps_its_tasks(sink: str, tmp_path: Path) -> None:
    steering, events = tw.Steering(), list[Event]()
    steering.rebalance("out", 3)
    made = tw.to_table(tmp_path / "out") if sink == "table" else tw.to_files(tmp_path / "o.jsonl")
    flow = tw.Flow("kept")
    flow.source("numbers", tw.items(range(10)), fields={"n": int}).sink("out", made, degree=2)
    flow.run(on=tw.Local(workers=1), steering=steering, listen=events.append)
    (text,) = [event.text for event in events if isinstance(event, Noticed)]
    assert "cannot come and go" in text
