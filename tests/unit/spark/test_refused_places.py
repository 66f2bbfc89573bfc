"""A change of places that cannot be made when the tables for it are there: it did not happen."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import thalweg as tw
from thalweg.control.loop import Plan
from thalweg.control.scaling.history import History
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Decision, Node, Sample, Stream, Timing, View
from thalweg.events import Decided, Event
from thalweg.runtimes.deciding import Around, Deciding
from thalweg.runtimes.spark.scaling import Parts, Places
from thalweg.testing import source

Tables = Future[Mapping[str, Any] | None]


class Wants:
    """A policy that wants three tasks, unless there is grace."""

    name = "wants"
    timing = Timing(delta=10.0, period=10.0, grace=50.0)

    def decide(self, view: View) -> tuple[Decision, ...]:
        before = view.degrees["counts"]
        return (Decision("counts", before if view.in_grace else 3, before, "too much"),)


class Spark:
    """As much of a run on Spark as places ask for; ``able`` says whether state can move."""

    def __init__(self, able: bool) -> None:
        flow = tw.Flow("counting")
        flow.source("words", source([("a",)]), fields={"word": str}).tally("counts", key="word")
        self.able, self.asked, self.notices = able, list[tuple[int, Any]](), list[str]()
        self.tables: Tables = Future()
        self.resumed = 0
        topology = flow.build()
        engine = SimpleNamespace(
            topology=topology,
            plan=SimpleNamespace(topology=topology, places=1),
            batches=SimpleNamespace(manifest=SimpleNamespace(version=7)),
        )
        learning = SimpleNamespace(replan=lambda _places: self.tables, resume=self._resume)
        parts: Any = Parts(engine, None, (), self._change, learning)  # type: ignore[arg-type] # parts of them
        self.places = Places(parts, self.notices.append)

    def _change(self, places: int, tables: Any) -> bool:
        self.asked.append((places, tables))
        return self.able

    def _resume(self) -> None:
        self.resumed += 1


PLAN = Plan((Decision("counts", 3, 1, "too much"),))


def test_a_change_that_is_not_possible_after_all_is_said_and_nothing_is_under_way() -> None:
    spark = Spark(able=False)
    assert spark.places.realise(PLAN) == PLAN
    assert spark.places.busy
    assert spark.places.step() == ""  # the tables are not there yet
    spark.tables.set_result(None)
    assert spark.places.step() == "its state cannot move"
    assert not spark.places.busy
    assert spark.resumed == 1


def test_without_tables_places_change_where_they_cannot_be_made() -> None:
    spark = Spark(able=True)
    spark.places.realise(PLAN)
    spark.tables.set_exception(ZeroDivisionError("no keys"))
    assert spark.places.step() == ""
    assert spark.asked == [(3, None)]
    assert spark.places.busy  # until the next batch commits it
    assert spark.resumed == 1
    assert len(spark.notices) == 1
    assert "no keys" in spark.notices[0]


class Slow:
    """A runtime for which everything takes a while."""

    def __init__(self) -> None:
        self.degrees = {"words": 1, "counts": 1}
        self.busy = False

    def realise(self, plan: Plan) -> Plan:
        self.busy = True
        return plan


def test_what_was_given_up_is_told_and_is_no_change_and_there_is_no_grace(tmp_path: Path) -> None:
    told: list[Event] = []
    runtime, how = Slow(), Scaling(Wants(), beside=("static",), history=tmp_path / "h.db")
    nodes = [Node("words"), Node("counts", (Stream("words", "default"),), most=4)]
    deciding = Deciding(how, nodes, runtime, Around(), told.append)
    deciding.open(0.0)
    deciding.decide(10.0, [Sample("counts", 10.0, 1, 5, 5)])
    runtime.busy = False
    deciding.given_up(15.0, "its state cannot move")
    text = "wants: counts 1 stays because too much; its state cannot move"
    assert told[-1] == Decided(text, "wants", 15.0, {"counts": (1, 1)})
    deciding.decide(20.0, [Sample("counts", 20.0, 1, 5, 5)])
    assert deciding.view(20.0).changes == ()
    assert runtime.busy  # it was asked again
    deciding.close()
    with History(tmp_path / "h.db") as history:
        assert [(c.before, c.after) for c in history.changes()] == [(1, 3), (3, 1), (1, 3)]
        reasons = [each.decision.reason for each in history.decisions()]
        assert reasons[1] == "it was not done: its state cannot move"
