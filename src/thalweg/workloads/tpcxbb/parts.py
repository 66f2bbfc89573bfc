"""Rows by part: the key of vectorised bolts, whose state is columns rather than a value per user.

Users (tickets, pairs ...) are dealt out to as many *parts* as a bolt has tasks, and a part is the
key. What is kept of a part is some record batches, so that a block costs next to nothing until it
is worth working on all of them at once.

>>> rows = pa.record_batch({"user": [1, 2, 5]})
>>> parted("user", 2)(rows)["part"].to_pylist() == [part_names(2)[user % 2] for user in (1, 2, 5)]
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from thalweg.components import BlockBolt, Kind, Shared
from thalweg.errors import StateError, explain
from thalweg.eventtime import ALWAYS
from thalweg.hashing import hash_columns
from thalweg.keys import Key
from thalweg.routing.table import RoutingTable
from thalweg.workloads.tpcxbb.drawing import Numbers, Small

PART = "part"
#: What is kept of a part; the first of them is what was left when it was worked on last.
Kept = tuple[pa.RecordBatch, ...]
#: Numbers to look at for each part, until all tasks have one.
_TRIED = 64
#: The key of what has no parts.
_WHOLE = ""
#: New rows that are worth working on, as a share of those that would be looked at again.
_SHARE = 0.5


@cache
def part_names(count: int) -> Small:
    """Give numbers as keys that go to different tasks, where there are so many of them.

    >>> len(set(part_names(4).tolist()))
    4
    """
    tried = np.arange(_TRIED * count, dtype=np.int32)
    places = RoutingTable.even(count).places_of(hash_columns([pa.array(tried)]))
    _, first = np.unique(places, return_index=True)
    spare = np.delete(tried, first)[: count - len(first)]
    return np.concatenate([tried[first], spare])


def parted(field: str, count: int) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Make a function that adds the part by a field of whole numbers."""
    names = part_names(count)

    def add(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column(field).to_numpy()
        return batch.append_column(PART, pa.array(names[values % count]))

    return add


def by_part(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split rows by their part; most often there is one."""
    parts, rest = batch.column(PART).to_numpy(), batch.drop_columns([PART])
    if len(parts) and (parts == parts[0]).all():
        yield int(parts[0]), rest
        return
    for part in np.unique(parts).tolist():
        yield part, rest.take(pa.array(np.flatnonzero(parts == part)))


def columns(kept: Sequence[pa.RecordBatch]) -> list[Numbers]:
    """Put batches behind each other; booleans become 0 and 1."""
    return [
        np.concatenate([batch.column(at).to_numpy(zero_copy_only=False) for batch in kept]).astype(
            np.int64, copy=False
        )
        for at in range(kept[0].num_columns)
    ]


def as_batch(given: Sequence[Numbers], schema: pa.Schema) -> pa.RecordBatch:
    """Make a record batch of numbers, with the types of a schema.

    >>> made = as_batch([np.array([1, 0])], pa.schema({"sold": pa.bool_()}))
    >>> made["sold"].to_pylist()
    [True, False]
    """
    types = [field.type.to_pandas_dtype() for field in schema]
    arrays = [pa.array(c.astype(t, copy=False)) for c, t in zip(given, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class BatchesCodec:
    """Arrow IPC, for values that are some record batches of one schema."""

    def encode(self, value: Kept) -> bytes:
        """Write them behind each other."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value[0].schema) as writer:
            for batch in value:
                writer.write_batch(batch)
        return sink.getvalue().to_pybytes()

    def decode(self, data: bytes) -> Kept:
        """Read them."""
        try:
            with pa.ipc.open_stream(data) as reader:
                return tuple(reader)
        except (pa.ArrowException, OSError) as error:
            raise StateError(explain("stored record batches", got=str(error))) from error


class Collecting(Shared, BlockBolt):
    """Keeps the rows of each part, and works on them as event time goes on."""

    kind = Kind.KEYED
    timed: ClassVar[bool] = True
    state_codec = BatchesCodec()

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Keep the rows."""
        found: Iterator[tuple[Key, pa.RecordBatch]]
        found = by_part(batch) if self.kind is Kind.KEYED else iter([(_WHOLE, batch)])
        for part, rows in found:
            self.state.put(part, (*self.state.get(part, ()), rows))

    def process_watermark(self, now: int) -> None:
        """Work on what is complete, where that is worth it."""
        for part, kept in list(self.state.items()):
            if self.is_due(kept):
                self._work(part, kept, now)

    def process_end(self) -> None:
        """Work on all that is left."""
        for part, kept in list(self.state.items()):
            self._work(part, kept, ALWAYS)

    def is_due(self, kept: Kept) -> bool:
        """Say whether rows should be worked on now."""
        return bool(kept)

    def settle(self, kept: Kept, now: int) -> pa.RecordBatch | None:
        """Send what is complete at a time; give the rows that are still needed."""
        raise NotImplementedError

    def _work(self, part: Key, kept: Kept, now: int) -> None:
        rest: Any = self.settle(kept, now)
        if rest is not None and rest.num_rows:
            self.state.put(part, (rest,))
        else:
            self.state.delete(part)


class Amortised(Collecting):
    """Works on rows when enough have come, so that those left over are not sorted too often."""

    #: New rows that are worth working on.
    least: int = 1 << 14

    def is_due(self, kept: Kept) -> bool:
        """Compare what has come with what was left."""
        came = sum(batch.num_rows for batch in kept[1:])
        return came >= max(self.least, _SHARE * kept[0].num_rows)
