"""Samples and decisions in an SQLite file, so that they survive whoever decides.

Times have to be of a clock that goes on when a process ends (:class:`thalweg.clock.WallClock`).
Several runs can share a file: what is kept says of which topology and sample period it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from thalweg.control.scaling.values import Change, Decision, Sample
from thalweg.errors import StateError, explain

_Value = TypeVar("_Value")

_VERSION, _WITHOUT_WISHES, _WITHOUT_ORIGIN = 3, 2, 1
#: Seconds to wait for somebody else who writes; a stream cannot wait for long.
_WAIT = 1.0
_TABLES = (
    """CREATE TABLE IF NOT EXISTS samples (
    component TEXT NOT NULL, time REAL NOT NULL, sample TEXT NOT NULL,
    topology TEXT, period REAL, PRIMARY KEY (component, time)
) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS samples_by_time ON samples (time)",
    """CREATE TABLE IF NOT EXISTS decisions (
    time REAL NOT NULL, policy TEXT NOT NULL, decision TEXT NOT NULL,
    topology TEXT, period REAL, wish INTEGER NOT NULL DEFAULT 0
)""",
    "CREATE INDEX IF NOT EXISTS decisions_by_time ON decisions (time)",
    f"PRAGMA user_version = {_VERSION}",
)
#: What makes a file of a version one of the next.
_ADDED = {
    _WITHOUT_ORIGIN: tuple(
        f"ALTER TABLE {table} ADD COLUMN {column}"
        for table in ("samples", "decisions")
        for column in ("topology TEXT", "period REAL")
    ),
    _WITHOUT_WISHES: ("ALTER TABLE decisions ADD COLUMN wish INTEGER NOT NULL DEFAULT 0",),
}


class Origin(msgspec.Struct, frozen=True, order=True):
    """Of which topology something is, and its sample period; None where nobody has kept that."""

    topology: str | None = None
    period: float | None = None


_NOBODY_KNOWS = Origin()


class Recorded(msgspec.Struct, frozen=True):
    """A decision, when it was made, and by which policy."""

    time: float
    policy: str
    decision: Decision
    #: Whether the policy was only asked: nothing was done.
    wish: bool = False
    #: Of which topology it is, once it is read from a file; None where nobody has kept that.
    topology: str | None = None


class History:
    """An SQLite file of samples and decisions; what is older than ``keep`` seconds is forgotten."""

    def __init__(self, path: Path, keep: float = 7 * 86400.0, writes: bool = True) -> None:
        self._path, self._keep = path, keep
        self._db = self._opened(writes)

    def add(
        self,
        samples: Iterable[Sample],
        decided: Iterable[Recorded] = (),
        origin: Origin = _NOBODY_KNOWS,
    ) -> None:
        """Keep samples and what was decided or wished; a sample that is there stays as it is."""
        of = origin.topology, origin.period
        seen = [(s.component, s.time, _text(s), *of) for s in samples]
        made = [(r.time, r.policy, _text(r.decision), *of, r.wish) for r in decided]
        times = [row[1] for row in seen] + [row[0] for row in made]
        try:
            with self._db:
                self._db.executemany("INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?, ?)", seen)
                self._db.executemany("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?)", made)
                self._forget(max(times, default=0.0))
        except sqlite3.Error as error:
            expected = "a file that can be written"
            raise StateError(explain(self._name, "", expected, str(error))) from error

    def decided(self, time: float, policy: str, decisions: Iterable[Decision]) -> None:
        """Keep decisions as they were carried out, those for no change with their reasons too."""
        self.add((), [Recorded(time, policy, made) for made in decisions])

    def samples(self, since: float = 0.0, origin: Origin | None = None) -> list[Sample]:
        """Give samples in the order of time; all, or those of one origin."""
        query = "SELECT sample{of} FROM samples WHERE time >= ? ORDER BY time, component"
        return [self._read(text, Sample) for text, _ in self._rows(query, since, origin)]

    def decisions(self, since: float = 0.0, origin: Origin | None = None) -> list[Recorded]:
        """Give decisions that were carried out, in their order; all, or those of one origin."""
        return [made for made in self._recorded(since, origin) if not made.wish]

    def wishes(self, since: float = 0.0, origin: Origin | None = None) -> list[Recorded]:
        """Give in the same way what policies said that were only asked."""
        return [made for made in self._recorded(since, origin) if made.wish]

    def changes(self, since: float = 0.0, origin: Origin | None = None) -> list[Change]:
        """Give the degrees that were changed, in the order of time."""
        made = ((r.time, r.decision) for r in self.decisions(since, origin))
        return [Change(t, d.component, d.before, d.degree) for t, d in made if d.changes]

    def origins(self) -> list[Origin]:
        """Say of what there are samples, the oldest first."""
        query = "SELECT time{of} FROM samples WHERE time >= ? ORDER BY time"
        return list(dict.fromkeys(Origin(*of) for _, *of in self._selected(query, 0.0)))

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
            db = sqlite3.connect(self._path, timeout=_WAIT)
        except sqlite3.Error as error:
            raise self._error(str(error)) from error
        try:
            if writes:
                self._made_ready(db)
            self._known(db)
        except sqlite3.Error as error:
            db.close()
            raise self._error(str(error)) from error
        except StateError:
            db.close()
            raise
        return db

    def _known(self, db: sqlite3.Connection, *others: int) -> int:
        """Give the version, which has to be one that can be read."""
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version not in {_VERSION, *_ADDED, *others}:
            raise self._error(f"version {version}")  # noqa: EM102 (what was found)
        self._version = int(version)
        return self._version

    def _made_ready(self, db: sqlite3.Connection) -> None:
        """Make the tables; whoever reads does not stand in the way of whoever writes."""
        self._known(db, 0)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("BEGIN IMMEDIATE")
        old = self._known(db, 0) or _VERSION
        added = (each for version, each in _ADDED.items() if version >= old)
        for statement in (*chain.from_iterable(added), *_TABLES):
            db.execute(statement)
        db.commit()

    def _recorded(self, since: float, origin: Origin | None) -> list[Recorded]:
        query = (
            "SELECT time, policy, decision{wish}{of} FROM decisions "
            "WHERE time >= ? ORDER BY time, rowid"
        )
        return [
            Recorded(time, policy, self._read(text, Decision), bool(wish), of.topology)
            for time, policy, text, wish, of in self._rows(query, since, origin)
        ]

    def _rows(self, query: str, since: float, origin: Origin | None) -> list[tuple[Any, ...]]:
        """Give what was asked for, of an origin or of all; each row ends with its origin."""
        found = ((*row[:-2], Origin(*row[-2:])) for row in self._selected(query, since))
        return [row for row in found if origin in (None, row[-1])]

    def _selected(self, query: str, since: float) -> list[tuple[Any, ...]]:
        of = ", NULL, NULL" if self._version <= _WITHOUT_ORIGIN else ", topology, period"
        wish = ", 0" if self._version <= _WITHOUT_WISHES else ", wish"
        query = query.format(of=of, wish=wish)
        try:
            return self._db.execute(query, (since,)).fetchall()
        except sqlite3.Error as error:
            raise self._error(str(error)) from error

    def _read(self, text: str, kind: type[_Value]) -> _Value:
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.MsgspecError as error:
            raise self._error(str(error)) from error

    def _forget(self, now: float) -> None:
        for table in ("samples", "decisions"):
            self._db.execute(f"DELETE FROM {table} WHERE time < ?", (now - self._keep,))  # noqa: S608 (one of our own two names)

    @property
    def _name(self) -> str:
        return f"history {str(self._path)!r}"

    def _error(self, got: str) -> StateError:
        expected = f"a file of scaling decisions, version {_VERSION}"
        hint = "thalweg run FILE.py --scale POLICY --history NEW.db makes one"
        return StateError(explain(self._name, "", expected, got, hint))


def _text(value: Sample | Decision) -> str:
    return msgspec.json.encode(value).decode()
