"""Writes what happens in a run to a file, in a thread of its own.

The run never waits for the disk because of looks at its metrics: when too much waits to be written,
those are left out, and counted. Of what may come with every tuple the first ones are kept; where
the file is bounded, the first ones after each time that it was made smaller.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from thalweg.events import ChildSaid, Event, Progress, RecordRefused, RunFailed, TupleRefused
from thalweg.recording import files
from thalweg.recording.records import LOST, Record, record_of, topology_record
from thalweg.topology import Topology

#: Seconds between two looks at the metrics that are kept: the least, and the most.
CLOSEST, WIDEST = 0.1, 5.0
#: Events of which there may be one for each tuple.
_MANY = (TupleRefused, RecordRefused, ChildSaid)


@dataclass(frozen=True)
class RecorderSettings:
    """How a recording is made."""

    #: Records that may wait to be written.
    room: int = 2_000
    #: Refused tuples, refused records and words of children that are kept, of each kind; anew when
    #: a bounded file was made smaller.
    many: int = 10_000
    #: Seconds after which what waits is written at the latest.
    every: float = 0.5
    #: Seconds between two looks that are kept, in a long run.
    widest: float = WIDEST
    #: Bytes of the file, beyond which half of it goes; None where it may grow.
    most_bytes: int | None = None
    steady: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


@dataclass(frozen=True)
class _Waiting:
    n: int
    at: float
    wall: float
    event: Event


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
        self._heard: Counter[type[Event]] = Counter()
        self._thread = threading.Thread(target=self._write, name="thalweg-recording", daemon=True)
        #: Looks at metrics that were left out because too much waited to be written, and others of
        #: which there were too many.
        self.lost = self.more = 0
        #: Records that were written, and what ended the writing before the run ended.
        self.written = 0
        self.failure = ""

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

    def listen(self, event: Event) -> None:
        """Take in an event; any thread may call it."""
        with self._changed:
            at = self._use.steady() - self._began
            if self.failure or not self._wanted(event, at):
                return
            self._number += 1
            self._waiting.append(_Waiting(self._number, at, self._use.wall(), event))
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
        elif isinstance(event, _MANY):
            self._heard[type(event)] += 1
            if self._heard[type(event)] > self._use.many:
                self.more += 1
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
        records = [record_of(each.event, each.n, each.at, each.wall) for each in taken]
        if over and (self.lost or self.more):
            records.append(self._lost_record())
        if records:
            files.add(self._file, records)
            self.written += len(records)
            self._bound()
        return not over

    def _bound(self) -> None:
        """Keep the file as small as it should be; where little can go, not again at once."""
        if self._most_bytes is not None and files.size(self._file) > self._most_bytes:
            files.thin(self._file)
            with self._changed:  # there is room for others again
                self._heard.clear()
            least = self._use.most_bytes or 0
            self._most_bytes = max(least, files.size(self._file) * 5 // 4)

    def _lost_record(self) -> Record:
        at, wall = self._use.steady() - self._began, self._use.wall()
        head = {"n": self._number + 1, "at": at, "wall": wall, "kind": LOST}
        return head | {"progress": self.lost, "others": self.more}


def spacing(at: float) -> float:
    """Give the seconds between two looks that are kept: a hundredth of the run so far.

    >>> [spacing(at) for at in (0.0, 60.0, 3600.0)]
    [0.1, 0.6, 5.0]
    """
    return min(WIDEST, max(CLOSEST, at / 100))
