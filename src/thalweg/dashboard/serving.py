"""A dashboard in a thread of its own, beside a run or for a recording."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from starlette.types import ASGIApp

from thalweg.connectors.http_serving import Beside, server_of
from thalweg.dashboard.actions import Actions
from thalweg.dashboard.door import Door
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.web import make_app
from thalweg.server.access import Access
from thalweg.server.daemon import bound

#: Requests at a time, streams among them; the others are told to come again.
_MOST_REQUESTS = 64


@dataclass(frozen=True)
class Where:
    """Where a dashboard listens."""

    host: str = "127.0.0.1"
    #: 0 for any that is free.
    port: int = 0


class Dashboard:
    """Serves the page of a hub from ``__enter__`` to ``__exit__``."""

    def __init__(
        self,
        hub: Hub,
        where: Where | None = None,
        actions: Actions | None = None,
        make: Callable[[Door], ASGIApp] | None = None,
    ) -> None:
        """Bind the address; ``make`` gives the app where it is more than the page of one run."""
        where = where or Where()
        self._hub = hub
        listening = bound(where.host, where.port)
        port = int(listening.getsockname()[1])
        self.access = Access(secrets.token_urlsafe(32), where.host, port)
        door = Door(self.access)
        app = make_app(hub, door, actions) if make is None else make(door)
        server = server_of(app, _MOST_REQUESTS, patience=1)
        self._serving = Beside(server, listening, "thalweg-page")

    @property
    def address(self) -> str:
        """Give the address to open, with the token in it."""
        host = self.access.host
        if host in ("0.0.0.0", "::"):  # noqa: S104 (all addresses: this machine knows itself so)
            host = "localhost"
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{self.access.port}/?token={self.access.token}"

    def __enter__(self) -> Dashboard:
        self._serving.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._hub.close()
        self._serving.close()
