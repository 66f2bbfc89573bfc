"""Answers over HTTP, for all that serve: who is heard, how much is read, what is said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thalweg.errors import ThalwegError, explain
from thalweg.server.life import Refusal

_logger = logging.getLogger("thalweg.server")
#: Bytes of a request.
MOST_BYTES = 64 << 10
#: Methods that change nothing.
READS = ("GET", "HEAD")
T = TypeVar("T")
Headers = Mapping[bytes, str]
#: Says why a request is not heard; None where it is.
Check = Callable[[Scope, Headers], Refusal | None]
Handler = Callable[[Request, bytes], Any]
#: Says a refusal to whom has such headers.
Refuse = Callable[[Refusal, Headers], Response]


class Guard:
    """Hears only those who may speak, and who do not say too much."""

    def __init__(
        self,
        app: ASGIApp,
        check: Check,
        most: int = MOST_BYTES,
        said: Mapping[str, str] | None = None,
        refuse: Refuse | None = None,
    ) -> None:
        self._app, self._check, self._most = app, check, most
        self._refuse = refuse or _as_json
        #: Headers of every answer, also of a refusal.
        self._said = [(k.lower().encode(), v.encode()) for k, v in (said or {}).items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or say why not."""
        if scope["type"] != "http":
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._check(scope, headers) or self._too_much(scope, headers)
        app = self._app if refusal is None else self._refuse(refusal, headers)
        await app(scope, self._counted(receive), self._with_headers(send))

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *self._said]}
            await send(message)

        return sending if self._said else send

    def _counted(self, receive: Receive) -> Receive:
        """Count what comes without a length before it."""
        count = 0

        async def counting() -> Message:
            nonlocal count
            message = await receive()
            count += len(message.get("body", b""))
            if count > self._most:
                raise self._too_large()
            return message

        return counting

    def _too_much(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Refuse a body that is too large, or where none belongs: there nobody would read it."""
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > self._most:
            return self._too_large()
        if scope["method"] in READS and (int(length) or b"transfer-encoding" in headers):
            return Refusal(explain("request", "", f"no body with {scope['method']}", "one"), 413)
        return None

    def _too_large(self) -> Refusal:
        return Refusal(explain("request", "", f"{self._most} bytes at most", "more"), 413)


async def no_route(_request: Request, error: Exception) -> Response:
    """Say that there is nothing at a path, or not with that method."""
    assert isinstance(error, HTTPException)  # noqa: S101 (registered for it)
    return answer({"error": f"request: {error.detail}"}, error.status_code)


def read(body: bytes, kind: type[T]) -> T:
    """Read the JSON of a request."""
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise Refusal(explain("request", "", "JSON as the docs have it", str(error))) from error


def endpoint(handle: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Let a plain function answer, in a thread; what it refuses is said, the rest is logged."""

    async def answering(request: Request) -> Response:
        try:
            body = await request.body()
            made = await asyncio.to_thread(handle, request, body)
            return made if isinstance(made, Response) else answer(made, 200)
        except Refusal as error:
            return answer({"error": str(error)}, error.status)
        except ThalwegError as error:
            return answer({"error": str(error)}, 400)
        except ClientDisconnect:  # nobody hears the answer
            return answer({"error": explain("request", "", "a whole body", "less")}, 400)
        except Exception:
            _logger.exception("%s %s", request.method, request.url.path)
            return answer({"error": "the server met a problem, which its log describes"}, 500)

    return answering


def _as_json(refusal: Refusal, _headers: Headers) -> Response:
    return answer({"error": str(refusal)}, refusal.status)


def answer(value: Any, status: int) -> Response:
    """Say something as JSON."""
    data = msgspec.json.encode(value)
    return Response(data, status, media_type="application/json")
