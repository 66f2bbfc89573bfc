"""Blocks: Arrow record batches with their origin and serial numbers, the unit that moves.

>>> block = Block.of(pa.record_batch({"n": [10, 11, 12]}), Origin("numbers"), serial=5)
>>> even, odd = block.split(np.array([0, 1, 0]), 2)
>>> even.batch.column("n").to_pylist(), even.serials.tolist()
([10, 12], [5, 7])
>>> merge([even, odd]).batch.column("n").to_pylist()
[10, 11, 12]
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.errors import SchemaError, StateError, explain
from thalweg.foreign import listed

Rows = npt.NDArray[np.int64]
DEFAULT_STREAM = "default"


class Origin(msgspec.Struct, frozen=True):
    """Which component, stream and task a block comes from."""

    component: str
    stream: str = DEFAULT_STREAM
    task: int = 0


@dataclass(frozen=True, eq=False)
class Block:
    """A record batch on its way between components.

    Tuples that stem from the same source tuple share its serial number; rows are in the order
    of a serial execution, so serials never decrease within a block.
    """

    batch: pa.RecordBatch
    origin: Origin
    #: Serial number of the source tuple that each row stems from.
    serials: Rows
    #: Row numbers in the block this one was split from; None when it was not split.
    positions: Rows | None = None
    #: Per row the source tuples to acknowledge (see thalweg.acking); None when nobody asked.
    roots: Sequence[tuple[int, ...]] | None = None
    #: Per row the receiving task that the sender chose (direct streams).
    targets: Rows | None = None
    #: Columns as the Python values that Arrow would give back, where they are known already.
    lists: dict[str, list[Any]] = field(default_factory=dict)
    #: Order among the tuples of one source tuple, level by level, where tuples leave their block:
    #: the branch and the place among its siblings at each component that they came through.
    path: tuple[Rows, ...] = ()

    @classmethod
    def of(cls, batch: pa.RecordBatch, origin: Origin, serial: int = 0) -> Block:
        """Make a block whose rows are numbered from ``serial`` on."""
        return cls(batch, origin, np.arange(serial, serial + batch.num_rows, dtype=np.int64))

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def values(self, name: str) -> list[Any]:
        """Give a column as Python values, converted at most once per block; not to be changed."""
        known = self.lists.get(name)
        if known is None:
            known = self.lists[name] = listed(self.batch.column(name), name)
        return known

    def take(self, rows: Rows) -> Block:
        """Keep these rows and remember where they stood."""
        roots = None if self.roots is None else [self.roots[row] for row in rows]
        targets = None if self.targets is None else self.targets[rows]
        batch = self.batch.take(pa.array(rows))
        path = tuple(level[rows] for level in self.path)
        return Block(batch, self.origin, self.serials[rows], rows, roots, targets, path=path)

    def slice(self, start: int, stop: int) -> Block:
        """Keep the rows from ``start`` up to ``stop``, without copying."""
        if start == 0 and stop >= len(self):
            return self if self.positions is None else self._without_positions()
        roots = None if self.roots is None else self.roots[start:stop]
        return Block(
            self.batch.slice(start, stop - start),
            self.origin,
            self.serials[start:stop],
            np.arange(start, min(stop, len(self)), dtype=np.int64),
            roots,
            None if self.targets is None else self.targets[start:stop],
            path=tuple(level[start:stop] for level in self.path),
        )

    def within(self, part: Block) -> Block:
        """Say where the rows stood in the block that ``part``, which they were split from, is of.

        >>> block = Block.of(pa.record_batch({"x": [1, 2, 3, 4]}), Origin("a"))
        >>> part = block.slice(2, 4)
        >>> part.slice(1, 2).within(part).positions
        array([3])
        """
        if part.positions is None:
            return self
        positions = part.positions if self.positions is None else part.positions[self.positions]
        return replace(self, positions=positions)

    def _without_positions(self) -> Block:
        """Forget where the rows stood; dataclasses.replace takes several times as long."""
        made = (self.batch, self.origin, self.serials, None, self.roots, self.targets)
        return Block(*made, self.lists, self.path)

    def split(self, targets: npt.NDArray[np.integer], parts: int) -> list[Block]:
        """Give row i to part ``targets[i]``; every row goes to exactly one part."""
        if len(targets) != len(self):
            text = explain(
                "split of a block", expected=f"{len(self)} targets", got=f"{len(targets)}"
            )
            raise ValueError(text)
        if parts == 1:
            return [self.slice(0, len(self))]
        if parts <= 1 << 16:  # NumPy sorts small numbers by radix, many times as fast
            targets = targets.astype(np.uint16)
        order = np.argsort(targets, kind="stable")
        bounds = np.searchsorted(targets[order], np.arange(parts + 1))
        return [self.take(order[bounds[i] : bounds[i + 1]]) for i in range(parts)]


def merge(blocks: Sequence[Block]) -> Block:
    """Put the parts of one block together again, each row where it stood before the split."""
    if len(blocks) == 1:
        stood = blocks[0].positions
        if stood is None or stood.strides == (0,) or not (stood[1:] < stood[:-1]).any():
            return blocks[0].slice(0, len(blocks[0]))
    positions = np.concatenate([positions_of(block) for block in blocks])
    order = np.argsort(positions, kind="stable")
    return replace(concatenate(blocks).take(order), positions=None)


def same(number: Rows, rows: int) -> Rows:
    """Give an array of one number again and again, which takes no room; broadcast_to is slower.

    >>> same(np.array([7]), 3).tolist()
    [7, 7, 7]
    """
    return np.ndarray((rows,), np.int64, number, 0, (0,))


def positions_of(block: Block) -> Rows:
    """Give the row numbers of a part in the block it was split from."""
    return np.arange(len(block), dtype=np.int64) if block.positions is None else block.positions


def concatenate(blocks: Sequence[Block]) -> Block:
    """Put blocks with one schema behind each other; the first one's origin stands for all."""
    batch = pa.concat_batches(_alike([block.batch for block in blocks]))
    serials = np.concatenate([block.serials for block in blocks])
    roots = None
    if any(block.roots is not None for block in blocks):
        roots = [root for block in blocks for root in (block.roots or [()] * len(block))]
    targets = None
    if blocks[0].targets is not None:
        targets = np.concatenate([block.targets for block in blocks if block.targets is not None])
    depth = max(len(block.path) for block in blocks)
    path = tuple(np.concatenate([level(b, number) for b in blocks]) for number in range(depth))
    return Block(batch, blocks[0].origin, serials, None, roots, targets, path=path)


def level(block: Block, number: int) -> Rows:
    """Give a level of a block's path; zeros where it is not as deep."""
    if number < len(block.path):
        return block.path[number]
    return np.broadcast_to(np.int64(0), (len(block),))


def _alike(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Give columns of nothing but nulls, whose type was not known yet, the type of the others."""
    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return batches
    schemas = [batch.schema for batch in batches]
    try:
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        return [batch.cast(schema) for batch in batches]
    except pa.ArrowException as error:
        hint = "declare the types of this stream's fields"
        raise SchemaError(
            explain("blocks of one stream", "", "one schema", str(error), hint)
        ) from error


# --- Arrow IPC ---------------------------------------------------------------------------------

_SERIALS = "__serial"
_ORIGIN = b"thalweg.origin"
_UNREADABLE = (
    pa.ArrowException,
    OSError,  # Arrow's word for bytes that end too early
    KeyError,
    TypeError,
    StopIteration,
    msgspec.MsgspecError,
)


def to_ipc(block: Block) -> bytes:
    """Write a block, with origin and serial numbers, as one Arrow IPC stream."""
    arrays = [*block.batch.columns, pa.array(block.serials)]
    names = [*block.batch.schema.names, _SERIALS]
    metadata = {_ORIGIN: msgspec.json.encode(block.origin)}
    batch = pa.RecordBatch.from_arrays(arrays, names=names).replace_schema_metadata(metadata)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def from_ipc(data: bytes) -> Block:
    """Read a block that :func:`to_ipc` wrote; refuses anything else with a clear error.

    >>> block = Block.of(pa.record_batch({"n": [1, 2]}), Origin("a", "s", 3), serial=9)
    >>> again = from_ipc(to_ipc(block))
    >>> again.origin.task, again.serials.tolist(), again.batch.equals(block.batch)
    (3, [9, 10], True)
    """
    try:
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        batch.validate(full=True)
        origin = msgspec.json.decode(batch.schema.metadata[_ORIGIN], type=Origin)
        serials = batch.column(_SERIALS).to_numpy()
        names = [name for name in batch.schema.names if name != _SERIALS]
    except _UNREADABLE as error:
        text = explain("block bytes", expected="an Arrow stream written by to_ipc", got=str(error))
        raise StateError(text) from error
    return Block(batch.select(names).replace_schema_metadata(None), origin, serials)
