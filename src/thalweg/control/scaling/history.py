"""Samples and decisions in an SQLite file, so that they survive whoever decides.

Times have to be of a clock that goes on when a process ends (:class:`thalweg.clock.WallClock`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from thalweg.control.scaling.values import Change, Decision, Sample
from thalweg.errors import StateError, explain

_Value = TypeVar("_Value")

_VERSION = 1
_TABLES = f"""
CREATE TABLE IF NOT EXISTS samples (
    component TEXT NOT NULL, time REAL NOT NULL, sample TEXT NOT NULL,
    PRIMARY KEY (component, time)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS samples_by_time ON samples (time);
CREATE TABLE IF NOT EXISTS decisions (
    time REAL NOT NULL, policy TEXT NOT NULL, decision TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS decisions_by_time ON decisions (time);
PRAGMA user_version = {_VERSION};
"""


class Recorded(msgspec.Struct, frozen=True):
    """A decision, when it was made, and by which policy."""

    time: float
    policy: str
    decision: Decision


class History:
    """An SQLite file of samples and decisions; what is older than ``keep`` seconds is forgotten."""

    def __init__(self, path: Path, keep: float = 7 * 86400.0, writes: bool = True) -> None:
        self._path, self._keep = path, keep
        self._db = self._opened(writes)

    def add(self, samples: Iterable[Sample]) -> None:
        """Keep samples; one that is there already stays as it is."""
        rows = [(s.component, s.time, _text(s)) for s in samples]
        with self._db:
            self._db.executemany("INSERT OR IGNORE INTO samples VALUES (?, ?, ?)", rows)
            self._forget("samples", max((time for _, time, _ in rows), default=0.0))

    def decided(self, time: float, policy: str, decisions: Iterable[Decision]) -> None:
        """Keep decisions as they were carried out, those for no change with their reasons too."""
        rows = [(time, policy, _text(made)) for made in decisions]
        with self._db:
            self._db.executemany("INSERT INTO decisions VALUES (?, ?, ?)", rows)
            self._forget("decisions", time)

    def samples(self, since: float = 0.0) -> list[Sample]:
        """Give samples in the order of time."""
        query = "SELECT sample FROM samples WHERE time >= ? ORDER BY time, component"
        rows = self._rows(query, since)
        return [self._read(text, Sample) for (text,) in rows]

    def decisions(self, since: float = 0.0) -> list[Recorded]:
        """Give decisions in the order in which they were made."""
        query = "SELECT time, policy, decision FROM decisions WHERE time >= ? ORDER BY time, rowid"
        rows = self._rows(query, since)
        return [Recorded(time, policy, self._read(text, Decision)) for time, policy, text in rows]

    def changes(self, since: float = 0.0) -> list[Change]:
        """Give the degrees that were changed, in the order of time."""
        made = ((r.time, r.decision) for r in self.decisions(since))
        return [Change(t, d.component, d.before, d.degree) for t, d in made if d.changes]

    def close(self) -> None:
        """Let the file go."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _opened(self, writes: bool) -> sqlite3.Connection:
        if not writes and not self._path.is_file():
            raise self._error("no such file")  # noqa: EM101 (what was found)
        try:
            db = sqlite3.connect(self._path)
        except sqlite3.Error as error:
            raise self._error(str(error)) from error
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version not in ({0, _VERSION} if writes else {_VERSION}):
                raise self._error(f"version {version}")  # noqa: EM102 (what was found)
            if writes:
                db.executescript(_TABLES)
        except sqlite3.Error as error:
            db.close()
            raise self._error(str(error)) from error
        except StateError:
            db.close()
            raise
        return db

    def _rows(self, query: str, since: float) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, (since,)).fetchall()
        except sqlite3.Error as error:
            raise self._error(str(error)) from error

    def _read(self, text: str, kind: type[_Value]) -> _Value:
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.MsgspecError as error:
            raise self._error(str(error)) from error

    def _forget(self, table: str, now: float) -> None:
        self._db.execute(f"DELETE FROM {table} WHERE time < ?", (now - self._keep,))  # noqa: S608 (one of our own two names)

    def _error(self, got: str) -> StateError:
        expected = f"a file of scaling decisions, version {_VERSION}"
        return StateError(explain(f"history {str(self._path)!r}", "", expected, got))


def _text(value: Sample | Decision) -> str:
    return msgspec.json.encode(value).decode()
