"""Figures in Storm's words: the paths that scripts for Storm's UI ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recording.runs import metrics, snapshot, words
from thalweg.errors import UsageError
from thalweg.events import RecordRefused, TupleRefused
from thalweg.exporting.storm_rest import (
    Seen,
    cluster_summary,
    component_page,
    topology_page,
    topology_summary,
)
from thalweg.recording.records import record_of, topology_record

ERRORS = [
    record_of(TupleRefused("counts", 1, "('a',)", "no number"), 5, 3.0, 1003.0),
    record_of(RecordRefused("words", "{", "no JSON"), 6, 4.0, 1004.0),
]


def seen(**given: Any) -> Seen:
    plain: dict[str, Any] = {"snapshot": snapshot(65.0), "errors": ERRORS, "now": 1010.0}
    return Seen(topology_record(words(), "local", wall=1000.0), **plain | given)


@pytest.mark.parametrize("page", [cluster_summary, topology_summary, topology_page])
def test_pages_are_json(page: Any) -> None:
    json.dumps(page(seen()), allow_nan=False)


def test_the_summary_names_the_topology() -> None:
    (found,) = topology_summary(seen())["topologies"]
    assert found["id"] == "words-1-1000"
    assert (found["name"], found["status"]) == ("words", "ACTIVE")
    assert (found["uptime"], found["uptimeSeconds"]) == ("1m 5s", 65)
    assert (found["tasksTotal"], found["executorsTotal"], found["workersTotal"]) == (4, 4, 1)


def test_the_page_of_a_topology_has_storms_figures() -> None:
    page = topology_page(seen(status="INACTIVE"), window="600")
    assert (page["status"], page["window"], page["windowHint"]) == ("INACTIVE", "600", "10m 0s")
    assert [w["window"] for w in page["topologyStats"]] == ["600", "10800", "86400", ":all-time"]
    assert page["topologyStats"][-1] == {
        "window": ":all-time",
        "windowPretty": "All time",
        "emitted": 80,
        "transferred": 76,
        "completeLatency": "500.000",
        "acked": 20,
        "failed": 1,
    }
    (spout,), (bolt,) = page["spouts"], page["bolts"]
    assert (spout["spoutId"], spout["emitted"], spout["acked"]) == ("words", 40, 20)
    assert (spout["completeLatency"], spout["lastError"]) == ("500.000", "no JSON\n  {")
    assert (bolt["boltId"], bolt["executed"], bolt["capacity"]) == ("counts", 30, "0.250")
    assert (bolt["executeLatency"], bolt["processLatency"]) == ("2.000", "4.000")
    assert bolt["lastError"] == "no number\n  ('a',)"
    assert (bolt["errorTime"], bolt["errorLapsedSecs"]) == (1003, 7)


def test_the_page_of_a_bolt_has_its_inputs_tasks_and_errors() -> None:
    page = component_page(seen(), "counts")
    assert (page["componentType"], page["topologyId"]) == ("bolt", "words-1-1000")
    assert [stats["executed"] for stats in page["boltStats"]] == [30] * 4
    (input_,) = page["inputStats"]
    assert (input_["component"], input_["stream"], input_["executed"]) == ("words", "default", 30)
    assert [task["id"] for task in page["executorStats"]] == ["[0-0]", "[1-1]"]
    (error,) = page["componentErrors"]
    assert error["error"] == "no number\n  ('a',)"


def test_the_page_of_a_spout_has_its_outputs() -> None:
    page = component_page(seen(), "words")
    assert page["componentType"] == "spout"
    assert page["spoutSummary"][-1]["completeLatency"] == "500.000"
    assert [out["stream"] for out in page["outputStats"]] == ["default"]
    assert "inputStats" not in page


def test_without_windows_only_those_are_known_that_hold_the_whole_run() -> None:
    bare = (
        metrics("words", stats={}, task_stats=()),
        metrics("counts", stats={}, task_stats=(), shuffled=9, local=3),
    )
    on_spark = seen(snapshot=snapshot(1000.0, components=bare))
    page = topology_page(on_spark)
    assert [w["window"] for w in page["topologyStats"]] == ["10800", "86400", ":all-time"]
    assert page["bolts"][0]["transferred"] == 12
    with pytest.raises(UsageError, match="window: expected one of"):
        topology_page(on_spark, window="600")


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="component 'none': expected one of"):
        component_page(seen(), "none")
    with pytest.raises(UsageError, match="window: expected one of"):
        topology_page(seen(), window="7")


COLUMNS = {
    "topology": ["name", "id", "status", "uptime", "workersTotal", "executorsTotal", "tasksTotal"],
    "spouts": ["spoutId", "emitted", "transferred", "completeLatency", "acked", "failed"],
    "bolts": ["boltId", "executors", "tasks", "emitted", "transferred", "capacity"],
    "more": ["executeLatency", "executed", "processLatency", "acked", "failed", "lastError"],
}


def test_the_columns_are_there_that_streamparse_prints() -> None:
    page = topology_page(seen())
    assert set(COLUMNS["topology"]) <= page.keys()
    assert set(COLUMNS["spouts"]) <= page["spouts"][0].keys()
    assert {*COLUMNS["bolts"], *COLUMNS["more"]} <= page["bolts"][0].keys()
