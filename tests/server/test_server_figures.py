"""What monitoring is told of topologies of a server: also of those that have no figures."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request

from thalweg.dashboard.overall import figures_of_all
from thalweg.metrics import Snapshot
from thalweg.server.folders import Status, View
from thalweg.server.life import Phase, Program, Record

SNAPSHOT = Snapshot(90.0, (), 10, 9, 1, None)


def view(name: str, phase: Phase = "running", deaths: int = 0, **said: Any) -> View:
    """Give what a server knows of a topology; of one that does not live, nothing is said."""
    record = Record(name, Program("/p/shop.py"), 3.0, phase=phase, failures=deaths)
    status = Status(7, time.time() + 60, name, snapshot=SNAPSHOT, **said) if said else None
    return View(record, alive=bool(said), status=status)


def views_now() -> list[View]:
    return [
        view("runs", since=5.0),
        view("pauses", since=5.0, active=False),
        view("dies", deaths=4),
        view("failed", "failed", deaths=6),
    ]


def told(path: str, views: list[View] | None = None) -> Any:
    known = views_now() if views is None else views
    topologies: Any = SimpleNamespace(client=SimpleNamespace(views=lambda everything: known))
    handle: Any = figures_of_all(topologies)[path]
    return handle(Request({"type": "http"}), b"")


def test_monitoring_knows_every_topology_also_one_that_keeps_dying() -> None:
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(told("/metrics").body.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[sample.labels["topology"]] = sample.value
    names = {each.record.name for each in views_now()}
    up, paused, deaths = (found[f"thalweg_topology_{n}"] for n in ("up", "paused", "deaths_total"))
    assert up == {name: float(name in ("runs", "pauses")) for name in names}
    assert paused == {name: float(name == "pauses") for name in names}
    assert deaths == {"runs": 0, "pauses": 0, "dies": 4, "failed": 6}
    assert found["thalweg_tuples_in_total"] == {"runs": 10, "pauses": 10}  # figures of no other


def test_storms_summary_lists_every_topology_with_its_status() -> None:
    found = told("/api/v1/topology/summary")["topologies"]
    words = {each["name"]: (each["status"], each["uptimeSeconds"]) for each in found}
    assert words == {
        "runs": ("ACTIVE", 90),
        "pauses": ("INACTIVE", 90),
        "dies": ("KILLED", 0),
        "failed": ("KILLED", 0),
    }
    assert told("/api/v1/cluster/summary")["topologies"] == 4
    assert told("/api/v1/cluster/summary", [])["topologies"] == 0
