"""Records as server-sent events, for as long as a visitor stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from thalweg.dashboard.hub import Hub

#: Seconds between two signs of life on a quiet stream, so that proxies and browsers keep it.
_BEAT = 10.0
#: Seconds in which records gather before they are sent together.
_GATHER = 0.1
#: Says that nothing more will come here.
END = b"event: end\ndata: {}\n\n"
#: The same to who has followed another run, whose numbers say nothing here.
OTHER = b'event: end\ndata: {"other": true}\n\n'
#: What a browser waits before it comes again, in milliseconds.
_RETRY = b"retry: 2000\n\n"
MEDIA_TYPE = "text/event-stream"


class Told(StreamingResponse):
    """Tells one visitor; says when that is over, also where it has never begun."""

    def __init__(self, hub: Hub, after: int, over: Callable[[], None]) -> None:
        super().__init__(events(hub, after), media_type=MEDIA_TYPE)
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell, until the visitor leaves or the hub is closed."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._over()


async def events(hub: Hub, after: int) -> AsyncIterator[bytes]:
    """Give the records behind a number, and all that come; ends when the hub is closed."""
    loop, new = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        if not new.is_set():
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(new.set)

    leave = hub.wake_with(wake)
    try:
        yield _RETRY
        while True:
            new.clear()  # before the look, so that nothing is missed
            closed = hub.closed
            found = hub.after(after)
            if found:
                after = found[-1].n
                yield b"".join(b"id: %d\ndata: %b\n\n" % (kept.n, kept.data) for kept in found)
                await asyncio.sleep(_GATHER)
            elif closed:
                yield END
                return
            elif not await _woken(new):
                yield b": still here\n\n"
    finally:
        leave()


async def _woken(new: asyncio.Event) -> bool:
    """Wait for something new; says whether it came in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_BEAT):
            await new.wait()
        return True
    return False
