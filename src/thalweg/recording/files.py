"""The file of a recording: SQLite, with one row per record."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from thalweg.errors import ThalwegError, UsageError, explain
from thalweg.recording.records import (
    DONE,
    FLOODING,
    LASTING,
    LEADING,
    LOOKED,
    LOOKS,
    Record,
    shelf,
)

#: Says that an SQLite file is a recording, and how it is laid out.
APPLICATION, VERSION = 0x7468_6C77, 1
#: Bytes of a record that are read; a small file may unpack to any size.
LARGEST = 64 << 20
_HEAD = ("n", "at", "wall", "kind")
_SCHEMA = """
CREATE TABLE records (
    n INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    wall REAL NOT NULL,
    kind TEXT NOT NULL,
    -- the other fields: JSON, deflated
    fields BLOB NOT NULL
);
CREATE INDEX by_kind ON records (kind, at);
"""

_MAKE = "thalweg run FILE.py --record NEW.sqlite makes one"
#: What to do about a recording of an older version, and of a newer one.
_OTHER = (
    "an older Thalweg made it, which can still show it",
    "a newer Thalweg made it: pip install --upgrade thalweg",
)
#: All records, with what has to be read to know their shelf.
_SHELVED = """
SELECT n, kind, LENGTH(fields), CASE kind WHEN 'decided' THEN fields END FROM records ORDER BY n
"""
_SPAN = "SELECT COUNT(*), MAX(at) - MIN(at) FROM records WHERE kind = ?"
#: Of all looks within so many seconds the newest stays.
_WIDER = """
DELETE FROM records WHERE kind = :kind AND n NOT IN (
    SELECT MAX(n) FROM records WHERE kind = :kind GROUP BY CAST(at / :seconds AS INTEGER)
)
"""
#: By shelf, how many records stay however small the file is made, the last ones.
_STAY = {LEADING: 10_000, DONE: 10_000, "reconfigured": 10_000, LOOKED: 100, "activated": 100}

Row = tuple[int, float, float, str, bytes]


def check_new(path: Path) -> None:
    """Refuse a file that is there already."""
    if os.path.lexists(path):
        hint = "delete it, or choose another name"
        raise UsageError(_about(path, "a new file", "one that exists", hint))


def create(path: Path) -> sqlite3.Connection:
    """Make a new file, which only its owner can read, and open it; any thread may use it."""
    check_new(path)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise UsageError(_about(path, "to be written", error.strerror or str(error))) from error
    made: sqlite3.Connection | None = None
    try:
        made = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        # Who reads does not wait for who writes; a power cut may take the last seconds.
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("PRAGMA synchronous = NORMAL")
        made.execute(f"PRAGMA application_id = {APPLICATION}")
        made.execute(f"PRAGMA user_version = {VERSION}")
        made.executescript(_SCHEMA)
    except sqlite3.Error as error:
        if made is not None:
            made.close()
        hint = "is there room on the disk (df -h), and may you write there?"
        raise UsageError(_about(path, "to be written", str(error), hint)) from error
    return made


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a file that was recorded, or is being recorded; any thread may use it."""
    if not path.is_file():
        got = "none" if not path.exists() else "something else"
        raise UsageError(_about(path, "a file", got, _MAKE))
    made: sqlite3.Connection | None = None
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        made = sqlite3.connect(address, uri=True, check_same_thread=False)
        application, version = (
            made.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
    except sqlite3.Error as error:
        if made is not None:
            made.close()
        raise UsageError(_about(path, "what --record wrote", str(error), _MAKE)) from error
    if (application, version) != (APPLICATION, VERSION):
        made.close()
        known = application == APPLICATION
        other = "another SQLite file" if path.stat().st_size else "an empty file"
        got = f"version {version}" if known else other
        hint = _OTHER[version > VERSION] if known else _MAKE
        raise UsageError(_about(path, f"a recording of version {VERSION}", got, hint))
    return made


def add(connection: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Write records, all of them or none."""
    connection.execute("BEGIN")
    try:
        rows = map(_row, records)
        connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def size(connection: sqlite3.Connection) -> int:
    """Give the bytes of a file."""
    pages, bytes_ = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    return int(pages * bytes_)


def count(connection: sqlite3.Connection) -> int:
    """Give the number of records."""
    return int(connection.execute("SELECT COUNT(*) FROM records").fetchone()[0])


def thin(connection: sqlite3.Connection) -> int:
    """Make a file smaller: looks become half as many, or the older half of another shelf goes.

    That of which there is most. Looks stay over the whole time, at wider intervals; so do the last
    reconfigurations, decisions and pauses. Gives how many refusals and words of children are gone.
    """
    gone = 0
    shelves: dict[str, list[tuple[int, int]]] = {}
    looks = 0
    for n, kind, bytes_, fields in connection.execute(_SHELVED):
        if kind in LOOKS:
            looks += bytes_
        elif kind not in LASTING:
            shelves.setdefault(_shelf(kind, fields), []).append((n, bytes_))
    mays = {name: kept[: max(0, len(kept) - _STAY.get(name, 0))] for name, kept in shelves.items()}
    largest = max(mays, key=lambda name: _bytes(mays[name]), default="")
    most = mays.get(largest, [])
    if looks >= _bytes(most):
        for kind in LOOKS:
            count, span = connection.execute(_SPAN, (kind,)).fetchone()
            if span:
                connection.execute(_WIDER, {"kind": kind, "seconds": 2 * span / count})
    else:
        older = [(n,) for n, _ in most[: (len(most) + 1) // 2]]
        connection.execute("BEGIN")
        connection.executemany("DELETE FROM records WHERE n = ?", older)
        connection.execute("COMMIT")
        gone = len(older) if largest in FLOODING else 0
    connection.execute("VACUUM")
    return gone


def _bytes(records: list[tuple[int, int]]) -> int:
    return sum(bytes_ for _, bytes_ in records)


def finish(connection: sqlite3.Connection) -> None:
    """Leave one file alone, without the log beside it unless somebody reads, and close it."""
    try:
        connection.execute("PRAGMA wal_checkpoint").fetchall()
        with suppress(sqlite3.OperationalError):  # somebody reads it; all is in the file already
            connection.execute("PRAGMA journal_mode = DELETE")
    finally:
        connection.close()


def read(connection: sqlite3.Connection, query: str, values: tuple[Any, ...]) -> Iterator[Record]:
    """Give the records that a query finds, which selects whole rows."""
    for row in connection.execute(query, values):
        yield _record(row)


def _row(record: Record) -> Row:
    fields = {name: value for name, value in record.items() if name not in _HEAD}
    # The fastest way to a fifth or less of the size.
    data = zlib.compress(msgspec.json.encode(fields), 1)
    return record["n"], record["at"], record["wall"], record["kind"], data


class Damaged(ThalwegError):
    """A record that cannot be read."""


def _record(row: Row) -> Record:
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(row[4], LARGEST)
        if unpacking.unconsumed_tail:
            text = f"record {row[0]} has more than {LARGEST:,} bytes"
            raise Damaged(text)
        fields = msgspec.json.decode(data, type=dict[str, Any])
    except (zlib.error, msgspec.MsgspecError) as error:
        text = f"record {row[0]} is damaged: {error}"
        raise Damaged(text) from error
    head = dict(zip(_HEAD, row[:4], strict=True))
    return {**head, **fields, **head}


def _shelf(kind: str, fields: bytes | None) -> str:
    # Only a decision has to be read to know what it says.
    record = {"kind": kind} if fields is None else _record((0, 0.0, 0.0, kind, fields))
    return shelf(record)


def _about(path: Path, expected: str, got: str, hint: str = "") -> str:
    return explain(f"recording {str(path)!r}", "", expected, got, hint)
