"""The pages of a server: one of all topologies, and one of each."""

from __future__ import annotations

import asyncio
from functools import partial

from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from thalweg.dashboard.actions import Actions
from thalweg.dashboard.door import Door
from thalweg.dashboard.hub import Hub, leading
from thalweg.dashboard.overall import figures_of_all
from thalweg.dashboard.remote import NAMES, Remote
from thalweg.dashboard.topologies import Topologies
from thalweg.dashboard.web import Pages, guarded
from thalweg.recording.records import TOPOLOGY
from thalweg.server.answering import endpoint

#: The page of all topologies.
_PAGE = "server.html"


class Several:
    """Finds the page of a topology; what it shows is that of its newest process."""

    def __init__(self, topologies: Topologies, door: Door) -> None:
        self._topologies, self._door = topologies, door

    def app(self) -> ASGIApp:
        """Make what uvicorn runs."""
        pages = Pages(self._topologies.hub, self._door, page=_PAGE)
        each = Mount("/topologies/{name}", app=self._one)
        figures = [
            Route(path, endpoint(handle), methods=["GET"])
            for path, handle in figures_of_all(self._topologies).items()
        ]
        return guarded([*pages.common(), *figures, each], self._door)

    async def _one(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["name"]
        shown = await asyncio.to_thread(self._topologies.open, name)
        if shown is None:
            raise HTTPException(404)
        if shown.app is None:
            shown.app = self._router(name, shown.hub)
        await shown.app(scope, receive, send)

    def _router(self, name: str, hub: Hub) -> Router:
        remote = Remote(self._topologies.client, name)
        knows = partial(_bolts, hub), partial(leading, hub)
        pages = Pages(hub, self._door, Actions(remote, remote, NAMES, *knows))
        pages.served, pages.named = name, partial(self._topologies.named, name)
        return Router(routes=pages.routes())


def _bolts(hub: Hub) -> tuple[str, ...]:
    """Name what can be rebalanced; nothing before the program of a topology was loaded."""
    topology = hub.last(TOPOLOGY) or {"components": ()}
    return tuple(each["name"] for each in topology["components"] if each["kind"] != "spout")


def server_app(topologies: Topologies, door: Door) -> ASGIApp:
    """Make the app of all pages."""
    return Several(topologies, door).app()
