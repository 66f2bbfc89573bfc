"""The figures of a run for other programs: Prometheus, and scripts that know Storm's paths."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from thalweg.dashboard.hub import Hub
from thalweg.errors import UsageError, explain
from thalweg.exporting.prometheus import CONTENT_TYPE, Life, prometheus_text
from thalweg.exporting.storm_rest import (
    ALL_TIME,
    ERRORS,
    Seen,
    cluster_summary,
    component_page,
    topology_page,
    topology_summary,
)
from thalweg.metrics import Snapshot
from thalweg.recording.records import TOPOLOGY
from thalweg.server.answering import Handler
from thalweg.server.life import Refusal

#: Refused tuples that are told, the last ones.
_MOST_ERRORS = 200
_ONE = "/api/v1/topology/{id}"
#: Where figures are: Prometheus's, and Storm's of the cluster, all topologies, one, a component.
PATHS = (
    "/metrics",
    "/api/v1/cluster/summary",
    "/api/v1/topology/summary",
    _ONE,
    _ONE + "/component/{component:path}",
)


def figures(
    hub: Hub,
    now: Callable[[], float] = time.time,
    named: Callable[[], Mapping[str, Any]] = dict,
    process: Callable[[], str] = str,
) -> dict[str, Handler]:
    """Give what answers, by path.

    ``named`` gives what is said of the run instead of its record, ``process`` what Prometheus is
    told of the process of the run, where that is this one.
    """

    def seen_now(errors: bool) -> Seen:
        return seen(hub, now(), named(), errors)

    def of(read: Callable[[Seen], Any]) -> Handler:
        return lambda _request, _body: read(seen_now(errors=False))

    def one(request: Request, _body: bytes) -> Any:
        return topology_page(_asked(request, seen_now(errors=True)), window(request))

    def component(request: Request, _body: bytes) -> Any:
        name = request.path_params["component"]
        of_run = _asked(request, seen_now(errors=True))
        check_component(of_run, name)
        return component_page(of_run, name, window(request))

    def metrics(of_run: Seen) -> Response:
        return prometheus(_text(of_run) + process())

    every = (of(metrics), of(cluster_summary), of(topology_summary), one, component)
    return dict(zip(PATHS, every, strict=True))


def check_component(of_run: Seen, name: str) -> None:
    """Refuse a component that is none."""
    try:
        of_run.about(name)
    except UsageError as error:
        raise Refusal(str(error), 404) from error


def seen(hub: Hub, now: float, named: Mapping[str, Any], errors: bool = True) -> Seen:
    """Put together what the last records say of a run, under the name that it is known by.

    Errors are among many other records, which are all read for them: only who tells them asks.
    """
    topology = hub.last(TOPOLOGY)
    looks = [found for kind in ("progress", "run_finished") if (found := hub.last(kind))]
    if topology is None or not looks:
        raise Refusal(explain("figures", "", "a run that has begun", "none yet"), 503)
    last = max(looks, key=lambda record: int(record["n"]))
    try:
        snapshot = msgspec.convert(last["snapshot"], Snapshot)
    except msgspec.ValidationError as error:  # a file from elsewhere
        raise Refusal(explain("figures", "", "a snapshot", str(error)), 422) from error
    told = hub.recent(ERRORS, _MOST_ERRORS) if errors else ()
    return Seen({**topology, **named}, snapshot, told, _status(hub, last), now)


def _status(hub: Hub, last: dict[str, Any]) -> str:
    if last["kind"] == "run_finished" or hub.last("run_failed"):
        return "KILLED"
    activated = hub.recent(("activated",), 1)
    return "INACTIVE" if activated and not activated[0]["active"] else "ACTIVE"


def _text(of_run: Seen) -> str:
    life = Life(up=of_run.status != "KILLED", paused=of_run.status == "INACTIVE")
    return prometheus_text(of_run.snapshot, of_run.topology["name"], life)


def prometheus(text: str) -> Response:
    """Answer a scrape."""
    return Response(text, headers={"content-type": CONTENT_TYPE})


def _asked(request: Request, found: Seen) -> Seen:
    if request.path_params["id"] != found.id:
        text = explain(f"topology {request.path_params['id'][:80]!r}", "", found.id)
        raise Refusal(text, 404)
    return found


def window(request: Request) -> str:
    """Give the window that is asked for, by Storm's name."""
    return request.query_params.get("window", ALL_TIME)
