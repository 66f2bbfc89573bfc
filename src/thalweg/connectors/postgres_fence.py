"""Which batches a database has: a row for each sink, changed with the rows of the batch.

>>> batch = Mark("a1", 0, 7, "x")
>>> decide("words/out", None, batch).write, decide("words/out", batch, batch).write
(True, False)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thalweg.errors import StateError, explain

#: The table that holds the marks of all sinks, beside the tables that they write to.
TABLE = "thalweg_commits"


@dataclass(frozen=True)
class Mark:
    """The last batch of a sink."""

    #: Whose batches these are: a state's own name, which it keeps for life.
    owner: str
    #: How often that state has fallen back to an older version, as a number that only grows.
    generation: int
    batch: int
    #: Tells a batch from others of the same number.
    digest: str


@dataclass(frozen=True)
class Decision:
    """Whether a batch is to be written; if not, it is there already."""

    write: bool
    reason: str


def decide(sink: str, last: Mark | None, new: Mark) -> Decision:
    """Say whether to write a batch; raises where another run has written since."""
    if last is None:
        return Decision(True, "the first batch")
    if last.owner != new.owner:
        hint = (
            "give each run a name or a table of its own; if the other state is gone for good, "
            f"delete the row of this sink from {TABLE}"
        )
        got = f"batch {last.batch} of another state"
        raise StateError(explain(f"sink {sink!r}", "", "batches of this state", got, hint))
    if last == new:
        return Decision(False, f"batch {new.batch} is there")
    if (last.generation, last.batch) >= (new.generation, new.batch):
        hint = "another run has gone on from the same state; only one may use it"
        expected = f"a batch behind {last.batch}"
        raise StateError(explain(f"sink {sink!r}", "", expected, f"batch {new.batch}", hint))
    return Decision(True, f"behind batch {last.batch}")


class Fence:
    """The row of a sink, in the transaction at hand."""

    def __init__(self, connection: Any, schema: str | None, sink: str) -> None:
        from psycopg import sql  # noqa: PLC0415 (an extra)

        self._connection, self._sink = connection, sink
        names = [*([schema] if schema else []), TABLE]
        self._table = sql.Identifier(*names)
        # Beside values, a % in a name would be taken for the place of one.
        self._beside_values = sql.Identifier(*(name.replace("%", "%%") for name in names))
        self._sql = sql.SQL

    def read(self) -> Mark | None:
        """Give the last batch; nobody else can change it until the transaction ends."""
        lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
        self._connection.execute(lock, [f"{TABLE} {self._sink}"])
        self._create()
        asked = self._sql("SELECT owner, generation, batch, digest FROM {} WHERE sink = %s")
        row = self._connection.execute(asked.format(self._beside_values), [self._sink]).fetchone()
        return None if row is None else Mark(*row)

    def write(self, mark: Mark) -> None:
        """Note a batch."""
        text = self._sql(
            "INSERT INTO {} (sink, owner, generation, batch, digest) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (sink) DO UPDATE SET owner = EXCLUDED.owner, batch = EXCLUDED.batch, "
            "generation = EXCLUDED.generation, digest = EXCLUDED.digest, written = now()"
        )
        values = [self._sink, mark.owner, mark.generation, mark.batch, mark.digest]
        self._connection.execute(text.format(self._beside_values), values)

    def _create(self) -> None:
        """Make the table; who may not make tables needs one that is there."""
        name = self._table.as_string(self._connection)
        if self._connection.execute("SELECT to_regclass(%s)", [name]).fetchone()[0] is not None:
            return
        self._connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [TABLE])
        text = self._sql(
            "CREATE TABLE IF NOT EXISTS {} (sink text PRIMARY KEY, owner text NOT NULL, "
            "generation bigint NOT NULL, batch bigint NOT NULL, digest text NOT NULL, "
            "written timestamptz NOT NULL DEFAULT now())"
        )
        self._connection.execute(text.format(self._table))
