"""How blocks cross to worker processes and back: messages through a pipe, bytes in shared memory.

A message is msgpack with its length in front. Bytes above a bound lie in an arena, a piece of
shared memory that belongs to one direction of one process: at most one message is under way, and
the reader copies what it keeps. Nothing that comes back is ever unpickled.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing.resource_tracker import unregister
from multiprocessing.shared_memory import SharedMemory
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.blocks import Origin, Rows
from thalweg.eventtime import ALWAYS, NEVER
from thalweg.runtimes.local.pruning import Columns
from thalweg.runtimes.outputs import Emission
from thalweg.topology import Component

#: Smaller messages go through the pipe, where they fit into its buffer.
_INLINE = 32 << 10
# Batches below this size are written once more than they have to be, which is quicker than
# asking first how long they will be.
_SMALL = 16 << 10
_LENGTH = struct.Struct("<Q")
M = TypeVar("M", bound=msgspec.Struct)
#: Bytes of a message: themselves, or the name of an arena and how many are in it.
Placed = tuple[bytes | None, str, int]


@dataclass(frozen=True)
class Parcel:
    """What a worker process needs to begin."""

    topology: str
    component: Component
    task: int
    seed: int | str
    key_groups: int
    settings: dict[str, str]
    read: frozenset[str]
    #: Columns of each output stream that somebody looks at.
    columns: Columns
    #: Whether its state has to know what changed.
    tracked: bool = False
    #: Hooks of the run; those of the component come with it.
    hooks: tuple[Any, ...] = ()
    #: Cores that processes stay on, in turn.
    cores: tuple[int, ...] = ()
    #: How far event time had come.
    watermark: int = NEVER


class Told(msgspec.Struct, array_like=True):
    """What a worker process is asked to do: one of the calls of :class:`.child.Worker`."""

    call: str
    #: The time that the component sees.
    now: float = 0.0
    origin: Origin | None = None
    key: tuple[str, ...] = ()
    lineage: bool = False
    #: How far event time has come.
    time: int = 0
    #: Number of the first tuple, where they are acknowledged one by one; -1 where they are not.
    first: int = -1
    #: Numbers of tuples to forget.
    forgotten: list[int] = []
    #: Bytes of a record batch, or of packed entries.
    data: bytes | None = None
    #: The same in the arena: its name, and how many bytes.
    arena: str = ""
    size: int = 0
    #: Number of tasks of the component.
    degree: int = 0


class Sent(msgspec.Struct, array_like=True):
    """An emission; where its batch begins and ends within the bytes of the answer."""

    stream: str
    start: int
    stop: int
    parents: bytes | None = None
    whole: bool = False
    targets: bytes | None = None


class Refused(msgspec.Struct, array_like=True):
    """A tuple that a component's policy refused."""

    tuple_text: str
    reason: str


class Failed(msgspec.Struct, array_like=True):
    """An error of the component, or of ours."""

    text: str
    tuple_text: str | None = None
    component: bool = True


class Answer(msgspec.Struct, array_like=True):
    """What it did."""

    sent: list[Sent] = []
    failed_rows: list[int] = []
    #: Rows that the component keeps, and the numbers of earlier tuples that it is done with.
    kept_rows: list[int] = []
    settled: list[tuple[int, bool]] = []
    refused: list[Refused] = []
    letters: list[bytes] = []
    errors: int = 0
    failure: Failed | None = None
    data: bytes | None = None
    arena: str = ""
    size: int = 0
    #: Seconds until tuples were acknowledged that the component settles itself.
    seconds: float = 0.0
    #: What was noted in registered metrics, by name: kind, value, interval.
    noted: dict[str, tuple[str, Any, float | None]] = {}
    #: What people should know.
    notices: list[str] = []
    #: When timers of the component are due, in microseconds of the clock.
    alarm: int = ALWAYS
    #: Tuples that came too late.
    late: int = 0


class Arena:
    """Shared memory that one side writes and the other reads; it grows when it has to."""

    def __init__(self) -> None:
        self._memory: SharedMemory | None = None

    def put(self, piece: bytes) -> Placed:
        """Write bytes; gives them back where they are few, or else the arena's name and size."""
        if len(piece) <= _INLINE:
            return piece, "", 0
        memory = self._room(len(piece))
        _view(memory)[: len(piece)] = piece
        return None, memory.name, len(piece)

    def put_batches(self, batches: list[pa.RecordBatch]) -> tuple[Placed, list[int]]:
        """Write record batches, each as an Arrow stream; gives also where each of them ends."""
        if sum(batch.nbytes for batch in batches) < _SMALL:
            pieces = list(map(to_bytes, batches))
            return self.put(b"".join(map(memoryview, pieces))), list(accumulate(map(len, pieces)))
        ends = list(accumulate(map(_stream_size, batches)))
        memory = self._room(ends[-1])
        for batch, start, end in zip(batches, [0, *ends], ends, strict=False):
            _write(batch, pa.FixedSizeBufferWriter(pa.py_buffer(_view(memory)[start:end])))
        return (None, memory.name, ends[-1]), ends

    def _room(self, size: int) -> SharedMemory:
        if self._memory is None or self._memory.size < size:
            self.close()
            self._memory = SharedMemory(create=True, size=1 << (size - 1).bit_length())
        return self._memory

    def close(self) -> None:
        """Let go of it; it ends with its last reader."""
        if self._memory is not None:
            memory, self._memory = self._memory, None
            memory.unlink()  # first: whoever was interrupted while writing cannot close it
            memory.close()


class Window:
    """The reader's side of an arena."""

    def __init__(self) -> None:
        self._memory: SharedMemory | None = None

    def get(self, data: bytes | None, name: str, size: int) -> bytes:
        """Copy the bytes of a message."""
        if not name:
            return data or b""
        if self._memory is None or self._memory.name != name:
            self.close()
            self._memory = SharedMemory(name)
            unregister(self._memory._name, "shared_memory")  # type: ignore[attr-defined]  # the writer's
        return bytes(_view(self._memory)[:size])

    def close(self) -> None:
        """Let go of it."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None


def _view(memory: SharedMemory) -> memoryview:
    assert memory.buf is not None  # noqa: S101 (it is open)
    return memory.buf


def write(descriptor: int, message: msgspec.Struct) -> None:
    """Send a message."""
    data = msgspec.msgpack.encode(message)
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        left = left[os.write(descriptor, left) :]


def read(descriptor: int, kind: type[M]) -> M:
    """Wait for a message; EOFError when the other side has gone."""
    (size,) = _LENGTH.unpack(_exactly(descriptor, _LENGTH.size))
    return msgspec.msgpack.decode(_exactly(descriptor, size), type=kind)


def _exactly(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def to_bytes(batch: pa.RecordBatch) -> pa.Buffer:
    """Write a record batch as an Arrow stream."""
    sink = pa.BufferOutputStream()
    _write(batch, sink)
    return sink.getvalue()


def _write(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _stream_size(batch: pa.RecordBatch) -> int:
    sink = pa.MockOutputStream()
    _write(batch, sink)
    return sink.size()


def from_bytes(data: bytes | memoryview) -> pa.RecordBatch:
    """Read what :func:`to_bytes` wrote."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()


def pack(emissions: list[Emission], arena: Arena) -> Answer:
    """Write emissions into an answer."""
    (data, name, size), ends = arena.put_batches([emission.batch for emission in emissions])
    sent = []
    for emission, start, stop in zip(emissions, [0, *ends], ends, strict=False):
        parents = None if emission.parents is None else emission.parents.tobytes()
        targets = None if emission.targets is None else emission.targets.tobytes()
        sent.append(Sent(emission.stream, start, stop, parents, emission.whole, targets))
    return Answer(sent, data=data, arena=name, size=size)


def unpack(answer: Answer, data: bytes) -> list[Emission]:
    """Read the emissions of an answer."""
    view = memoryview(data)
    return [
        Emission(
            sent.stream,
            from_bytes(view[sent.start : sent.stop]),
            _rows(sent.parents),
            sent.whole,
            _rows(sent.targets),
        )
        for sent in answer.sent
    ]


def _rows(data: bytes | None) -> Rows | None:
    return None if data is None else np.frombuffer(data, dtype=np.int64)
