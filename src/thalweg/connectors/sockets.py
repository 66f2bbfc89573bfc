"""Lines from a TCP server as a source."""

from __future__ import annotations

import socket
from typing import Literal

import pyarrow as pa

from thalweg.components import BlockSpout
from thalweg.connectors.lines import BLOCK_BYTES, MAX_RECORD, LineQueue
from thalweg.connectors.records import Decoder, JsonRecords, TextRecords
from thalweg.contexts import TaskContext
from thalweg.errors import RecordError, UsageError, explain

#: Seconds to wait for a server that does not answer; the run has not begun by then.
_CONNECT_TIMEOUT = 10.0
_CHUNK = 64 * 1024

LineFormat = Literal["text", "json", "jsonl"]


class SocketLines(BlockSpout):
    """Reads lines from one connection; of several tasks the first one reads."""

    slowable = False
    replays = False

    def __init__(self, host: str, port: int, format: LineFormat, max_record: int) -> None:  # noqa: A002 (as in files)
        self.host = host
        self.port = port
        self.format = format
        self.max_record = max_record
        if format == "text":
            self.outputs = {"line": str}

    def prepare(self, context: TaskContext) -> None:
        """Connect, and read without waiting from then on."""
        self._socket: socket.socket | None = None
        if context.task > 0:
            return
        (shape,) = context.shapes.values()
        self._queue = LineQueue(self._refuse, self.max_record)
        made = TextRecords if self.format == "text" else JsonRecords
        self._decoder: Decoder = made(shape, self._refuse)
        self._socket = self._connect()

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give the lines that have arrived."""
        ended = self._socket is None or self._receive(self._socket, limit)
        if self._socket is None or (ended and len(self._queue) <= limit):
            self.finish()
        if self._socket is None:
            return None
        return self._decoder.decode(self._queue.take(limit), limit, ended)

    def cleanup(self) -> None:
        """Disconnect."""
        connection: socket.socket | None = getattr(self, "_socket", None)
        if connection is not None:
            connection.close()

    def _connect(self) -> socket.socket:
        try:
            connection = socket.create_connection((self.host, self.port), _CONNECT_TIMEOUT)
        except OSError as error:
            raise self._error(error) from error
        connection.setblocking(False)
        return connection

    def _receive(self, connection: socket.socket, limit: int) -> bool:
        """Read until there are enough lines or no bytes; True at the end of the stream."""
        while len(self._queue) < limit and self._queue.ready_bytes < BLOCK_BYTES:
            try:
                data = connection.recv(_CHUNK)
            except BlockingIOError:
                return False
            except OSError as error:
                raise self._error(error) from error
            if not data:
                self._queue.end()
                return True
            self._queue.feed(data)
        return False

    def _refuse(self, where: str, raw: str, why: str) -> None:
        self.context.refuse_record(raw, f"{self.host}:{self.port}, {where}: {why}")

    def _error(self, error: OSError) -> RecordError:
        return RecordError(
            explain(
                f"socket {self.host}:{self.port}",
                expected="a server that sends lines and then closes the connection",
                got=error.strerror or str(error) or type(error).__name__,
                hint="is it running, and reachable from here?",
            )
        )


def socket_lines(
    host: str,
    port: int,
    *,
    format: LineFormat = "text",  # noqa: A002 (as in files)
    max_record: int = MAX_RECORD,
) -> SocketLines:
    """Make a source of the lines that a TCP server sends, until it closes the connection.

    A line is the field ``line``; with ``format="json"`` it is an object with the declared fields.

    >>> socket_lines("localhost", 9999).outputs
    {'line': <class 'str'>}
    """
    if format not in ("text", "json", "jsonl"):
        text = explain("format of a socket", expected="'text' or 'json'", got=repr(format))
        raise UsageError(text)
    return SocketLines(host, port, format, max_record)
