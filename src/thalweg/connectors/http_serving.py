"""The HTTP server of a source: who may send, how much, and what they are told.

It is imported by those who listen, for it takes a while.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
import threading
from contextlib import suppress
from typing import Any

import msgspec
import uvicorn

from thalweg.connectors.http_bodies import BadBody, JsonBodies
from thalweg.connectors.http_door import Door, is_loopback
from thalweg.connectors.http_inbox import Inbox
from thalweg.connectors.http_waiting import Waiting
from thalweg.errors import RecordError, explain

#: Seconds within which a request has to be here as a whole.
_BODY_SECONDS = 30.0
#: Bytes, and seconds, of what is read of a body that was refused.
_DRAIN_BYTES, _DRAIN_SECONDS = 1 << 20, 1.0
#: Requests at a time; uvicorn answers 503 to others.
_MOST_REQUESTS = 512
_NOWHERE = logging.NullHandler()


class Refused(RecordError):
    """A request that is not taken, with its status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class App:
    """Answers requests; 200 means that all rows have entered."""

    def __init__(self, door: Door, inbox: Inbox, bodies: JsonBodies) -> None:
        self._door, self._inbox, self._bodies = door, inbox, bodies

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        body = _Body(receive)
        try:
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            self._let_in(scope, headers)
            rows = self._bodies.read(await body.read(self._door.max_body))
            await self._enter(rows)
            status, said = 200, {"rows": rows.num_rows}
        except Refused as refused:
            status, said = refused.status, {"error": str(refused)}
        except BadBody as error:
            status, said = 400, {"error": str(error)}
        await body.drain()
        await _answer(send, status, said, body.ended)

    def _let_in(self, scope: Any, headers: dict[bytes, str]) -> None:
        """Refuse who may not send, and what is no delivery."""
        door = self._door
        if door.token is not None:
            scheme, _, given = headers.get(b"authorization", "").partition(" ")
            same = hmac.compare_digest(given.strip().encode(), door.token.encode())
            if scheme.lower() != "bearer" or not same:
                raise Refused(401, "expected the header Authorization: Bearer TOKEN")
        elif b"origin" in headers or not _names_loopback(headers.get(b"host", "")):
            # A page in a browser of this machine could send here otherwise.
            raise Refused(403, "expected a program of this machine; pages need a token")
        if scope["path"] != door.path:
            raise Refused(404, f"expected the path {door.path}")
        if scope["method"] != "POST":
            raise Refused(405, "expected POST")
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > door.max_body:
            raise _too_large(door.max_body)
        if headers.get(b"content-encoding", "identity").lower() != "identity":
            raise Refused(415, "expected a body without content-encoding")

    async def _enter(self, rows: Any) -> None:
        """Let rows wait, and wait until they have entered."""
        if not rows.num_rows:
            return
        loop, entered = asyncio.get_running_loop(), asyncio.Event()
        outcome: list[bool] = []

        def told(ok: bool) -> None:
            outcome.append(ok)
            loop.call_soon_threadsafe(entered.set)

        if not self._inbox.put(rows, told):
            if not self._inbox.closed:
                raise Refused(429, "too much waits already; send it again later")
            told(False)
        await entered.wait()
        if not outcome[0]:
            raise Refused(503, "the run ends; send it again")


class _Body:
    """The body of a request, which comes in pieces."""

    def __init__(self, receive: Any) -> None:
        self._receive, self._size = receive, 0
        #: Whether all of it was read.
        self.ended = False

    async def read(self, most: int) -> bytes:
        """Give all of it; raises where it is too large, or too long in coming."""
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while not self.ended:
                    parts.append(await self._next())
                    if self._size > most:
                        raise _too_large(most)
        except TimeoutError:
            raise Refused(408, f"expected a body within {_BODY_SECONDS:g} seconds") from None
        return b"".join(parts)

    async def drain(self) -> None:
        """Read what is left, if that is little: who still sends would not hear the answer."""
        until = self._size + _DRAIN_BYTES
        with suppress(Refused, TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self.ended and self._size < until:
                    await self._next()

    async def _next(self) -> bytes:
        message = await self._receive()
        self.ended = not message.get("more_body", False)
        if message["type"] == "http.disconnect":
            raise Refused(400, "expected a whole body")
        piece: bytes = message.get("body", b"")
        self._size += len(piece)
        return piece


def _too_large(most: int) -> Refused:
    return Refused(413, f"expected at most {most} bytes")


async def _answer(send: Any, status: int, said: dict[str, Any], ended: bool) -> None:
    body = msgspec.json.encode(said)
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if not ended:  # what is left of the body is not read
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _names_loopback(host: str) -> bool:
    """Say whether the header Host names this machine; a page can let its own name mean it."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return is_loopback(name)


def server_of(app: Any, most_requests: int, patience: int) -> uvicorn.Server:
    """Make a server that says and believes little; ``patience`` is in seconds, when it ends."""
    # What strangers send is no news, but for those who keep a log of it.
    logging.getLogger("uvicorn.error").addHandler(_NOWHERE)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http=Waiting,
        loop="asyncio",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=most_requests,
        timeout_graceful_shutdown=patience,
        h11_max_incomplete_event_size=16 << 10,
    )
    return uvicorn.Server(config)


class Beside:
    """A server in a thread of its own."""

    def __init__(self, server: uvicorn.Server, listening: socket.socket, name: str) -> None:
        self._server, self._listening = server, listening
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._begun = threading.Event()
        self._failure: Exception | None = None

    def start(self) -> None:
        """Begin to answer; raises where there can be no event loop."""
        self._thread.start()
        self._begun.wait()
        if self._failure is not None:
            self.close()
            raise self._failure

    def close(self) -> None:
        """Answer what is under way, and end."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        try:
            asyncio.run(self._answer())
        except Exception as error:  # no file descriptor is left for a loop, say
            if self._begun.is_set():
                raise
            self._failure = error
            self._begun.set()

    async def _answer(self) -> None:
        self._begun.set()
        await self._server.serve(sockets=[self._listening])


class Serving(Beside):
    """The server of a source."""

    def __init__(self, door: Door, app: App) -> None:
        listening = _bound(door)
        self.port = int(listening.getsockname()[1])
        super().__init__(server_of(app, _MOST_REQUESTS, patience=2), listening, "thalweg-http")


def _bound(door: Door) -> socket.socket:
    family = socket.AF_INET6 if ":" in door.host else socket.AF_INET
    # With its protocol named asyncio sends answers at once, and not after 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((door.host, door.port))
        made.listen(128)  # now, so that nobody who hears of it comes too early
    except OSError as error:
        made.close()
        subject, got = f"address {door.host}:{door.port}", error.strerror or str(error)
        raise RecordError(explain(subject, "", "one that is free here", got)) from error
    return made
