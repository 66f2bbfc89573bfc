"""What a server runs, for pages: all topologies at a glance, and the records of each."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from starlette.types import ASGIApp

from thalweg.cli.topologies import phase_text
from thalweg.dashboard.hub import Hub, Limits
from thalweg.errors import ThalwegError
from thalweg.recording.reading import Recording
from thalweg.server.access import check_name
from thalweg.server.client import Client
from thalweg.server.folders import Root, Status, View

#: Seconds between two looks at the server.
_EVERY = 0.5
#: Looks at all topologies that are kept.
_LOOKS = Limits(looks=600, bytes=4 << 20)
#: Topologies whose records are kept: those looked at last, and all that a page is open of.
_MOST = 32

#: What can be wrong with the files of a topology, which may go while they are read.
_WRONG = (ThalwegError, OSError, sqlite3.Error)


class Shown:
    """The records of one process of a topology, for those who look."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.hub = path, Hub()
        #: Answers those who look, once somebody has; it goes with what it shows.
        self.app: ASGIApp | None = None
        self._recording: Recording | None = None
        self._read = 0

    def look(self) -> None:
        """Read what has been written since the last time."""
        if self._recording is None and self.path is not None:
            with suppress(ThalwegError):  # it has just begun
                self._recording = Recording.open(self.path)
        if self._recording is not None:
            for record in self._recording.records(self._read):
                self.hub.add(record)
                self._read = record["n"]

    def close(self) -> None:
        """Let the file go, and those who wait."""
        self.hub.close()
        if self._recording is not None:
            self._recording.close()


class Topologies:
    """The topologies of a server; records are kept of those that somebody looks at.

    Beyond ``most`` of them the one looked at least recently is let go of, unless a page of it is
    open; it is read again when somebody looks again.
    """

    def __init__(
        self, root: Path, wall: Callable[[], float] = time.time, most: int = _MOST
    ) -> None:
        self.client, self._root, self._wall = Client(root), Root(root), wall
        #: Looks at all topologies.
        self.hub = Hub(_LOOKS)
        self._most = most
        #: By name, the one that was looked at last at the end.
        self._shown: dict[str, Shown] = {}
        self._lock = threading.Lock()
        self._looks, self._next, self._began = 0, 0.0, wall()

    def look(self) -> None:
        """Look at the server, if it is time, and at the records that are shown."""
        if self._wall() >= self._next:
            self._next = self._wall() + _EVERY
            self._glance()
        with self._lock:
            for name, shown in list(self._shown.items()):
                if shown.hub.followed:
                    self._looked_at(name)
                self._follow(name)

    def open(self, name: str) -> Shown | None:
        """Show a topology; None where there is none of that name."""
        with suppress(*_WRONG):
            home = self._root.home(check_name(name))
            with self._lock:
                if name not in self._shown and home.path.is_dir():
                    self._make_room()
                    self._shown[name] = Shown(None)
                    self._follow(name)
                return self._looked_at(name)
        return None

    def named(self, name: str) -> dict[str, Any]:
        """Say of a topology that is shown what the server calls it, and when it began."""
        with suppress(*_WRONG):
            return named(name, self._root.home(name).status())
        return named(name, None)

    def close(self) -> None:
        """Let nobody wait any longer."""
        with self._lock:
            for shown in self._shown.values():
                shown.close()

    def _looked_at(self, name: str) -> Shown | None:
        shown = self._shown.pop(name, None)
        if shown is not None:
            self._shown[name] = shown
        return shown

    def _make_room(self) -> None:
        """Let go of what is kept beyond the bound; pages that are open are few, and go on."""
        idle = [name for name, shown in self._shown.items() if not shown.hub.followed]
        for name in idle[: max(0, len(self._shown) + 1 - self._most)]:
            self._shown.pop(name).close()

    def _follow(self, name: str) -> None:
        """Read on as far as it goes; what is wrong with one topology, the others do not feel."""
        with suppress(*_WRONG):
            self._read_on(name)

    def _read_on(self, name: str) -> None:
        """Read on; a process that was started again has begun a recording of its own."""
        home, shown = self._root.home(name), self._shown[name]
        newest = next(reversed(home.recordings()), None)
        if newest is None and not home.path.is_dir():  # it was forgotten
            self._shown.pop(name).close()
            return
        if newest != shown.path:
            fresh = self._shown[name] = Shown(newest)
            shown.close()
            shown = fresh
        shown.look()

    def _glance(self) -> None:
        self._looks += 1
        now = self._wall()
        told: dict[str, Any] = {"n": self._looks, "at": now - self._began, "wall": now}
        told |= {"kind": "progress", "topologies": [], "error": ""}
        try:
            told["topologies"] = [_summary(view) for view in self.client.views(everything=False)]
        except (ThalwegError, msgspec.ValidationError) as error:  # it may come again
            told["error"] = str(error)
        self.hub.add(told)


def named(name: str, status: Status | None) -> dict[str, Any]:
    """Say how figures of a topology are named: everywhere the same."""
    return {"name": name, "wall": (status.since if status else None) or 0.0}


def _summary(view: View) -> dict[str, Any]:
    """Say what there is to know of a topology in one line."""
    record, status = view.record, view.status
    found: dict[str, Any] = {
        "name": record.name,
        "state": phase_text(view),
        "since": status.since if status and view.alive else None,
        "policy": status.policy if status else "",
        "deaths": record.failures,
        "error": view.last_error[:2000],
    }
    snapshot = status.snapshot if status else None
    if snapshot is None:
        return found
    return found | {
        "elapsed": snapshot.elapsed,
        "tuples_in": snapshot.tuples_in,
        "tuples_out": snapshot.tuples_out,
        "pending": snapshot.pending,
        "errors": snapshot.errors,
        "latency": snapshot.latency,
        "recent": snapshot.recent,
    }
