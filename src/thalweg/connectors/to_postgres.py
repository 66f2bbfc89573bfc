"""A sink that writes to a table of PostgreSQL.

Where batches are committed (on Spark, and on local with a checkpoint), rows wait beside the state
until their batch is. Then they go to the table in one transaction, together with a mark that tells
the batch: one that comes again is known. Elsewhere every block is a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from thalweg.components import BlockBolt
from thalweg.connectors.parquet_parts import ParquetParts
from thalweg.connectors.postgres_client import Database
from thalweg.connectors.postgres_columns import misfits
from thalweg.connectors.postgres_fence import Fence, Mark, decide
from thalweg.connectors.postgres_tables import Target, Writer
from thalweg.contexts import TaskContext
from thalweg.errors import SchemaError, UsageError, explain, shorten
from thalweg.groupings import Fields
from thalweg.statelog.delivered import GIVEN, owner_of, read_number
from thalweg.statelog.manifests import StagedRef
from thalweg.statelog.objects import checksum_of
from thalweg.statelog.staged import StagedBatch, read_staged

_logger = logging.getLogger("thalweg.postgres")
#: Folder of rows that wait beside the state, and the end of their names.
_SUFFIX = ".rows"
#: In the metadata of a schema: the sink whose rows these are, and whether it goes on without those
#: that the table does not take.
_SINK, _TOLERANT = b"thalweg.sink", b"thalweg.tolerant"

Tables = Callable[[], Iterable[pa.Table]]


class PostgresSink(BlockBolt):
    """What a topology has; a copy of it, for a task in the same process, writes by itself."""

    at_places: ClassVar[bool] = False
    fixed_degree: ClassVar[bool] = True

    def __init__(self, target: Target, database: Database | None) -> None:
        self._target, self._database = target, database

    def __repr__(self) -> str:
        return f"to_postgres(table={self._target.table!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> PostgresSink:
        return _BlockSink(self._target, self._database and self._database.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        return _BatchSink, (self._target, None)  # only the driver may know how to get in

    def for_batches(self) -> PostgresSink:
        """Give a sink whose rows wait until their batch is committed."""
        return _BatchSink(self._target, self._database)

    # --- at a task ---------------------------------------------------------------------------

    def prepare(self, context: TaskContext) -> None:
        """Begin a batch; find out early whether the database can be reached."""
        _check_grouping(context, self._target)
        if self._database is not None:
            self._database.run(lambda connection: connection.execute("SELECT 1"))
            self._database.close()
        elif not context.lasting:
            hint = "let it run in a thread: the connection string stays in this process"
            where = f"component {context.component!r}"
            raise UsageError(explain("isolation", where, "'thread'", "'process'", hint))
        self._begin()

    def _begin(self) -> None:
        self._parts = ParquetParts(f"rows for table {self._target.table!r}")

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Take rows."""
        name = f"{self.context.topology}/{self.context.component}"
        rows, _ = self._sifted(batch)
        if rows.num_rows:
            about = {_SINK: name} | ({_TOLERANT: "yes"} if self.context.tolerant else {})
            self._parts.add(rows.replace_schema_metadata(about))
        if self._parts.is_full:
            self._parts.spill()

    def cleanup(self) -> None:
        """Forget what was not committed, and disconnect."""
        parts: ParquetParts | None = getattr(self, "_parts", None)
        if parts is not None:
            parts.close()
        if self._database is not None:
            self._database.close()

    def hand_over(self) -> PostgresSink | None:
        """Give what was taken in so far to a sink of its own, if there is any, and begin anew."""
        if self._parts.is_empty:
            return None
        made = _BatchSink(self._target, None)
        made.context, made._parts = self.context, self._parts
        self._begin()
        return made

    def finish_batch(self, batch: StagedBatch) -> list[StagedRef]:
        """Let the rows of a batch wait beside the state."""
        return batch.stage(self.context.component, self._parts.take(), _SUFFIX)

    # --- beside the driver, or the run -------------------------------------------------------

    def end_batch(self, batch: StagedBatch, refs: Sequence[StagedRef]) -> None:
        """Write the batch of which all rows were taken in, unless it is there."""
        files = [data for _, data in self._parts.take()]
        if files:
            self._commit(batch, refs, lambda: map(_table, files))

    def commit_batch(self, session: Any, batch: StagedBatch, refs: list[StagedRef]) -> None:
        """Write what waits of a batch, unless it is there."""
        del session
        own = [ref for ref in refs if ref.name.endswith(_SUFFIX)]
        if own:
            staged = partial(read_staged, batch.location)
            self._commit(batch, own, lambda: map(_table, map(staged, own)))

    def _commit(self, batch: StagedBatch, refs: Sequence[StagedRef], tables: Tables) -> None:
        """Write rows and the mark of their batch in one transaction."""
        assert self._database is not None  # noqa: S101 (nobody commits elsewhere)
        try:
            if not batch.lasting:
                self._database.run(lambda each: self._write(each, tables()))
                return
            mark = _mark(batch, refs)
            self._database.run(lambda each: self._write_once(each, mark, tables))
        finally:
            self._database.close()  # the next batch may be long in coming

    def _write_once(self, connection: Any, mark: Mark, tables: Tables) -> None:
        found = list(tables())
        sink = f"{found[0].schema.metadata[_SINK].decode()} -> {self._target.table}"
        fence = Fence(connection, self._target.schema, sink)
        if decide(sink, fence.read(), mark).write:
            self._write(connection, found)
            fence.write(mark)

    def _write(self, connection: Any, tables: Iterable[pa.Table]) -> None:
        writer, given = self._writer(connection), list(tables)
        if not given or _TOLERANT not in (given[0].schema.metadata or {}):
            writer.write(given)
            return
        for table in given:
            writer.write_what_fits(table, partial(self._left_out, table))

    def _left_out(self, table: pa.Table, row: int, why: str) -> None:
        """Tell of a row that is in no table; its tuple is long done, so that no policy sees it."""
        values = shorten(table.slice(row, 1).to_pylist()[0])
        _logger.warning("table %r does not take %s: %s", self._target.table, values, why)

    def _writer(self, connection: Any) -> Writer:
        # A commit that a crash of the server may undo would be taken for one that lasts.
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', true) "
            "WHERE current_setting('synchronous_commit') = 'off'"
        )
        return Writer(connection, self._target)

    def _sifted(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int]]:
        """Refuse the rows that no table takes, as the component's policy says; gives the others."""
        bad: dict[int, str] = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            found = misfits(column)
            if found is not None:
                bad |= dict.fromkeys(found[0], f"{found[1]} in {name!r}")
            if name in self._target.key and column.null_count:
                bad |= dict.fromkeys(_rows(column.is_null()), f"a value in {name!r}, part of key")
        kept = [row for row in range(batch.num_rows) if row not in bad]
        if not bad:
            return batch, kept
        for row, expected in sorted(bad.items()):
            self._refuse(row, expected)
        return batch.take(pa.array(kept, pa.int64())), kept

    def _refuse(self, row: int, expected: str, got: str = "") -> None:
        subject = f"row for table {self._target.table!r}"
        self.context.refuse(row, SchemaError(explain(subject, "", expected, got), row))


class _BatchSink(PostgresSink):
    """Leaves it to others when its rows are written."""

    def __deepcopy__(self, memo: dict[int, Any]) -> PostgresSink:
        return _BatchSink(self._target, self._database and self._database.copy())


class _BlockSink(PostgresSink):
    """Writes every block in a transaction of its own."""

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Write rows; when this returns they are in the table."""
        rows, kept = self._sifted(batch)
        if not rows.num_rows or self._database is None:
            return
        table = pa.Table.from_batches([rows])
        if not self.context.tolerant:
            self._database.run(lambda each: self._writer(each).write([table]))
            return
        refused: dict[int, str] = {}  # a transaction that is tried again finds the same
        self._database.run(
            lambda each: self._writer(each).write_what_fits(table, refused.__setitem__)
        )
        for row, why in sorted(refused.items()):
            self._refuse(kept[row], "values that the table takes", why)


def _check_grouping(context: TaskContext, target: Target) -> None:
    """Refuse several tasks that would change the same row in any order."""
    if context.degree == 1 or not target.key or context.graph is None:
        return
    for input_ in context.graph.component(context.component).inputs:
        by_key = isinstance(input_.grouping, Fields) and set(input_.key) <= set(target.key)
        if not by_key:
            expected = f"rows of a key at one task: key_by(*{list(target.key)}), or degree=1"
            subject = f"sink {context.component!r} with {context.degree} tasks"
            raise UsageError(explain(subject, "", expected, f"key {list(input_.key)}"))


def _mark(batch: StagedBatch, refs: Sequence[StagedRef]) -> Mark:
    """Tell a batch from all others."""
    digest = checksum_of("\n".join(ref.name for ref in refs).encode())
    generation = read_number(batch.location, GIVEN)
    return Mark(owner_of(batch.location), generation, batch.version, digest)


def _table(data: pa.Buffer) -> pa.Table:
    return pq.read_table(pa.BufferReader(data))


def _rows(mask: pa.Array) -> list[int]:
    found: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return found


def to_postgres(
    dsn: str,
    table: str,
    key: Sequence[str] | None = None,
    *,
    mode: Literal["append", "upsert"] | None = None,
    create: bool = True,
    batch: int = 10_000,
) -> PostgresSink:
    """Make a sink that adds its tuples to a table of PostgreSQL, or changes rows by their key.

    ``dsn`` is a URI or ``name=value`` pairs; what it leaves out (all, if it is empty) comes from
    the variables, service file and password file that libpq knows.

    >>> to_postgres("host=localhost dbname=shop password=secret", "totals", key=["item"])
    to_postgres(table='totals')
    """
    keys = tuple([key] if isinstance(key, str) else key or ())
    mode = mode or ("upsert" if keys else "append")
    if mode not in ("append", "upsert"):
        raise UsageError(explain("mode", "", "'append' or 'upsert'", repr(mode)))
    if (mode == "upsert") != bool(keys):
        got = f"key={list(keys)}"
        raise UsageError(explain(f"mode {mode!r}", "", "a key with 'upsert', and only there", got))
    if not all(table.split(".")) or table.count(".") > 1:
        raise UsageError(explain("table", "", "'table' or 'schema.table'", repr(table)))
    if batch < 1:
        raise UsageError(explain("batch", "", "at least 1", str(batch)))
    return PostgresSink(Target(table, keys, create, batch), Database(dsn))
