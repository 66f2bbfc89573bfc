"""Versions of tables on their way to workers: each is sent once, and one is for a whole batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import thalweg as tw
from thalweg.runtimes.spark.side_tables import SideTables


class Sent:
    """Something that was sent to all workers."""

    def __init__(self, value: bytes) -> None:
        self.value, self.gone = value, False

    def unpersist(self) -> None:
        """Let workers forget it."""
        self.gone = True


class Context:
    """Stands for Spark."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []

    def broadcast(self, value: bytes) -> Sent:
        """Send something."""
        self.sent.append(Sent(value))
        return self.sent[-1]


def topology(table: Any) -> tw.Topology:
    flow = tw.Flow("f")
    source = flow.source("s", tw.items([]), fields={"n": int})
    joined = source.join(table, on="n").join([{"n": 1, "more": 2}], on="n")
    joined.sink("out", tw.collect([]))
    return flow.build()


def test_a_version_is_sent_once_and_the_one_before_is_let_go(tmp_path: Path) -> None:
    path, context, heard = tmp_path / "t.csv", Context(), list[str]()
    path.write_text("n,name\n1,one\n")
    table = tw.table_file(path, fields={"n": int, "name": str})
    made: Any = SideTables(context, topology(table), heard.append)  # type: ignore[arg-type]
    first = made.at(0.0)
    assert list(first) == ["join-1"]  # rows in memory travel with the program
    assert made.at(5.0) == first
    assert len(context.sent) == 1
    (tmp_path / "part").write_text("n,name\n1,uno\n2,due\n")
    (tmp_path / "part").replace(path)
    second = made.at(10.0)
    assert [sent.gone for sent in context.sent] == [True, False]
    assert len(heard) == 1
    rows = [each["join-1"].table().current(0.0, heard.append).rows for each in (first, second)]
    assert [row.column("name").to_pylist() for row in rows] == [["one"], ["uno", "due"]]


def test_a_worker_unpacks_a_version_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,name\n7,seven\n")
    table = tw.table_file(tmp_path / "t.csv", fields={"n": int, "name": str})
    made = SideTables(Context(), topology(table), print)  # type: ignore[arg-type]
    assert made.at(0.0)["join-1"].table() is made.at(1.0)["join-1"].table()


def test_a_topology_without_such_tables_sends_nothing() -> None:
    context = Context()
    made = SideTables(context, topology([{"n": 1, "name": "a"}]), print)  # type: ignore[arg-type]
    assert (made.at(0.0), context.sent) == ({}, [])
