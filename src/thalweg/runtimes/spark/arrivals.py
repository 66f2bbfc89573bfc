"""What arrives at a place: kept in memory up to a bound, sorted where the order asks for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import IO, Self

import numpy as np
import pyarrow as pa

from thalweg.blocks import Block, Rows, concatenate, level
from thalweg.ordering import Arrival
from thalweg.runtimes.spark.wire import MAX_BYTES
from thalweg.weights import is_weighed

#: Rows that a task is given at once.
CHUNK_ROWS = 131_072


class Spool:
    """Keeps payloads: the first ones in memory, all beyond ``limit`` bytes in a temporary file.

    >>> with Spool(limit=4) as spool:
    ...     spool.add(b"abcd"); spool.add(b"efg")
    ...     [bytes(memoryview(payload)) for payload in spool.payloads()], spool.spilled
    ([b'abcd', b'efg'], 3)
    """

    def __init__(self, limit: int, folder: str | None = None) -> None:
        self._limit = limit
        self._folder = folder
        self._kept: list[pa.Buffer] = []
        self._held = 0
        self._file: IO[bytes] | None = None
        self._spans: list[tuple[int, int]] = []
        #: Bytes that went into the file.
        self.spilled = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kept.clear()
        if self._file is not None:
            self._file.close()

    def add(self, payload: bytes) -> None:
        """Take one payload."""
        if self._held + len(payload) <= self._limit:
            self._held += len(payload)
            self._kept.append(pa.py_buffer(payload))
            return
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile(prefix="thalweg-", dir=self._folder)  # noqa: SIM115 (closed on exit)
        self._spans.append((self.spilled, len(payload)))
        self._file.write(payload)
        self.spilled += len(payload)

    def payloads(self) -> Iterator[pa.Buffer]:
        """Give all payloads, in the order in which they came; those in the file stay there."""
        yield from self._kept
        if self._file is not None:
            self._file.flush()
            with pa.memory_map(self._file.name) as mapped:
                whole = mapped.read_buffer()
            for start, length in self._spans:
                yield whole.slice(start, length)


def in_chunks(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Put small record batches together, as long as the result has at most so many rows.

    >>> small = [pa.record_batch({"n": [i, i]}) for i in range(5)]
    >>> [batch.num_rows for batch in in_chunks(small, rows=4)]
    [4, 4, 2]
    """
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        held = sum(other.num_rows for other in waiting), sum(other.nbytes for other in waiting)
        if waiting and (held[0] + batch.num_rows > rows or held[1] + batch.nbytes > MAX_BYTES):
            yield pa.concat_batches(waiting)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield pa.concat_batches(waiting)


def in_any_order(arrivals: Iterable[Arrival], chunk: int = CHUNK_ROWS) -> Iterator[Arrival]:
    """Put small blocks of one input together; each sender's tuples stay in its order."""
    waiting: dict[tuple[int, bool], list[Block]] = {}
    for index, block in arrivals:
        alike = index, is_weighed(block.batch)
        blocks = waiting.setdefault(alike, [])
        blocks.append(block)
        if sum(map(len, blocks)) >= chunk:
            yield from _cut(index, waiting.pop(alike), chunk)
    for (index, _), blocks in waiting.items():
        yield from _cut(index, blocks, chunk)


def _cut(index: int, blocks: list[Block], chunk: int) -> Iterator[Arrival]:
    whole = blocks[0] if len(blocks) == 1 else concatenate(blocks)
    for start in range(0, len(whole), chunk):
        yield index, whole.slice(start, start + chunk)


def in_order(arrivals: Sequence[Arrival], chunk: int = CHUNK_ROWS) -> Iterator[Arrival]:
    """Give the tuples of all inputs in the order of a serial execution, in chunks.

    Only the numbers that say the order are held for all tuples; the tuples of a chunk are gathered
    from where they lie.

    >>> from thalweg.blocks import Origin
    >>> a = Block(pa.record_batch({"x": ["a1", "a3"]}), Origin("a"), np.array([1, 3]))
    >>> b = Block(pa.record_batch({"x": ["b2", "b1"]}), Origin("b"), np.array([2, 1]))
    >>> [(index, block.values("x")) for index, block in in_order([(0, a), (1, b)])]
    [(0, ['a1']), (1, ['b1', 'b2']), (0, ['a3'])]
    """
    blocks = [block for _, block in arrivals]
    sizes = [len(block) for block in blocks]
    inputs = np.repeat([index for index, _ in arrivals], sizes)
    owners = np.repeat(np.arange(len(blocks)), sizes)
    rows = np.concatenate([np.arange(size) for size in sizes])
    order = _serial_order(blocks, inputs)
    for start in range(0, len(order), chunk):
        part = order[start : start + chunk]
        cuts = (np.flatnonzero(np.diff(inputs[part])) + 1).tolist()
        for begin, stop in zip([0, *cuts], [*cuts, len(part)], strict=True):
            run = part[begin:stop]
            yield int(inputs[run[0]]), gather(blocks, owners[run], rows[run])


def _serial_order(blocks: Sequence[Block], inputs: Rows) -> Rows:
    """Sort by serial number, then input, then path; equal ones stay as they came."""
    serials = np.concatenate([block.serials for block in blocks])
    depth = max(len(block.path) for block in blocks)
    levels = [np.concatenate([level(b, number) for b in blocks]) for number in range(depth)]
    return np.lexsort((*reversed(levels), inputs, serials))


def gather(blocks: Sequence[Block], owners: Rows, rows: Rows) -> Block:
    """Make one block of single rows of many, in the given order."""
    used = np.unique(owners)
    if len(used) == 1:
        return blocks[used[0]].take(rows)
    pieces = [np.flatnonzero(owners == owner) for owner in used]
    taken = [blocks[owner].take(rows[at]) for owner, at in zip(used, pieces, strict=True)]
    back = np.argsort(np.concatenate(pieces), kind="stable")
    return concatenate(taken).take(back)
