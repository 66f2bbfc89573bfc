"""A source of what others send over HTTP: webhooks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from thalweg.components import AT_ONCE, BlockSpout
from thalweg.connectors.http_bodies import JsonBodies
from thalweg.connectors.http_door import Door
from thalweg.connectors.http_inbox import Inbox
from thalweg.contexts import TaskContext
from thalweg.errors import UsageError, explain
from thalweg.events import Noticed

#: The shortest token that is hard to guess.
_TOKEN = 16


class HttpSource(BlockSpout):
    """Listens, and gives the rows of requests; of several tasks the first one does."""

    replays = False

    def __init__(self, door: Door, max_pending: int) -> None:
        self.door, self.max_pending = door, max_pending

    def __reduce__(self) -> tuple[Any, ...]:
        return _Elsewhere, ()  # only who listens may know the token

    def __copy__(self) -> HttpSource:
        made = HttpSource(self.door, self.max_pending)
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> HttpSource:
        return self.__copy__()

    def prepare(self, context: TaskContext) -> None:
        """Begin to listen."""
        self._serving: Any = None
        self._inbox = Inbox(self.max_pending)
        if context.task > 0:
            return
        from thalweg.connectors.http_serving import App, Serving  # noqa: PLC0415 (takes long)

        (self._shape,) = context.shapes.values()
        graph = context.graph
        time = None if graph is None else graph.component(context.component).options.time
        app = App(self.door, self._inbox, JsonBodies(self._shape, time))
        self._serving = Serving(self.door, app)
        self._serving.start()
        host = f"[{self.door.host}]" if ":" in self.door.host else self.door.host
        where = f"http://{host}:{self._serving.port}{self.door.path}"
        context.tell(Noticed(f"source {context.component!r} listens on {where}"))

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give the rows that have arrived."""
        if self._serving is None:
            self.finish()
        taken = self._inbox.take(limit)
        return pa.concat_batches(map(self._shape.conform, taken)) if taken else None

    def wait_hint(self) -> float:
        """Say whether there is more."""
        return AT_ONCE if self._inbox.rows else 0.0

    def taken_in(self) -> None:
        """Let those be answered whose rows have entered."""
        self._inbox.taken_in()

    def backlog(self) -> int:
        """Give the number of rows that wait."""
        return self._inbox.rows

    def cleanup(self) -> None:
        """Tell all who wait that their rows were not taken, and listen no more."""
        serving = getattr(self, "_serving", None)
        if serving is not None:
            self._inbox.close()
            serving.close()


class _Elsewhere(BlockSpout):
    """Stands for such a source in other processes, where nobody asks it."""

    replays = False

    def prepare(self, context: TaskContext) -> None:
        """Refuse to listen without the token."""
        where = f"source {context.component!r}"
        raise UsageError(explain("http_source", where, "to run beside the run", "elsewhere"))


def http_source(
    port: int,
    *,
    host: str = "127.0.0.1",
    path: str = "/",
    token: str | None = None,
    max_body: int = 1 << 20,
    max_pending: int = 10_000,
) -> HttpSource:
    """Make a source of the JSON that others POST: an object, an array, or an object per line.

    >>> http_source(8080, token="not to be shown here").door
    Door(host='127.0.0.1', port=8080, path='/', max_body=1048576)
    """
    door = Door(host, port, path, token, max_body)
    if not 0 <= port < 1 << 16:
        raise UsageError(explain("port", "", "a number from 0 to 65535", str(port)))
    if not path.startswith("/"):
        raise UsageError(explain("path", "", "to begin with /", repr(path)))
    if token is not None and len(token) < _TOKEN:
        raise UsageError(explain("token", "", f"at least {_TOKEN} characters", "fewer"))
    if token is None and not door.is_loopback:
        hint = "others could send as well: give a token, or leave host out"
        raise UsageError(explain(f"host {host!r}", "", "a token", "none", hint))
    for name, value in {"max_body": max_body, "max_pending": max_pending}.items():
        if value < 1:
            raise UsageError(explain(name, "", "at least 1", str(value)))
    return HttpSource(door, max_pending)
