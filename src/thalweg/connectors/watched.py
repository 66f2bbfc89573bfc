"""A file that is looked at again and again: one that grows line by line, or one taken whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from thalweg.connectors.failures import BadFile
from thalweg.connectors.readers import LineReader, Reader


class Watched(Protocol):
    """A file that is looked at again and again."""

    path: str

    def notice(self, path: str, status: os.stat_result) -> bool:
        """Look at it: True when there is something to read."""

    def vanish(self) -> bool:
        """Hear that no name leads to it any more: True when there is something left to read."""

    def read(self, limit: int) -> pa.RecordBatch | None:
        """Give up to ``limit`` rows."""

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to read now."""

    def close(self, keep: bool = False) -> None:
        """Close it; with ``keep`` so that it can be read on."""


class GrowingFile:
    """A file of lines."""

    def __init__(self, path: str, make_reader: Callable[[str], LineReader]) -> None:
        self.path = path
        self._make_reader = make_reader
        self._reader = make_reader(path)
        self._seen = (-1, -1)
        self._failed = False
        self._leaving = False

    def notice(self, path: str, status: os.stat_result) -> bool:
        """Look whether it has grown, or begins anew."""
        seen = status.st_size, status.st_mtime_ns
        other = not self._reader.is_open and path != self.path and seen != self._seen
        self.path = self._reader.path = path
        if other or status.st_size < self._reader.offset:
            self._reader.close()
            self._reader = self._make_reader(path)
            self._failed = False
        self._seen = seen
        if self._failed or status.st_size <= self._reader.offset:
            return False
        self._reader.resume()
        return True

    def vanish(self) -> bool:
        """Read what came since the last look; when nothing did, also a last line without end."""
        if self._failed or not self._reader.is_open or self._leaving:
            return False
        self._leaving = self._reader.size() <= self._reader.offset
        self._reader.resume(growing=not self._leaving)
        return True

    def read(self, limit: int) -> pa.RecordBatch | None:
        """Give up to ``limit`` rows of complete lines."""
        try:
            return self._reader.read(limit)
        except BadFile:
            self._failed = True
            raise

    @property
    def ended(self) -> bool:
        """Whether there are no more complete lines now."""
        return self._failed or self._reader.ended

    def close(self, keep: bool = False) -> None:
        """Close it."""
        if keep:
            self._reader.suspend()
        else:
            self._reader.close()


class WholeFile:
    """A file that is read when it does not change any more, and again when it is replaced."""

    def __init__(self, path: str, make_reader: Callable[[str], Reader]) -> None:
        self.path = path
        self._make_reader = make_reader
        self._reader: Reader | None = None
        self._seen: tuple[int, int] | None = None
        self._taken: tuple[int, int] | None = None

    def notice(self, path: str, status: os.stat_result) -> bool:
        """Look whether it has settled."""
        self.path = path
        seen = status.st_size, status.st_mtime_ns
        settled, self._seen = seen == self._seen, seen
        if self._reader is not None or not settled or seen == self._taken:
            return False
        self._taken = seen
        return True

    def vanish(self) -> bool:
        """Forget it."""
        return False

    def read(self, limit: int) -> pa.RecordBatch | None:
        """Give up to ``limit`` rows."""
        if self._reader is None:
            self._reader = self._make_reader(self.path)
        try:
            batch = self._reader.read(limit)
        except BadFile:
            self.close()
            raise
        if self._reader.ended:
            self.close()
        return batch

    @property
    def ended(self) -> bool:
        """Whether it has been read."""
        return self._reader is None

    def close(self, keep: bool = False) -> None:
        """Close it."""
        if self._reader is not None and not keep:
            self._reader.close()
            self._reader = None
