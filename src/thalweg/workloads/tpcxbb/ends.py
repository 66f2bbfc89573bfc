"""The last steps of Q4 and Q15, and a sink that keeps answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.components import BlockBolt, Kind, Shared
from thalweg.keys import Key
from thalweg.workloads.tpcxbb import kernels

#: The key of a state that has none.
_WHOLE = ""


class MeanPages(Shared, BlockBolt):
    """Q4: adds up the pages of sessions; gives at the end how many, and the mean."""

    kind = Kind.GLOBAL
    commutative = True
    outputs = pa.schema({"sessions": pa.int64(), "pages": pa.int64(), "mean": pa.float64()})

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Add up."""
        sessions, pages = self.state.get(_WHOLE, (0, 0))
        seen = pc.sum(batch.column("pages"), min_count=0).as_py()
        self.state.put(_WHOLE, (sessions + batch.num_rows, pages + seen))

    def process_end(self) -> None:
        """Tell."""
        sessions, pages = self.state.get(_WHOLE, (0, 0))
        mean = pages / sessions if sessions else None
        self.emit(self.make_batch([[sessions], [pages], [mean]]))


DAY_SUMS = pa.schema({"category": pa.int32(), "day": pa.int32(), "paid": pa.int64()})


def day_sums(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Q15: add up what was paid per category and day, so that few rows are left of a block."""
    given = [batch.column(name).to_numpy().astype(np.int64) for name in DAY_SUMS.names]
    found = kernels.day_sums(*given)
    arrays = [pa.array(c).cast(f.type) for c, f in zip(found, DAY_SUMS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=DAY_SUMS)


class Trends(Shared, BlockBolt):
    """Q15: keeps the sums of the days of each category; gives at the end which do not rise."""

    kind = Kind.KEYED
    commutative = True
    outputs = pa.schema({"category": pa.int32(), "slope": pa.float64()})

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Add up."""
        days: dict[Key, dict[int, int]] = {}
        for row in batch.to_pylist():
            category = row["category"]
            if category not in days:
                days[category] = dict(self.state.get(category, {}))
            of = days[category]
            of[row["day"]] = of.get(row["day"], 0) + row["paid"]
        self.state.put_many(days)

    def process_end(self) -> None:
        """Fit lines."""
        slopes = {
            category: kernels.slope(np.array(list(days)), np.array(list(days.values())))
            for category, days in self.state.items()
        }
        found = [[c, s] for c, s in sorted(slopes.items()) if s is not None and s <= 0]
        if found:
            self.emit(self.make_batch([list(column) for column in zip(*found, strict=True)]))


class Answers(Shared, BlockBolt):
    """A sink that keeps the rows of an answer."""

    def __init__(self, schema: Any, by: str | None = None) -> None:
        self.schema, self.by = pa.schema(schema), by
        self.batches: list[pa.RecordBatch] = []

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Keep a block."""
        self.batches.append(batch)

    def table(self) -> pa.Table:
        """Give the answer; where several tasks gave it, in the order of its first field."""
        found = pa.Table.from_batches(self.batches, self.schema)
        if self.by is None:
            return found
        order = np.argsort(found[self.by].to_numpy(), kind="stable")
        return found.take(pa.array(order))
