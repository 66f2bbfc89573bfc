"""The rows of one component in a run: looked up by hash and exact key, and merged.

A *part* is a record batch of :data:`SCHEMA`, ascending by hash, with each key at most once. Hashes
find a row quickly; the bytes of the key decide, so that two keys of one hash stay two keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.hashing import Hashes

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Says for each hash whether its key belongs here.
Owns = Callable[[Hashes], Mask]

#: hash of the key; bytes of the key; bytes of the value, null when deleted; milliseconds of the
#: batch clock when it was written.
SCHEMA = pa.schema(
    [
        ("hash", pa.uint64()),
        ("key", pa.large_binary()),
        ("value", pa.large_binary()),
        ("time", pa.int64()),
    ]
)


def milliseconds(seconds: float) -> int:
    """Turn seconds of the batch clock into the unit of the ``time`` column."""
    return round(seconds * 1000)


def as_part(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Bring a record batch with the columns of a part into exactly the schema of one."""
    return batch if batch.schema.equals(SCHEMA) else batch.select(SCHEMA.names).cast(SCHEMA)


def hashes_of(part: pa.RecordBatch) -> Hashes:
    """View the hashes of a part."""
    return part.column(0).to_numpy()


def find(part: pa.RecordBatch, hashes: Hashes, keys: pa.Array) -> Indices:
    """Give the row of each key in a part, or -1; quickest when ``hashes`` ascend."""
    there, stored = hashes_of(part), part.column(1)
    rows = np.searchsorted(there, hashes)
    found = np.full(len(hashes), -1, dtype=np.int64)
    maybe = _where_equal(there, rows, hashes, np.arange(len(hashes)))
    while len(maybe):
        same = _equal(stored.take(pa.array(rows[maybe])), keys.take(pa.array(maybe)))
        found[maybe[same]] = rows[maybe[same]]
        maybe = maybe[~same]  # another key with the same hash: look at the row behind it
        rows[maybe] += 1
        maybe = _where_equal(there, rows, hashes, maybe)
    return found


def with_hashes(part: pa.RecordBatch, hashes: Hashes) -> pa.RecordBatch:
    """Give the rows whose hash is one of these, which ascend."""
    there = hashes_of(part)
    first, last = np.searchsorted(there, hashes), np.searchsorted(there, hashes, "right")
    counts = last - first
    # All rows of each range, one range after the other.
    rows = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return part.take(pa.array(rows))


def find_one(part: pa.RecordBatch, hash_: np.uint64, key: bytes) -> int:
    """Give the row of one key in a part, or -1; as :func:`find`, with less to set up."""
    there = hashes_of(part)
    row = int(there.searchsorted(hash_))
    while row < len(there) and there[row] == hash_:
        if part.column(1)[row].as_py() == key:
            return row
        row += 1
    return -1


def _where_equal(there: Hashes, rows: Indices, hashes: Hashes, which: Indices) -> Indices:
    which = which[rows[which] < len(there)]
    return which[there[rows[which]] == hashes[which]]


def _equal(left: pa.Array, right: pa.Array) -> Mask:
    return pc.equal(left, right).to_numpy(zero_copy_only=False)


def merge(
    parts: Sequence[pa.RecordBatch],
    *,
    oldest: bool,
    expired_before: int | None = None,
    keep: Owns | None = None,
) -> pa.RecordBatch:
    """Merge parts, oldest first, into one: the newest row of each key wins.

    With ``oldest`` nothing lies below the result, so deleted keys and those written before
    ``expired_before`` (milliseconds) are left out. ``keep`` chooses the hashes that stay.
    """
    parts = [part for part in parts if part.num_rows]
    if not parts:
        return pa.RecordBatch.from_pylist([], SCHEMA)
    table = pa.Table.from_batches(parts).combine_chunks()
    hashes = np.concatenate([hashes_of(part) for part in parts])
    keys, values, times = (_one_chunk(table.column(i)) for i in (1, 2, 3))
    chosen = _newest(hashes, keys, np.flatnonzero(keep(hashes)) if keep else None)
    if oldest:
        chosen = chosen[values.is_valid().to_numpy(zero_copy_only=False)[chosen]]
        if expired_before is not None:
            chosen = chosen[times.to_numpy()[chosen] >= expired_before]
    rows = pa.array(chosen)
    columns = [pa.array(hashes[chosen]), keys.take(rows), values.take(rows), times.take(rows)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _newest(hashes: Hashes, keys: pa.Array, among: Indices | None) -> Indices:
    """Choose the last row of each key, ascending by hash."""
    chosen = hashes if among is None else hashes[among]
    order = np.argsort(chosen, kind="stable")
    ascending = chosen[order]
    if among is not None:
        order = among[order]
    repeated = ascending[1:] == ascending[:-1]
    last = np.append(~repeated, True) if len(order) else np.zeros(0, dtype=np.bool_)
    pairs = np.flatnonzero(repeated)
    if len(pairs):
        same = _equal(keys.take(pa.array(order[pairs])), keys.take(pa.array(order[pairs + 1])))
        for collision in np.unique(ascending[pairs[~same]]):
            start = np.searchsorted(ascending, collision, "left")
            end = np.searchsorted(ascending, collision, "right")
            newest = {keys[order[i]].as_py(): i for i in range(start, end)}
            last[start:end] = False
            last[list(newest.values())] = True
    return order[last]
