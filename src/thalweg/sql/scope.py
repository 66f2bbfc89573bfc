"""Which column of which table a name of a query means, and what it is called in the stream.

>>> import sqlglot
>>> names = Names({("p", "at"): "at", ("p", "region"): "region", ("r", "region"): "region_2"})
>>> names.of(sqlglot.parse_one("r.region"))
'region_2'
>>> names.of(sqlglot.parse_one("region"))
Traceback (most recent call last):
...
thalweg.errors.UsageError: column region in the query: expected one table that has it, got p and r
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from thalweg.errors import UsageError, explain
from thalweg.sql.strict import only, plain, refused, written

#: A table, by its alias, and one of its columns.
Place = tuple[str, str]


@dataclass(frozen=True)
class Names:
    """How columns of a query are called in the stream."""

    fields: Mapping[Place, str]

    def places(self, column: exp.Column) -> list[Place]:
        """Find the columns that a name may mean."""
        if isinstance(column.this, exp.Star):
            raise refused(column, "a star stands alone in SELECT")
        only(column, "this", "table")
        name, table = column.name, column.table
        return [place for place in self.fields if place[1] == name and table in ("", place[0])]

    def knows(self, column: exp.Column) -> bool:
        """Say whether a name means one column."""
        return len(self.places(column)) == 1

    def place(self, column: exp.Column) -> Place:
        """Find the one column that a name means."""
        found = self.places(column)
        if len(found) == 1:
            return found[0]
        subject = f"column {written(column)}"
        if found:
            got = " and ".join(table for table, _ in found)
            raise UsageError(explain(subject, "the query", "one table that has it", got))
        names = sorted({n for t, n in self.fields if column.table in ("", t)})
        raise UsageError(explain(subject, "the query", f"one of {names}", "none of that name"))

    def of(self, column: exp.Column) -> str:
        """Give the field of a column."""
        return self.fields[self.place(column)]

    def tables(self, node: exp.Expr) -> set[str]:
        """Name the tables that a part of a query looks at."""
        return {self.place(column)[0] for column in node.find_all(exp.Column)}

    def canonical(self, node: exp.Expr) -> str:
        """Write a part of a query so that two that mean the same columns are the same text."""
        return plain(node.unnest().copy().transform(self._named))

    def _named(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.is_star and self.knows(node):
            return exp.column(self.of(node), quoted=True)
        return node


def free(wanted: str, taken: Collection[str]) -> str:
    """Give a name that nothing has yet.

    >>> free("n", {"n", "n_2"})
    'n_3'
    """
    if wanted not in taken:
        return wanted
    return next(name for i in range(2, 1 << 30) if (name := f"{wanted}_{i}") not in taken)
