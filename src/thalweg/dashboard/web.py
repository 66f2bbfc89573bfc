"""The routes of a dashboard."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from thalweg.dashboard.actions import Actions
from thalweg.dashboard.assets import assets
from thalweg.dashboard.door import SAID, Door, let_in, refused
from thalweg.dashboard.figures import figures
from thalweg.dashboard.hub import Hub, is_over
from thalweg.dashboard.picture import picture
from thalweg.dashboard.streaming import MEDIA_TYPE, OTHER, Told
from thalweg.errors import explain
from thalweg.exporting.prometheus import process_text
from thalweg.recording.records import TOPOLOGY
from thalweg.server.answering import Guard, answer, endpoint, no_route
from thalweg.server.life import Refusal

#: Bytes of a request, and visitors at a time that are told what happens.
_MOST_BYTES = 4 << 10
_MOST_STREAMS = 16
#: The page of a run.
RUN_PAGE = "index.html"


class Pages:
    """Shows the records of a hub, and passes actions on to a run that supports some."""

    def __init__(
        self, hub: Hub, door: Door, actions: Actions | None = None, page: str = RUN_PAGE
    ) -> None:
        self._hub, self._door, self._actions, self._name = hub, door, actions, page
        self._assets = assets()
        self._streams = 0
        #: Tells pages whether what they have had before goes on here.
        self._run = secrets.token_hex(8)
        #: The name that a server knows the run by; empty where it is none of a server.
        self.served = ""
        #: How figures of the run are named, where that is not as its program says.
        self.named: Callable[[], Mapping[str, Any]] = dict

    def common(self) -> list[BaseRoute]:
        """Give the routes of every page."""
        return [
            Route("/", self._page, methods=["GET"]),
            Route("/static/{path:path}", self._asset, methods=["GET"]),
            Route("/api/state", endpoint(self._state), methods=["GET"]),
            Route("/api/records", endpoint(self._records), methods=["GET"]),
            Route("/api/stream", self._stream, methods=["GET"]),
        ]

    def routes(self) -> list[BaseRoute]:
        """Give those of the page of a run."""
        actions = self._actions
        here = actions is not None and not actions.several and not self.served
        told = figures(self._hub, named=self.named, process=process_text if here else str)
        return [
            *self.common(),
            Route("/api/topology", endpoint(self._topology), methods=["GET"]),
            Route("/api/actions/{name}", endpoint(self._act), methods=["POST"]),
            *(Route(path, endpoint(handle), methods=["GET"]) for path, handle in told.items()),
        ]

    async def _page(self, request: Request) -> Response:
        """Give the page; an address with the token becomes a cookie, so that it is not seen."""
        if "token" not in request.query_params:
            return self._file(self._name)
        if not self._door.carries_token(request.scope):
            return RedirectResponse("/", 303)
        made = let_in()
        name, token = self._door.cookie, self._door.access.token
        made.set_cookie(name, token, path="/", httponly=True, samesite="strict")
        return made

    async def _asset(self, request: Request) -> Response:
        return self._file(request.path_params["path"])

    def _file(self, path: str) -> Response:
        found = self._assets.get(path)
        if found is None:
            raise HTTPException(404)
        return Response(found.data, media_type=found.kind)

    def _state(self, request: Request, _body: bytes) -> Any:
        """Say what this visitor can do."""
        actions = self._actions
        return {
            "live": actions is not None,
            "actions": actions.names if actions else (),
            "bolts": actions.bolts() if actions else (),
            "policies": actions.policies if actions else (),
            "served": self.served,
            "several": actions is not None and actions.several,
            "run": self._run,
            "known": self._door.is_known(dict(_headers(request))),
            "gone": self._hub.gone,
            "newest": self._hub.newest,
        }

    def _records(self, request: Request, _body: bytes) -> Response:
        found = self._hub.after(_number(request.query_params.get("after", "0")))
        data = b"[" + b",".join(kept.data for kept in found) + b"]"
        return Response(data, media_type="application/json")

    async def _stream(self, request: Request) -> Response:
        """Tell records as they come; a browser that comes again says which it had last."""
        try:
            given = request.headers.get("last-event-id") or request.query_params.get("after", "0")
            after = _number(given)
        except Refusal as refusal:
            return answer({"error": str(refusal)}, refusal.status)
        if request.query_params.get("run", self._run) != self._run:  # numbers begin anew here
            return Response(OTHER, media_type=MEDIA_TYPE)
        if request.method == "HEAD":  # who wants no records does not stay
            return Response(media_type=MEDIA_TYPE)
        if self._streams >= _MOST_STREAMS:
            return answer({"error": f"visitors: expected {_MOST_STREAMS} at most"}, 503)
        self._streams += 1  # now, for others come before this one is told anything
        return Told(self._hub, after, self._one_left)

    def _one_left(self) -> None:
        self._streams -= 1

    def _topology(self, _request: Request, _body: bytes) -> Any:
        found = self._hub.last(TOPOLOGY)
        if found is None:
            raise Refusal(explain("topology", "", "one that has begun", "none yet"), 404)
        return {"topology": found, "picture": picture(found)}

    def _act(self, request: Request, body: bytes) -> Any:
        name = request.path_params["name"]
        if self._actions is None:
            raise Refusal(explain("action", "", "a run that goes on", "a recording"), 409)
        goes_on = self.served or self._actions.several  # a server itself knows what does
        if not goes_on and is_over(self._hub):
            raise Refusal(explain("action", "", "a run that goes on", "one that is over"), 409)
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json":  # what a form of another page cannot send
            raise Refusal(explain("content-type", "", "application/json", repr(kind[:80])), 415)
        return self._actions.do(name, body)


def make_app(hub: Hub, door: Door, actions: Actions | None = None) -> ASGIApp:
    """Make what uvicorn runs."""
    return guarded(Pages(hub, door, actions).routes(), door)


def guarded(routes: Sequence[BaseRoute], door: Door) -> ASGIApp:
    """Let only those in whom a door lets in."""
    app = Starlette(routes=routes, exception_handlers={HTTPException: no_route})
    return Guard(app, door.check, _MOST_BYTES, SAID, refused)


def _headers(request: Request) -> list[tuple[bytes, str]]:
    return [(name, value.decode("latin-1")) for name, value in request.scope["headers"]]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise Refusal(explain("after", "", "the number of a record", repr(text[:80])))
    return int(text)
