"""What has arrived over HTTP and is on its way into the stream; shared by two threads.

The server puts requests in and is told when all their rows have entered; the source takes rows out.

>>> inbox = Inbox(max_pending=2)
>>> inbox.put(pa.record_batch({"n": [1, 2]}), print)
True
>>> inbox.put(pa.record_batch({"n": [3]}), print)
False
>>> [batch.to_pydict() for batch in inbox.take(10)]
[{'n': [1, 2]}]
>>> inbox.taken_in()
True
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

#: Called with whether the rows of a request have entered, or never will in this run.
Told = Callable[[bool], None]


@dataclass
class _Request:
    rows: pa.RecordBatch
    told: Told


class Inbox:
    """Requests whose rows wait, and those whose rows were given and have not entered yet."""

    def __init__(self, max_pending: int) -> None:
        self._most = max_pending
        self._lock = threading.Lock()
        self._waiting: deque[_Request] = deque()
        self._given: list[_Request] = []
        #: Rows that wait, and rows that were given.
        self.rows = self._given_rows = 0
        self.closed = False

    def put(self, rows: pa.RecordBatch, told: Told) -> bool:
        """Let rows wait; False when too many do. One request alone is never too much."""
        with self._lock:
            pending = self.rows + self._given_rows
            if self.closed or (pending and pending + rows.num_rows > self._most):
                return False
            self._waiting.append(_Request(rows, told))
            self.rows += rows.num_rows
            return True

    def take(self, limit: int) -> list[pa.RecordBatch]:
        """Give up to ``limit`` rows, of as many requests as have them."""
        taken: list[pa.RecordBatch] = []
        with self._lock:
            while self._waiting and limit > 0:
                request = self._waiting[0]
                taken.append(request.rows[:limit])
                request.rows = request.rows[limit:]
                limit -= taken[-1].num_rows
                if not request.rows.num_rows:
                    self._given.append(self._waiting.popleft())
            given = sum(batch.num_rows for batch in taken)
            self.rows -= given
            self._given_rows += given
        return taken

    def taken_in(self) -> None:
        """Hear that all rows that were given have entered."""
        with self._lock:
            given, self._given = self._given, []
            self._given_rows = 0
        for request in given:
            request.told(True)

    def close(self) -> None:
        """Take nothing any more; who still waits is told so."""
        with self._lock:
            self.closed = True
            left, self._waiting, self._given = [*self._given, *self._waiting], deque(), []
        for request in left:
            request.told(False)
