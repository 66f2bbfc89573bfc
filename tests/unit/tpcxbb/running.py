"""The queries as topologies, run on rows of a table; and what DuckDB says of the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.bench.tpcxbb_runs import BATCH
from thalweg.components import BlockSpout, Shared
from thalweg.workloads.tpcxbb.sources import TIME, with_time
from thalweg.workloads.tpcxbb.topologies import Tables, topology

Rows = list[tuple[Any, ...]]


class Slices(Shared, BlockSpout):
    """The rows of a table with their time, some at once."""

    def __init__(self, table: pa.Table, rows: int) -> None:
        whole = table.combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], table.schema)
        ]
        self.whole, self.rows, self.at = with_time(whole[0]), rows, 0
        self.outputs = self.whole.schema

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        first, self.at = self.at, self.at + min(limit, self.rows)
        if first < self.whole.num_rows:
            return self.whole.slice(first, self.at - first)
        self.finish()
        return None

    @property
    def late(self) -> int:
        """Seconds by which a row comes behind a later one, at most."""
        known = self.whole.column(TIME).drop_null().to_numpy()
        behind = np.maximum.accumulate(known) - known if len(known) else known
        return int(behind.max(initial=0))


def streamed(
    name: str, table: pa.Table, tables: Tables, query: Any = None, on: Any = "inline", **how: Any
) -> Rows:
    """Let rows stream through a query; give its answer."""
    source = Slices(table, how.get("rows", 1 << 20))
    flow, kept = topology(
        name, source, tables, query, late=source.late, degree=how.get("degree", 4)
    )
    flow.run(on=on)
    return rows_of(kept.table())


def at_once(name: str, table: pa.Table, tables: Tables, query: Any = None) -> Rows:
    """Let DuckDB answer."""
    return rows_of(BATCH[name](table, tables, query))


def rows_of(table: pa.Table) -> Rows:
    """Give rows as tuples, fractions to nine places."""
    columns = [
        [v if v is None else float(f"{v:.9g}") for v in column.to_pylist()]
        if pa.types.is_floating(column.type)
        else column.to_pylist()
        for column in table.columns
    ]
    return list(zip(*columns, strict=True))
