"""Files that appear and grow while they are read.

Lines are taken as they are completed. A file without lines to wait for (Parquet, or packed) is
taken when it has stayed the same from one look to the next. A file is known by its inode, which
stays with it when it is renamed, and which nobody else can have while the file is open.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from thalweg.clock import Clock
from thalweg.connectors.failures import BadFile
from thalweg.connectors.patterns import folder_of, matching
from thalweg.connectors.readers import LineReader, Reader
from thalweg.errors import UsageError, explain

#: Files that a task keeps open; with more of them each is opened when it has grown.
MAX_OPEN = 100

Identity = tuple[int, int]


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


class Tail:
    """The files of a task that match some patterns, looked for at intervals."""

    #: It goes on until it is stopped.
    ended = False

    def __init__(
        self,
        patterns: Sequence[str],
        every: float,
        clock: Clock,
        watch: Callable[[str], Watched],
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self._patterns = patterns
        self._every = every
        self._clock = clock
        self._watch = watch
        self._task, self._degree = share
        self._files: dict[Identity, Watched] = {}
        self._pending: deque[Watched] = deque()
        self._next_look = clock.now()
        for pattern in patterns:
            if not os.path.isdir(folder_of(pattern)):
                folder = os.path.abspath(folder_of(pattern))
                text = explain(f"files {pattern!r}", expected="a folder to watch", got=folder)
                raise UsageError(text)

    def read(self, limit: int) -> pa.RecordBatch | None:
        """Give the next rows there are, file by file."""
        if self._clock.now() >= self._next_look:
            self._look()
        if not self._pending:
            return None
        file = self._pending[0]
        try:
            return file.read(limit)
        except BadFile as error:
            error.path = file.path
            raise
        finally:
            if file.ended:
                self._pending.popleft()
                if len(self._files) > MAX_OPEN:
                    file.close(keep=True)

    def wait(self) -> float:
        """Give the seconds until there may be more."""
        return 0.0 if self._pending else self._next_look - self._clock.now()

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()

    def _look(self) -> None:
        self._next_look = self._clock.now() + self._every
        found = self._found()
        for identity, (path, status) in found.items():
            if identity not in self._files:
                self._files[identity] = self._watch(path)
            file = self._files[identity]
            if file.notice(path, status) and file not in self._pending:
                self._pending.append(file)
        for identity in [known for known in self._files if known not in found]:
            file = self._files[identity]
            if file in self._pending:
                continue
            if file.vanish():
                self._pending.append(file)
            else:
                file.close()
                del self._files[identity]

    def _found(self) -> dict[Identity, tuple[str, os.stat_result]]:
        found: dict[Identity, tuple[str, os.stat_result]] = {}
        for path in matching(self._patterns):
            try:
                status = os.stat(path)
            except FileNotFoundError:  # since it was listed
                continue
            if status.st_ino % self._degree == self._task:
                found.setdefault((status.st_dev, status.st_ino), (path, status))
        return found
