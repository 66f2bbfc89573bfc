"""Files that appear and grow while they are read.

Lines are taken as they are completed. A file without lines to wait for (Parquet, or packed) is
taken when it has stayed the same from one look to the next. A file is known by its inode, which
stays with it when it is renamed, and which nobody else can have while the file is open.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence

import pyarrow as pa

from thalweg.clock import Clock
from thalweg.connectors.failures import BadFile
from thalweg.connectors.file_times import FileTimes
from thalweg.connectors.patterns import folder_of, matching
from thalweg.connectors.watched import Watched
from thalweg.errors import UsageError, explain

#: Files that a task keeps open; with more of them each is opened when it has grown.
MAX_OPEN = 100

Identity = tuple[int, int]


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
        #: Files with something to read.
        self._pending: deque[Identity] = deque()
        self._next_look = clock.now()
        #: Notes how far event time has come in files, where somebody wants to know.
        self.times: FileTimes | None = None
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
        identity = self._pending[0]
        file = self._files[identity]
        try:
            batch = file.read(limit)
            if self.times is not None:
                self.times.gave(identity, batch)
        except BadFile as error:
            error.path = file.path
            raise
        finally:
            if file.ended:
                self._pending.popleft()
                if self.times is not None:
                    self.times.ends(identity)
                if len(self._files) > MAX_OPEN:
                    file.close(keep=True)
        return batch

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
            if file.notice(path, status) and identity not in self._pending:
                self._line_up(identity)
        for identity in [known for known in self._files if known not in found]:
            file = self._files[identity]
            if identity in self._pending:
                continue
            if file.vanish():
                self._line_up(identity)
            else:
                file.close()
                del self._files[identity]
                if self.times is not None:
                    self.times.forget(identity)

    def _line_up(self, identity: Identity) -> None:
        """Let a file be read behind those that wait."""
        self._pending.append(identity)
        if self.times is not None:
            self.times.opens(identity, self._files[identity].path)

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
