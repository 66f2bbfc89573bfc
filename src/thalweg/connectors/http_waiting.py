"""How long a server waits for those who have connected and ask nothing."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds within which the head of a request has to be here, so that nobody takes up room for less.
_HEAD_SECONDS = 10.0


class Waiting(H11Protocol):
    """A connection that is closed when no request comes; uvicorn itself waits for a first one."""

    _end: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override]  # as uvicorn has it
        self, transport: asyncio.Transport
    ) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Wait for the next request; its first byte ends the shorter patience of uvicorn."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        if self._end is not None:
            self._end.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._end is not None:
            self._end.cancel()
        self._end = self.loop.call_later(_HEAD_SECONDS, self._waited)

    def _waited(self) -> None:
        if self.cycle is None or self.cycle.response_complete:  # no request is under way
            self.timeout_keep_alive_handler()
