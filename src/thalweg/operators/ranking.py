"""The top of a table, kept by one task."""

from __future__ import annotations

import heapq
from typing import Any

import pyarrow as pa

from thalweg.components import BlockBolt, Kind, Shared
from thalweg.keys import Key, encode_key, key_values
from thalweg.schemas import Fields

# Keys of its state: the latest row of each key, and the ranking that was sent last.
_ROW, _SENT = 0, 1


class Top(Shared, BlockBolt):
    """The k rows with the largest value of one field, the latest row of each key counting.

    Sends the whole ranking when it has changed: at each tick when there are ticks, else after each
    block; and at the end. Equal values rank by their keys, so that the order of input is no matter.
    """

    kind = Kind.GLOBAL
    commutative = True
    reads_first = True

    def __init__(self, k: int, by: str, outputs: Fields, ticks: bool) -> None:
        self.k = k
        self.outputs = outputs
        self.ticks = ticks
        self._by = outputs.names.index(by) - 1  # behind the rank come the fields of the input

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Take in changed rows."""
        names = batch.schema.names
        others = [name for i, name in enumerate(names) if i != self._by]
        keys: list[Key] = [()] * batch.num_rows
        if others:
            keys = key_values(list(map(batch.column, others)), others)
        rows = map(list, zip(*map(self.values, names), strict=True))
        self.state.put_many({(_ROW, key): row for key, row in zip(keys, rows, strict=True)})
        if not self.ticks:
            self.process_tick()

    def process_tick(self) -> None:
        """Send the ranking when it has changed."""
        ranked = self._ranking()
        changed = ranked != self.state.get((_SENT,), [])
        if changed:
            self.state.put((_SENT,), ranked)
        if changed and ranked:  # an empty ranking has no rows that could say so
            columns = [list(range(1, len(ranked) + 1)), *map(list, zip(*ranked, strict=True))]
            self.emit(self.make_batch(columns))

    def _ranking(self) -> list[list[Any]]:
        found = ((key, row) for key, row in self.state.items() if key != (_SENT,))
        rows = [(key, row) for key, row in found if row[self._by] is not None]
        best = heapq.nlargest(self.k, (row[self._by] for _, row in rows))
        if not best:
            return []
        candidates = [(key, row) for key, row in rows if row[self._by] >= best[-1]]
        candidates.sort(key=lambda pair: encode_key(pair[0]))
        candidates.sort(key=lambda pair: pair[1][self._by], reverse=True)
        return [row for _, row in candidates[: self.k]]

    def process_end(self) -> None:
        """Send the last ranking."""
        self.process_tick()
