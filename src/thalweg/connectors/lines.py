"""Bytes into numbered lines, whatever pieces they arrive in, within a bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

#: Longest record that a source takes, in bytes; whoever sends more does not send records.
MAX_RECORD = 16 * 1024 * 1024
#: Bytes of lines that a source keeps ready or puts into one block, the cap of a block anywhere.
BLOCK_BYTES = 16 * 1024 * 1024
#: As much of a line that is too long as a person needs to find it again.
_HEAD = 200

#: Called with where a record stands (``line 3``), the raw record, and why it cannot be read.
Refuse = Callable[[str, str, str], None]


class Lines(NamedTuple):
    """Lines without their newlines, and their numbers from 1 on."""

    numbers: Sequence[int]
    texts: list[bytes]


NO_LINES = Lines((), [])


class LineQueue:
    r"""Cuts bytes into lines; a line that is too long is refused and left out.

    >>> queue = LineQueue(print, longest=5)
    >>> queue.feed(b"to be\nor "); queue.feed(b"not to be\nor not\n")
    >>> queue.take(10)
    line 2 or not to be a record of 12 bytes where 5 are allowed
    line 3 or not a record of 6 bytes where 5 are allowed
    Lines(numbers=[1], texts=[b'to be'])
    """

    def __init__(self, refuse: Refuse, longest: int = MAX_RECORD) -> None:
        self._refuse = refuse
        self._longest = longest
        self._ready: list[bytes] = []
        self._first = 1
        #: Bytes of the lines that are ready.
        self.ready_bytes = 0
        self._parts: list[bytes] = []
        #: Bytes of the last line, which has no newline yet.
        self.partial_bytes = 0
        #: Sizes of the lines that are too long, by number; only their heads are kept.
        self._long: dict[int, int] = {}

    def __len__(self) -> int:
        """Count the complete lines."""
        return len(self._ready)

    def feed(self, data: bytes) -> None:
        """Add what has arrived."""
        first, *others = data.split(b"\n")
        self._grow(first)
        if others:
            self._end_line()
            if self._longest < len(data):
                for text in others[:-1]:
                    self._grow(text)
                    self._end_line()
            else:
                self._ready += others[:-1]
                self.ready_bytes += sum(map(len, others)) - len(others[-1])
            self._grow(others[-1])

    def end(self) -> None:
        """Take what follows the last newline for a line: nothing more will come."""
        if self.partial_bytes:
            self._end_line()

    def drop_partial(self) -> int:
        """Forget what follows the last newline; gives its size."""
        dropped = self.partial_bytes
        self._parts, self.partial_bytes = [], 0
        return dropped

    def take(self, limit: int) -> Lines:
        """Remove up to ``limit`` lines."""
        texts = self._ready[:limit]
        del self._ready[:limit]
        numbers = range(self._first, self._first + len(texts))
        self._first += len(texts)
        self.ready_bytes -= sum(map(len, texts))
        return self._without_long(numbers, texts) if self._long else Lines(numbers, texts)

    def _grow(self, piece: bytes) -> None:
        self.partial_bytes += len(piece)
        if self.partial_bytes <= self._longest:
            self._parts.append(piece)
        else:
            self._parts = [b"".join([*self._parts, piece[:_HEAD]])[:_HEAD]]

    def _end_line(self) -> None:
        text = b"".join(self._parts)
        if self.partial_bytes > self._longest:
            self._long[self._first + len(self._ready)] = self.partial_bytes
        self._ready.append(text)
        self.ready_bytes += len(text)
        self._parts, self.partial_bytes = [], 0

    def _without_long(self, numbers: Sequence[int], texts: list[bytes]) -> Lines:
        kept_numbers: list[int] = []
        kept: list[bytes] = []
        for number, text in zip(numbers, texts, strict=True):
            size = self._long.pop(number, None)
            if size is None:
                kept_numbers.append(number)
                kept.append(text)
            else:
                why = f"a record of {size} bytes where {self._longest} are allowed"
                self._refuse(f"line {number}", readable(text), why)
        return Lines(kept_numbers, kept)


def readable(raw: bytes) -> str:
    r"""Show bytes that may not be UTF-8.

    >>> readable(b"caf\xe9")
    'caf\\xe9'
    """
    return raw.decode("utf-8", "backslashreplace")
