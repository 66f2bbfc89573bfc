"""What a query needs of a table: some of its columns, and the rows for which conditions hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.expressions import Expression
from thalweg.operators.side_tables import Notice, SideTable, Version
from thalweg.schemas import Fields


class CutTable:
    """A table with some columns of another one, under names of the query's, and some of its rows.

    It is cut once for each version of the other one.
    """

    def __init__(
        self, table: SideTable, columns: Mapping[str, str], where: Sequence[Expression] = ()
    ) -> None:
        self.table, self.columns, self.where = table, dict(columns), tuple(where)
        types = tuple(table.fields.type_of(name) for name in self.columns.values())
        self.fields = Fields(tuple(self.columns), types)
        self._cut: tuple[Version, Version] | None = None

    def __getstate__(self) -> tuple[Any, ...]:
        return self.table, self.columns, self.where

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc] # as if it were new

    def current(self, now: float, notice: Notice) -> Version:
        """Give what is needed of the version that holds at this time."""
        version, cut = self.table.current(now, notice), self._cut
        if cut is None or cut[0] is not version:
            # Two tasks may do this at once; what they make is the same.
            cut = self._cut = version, Version(self._rows(version.rows), version.text)
        return cut[1]

    def _rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        for condition in self.where:
            rows = rows.filter(pc.fill_null(condition.evaluate(rows), False))
        columns = [rows.column(name) for name in self.columns.values()]
        return pa.RecordBatch.from_arrays(columns, names=list(self.columns))
