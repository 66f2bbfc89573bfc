"""Writing rows to a table of PostgreSQL: made or checked first, then COPY."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.blocks import Rows
from thalweg.connectors.postgres_client import load
from thalweg.connectors.postgres_columns import column_type, csv_bytes, fits
from thalweg.errors import UsageError, explain

#: The rows of a batch on their way to an upsert, and the column with their order.
_WAITING, _ROW = "thalweg_rows", "_row"
#: Classes of errors that values are to blame for: of their type, and of constraints.
_OF_VALUES = ("22", "23")
#: Called with the number of a row and what the server says of it.
Refuse = Callable[[int, str], None]


@dataclass(frozen=True)
class Target:
    """Where rows go, and how."""

    table: str
    #: Names of the fields that tell rows apart; rows are added where there are none.
    key: tuple[str, ...] = ()
    create: bool = True
    #: Rows that are turned into text at a time.
    rows: int = 10_000

    @property
    def schema(self) -> str | None:
        """The schema that the table was said to be in."""
        schema, dot, _ = self.table.rpartition(".")
        return schema if dot else None


class Writer:
    """Writes to a target in the transaction at hand."""

    def __init__(self, connection: Any, target: Target) -> None:
        self._connection, self._target = connection, target
        self._sql = load().sql
        self._table = self._sql.Identifier(*target.table.split("."))

    # --- the table ---------------------------------------------------------------------------

    def ensure(self, schema: pa.Schema) -> None:
        """Make the table, or see whether it takes such rows."""
        columns = self._columns()
        if columns is None:
            self._create(schema)
            return
        for field in schema:
            self._check(field, columns)
        for name, (_, needed) in columns.items():
            if needed and name not in schema.names:
                expected = "a field of that name: the column takes no null, and has no default"
                raise self._misfit(name, expected, f"fields {schema.names}")
        if self._target.key and not self._is_unique():
            keys = ", ".join(self._target.key)
            expected = f"a primary key or a unique index on ({keys}) alone"
            hint = f"CREATE UNIQUE INDEX ON {self._target.table} ({keys})"
            subject = f"table {self._target.table!r}"
            raise UsageError(explain(subject, "", expected, "none", hint))

    def _columns(self) -> dict[str, tuple[str, bool]] | None:
        """Give the types of columns, and whether a row must have them; None without a table."""
        found = self._one("SELECT to_regclass(%s)", self._name)
        if found[0] is None:
            return None
        asked = (
            "SELECT attname, CASE typtype WHEN 'e' THEN 'text' ELSE "
            "format_type(atttypid, atttypmod) END, "
            "attnotnull AND NOT atthasdef AND attidentity = '' "
            "FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        )
        rows = self._connection.execute(asked, [self._name]).fetchall()
        return {name: (type_, needed) for name, type_, needed in rows}

    def _check(self, field: pa.Field, columns: dict[str, tuple[str, bool]]) -> None:
        if field.name not in columns:
            raise self._misfit(field.name, "a column of that name", f"columns {list(columns)}")
        there, _ = columns[field.name]
        if not fits(field.type, there):
            expected = f"{column_type(field.type)}, for values of type {field.type}"
            hint = ""
            if pa.types.is_timestamp(field.type):
                hint = "times with a zone and without one are two things: declare the one it has"
            raise self._misfit(field.name, expected, there, hint)

    def _is_unique(self) -> bool:
        asked = (
            "SELECT array_agg(attname::text) FROM pg_index JOIN pg_attribute "
            "ON attrelid = indrelid AND attnum = ANY (indkey[0:indnkeyatts - 1]) "
            "WHERE indrelid = to_regclass(%s) AND indisunique AND indisvalid "
            "AND indpred IS NULL AND indexprs IS NULL GROUP BY indexrelid"
        )
        rows = self._connection.execute(asked, [self._name]).fetchall()
        return any(set(names) == set(self._target.key) for (names,) in rows)

    def _create(self, schema: pa.Schema) -> None:
        if not self._target.create:
            subject, hint = f"table {self._target.table!r}", "create=True makes it"
            raise UsageError(explain(subject, "", "to be there", "none", hint))
        self._connection.execute(  # two that make it at once would be in each other's way
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [self._name]
        )
        parts = [self._column(field) for field in schema]
        if self._target.key:
            parts.append(self._sql.SQL("PRIMARY KEY ({})").format(self._names(self._target.key)))
        text = self._sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})")
        self._connection.execute(text.format(self._table, self._sql.SQL(", ").join(parts)))

    def _column(self, field: pa.Field) -> Any:
        type_ = column_type(field.type)
        if type_ is None:
            hint = "declare the type of the field where the stream begins, or make the table"
            expected, got = "a type, to make the column", f"{field.type} in its first rows"
            raise self._misfit(field.name, expected, got, hint)
        return self._sql.SQL("{} {}").format(self._sql.Identifier(field.name), self._sql.SQL(type_))

    # --- rows --------------------------------------------------------------------------------

    def write(self, tables: Iterable[pa.Table]) -> None:
        """Write rows; of those with the same key the last one stays."""
        first = 0
        for table in tables:
            self.ensure(table.schema)
            if self._target.key:
                self._upsert(table, first)
            else:
                self._copy(self._table, table.schema.names, self._pieces(table))
            first += table.num_rows

    def write_what_fits(self, table: pa.Table, refuse: Refuse) -> None:
        """Write rows but for those that the table does not take: another range, a constraint.

        They are found by halves, so that the others are hardly slower.
        """
        self._halves(table, np.arange(table.num_rows), refuse)

    def _halves(self, table: pa.Table, rows: Rows, refuse: Refuse) -> None:
        try:
            with self._connection.transaction():
                self.write([table])
        except load().Error as error:
            if (error.sqlstate or "")[:2] not in _OF_VALUES:
                raise
            if len(rows) == 1:
                refuse(int(rows[0]), " ".join(str(error).split()))
                return
            middle = len(rows) // 2
            self._halves(table.slice(0, middle), rows[:middle], refuse)
            self._halves(table.slice(middle), rows[middle:], refuse)

    def _upsert(self, table: pa.Table, first: int) -> None:
        sql, names = self._sql.SQL, table.schema.names
        waiting, row = self._sql.Identifier("pg_temp", _WAITING), self._sql.Identifier(_ROW)
        columns, keys = self._names(names), self._names(self._target.key)
        make = sql("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {}, 0::bigint AS {} FROM {}")
        make = make.format(self._sql.Identifier(_WAITING), columns, row, self._table)
        self._connection.execute(sql("{} WITH NO DATA").format(make))
        numbers = pa.array(np.arange(first, first + table.num_rows))
        self._copy(waiting, [*names, _ROW], self._pieces(table.append_column(_ROW, numbers)))
        insert = sql(
            "INSERT INTO {} ({}) SELECT DISTINCT ON ({}) {} FROM {} ORDER BY {}, {} DESC "
            "ON CONFLICT ({}) DO {}"
        )
        values = [self._table, columns, keys, columns, waiting, keys, row, keys]
        self._connection.execute(insert.format(*values, self._changes(names)))
        self._connection.execute(sql("DROP TABLE {}").format(waiting))

    def _changes(self, names: Sequence[str]) -> Any:
        others = [name for name in names if name not in self._target.key]
        if not others:
            return self._sql.SQL("NOTHING")
        each = [
            self._sql.SQL("{0} = EXCLUDED.{0}").format(self._sql.Identifier(name))
            for name in others
        ]
        return self._sql.SQL("UPDATE SET {}").format(self._sql.SQL(", ").join(each))

    def _copy(self, table: Any, names: Sequence[str], pieces: Iterator[bytes]) -> None:
        text = self._sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)")
        text = text.format(table, self._names(names))
        with self._connection.cursor() as cursor, cursor.copy(text) as copy:
            for piece in pieces:
                copy.write(piece)

    def _pieces(self, table: pa.Table) -> Iterator[bytes]:
        for batch in table.to_batches(self._target.rows):
            yield csv_bytes(batch)

    def _names(self, names: Sequence[str]) -> Any:
        return self._sql.SQL(", ").join(map(self._sql.Identifier, names))

    @property
    def _name(self) -> str:
        return str(self._table.as_string(self._connection))

    def _one(self, asked: str, *values: Any) -> Any:
        return self._connection.execute(asked, list(values)).fetchone()

    def _misfit(self, field: str, expected: str, got: str, hint: str = "") -> UsageError:
        subject, where = f"field {field!r}", f"table {self._target.table!r}"
        return UsageError(explain(subject, where, expected, got, hint))
