"""The child's side of Storm's protocol: messages from standard input, and to standard output."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from thalweg.errors import ThalwegError
from thalweg.multilang.wire import make_wire

_PIECE = 1 << 16


class StormWentAwayError(ThalwegError):
    """Whoever runs the component has closed its input, or does not read its output any more."""


class Pipes:
    """Reads and writes messages; several threads may send."""

    def __init__(self, input_stream: Any, output_stream: Any, serializer: str) -> None:
        self._wire = make_wire(serializer)
        self.input_stream = input_stream
        self.output_stream = output_stream
        self._in = getattr(input_stream, "buffer", input_stream)
        self._out = getattr(output_stream, "buffer", output_stream)
        self._waiting: deque[Any] = deque()
        self._lock = threading.RLock()

    def read_message(self) -> Any:
        """Wait for the next message."""
        while not self._waiting:
            data = self._in.read1(_PIECE)
            if not data:
                raise StormWentAwayError
            self._waiting.extend(self._wire.feed(data))
        return self._waiting.popleft()

    def send_message(self, message: dict[str, Any]) -> None:
        """Send a message at once."""
        data = self._wire.encode(message)
        try:
            with self._lock:
                self._out.write(data)
                self._out.flush()
        except (OSError, ValueError) as error:
            raise StormWentAwayError from error
