"""What a server says over HTTP: JSON in, JSON out, nothing without the token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from thalweg.errors import explain
from thalweg.server.access import Access
from thalweg.server.answering import Guard, Handler, endpoint, no_route, read
from thalweg.server.folders import Address
from thalweg.server.life import Program, Refusal
from thalweg.server.logs import Place
from thalweg.server.supervisor import Supervisor


class Submit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program, and the name it is to have."""

    name: str
    program: Program


class Kill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long its sources are paused before a topology ends."""

    wait: float


class Rebalance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Degrees, by component."""

    degrees: dict[str, int]


class SetPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who decides about degrees, and who says so."""

    policy: str
    by: str = "a client of the server"


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether topologies are left running."""

    leave: bool = False


class Api:
    """The routes of a server."""

    def __init__(
        self, supervisor: Supervisor, address: Address, stop: Callable[[bool], None]
    ) -> None:
        self._topologies, self._address, self._stop = supervisor, address, stop

    def routes(self) -> list[Route]:
        """Give all of them."""
        one = "/topologies/{name}"
        made: list[tuple[str, str, Handler]] = [
            ("GET", "/status", self._status),
            ("POST", "/stop", self._end),
            ("GET", "/topologies", self._list),
            ("POST", "/topologies", self._submit),
            ("GET", one, lambda r, _: self._topologies.view(_name(r))),
            ("DELETE", one, lambda r, _: self._topologies.forget(_name(r))),
            ("POST", f"{one}/kill", self._kill),
            ("POST", f"{one}/activate", lambda r, _: self._topologies.activate(_name(r), True)),
            ("POST", f"{one}/deactivate", lambda r, _: self._topologies.activate(_name(r), False)),
            ("POST", f"{one}/rebalance", self._rebalance),
            ("POST", f"{one}/policy", self._set_policy),
            ("GET", one + "/answers/{request}", self._answer),
            ("GET", f"{one}/log", self._log),
        ]
        return [Route(path, endpoint(handle), methods=[method]) for method, path, handle in made]

    def _status(self, _request: Request, _body: bytes) -> Any:
        return {"server": self._address, "topologies": self._topologies.names()}

    def _end(self, _request: Request, body: bytes) -> Any:
        self._stop(read(body, Stop).leave)
        return {}

    def _list(self, request: Request, _body: bytes) -> Any:
        names = self._topologies.names("all" in request.query_params)
        return [self._topologies.view(name) for name in names]

    def _submit(self, _request: Request, body: bytes) -> Any:
        asked = read(body, Submit)
        return self._topologies.submit(asked.name, asked.program)

    def _kill(self, request: Request, body: bytes) -> Any:
        wait = read(body, Kill).wait
        if not 0 <= wait < 1e6:
            raise Refusal(explain("wait", "", "0 seconds or more", f"{wait}"))
        return self._topologies.kill(_name(request), wait)

    def _rebalance(self, request: Request, body: bytes) -> Any:
        return {
            "request": self._topologies.rebalance(_name(request), read(body, Rebalance).degrees)
        }

    def _set_policy(self, request: Request, body: bytes) -> Any:
        asked = read(body, SetPolicy)
        return self._topologies.set_policy(_name(request), asked.policy, asked.by)

    def _answer(self, request: Request, _body: bytes) -> Any:
        asked = request.path_params["request"]
        return {"answer": self._topologies.answer(_name(request), asked)}

    def _log(self, request: Request, _body: bytes) -> Any:
        place = request.query_params.get("place")
        text, behind = self._topologies.log(_name(request), Place.read(place) if place else None)
        return {"text": text, "place": behind.text()}


def make_app(access: Access, api: Api) -> ASGIApp:
    """Make what uvicorn runs."""
    return Guard(
        Starlette(routes=api.routes(), exception_handlers={HTTPException: no_route}),
        lambda _scope, headers: access.refusal(
            headers.get(b"host"), headers.get(b"origin"), headers.get(b"authorization")
        ),
    )


def _name(request: Request) -> str:
    return str(request.path_params["name"])
