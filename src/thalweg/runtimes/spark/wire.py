"""What crosses an exchange: blocks, changes of state, and notes, each as one piece of bytes.

>>> block = Block.of(pa.record_batch({"n": [1, 2]}), Origin("numbers"), serial=5)
>>> payload, = pack_block(Address("count", 0, 3), block, in_order=True)
>>> kind_of(payload)
'block'
>>> address, again = unpack_block(payload)
>>> address.task, again.serials.tolist(), again.batch.to_pydict()
(3, [5, 6], {'n': [1, 2]})
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.blocks import Block, Origin, Rows
from thalweg.errors import StateError, ThalwegError, explain

#: No payload is larger, so that an exchange never needs memory for more than a few of them.
MAX_BYTES = 16 << 20

Kind = Literal["anchor", "block", "delta", "note", "shared"]
_KINDS: dict[int, Kind] = {
    ord("A"): "anchor",
    ord("B"): "block",
    ord("D"): "delta",
    ord("N"): "note",
    ord("S"): "shared",
}
_SERIAL, _LEVEL, _READERS = "__serial", "__path", "__readers"
# Arrow wants the bodies of its messages at multiples of 64 bytes.
_ALIGNED = 64


class Address(msgspec.Struct, frozen=True, array_like=True):
    """Which task of which component a block is for."""

    component: str
    #: Which of the component's inputs it comes in by.
    index: int
    task: int
    #: Stage in which it was sent.
    stage: int = 0


#: One bit per reader and row: who wants it.
Readers = npt.NDArray[np.uint8]
Destination = tuple[Address, Origin]


class _Head(msgspec.Struct, frozen=True, array_like=True):
    address: Address
    origin: Origin
    levels: int = 0
    #: Who else reads the block, where it is sent once for several.
    others: list[Destination] = []


_HEAD = msgspec.msgpack.Decoder(_Head)


def kind_of(payload: bytes | pa.Buffer) -> Kind:
    """Say what a payload is."""
    first = payload[0]
    if first not in _KINDS:
        raise StateError(explain("payload", expected="a block, a delta or a note", got=str(first)))
    return _KINDS[first]


# --- blocks ------------------------------------------------------------------------------------


def pack_block(address: Address, block: Block, in_order: bool) -> Iterator[bytes]:
    """Write a block as payloads of bounded size; in order, with serial numbers and paths."""
    size = block.batch.nbytes
    if size > MAX_BYTES and len(block) > 1:
        middle = len(block) // 2
        yield from pack_block(address, block.slice(0, middle), in_order)
        yield from pack_block(address, block.slice(middle, len(block)), in_order)
        return
    _check_size(address, block)
    batch, levels = _with_order(block) if in_order else (block.batch, 0)
    yield _frame("B", _Head(address, block.origin, levels), batch)


def _check_size(address: Address, block: Block) -> None:
    """Refuse a single tuple that is larger than a payload may be."""
    size = block.batch.nbytes
    if size > MAX_BYTES:
        subject = f"tuple from {block.origin.component!r} to {address.component!r}"
        hint = "send a reference to large values instead of the values"
        raise ThalwegError(explain(subject, "", f"at most {MAX_BYTES:,} bytes", f"{size:,}", hint))


def unpack_block(payload: bytes | pa.Buffer) -> tuple[Address, Block]:
    """Read a block; its columns stay where they are."""
    head, batch = _parts(payload)
    return head.address, _block(head, batch)


def _block(head: _Head, batch: pa.RecordBatch) -> Block:
    rows = batch.num_rows
    if _SERIAL not in batch.schema.names:
        return Block(batch, head.origin, np.broadcast_to(np.int64(0), (rows,)))
    serials = batch.column(_SERIAL).to_numpy()
    path = tuple(_level(batch.column(f"{_LEVEL}{i}")) for i in range(head.levels))
    plain = batch.select(batch.schema.names[: batch.num_columns - 1 - head.levels])
    return Block(plain, head.origin, serials, path=path)


def _with_order(block: Block) -> tuple[pa.RecordBatch, int]:
    names = [*block.batch.schema.names, _SERIAL]
    arrays = [*block.batch.columns, pa.array(block.serials)]
    for number, level in enumerate(block.path):
        names.append(f"{_LEVEL}{number}")
        # Most tuples are the only child of their parent: that costs nothing on the way.
        arrays.append(pa.array(level) if level.any() else pa.nulls(len(level)))
    return pa.RecordBatch.from_arrays(arrays, names=names), len(block.path)


def _level(column: pa.Array) -> Rows:
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.int64)
    return column.to_numpy()


def pack_shared(
    to: Sequence[Destination], block: Block, readers: Readers, in_order: bool
) -> Iterator[bytes]:
    """Write a block for several readers at one place, each row once."""
    if block.batch.nbytes > MAX_BYTES and len(block) > 1:
        middle = len(block) // 2
        for start, stop in ((0, middle), (middle, len(block))):
            yield from pack_shared(to, block.slice(start, stop), readers[start:stop], in_order)
        return
    _check_size(to[0][0], block)
    batch, levels = _with_order(block) if in_order else (block.batch, 0)
    (address, origin), *others = to
    head = _Head(address, origin, levels, others)
    yield _frame("S", head, batch.append_column(_READERS, pa.array(readers)))


def unpack_shared(payload: bytes | pa.Buffer) -> Iterator[tuple[Address, Block]]:
    """Read what each reader is sent of a shared block."""
    head, batch = _parts(payload)
    wanted = batch.column(_READERS).to_numpy()
    whole = _block(head, batch.select(batch.schema.names[:-1]))
    for bit, (address, origin) in enumerate([(head.address, head.origin), *head.others]):
        rows = np.flatnonzero(wanted & (1 << bit))
        part = whole if len(rows) == len(whole) else whole.take(rows)
        if len(part):
            yield address, replace(part, origin=origin, positions=None)


# --- changes of state --------------------------------------------------------------------------


def pack_delta(name: str, stage: int, changes: pa.RecordBatch) -> Iterator[bytes]:
    """Write what a stage changed in one state, for the same place in the next stage."""
    if changes.nbytes > MAX_BYTES and changes.num_rows > 1:
        middle = changes.num_rows // 2
        yield from pack_delta(name, stage, changes[:middle])
        yield from pack_delta(name, stage, changes[middle:])
        return
    yield _frame("D", _Head(Address(name, stage, 0), Origin(name)), changes)


def unpack_delta(payload: bytes | pa.Buffer) -> tuple[str, int, pa.RecordBatch]:
    """Read the name of a state, the stage that changed it, and its changes."""
    head, batch = _parts(payload)
    return head.address.component, head.address.index, batch


# --- notes -------------------------------------------------------------------------------------


def pack_note(note: msgspec.Struct) -> bytes:
    """Write what a task has to say to the driver."""
    return b"N" + msgspec.msgpack.encode(note)


def unpack_note(payload: bytes | pa.Buffer, type_: Any) -> Any:
    """Read a note."""
    return msgspec.msgpack.decode(memoryview(payload)[1:], type=type_)


# --- frames ------------------------------------------------------------------------------------


def _frame(kind: str, head: _Head, batch: pa.RecordBatch) -> bytes:
    encoded = msgspec.msgpack.encode(head)
    sink = pa.BufferOutputStream()
    sink.write(kind.encode() + len(encoded).to_bytes(4, "little") + encoded)
    sink.write(b"\0" * (-(5 + len(encoded)) % _ALIGNED))
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _parts(payload: bytes | pa.Buffer) -> tuple[_Head, pa.RecordBatch]:
    buffer = pa.py_buffer(payload) if isinstance(payload, bytes) else payload
    length = int.from_bytes(memoryview(buffer)[1:5], "little")
    head = _HEAD.decode(memoryview(buffer)[5 : 5 + length])
    start = 5 + length + -(5 + length) % _ALIGNED
    return head, pa.ipc.open_stream(buffer.slice(start)).read_next_batch()
