"""The figures of all topologies of a server, under the names that it knows them by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from thalweg.cli.topologies import phase_text
from thalweg.dashboard.figures import PATHS, check_component, prometheus, seen, window
from thalweg.dashboard.topologies import Topologies, named
from thalweg.errors import ThalwegError, explain
from thalweg.exporting.prometheus import Life, prometheus_text
from thalweg.exporting.storm_rest import (
    Seen,
    cluster_summary,
    component_page,
    topology_page,
    topology_summary,
)
from thalweg.metrics import Snapshot
from thalweg.server.answering import Handler
from thalweg.server.folders import View
from thalweg.server.life import Refusal

#: How a topology is that runs and whose sources are not asked.
_PAUSED = "inactive"
_NOTHING = Snapshot(0.0, (), 0, 0, 0, None)


def figures_of_all(
    topologies: Topologies, now: Callable[[], float] = time.time
) -> dict[str, Handler]:
    """Give what answers, by path."""
    asked = _Asked(topologies, now)
    return dict(
        zip(
            PATHS,
            (asked.metrics, asked.cluster, asked.summary, asked.one, asked.component),
            strict=True,
        )
    )


class _Asked:
    """Asks the server what it runs, and of one topology what it has recorded."""

    def __init__(self, topologies: Topologies, now: Callable[[], float]) -> None:
        self._topologies, self._now = topologies, now

    def metrics(self, _request: Request, _body: bytes) -> Response:
        return prometheus(merged(_text(view) for view in self._views()))

    def cluster(self, _request: Request, _body: bytes) -> Any:
        found = self._seen().values()
        longest = max((each.snapshot for each in found), key=lambda s: s.elapsed, default=_NOTHING)
        tasks = sum(each.tasks for each in found)
        counts = {"topologies": len(found), "tasksTotal": tasks, "executorsTotal": tasks}
        return cluster_summary(Seen({}, longest)) | counts

    def summary(self, _request: Request, _body: bytes) -> Any:
        told = [topology_summary(each)["topologies"] for each in self._seen().values()]
        found = [one for each in told for one in each]
        return {"topologies": found, "schedulerDisplayResource": False}

    def one(self, request: Request, _body: bytes) -> Any:
        return topology_page(self._named(request), window(request))

    def component(self, request: Request, _body: bytes) -> Any:
        of_run, name = self._named(request), request.path_params["component"]
        check_component(of_run, name)
        return component_page(of_run, name, window(request))

    def _views(self) -> list[View]:
        try:
            return self._topologies.client.views(everything=False)
        except ThalwegError as error:
            raise Refusal(str(error), 503) from error

    def _seen(self) -> dict[str, Seen]:
        """Give what the server knows of each topology, by name, also of those without figures."""
        return {view.record.name: self._of(view) for view in self._views()}

    def _of(self, view: View) -> Seen:
        status = view.status
        runs = status is not None and status.since is not None and status.active
        word = "KILLED" if not view.alive else "ACTIVE" if runs else "INACTIVE"
        known = named(view.record.name, status)
        snapshot = status.snapshot if status else None
        return Seen(known, snapshot or _NOTHING, status=word, now=self._now())

    def _named(self, request: Request) -> Seen:
        """Put together what the records of a topology say, by the id that the summary has."""
        found, asked = self._seen(), request.path_params["id"]
        name = next((name for name, each in found.items() if each.id == asked), None)
        shown = None if name is None else self._topologies.open(name)
        if name is None or shown is None:
            ids = ", ".join(each.id for each in found.values()) or "none yet"
            raise Refusal(explain(f"topology {asked[:80]!r}", "", f"one of {ids}"), 404)
        return seen(shown.hub, self._now(), found[name].topology)


def _life(view: View) -> Life:
    phase = phase_text(view)
    paused = phase == _PAUSED
    return Life(phase == "running" or paused, paused, view.record.failures)


def _text(view: View) -> str:
    snapshot = view.status.snapshot if view.status else None
    return prometheus_text(snapshot, view.record.name, _life(view))


def merged(texts: Iterable[str]) -> str:
    r"""Put texts for Prometheus together: what is said of a metric stands once, before its samples.

    >>> texts = ('# HELP a A.\n# TYPE a gauge\na{of="x"} 1.0\n', '# HELP a A.\na{of="y"} 2.0\n')
    >>> merged(texts).splitlines()
    ['# HELP a A.', '# TYPE a gauge', 'a{of="x"} 1.0', 'a{of="y"} 2.0']
    """
    heads: dict[str, dict[str, None]] = {}
    samples: dict[str, list[str]] = {}
    name = ""
    for line in (line for text in texts for line in text.splitlines()):
        if line.startswith("#"):
            name = line.split()[2]
            heads.setdefault(name, {})[line] = None
        else:
            samples.setdefault(name, []).append(line)
    lines = (line for each in heads for line in _block(each, heads, samples))
    return "".join(f"{line}\n" for line in lines)


def _block(
    name: str, heads: Mapping[str, Iterable[str]], samples: Mapping[str, list[str]]
) -> list[str]:
    return [*heads[name], *samples.get(name, ())]
