"""Writes what happens in a run to a file, in a thread of its own.

The run never waits for the disk because of looks at its metrics: when too much waits to be written,
those are left out, and counted. Of what may come with every tuple the first ones are kept, then a
few per second.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from thalweg.events import Event, Progress, RunFailed
from thalweg.recording import files
from thalweg.recording.floods import FIRST, Floods
from thalweg.recording.records import Record, lost_record, record_of, topology_record
from thalweg.topology import Topology

#: Seconds between two looks at the metrics that are kept: the least, and the most.
CLOSEST, WIDEST = 0.1, 5.0
#: Bytes of a file, if nothing else is asked for: some ten thousand looks.
MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class RecorderSettings:
    """How a recording is made."""

    #: Records that may wait to be written.
    room: int = 2_000
    #: Refused tuples, refused records and words of children that are kept of each component before
    #: it is only a few per second.
    many: int = FIRST
    #: Seconds after which what waits is written at the latest.
    every: float = 0.5
    #: Seconds between two looks that are kept, in a long run.
    widest: float = WIDEST
    #: Bytes of the file, beyond which half of what there is most goes; None where it may grow.
    most_bytes: int | None = MOST_BYTES
    steady: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


@dataclass(frozen=True)
class _Waiting:
    n: int
    at: float
    wall: float
    event: Event
    #: How many were left out before it.
    left_out: int


class Recorder:
    """A listener that keeps what it hears; to be entered before the run and left after it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        topology: Topology,
        runtime: str,
        policy: str = "",
        settings: RecorderSettings | None = None,
    ) -> None:
        self._use = settings or RecorderSettings()
        self._began = self._use.steady()
        self._file = files.create(Path(path))
        self._most_bytes = self._use.most_bytes
        self._first = topology_record(topology, runtime, policy, wall=self._use.wall())
        self._number = 1
        self._looked = float("-inf")
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._over = False
        self._floods = Floods(self._use.many)
        self._thread = threading.Thread(target=self._write, name="thalweg-recording", daemon=True)
        #: Looks at metrics that were left out because too much waited to be written.
        self.lost = 0
        #: Records that were written, and what ended the writing before the run ended.
        self.written = 0
        self.failure = ""
        #: Refusals and words of children that went when the file was made smaller, and what is in
        #: the file at the end.
        self._gone = self.kept = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: object, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.listen(RunFailed.of(error))
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join()

    @property
    def more(self) -> int:
        """How many others were left out, because there were too many."""
        return self._floods.left_out + self._gone

    def listen(self, event: Event) -> None:
        """Take in an event; any thread may call it."""
        with self._changed:
            at = self._use.steady() - self._began
            if self.failure or not self._wanted(event, at):
                return
            self._number += 1
            wall = self._use.wall()
            self._waiting.append(_Waiting(self._number, at, wall, event, self._floods.left_out))
            if len(self._waiting) >= self._use.room // 2:
                self._changed.notify_all()

    def _wanted(self, event: Event, at: float) -> bool:
        """Say whether to keep an event; waits for room for what must not be lost."""
        if isinstance(event, Progress):
            if at - self._looked < min(spacing(at), self._use.widest):
                return False
            self._looked = at
            if len(self._waiting) >= self._use.room:
                self.lost += 1
                return False
        elif not self._floods.keeps(event, at):
            return False
        while len(self._waiting) >= self._use.room and not self.failure and not self._over:
            self._changed.notify_all()
            self._changed.wait()
        return not self.failure

    # --- the thread that writes ----------------------------------------------------------------

    def _write(self) -> None:
        try:
            try:
                files.add(self._file, [self._first])
                self.written = 1
                while self._write_some():
                    pass
                self.kept = files.count(self._file)
            finally:
                files.finish(self._file)
        except Exception as error:  # a full disk, say: the run goes on
            with self._changed:
                self.failure = str(error) or type(error).__name__
                self._waiting.clear()
                self._changed.notify_all()

    def _write_some(self) -> bool:
        """Write what waits; False after the end."""
        with self._changed:
            if not self._over and len(self._waiting) < self._use.room // 2:
                self._changed.wait(self._use.every)
            taken, over = list(self._waiting), self._over
            self._waiting.clear()
            self._changed.notify_all()
        self._add([record_of(w.event, w.n, w.at, w.wall, w.left_out) for w in taken])
        if over and (self.lost or self.more):
            at, wall = self._use.steady() - self._began, self._use.wall()
            self._add([lost_record(self._number + 1, at, wall, self.lost, self.more)])
        return not over

    def _add(self, records: list[Record]) -> None:
        if records:
            files.add(self._file, records)
            self.written += len(records)
            self._bound()

    def _bound(self) -> None:
        """Keep the file as small as it should be; where little can go, not again at once."""
        if self._most_bytes is not None and files.size(self._file) > self._most_bytes:
            self._gone += files.thin(self._file)
            least = self._use.most_bytes or 0
            self._most_bytes = max(least, files.size(self._file) * 5 // 4)


def spacing(at: float) -> float:
    """Give the seconds between two looks that are kept: a hundredth of the run so far.

    >>> [spacing(at) for at in (0.0, 60.0, 3600.0)]
    [0.1, 0.6, 5.0]
    """
    return min(WIDEST, max(CLOSEST, at / 100))
