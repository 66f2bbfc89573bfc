"""Reads a recording: its records, how things were at a time, and what it comes to."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from thalweg.errors import UsageError, explain
from thalweg.recording import files
from thalweg.recording.records import LOST, TOPOLOGY, Record, plain, snapshot_of

_ROWS = "SELECT n, at, wall, kind, fields FROM records"
#: Kinds of records that have a snapshot of all metrics.
SNAPSHOTS = ("progress", "run_finished")
#: What to do about records that cannot be used.
_AGAIN = "it was changed since --record wrote it: take a copy from before, or record another run"


@dataclass(frozen=True)
class Summary:
    """What a recording comes to."""

    topology: str
    runtime: str
    #: Name of the scaling policy; empty where there was none.
    policy: str
    #: When it began, as Unix time, and how many seconds it took.
    began: float
    seconds: float
    #: How it ended: "ended", "stopped", "failed", or "open" where nobody has said so.
    end: str
    #: What it failed with.
    error: str
    #: Records by kind; looks at metrics that were left out, and others.
    kinds: Mapping[str, int]
    lost: int
    more: int
    #: The last look at all metrics, as in a record; None before the first.
    snapshot: Mapping[str, Any] | None

    @property
    def rate(self) -> float:
        """Tuples per second from all sources, over the run."""
        if self.snapshot is None or not self.snapshot["elapsed"]:
            return 0.0
        return self.snapshot["tuples_in"] / self.snapshot["elapsed"]


class Recording:
    """A file that was recorded, or is being recorded; any thread may read it."""

    def __init__(self, path: Path, file: sqlite3.Connection) -> None:
        self.path, self._file = path, file

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a recording; what is none, or of another version, is refused."""
        return cls(Path(path), files.open_to_read(Path(path)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: object, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def records(
        self, after: int = 0, kinds: Collection[str] = (), most: int = -1
    ) -> Iterator[Record]:
        """Give the records behind a number, in their order: all, or those of some kinds."""
        marks = ", ".join("?" * len(kinds))
        which = f"AND kind IN ({marks})" if kinds else ""
        query = f"{_ROWS} WHERE n > ? {which} ORDER BY n LIMIT ?"
        return self._read(query, (after, *kinds, most))

    def spread(self, kinds: Collection[str], most: int) -> Iterator[Record]:
        """Give about so many records of some kinds, evenly over time: all, or the last of each bit.

        The last of all is among them.
        """
        marks = ", ".join("?" * len(kinds))
        of = f"FROM records WHERE kind IN ({marks})"
        try:
            query = f"SELECT COUNT(*), MIN(at), MAX(at) {of}"
            count, first, last = self._file.execute(query, (*kinds,)).fetchone()
        except sqlite3.Error as error:
            raise self._refused(str(error)) from error
        if count <= most:
            yield from self.records(kinds=kinds)
            return
        seconds = (last - first) / max(1, most - 1) or 1.0
        bits = f"SELECT MAX(n) {of} GROUP BY CAST((at - ?) / ? AS INTEGER)"
        yield from self._read(f"{_ROWS} WHERE n IN ({bits}) ORDER BY n", (*kinds, first, seconds))

    def snapshots(self, most: int) -> Iterator[Record]:
        """Give about so many records with all metrics, over the whole run, in their order.

        One that lacks some is refused.
        """
        for record in self.spread(SNAPSHOTS, most):
            try:
                snapshot = plain(snapshot_of(record), longest=None)
            except UsageError as error:
                raise self._refused(str(error)) from error
            yield record | {"snapshot": snapshot}

    def at(self, time: float) -> Record | None:
        """Give the last record with all metrics that is not later than so many seconds."""
        query = f"{_ROWS} WHERE kind IN (?, ?) AND at <= ? ORDER BY at DESC, n DESC LIMIT 1"
        return next(self._read(query, (*SNAPSHOTS, time)), None)

    def topology(self) -> Record:
        """Give the first record, which describes the topology."""
        found = next(self.records(kinds=[TOPOLOGY], most=1), None)
        if found is None:
            subject = f"recording {str(self.path)!r}"
            raise UsageError(explain(subject, "", "a topology", "no record yet"))
        return found

    def summary(self) -> Summary:
        """Say what it comes to, so far."""
        first, last = self.topology(), self.at(float("inf"))
        failed = next(self.records(kinds=["run_failed"]), None)
        lost = next(self.records(kinds=[LOST]), {"progress": 0, "others": 0})
        counts = self._file.execute("SELECT kind, COUNT(*), MAX(at) FROM records GROUP BY kind")
        rows = counts.fetchall()
        return Summary(
            topology=first["name"],
            runtime=first["runtime"],
            policy=first["policy"],
            began=first["wall"],
            seconds=max(at for _, _, at in rows),
            end="failed" if failed else _end(last),
            error=failed["text"] if failed else "",
            kinds={kind: count for kind, count, _ in rows},
            lost=lost["progress"],
            more=lost["others"],
            snapshot=last["snapshot"] if last else None,
        )

    def _read(self, query: str, values: tuple[Any, ...]) -> Iterator[Record]:
        try:
            yield from files.read(self._file, query, values)
        except (sqlite3.Error, files.Damaged) as error:
            raise self._refused(str(error)) from error

    def _refused(self, got: str) -> UsageError:
        subject = f"recording {str(self.path)!r}"
        return UsageError(explain(subject, "", "whole records", got, _AGAIN))


def _end(last: Record | None) -> str:
    if last is None or last["kind"] != "run_finished":
        return "open"
    return "stopped" if last["stopped"] else "ended"
