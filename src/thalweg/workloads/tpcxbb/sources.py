"""The streams as sources, and all tables as files.

>>> source = store_sales(scale=0.01, seed=7)
>>> source.rows.total, source.rows.make(0, 3).schema.names[2:]
(8200, ['ss_item_sk', 'ss_store_sk', 'ss_ticket_number', 'ss_net_paid'])
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from thalweg.components import BlockSpout, Shared
from thalweg.contexts import TaskContext
from thalweg.errors import UsageError, explain
from thalweg.workloads.tpcxbb.clicks import ClickRows
from thalweg.workloads.tpcxbb.rows import Rows
from thalweg.workloads.tpcxbb.sales import SalesRows
from thalweg.workloads.tpcxbb.tables import DAY, Stream, item, web_page

#: Rows that are made at once; what is made of them stays in the caches.
CHUNK = 16_384
#: The field that `timed` adds.
TIME = "time"
#: Seconds to wait at least: less can be lost when it is added to a clock that shows days.
_SHORTEST_WAIT = 1e-6


class Generated(Shared, BlockSpout):
    """A source of generated rows; its tasks take chunks in turn, and can begin anywhere."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.outputs = rows.schema
        self._rate: float | None = None
        self._timed = False

    def paced(self, rate: float) -> Self:
        """Give the same source with so many rows per second of the clock, all tasks together."""
        if not rate > 0:
            text = explain("rate of a paced source", expected="above 0", got=repr(rate))
            raise UsageError(text)
        made = copy.copy(self)
        made._rate = rate
        return made

    def timed(self) -> Self:
        """Give the same source with a field `time`, in seconds since 1970, behind the others."""
        made = copy.copy(self)
        made.outputs, made._timed = self.rows.schema.append(pa.field(TIME, pa.int64())), True
        return made

    def prepare(self, context: TaskContext) -> None:
        """Begin with this task's first chunk."""
        self._task, self._degree = context.task, context.degree
        self._given = 0
        self._begin: float | None = None

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Make the next rows of the chunk at hand, as far as they are due."""
        first, end = self._at_hand()
        if first >= self.rows.total:
            self.finish()
            return None
        made = self.rows.make(first, min(end, first + limit, self._due()))
        self._given += made.num_rows
        if not made.num_rows:
            return None
        return with_time(made) if self._timed else made

    def resume(self, rows: int) -> None:
        """Go on behind so many rows, as if no time had passed since the last of them."""
        self._given = rows
        if self._rate is not None:
            self._begin = self.context.clock.now() - self._at_hand()[0] / self._rate

    def wait_hint(self) -> float:
        """Give the time until the next row is due."""
        if self._rate is None:
            return 0.0
        due = (self._at_hand()[0] + 1) / self._rate
        return max(due - self._elapsed(), _SHORTEST_WAIT)

    def backlog(self) -> int | None:
        """Count the rows that are due and were not given yet; None without a rate."""
        if self._rate is None:
            return None
        turn = CHUNK * self._degree
        whole, rest = divmod(self._due(), turn)
        mine = whole * CHUNK + min(CHUNK, max(0, rest - self._task * CHUNK))
        return max(0, mine - self._given)

    def _at_hand(self) -> tuple[int, int]:
        """Give the position of the next row, and where its chunk ends."""
        turn, row = divmod(self._given, CHUNK)
        first = (turn * self._degree + self._task) * CHUNK
        return first + row, first + CHUNK

    def _due(self) -> int:
        """Give before which position rows are due by now."""
        if self._rate is None:
            return self.rows.total
        return min(self.rows.total, int(self._elapsed() * self._rate))

    def _elapsed(self) -> float:
        now = self.context.clock.now()
        if self._begin is None:
            self._begin = now
        return now - self._begin


def store_sales(
    scale: float = 1.0,
    seed: int = 1,
    *,
    rows: int | None = None,
    rate: float | None = None,
    skew: float = 0.6,
    late: int = 0,
) -> Generated:
    """Make a source of lines of tickets; see :class:`.tables.Stream` for what can be set."""
    return Generated(SalesRows(Stream(scale, seed, rows, rate, skew, late)))


def web_clickstreams(
    scale: float = 1.0,
    seed: int = 1,
    *,
    rows: int | None = None,
    rate: float | None = None,
    skew: float = 0.6,
    late: int = 0,
) -> Generated:
    """Make a source of clicks; see :class:`.tables.Stream` for what can be set."""
    return Generated(ClickRows(Stream(scale, seed, rows, rate, skew, late)))


def with_time(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Add the time of rows, which begin with a day and a second of it.

    >>> with_time(store_sales(rows=1).rows.make(0, 1))["time"].to_pylist()
    [999388800]
    """
    days = pc.multiply(rows.column(0).cast(pa.int64()), DAY)
    return rows.append_column(TIME, pc.add(days, rows.column(1)))


def batches(source: Generated, first: int = 0, stop: int | None = None) -> Iterator[pa.RecordBatch]:
    """Make the rows of a range, chunk by chunk.

    >>> sum(batch.num_rows for batch in batches(store_sales(rows=40_000), first=10_000))
    30000
    """
    end = source.rows.total if stop is None else min(stop, source.rows.total)
    for at in range(first, end, CHUNK):
        yield source.rows.make(at, min(end, at + CHUNK))


def table(source: Generated) -> pa.Table:
    """Make all rows of a source as one table."""
    return pa.Table.from_batches(batches(source), source.rows.schema)


def write_tables(folder: Path, sales: Generated, clicks: Generated) -> list[Path]:
    """Write both streams and their side tables as Parquet files; give the paths.

    Both must have the same scale and seed, since they have the items in common.
    """
    stream = sales.rows.stream
    if (stream.scale, stream.seed) != (clicks.rows.stream.scale, clicks.rows.stream.seed):
        expected = "sales and clicks with the same scale and seed"
        raise UsageError(explain("tables of tpcxbb", expected=expected))
    items, pages = item(stream.scale, stream.seed), web_page()
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _write(folder / "store_sales.parquet", sales.rows.schema, batches(sales)),
        _write(folder / "web_clickstreams.parquet", clicks.rows.schema, batches(clicks)),
        _write(folder / "item.parquet", items.schema, [items]),
        _write(folder / "web_page.parquet", pages.schema, [pages]),
    ]


def _write(path: Path, schema: pa.Schema, given: Iterable[pa.RecordBatch]) -> Path:
    with pq.ParquetWriter(path, schema) as writer:
        for batch in given:
            writer.write_batch(batch)
    return path
