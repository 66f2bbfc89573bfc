"""The bytes of a log entry: segments as Arrow IPC streams, and behind them what they are.

::

    segment | segment | ... | footer (JSON) | checksum of the footer | its length | mark

The footer holds the checksums of the segments, so that its own one covers everything. It stands at
the end: an entry that was cut off has none. Segments begin at multiples of 64 bytes, so that a
memory-mapped entry is used as it is, without copying.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM, Block, Origin, Rows
from thalweg.errors import StateError, explain

#: What one segment may take, since blocks of this size at most cross between processes.
SEGMENT_BYTES = 16 << 20
#: Column with the receiving task per row, on direct streams; no field has such a name.
TARGETS = "__target"

_FORMAT = 1
_MARK = b"thalweg\n"
_TAIL = 16 + 8 + len(_MARK)
_ALIGNED = 64


class Segment(msgspec.Struct, frozen=True):
    """Rows that one task of a spout sent on one stream."""

    component: str
    stream: str
    task: int
    rows: int
    #: Number of its first row among all rows of the log, in the order in which spouts were asked.
    serial: int
    #: Where its Arrow stream stands in the object of the entry, in bytes.
    offset: int
    length: int
    #: Hexadecimal blake2b-128 of these bytes.
    checksum: str
    #: Whether some rows have ids to be acknowledged.
    tracked: bool
    #: Rows that this task had sent before, on all streams.
    total: int


class Entry(msgspec.Struct, frozen=True):
    """What was asked of the spouts at one time: one durable object."""

    #: 1, 2, 3 ... without gaps.
    number: int
    #: The clock when it was read, in seconds.
    clock: float
    segments: tuple[Segment, ...]
    #: The tasks that have ended by now, as ``component/task``.
    finished: tuple[str, ...]
    #: Rows that each task has sent by now, on all streams.
    totals: dict[str, int]
    #: Serial number of the first row behind this entry.
    next_serial: int
    #: Where each task is that says so itself, behind its rows.
    positions: dict[str, Any] = {}
    #: How far event time has come at each task that says so itself, behind its rows.
    reached: dict[str, int] = {}
    format: int = _FORMAT
    #: Name, bytes and checksum of the object; known when it is written or read.
    name: str = ""
    size: int = 0
    checksum: str = ""

    @property
    def rows(self) -> int:
        """Rows of all segments."""
        return sum(segment.rows for segment in self.segments)


@dataclass(frozen=True)
class Piece:
    """Rows to be logged."""

    component: str
    task: int
    batch: pa.RecordBatch
    stream: str = DEFAULT_STREAM
    #: Receiving task per row, on direct streams.
    targets: Rows | None = None
    tracked: bool = False


class Storage(Protocol):
    """Where entries are kept: named objects, each written at once or not at all."""

    def write(self, name: str, data: bytes) -> None:
        """Write an object; one of that name is replaced."""

    def read(self, name: str) -> pa.Buffer:
        """Give the bytes of an object."""

    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is no error."""

    def names(self, folder: str) -> list[str]:
        """Name the objects of a folder."""


class TornEntry(StateError):
    """An entry whose bytes are not those that were written."""


# --- writing -----------------------------------------------------------------------------------


def split(piece: Piece, limit: int) -> list[tuple[Piece, bytes]]:
    """Write a piece as Arrow streams, in halves until none is longer than ``limit`` bytes."""
    if piece.batch.nbytes <= limit:
        data = _stream(piece)
        if len(data) <= limit:
            return [(piece, data)]
    rows = piece.batch.num_rows
    if rows <= 1:
        raise StateError(
            explain(
                f"a row of spout {piece.component!r}, stream {piece.stream!r}",
                expected=f"at most {limit} bytes",
                got=f"{piece.batch.nbytes} bytes",
                hint="send a reference to large values, or send them in parts",
            )
        )
    middle = rows // 2
    return [*split(_part(piece, 0, middle), limit), *split(_part(piece, middle, rows), limit)]


def _part(piece: Piece, start: int, stop: int) -> Piece:
    targets = None if piece.targets is None else piece.targets[start:stop]
    return replace(piece, batch=piece.batch[start:stop], targets=targets)


def _stream(piece: Piece) -> bytes:
    batch = piece.batch
    if piece.targets is not None:
        batch = batch.append_column(TARGETS, pa.array(piece.targets, pa.int64()))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    sink.write(b"\0" * (-sink.tell() % _ALIGNED))
    return sink.getvalue().to_pybytes()


def pack(entry: Entry, name: str, bodies: Sequence[bytes]) -> tuple[Entry, bytes]:
    """Write an entry with the bytes of its segments; give it with its name, size and checksum."""
    footer = msgspec.json.encode(entry)
    digest = _digest(footer)
    data = b"".join([*bodies, footer, digest, len(footer).to_bytes(8, "little"), _MARK])
    known = msgspec.structs.replace(entry, name=name, size=len(data), checksum=digest.hex())
    return known, data


def checksum(data: Any) -> str:
    """Give the checksum of the bytes of a segment."""
    return _digest(data).hex()


def _digest(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


# --- reading -----------------------------------------------------------------------------------


def unpack(name: str, data: pa.Buffer) -> Entry:
    """Read what an entry says about itself, and check all of its bytes."""
    footer, digest = _footer(name, data)
    try:
        entry = msgspec.json.decode(footer, type=Entry)
    except msgspec.MsgspecError as error:
        raise _other_format(name, str(error)) from error
    if entry.format > _FORMAT:
        raise _other_format(name, f"format {entry.format}")
    for segment in entry.segments:
        _bytes_of(name, data, segment)
    return msgspec.structs.replace(entry, name=name, size=data.size, checksum=digest.hex())


def _footer(name: str, data: pa.Buffer) -> tuple[pa.Buffer, bytes]:
    size = data.size
    if size < _TAIL or data[size - len(_MARK) :].to_pybytes() != _MARK:
        raise _torn(name, "a footer at its end", f"{size} bytes without one")
    tail = data[size - _TAIL :].to_pybytes()
    digest, length = tail[:16], int.from_bytes(tail[16:24], "little")
    if length > size - _TAIL:
        raise _torn(name, f"a footer of at most {size - _TAIL} bytes", f"{length}")
    footer = data.slice(size - _TAIL - length, length)
    if _digest(footer) != digest:
        raise _torn(name, f"a footer with checksum {digest.hex()}", _digest(footer).hex())
    return footer, digest


def read_segment(storage: Storage, entry_name: str, segment: Segment) -> pa.RecordBatch:
    """Read the rows of a segment, in any process; targets are in the column ``TARGETS``."""
    data = _bytes_of(entry_name, storage.read(entry_name), segment)
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


def read_block(storage: Storage, entry_name: str, segment: Segment) -> Block:
    """Read a segment as a block: with its origin, serial numbers and targets."""
    batch = read_segment(storage, entry_name, segment)
    origin = Origin(segment.component, segment.stream, segment.task)
    serials = np.arange(segment.serial, segment.serial + segment.rows, dtype=np.int64)
    if TARGETS not in batch.schema.names:
        return Block(batch, origin, serials)
    targets = batch.column(TARGETS).to_numpy()
    return Block(batch.drop_columns([TARGETS]), origin, serials, targets=targets)


def _bytes_of(name: str, data: pa.Buffer, segment: Segment) -> pa.Buffer:
    end = segment.offset + segment.length
    if end > data.size:
        raise _torn(name, f"at least {end} bytes", f"{data.size}")
    part = data.slice(segment.offset, segment.length)
    found = checksum(part)
    if found != segment.checksum:
        where = f"segment at byte {segment.offset} with checksum {segment.checksum}"
        raise _torn(name, where, found)
    return part


def _torn(name: str, expected: str, got: str) -> TornEntry:
    hint = "the object was changed or cut off; bring it back from a copy, or begin anew without it"
    return TornEntry(explain(f"log entry {name!r}", expected=expected, got=got, hint=hint))


def _other_format(name: str, got: str) -> StateError:
    hint = "read it with the version of thalweg that wrote it"
    return StateError(explain(f"log entry {name!r}", expected="format 1", got=got, hint=hint))
