"""The write-ahead log of what spouts sent: entries of segments, in durable storage.

An entry is one object. A micro-batch processes entries, and its commit says up to which number all
is done; after a crash those behind it are read again from the log. The newest entry says how far
each spout has come, so it is never deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from thalweg.errors import StateError, explain
from thalweg.runtimes.segment_format import (
    SEGMENT_BYTES,
    TARGETS,
    Entry,
    Piece,
    Segment,
    Storage,
    TornEntry,
    checksum,
    pack,
    read_block,
    read_segment,
    split,
    unpack,
)
from thalweg.topology import task_name

__all__ = [
    "FOLDER",
    "TARGETS",
    "Entry",
    "Piece",
    "Segment",
    "SegmentLog",
    "Storage",
    "TornEntry",
    "read_block",
    "read_segment",
    "task_name",
]

#: Folder of the entries of a location.
FOLDER = "entries"
_SUFFIX = ".arrow"


class SegmentLog:
    """Appends entries, finds them again after a crash, and deletes those nobody needs."""

    def __init__(self, location: Storage, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.location = location
        self._segment_bytes = segment_bytes
        #: The newest entry; None while there is none.
        self.last: Entry | None = None
        #: Name of the entry that ``after`` found cut off and left out, if any.
        self.torn: str | None = None
        self._oldest = 1

    def append(
        self,
        clock: float,
        pieces: Sequence[Piece],
        finished: Sequence[str],
        positions: Mapping[str, Any] = MappingProxyType({}),
        reached: Mapping[str, int] = MappingProxyType({}),
    ) -> Entry:
        """Write one entry; it is durable when this returns.

        ``finished`` names all tasks that have ended by now, also those of earlier entries;
        ``positions`` says where tasks are now, and ``reached`` how far event time has come at
        them, of those that know.
        """
        last = self.last
        totals = dict(last.totals) if last else {}
        serial, offset = last.next_serial if last else 0, 0
        segments, bodies = [], []
        limit = self._segment_bytes
        for part, data in (part for piece in pieces for part in split(piece, limit)):
            segment = _segment(part, data, serial, offset, totals)
            totals[task_name(part.component, part.task)] = segment.total + segment.rows
            serial, offset = serial + segment.rows, offset + segment.length
            segments.append(segment)
            bodies.append(data)
        number = last.number + 1 if last else 1
        at = {**(last.positions if last else {}), **positions}
        ended = tuple(finished)
        entry = Entry(number, clock, tuple(segments), ended, totals, serial, at, dict(reached))
        known, written = pack(entry, _name(number), bodies)
        self.location.write(known.name, written)
        self.last = known
        return known

    def after(self, number: int) -> list[Entry]:
        """Find the entries behind ``number``, the last one that is committed, and check them.

        An entry at the very end that was cut off while it was written is left out: nobody has
        seen it. Its name is in ``torn``.
        """
        found = self._numbers()
        self.torn = None
        if found and found[-1] > number and self._is_torn(found[-1]):
            self.torn = _name(found.pop())
        newest = found[-1] if found else 0
        missing = sorted(set(range(number + 1, newest)) - set(found))
        if newest < number or missing:
            raise _missing(missing[0] if missing else number)
        self._oldest = found[0] if found else 1
        self.last = self._read(newest) if newest else None
        return [self._read(each) for each in range(number + 1, newest + 1)]

    def read(self, entry: Entry, segment: Segment) -> pa.RecordBatch:
        """Read the rows of a segment; targets are in the column ``TARGETS``."""
        return read_segment(self.location, entry.name, segment)

    def forget(self, upto: int) -> None:
        """Delete the entries up to this number, but never the newest one."""
        newest = self.last.number if self.last else 0
        for number in range(self._oldest, min(upto + 1, newest)):
            self.location.delete(_name(number))
            self._oldest = number + 1

    def _numbers(self) -> list[int]:
        """List what is there; other files, such as those that are being written, do not count."""
        stems = (name.rpartition("/")[2] for name in self.location.names(FOLDER))
        numbers = (stem.removesuffix(_SUFFIX) for stem in stems if stem.endswith(_SUFFIX))
        return sorted(int(number) for number in numbers if number.isdecimal())

    def _is_torn(self, number: int) -> bool:
        try:
            self._read(number)
        except TornEntry:
            return True
        return False

    def _read(self, number: int) -> Entry:
        return unpack(_name(number), self.location.read(_name(number)))


def _segment(
    piece: Piece, data: bytes, serial: int, offset: int, totals: dict[str, int]
) -> Segment:
    return Segment(
        component=piece.component,
        stream=piece.stream,
        task=piece.task,
        rows=piece.batch.num_rows,
        serial=serial,
        offset=offset,
        length=len(data),
        checksum=checksum(data),
        tracked=piece.tracked,
        total=totals.get(task_name(piece.component, piece.task), 0),
    )


def _name(number: int) -> str:
    return f"{FOLDER}/{number:012}{_SUFFIX}"


def _missing(number: int) -> StateError:
    return StateError(
        explain(
            f"log of the spouts, entry {_name(number)!r}",
            expected="to be there",
            got="nothing",
            hint="the folder and the commits belong together; restore both, or begin anew",
        )
    )
