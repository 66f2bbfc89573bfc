"""Moving keys: their state leaves its place with the first exchange of a batch.

It arrives before anything that the batch changes. At the old place the keys are deleted; the new
place writes them with its other changes, and one manifest commits both.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from thalweg.routing.transition import Moving
from thalweg.runtimes.spark.stores import Stores
from thalweg.runtimes.spark.wire import pack_delta

#: In place of a stage: before all of them.
BEFORE = -1
_TAG = b"M"


def move_order(place: int) -> bytes:
    """Write the order to a task to send what leaves a place."""
    return _TAG + place.to_bytes(4, "little")


def ordered_place(payload: bytes) -> int | None:
    """Read the place whose keys are to be sent; None when a payload is something else."""
    return int.from_bytes(payload[1:], "little") if payload[:1] == _TAG else None


def moved(
    stores: Stores, moves: dict[str, Moving], place: int
) -> Iterator[tuple[int, Iterator[bytes], pa.RecordBatch]]:
    """Give what goes to which place: state to the new one of a key, a deletion to the old."""
    for name, moving in moves.items():
        rows = stores.rows_of(name, moving.hashes)
        if not rows.num_rows:
            continue
        at = np.searchsorted(moving.hashes, rows.column(0).to_numpy())
        targets = moving.targets[at]
        for target in np.unique(targets).tolist():
            sent = rows.filter(pa.array(targets == target))
            yield target, pack_delta(name, BEFORE, sent), sent
        gone = rows.set_column(2, "value", pa.nulls(rows.num_rows, pa.large_binary()))
        yield place, pack_delta(name, BEFORE, gone), gone[:0]
