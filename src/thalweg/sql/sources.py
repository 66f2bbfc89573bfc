"""Where the rows of a query come from: one stream, and the tables that it is joined with.

Conditions and columns go as near to where rows begin as they can: what looks at the stream alone
stands before joins, what looks at one table alone cuts that table, and nothing takes along columns
that nobody will read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from thalweg.errors import UsageError, explain
from thalweg.expressions import Expression
from thalweg.flow import Stream
from thalweg.operators.joining import How
from thalweg.operators.side_tables import SideTable, table_of
from thalweg.sql.expressions import Translator, checked
from thalweg.sql.scope import Names, Place, free
from thalweg.sql.strict import only, refused, written
from thalweg.sql.tables import CutTable

_JOIN = "[LEFT] JOIN table ON stream.a = table.b"


@dataclass(frozen=True)
class _Table:
    """A table of the query."""

    alias: str
    table: SideTable
    how: How
    #: Fields of the tuples so far, and columns of the table that are equal to them.
    pairs: Mapping[Place, str]
    #: Conditions on this table alone.
    where: tuple[exp.Expr, ...]

    @property
    def own(self) -> Names:
        """How its columns are called in itself."""
        return Names({(self.alias, name): name for name in self.table.fields.names})


class Sources:
    """What stands behind FROM, and which rows of it WHERE lets pass."""

    def __init__(self, select: exp.Select, sources: Mapping[str, Any]) -> None:
        from_ = select.args.get("from_")
        if from_ is None:
            raise UsageError(explain("query", expected="FROM a stream", got="none"))
        self._sources = sources
        self.alias, self._stream = self._source(from_.this)
        if not isinstance(self._stream, Stream):
            raise UsageError(explain(f"FROM {written(from_.this)}", "", "a stream", "a table"))
        #: Every column that there is, by table and name.
        self.all = Names({(self.alias, name): name for name in self._stream.fields.names})
        self._tables = [self._table(join) for join in select.args.get("joins") or ()]
        where = select.args.get("where")
        conditions = [] if where is None else list(conjuncts(where.this))
        self._first, self._last = self._placed(conditions)

    def stream(self, reads: Iterable[exp.Expr], keep: Iterable[str]) -> tuple[Stream, Names]:
        """Join what is left after the conditions, with the columns that are read.

        ``keep`` are fields of the stream that are needed whatever the query says. Gives how
        columns are called behind it all, too.
        """
        behind = self._places([*reads, *self._last])
        behind |= {place for table in self._tables for place in table.pairs}
        names = Names({place: f for place, f in self.all.fields.items() if place[0] == self.alias})
        own = {name for alias, name in behind | self._places(self._first) if alias == self.alias}
        stream = _narrowed(self._stream, own | set(keep))
        stream = filtered(stream, self._first, Translator(names))
        for table in self._tables:
            stream, names = _joined(stream, names, table, behind)
        return filtered(stream, self._last, Translator(names)), names

    # --- reading -----------------------------------------------------------------------------

    def _source(self, table: exp.Expr) -> tuple[str, Any]:
        name = table.name
        if not isinstance(table, exp.Table) or name not in self._sources:
            expected = f"one of {sorted(self._sources)}"
            raise UsageError(explain(f"{written(table)!r}", "the query", expected))
        only(table, "this", "alias")
        if isinstance(table.args.get("alias"), exp.TableAlias):
            only(table.args["alias"], "this")
        return table.alias or name, self._sources[name]

    def _table(self, join: exp.Join) -> _Table:
        how = _how(join)
        alias, given = self._source(join.this)
        if isinstance(given, Stream):
            hint = "put .join_within(...) or .join_asof(...) before the query"
            raise UsageError(explain(f"JOIN {written(join.this)}", "", "a table", "a stream", hint))
        if any(alias == known for known, _ in self.all.fields):
            hint = "say JOIN table AS name"
            raise UsageError(explain(f"{alias!r}", "the query", "another name", "one twice", hint))
        table = table_of(given)
        self.all = Names(
            {**self.all.fields, **{(alias, name): name for name in table.fields.names}}
        )
        pairs, where = self._matching(join, alias)
        return _Table(alias, table, how, pairs, tuple(where))

    def _matching(self, join: exp.Join, alias: str) -> tuple[dict[Place, str], list[exp.Expr]]:
        """Read what stands behind ON: columns that are equal, and conditions on the table."""
        pairs: dict[Place, str] = {}
        where: list[exp.Expr] = []
        for condition in conjuncts(join.args["on"]):
            if self.all.tables(condition) == {alias}:
                where.append(condition)
                continue
            ours, theirs = self._pair(condition, alias)
            if ours in pairs:  # two columns that are equal to one are equal
                two = (exp.column(name, alias, quoted=True) for name in (pairs[ours], theirs))
                where.append(exp.EQ(this=next(two), expression=next(two)))
            pairs.setdefault(ours, theirs)
        if not pairs:
            raise refused(join, expected=_JOIN)
        return pairs, where

    def _pair(self, condition: exp.Expr, alias: str) -> tuple[Place, str]:
        both = [condition.this, condition.expression] if isinstance(condition, exp.EQ) else []
        places = [self.all.place(c) for c in both if isinstance(c, exp.Column)]
        own = [place for place in places if place[0] == alias]
        others = [place for place in places if place[0] != alias]
        if len(own) != 1 or len(others) != 1:
            expected = "a column of the stream that equals one of the table"
            raise refused(condition, "other conditions belong into WHERE", expected)
        return others[0], own[0][1]

    # --- placing -----------------------------------------------------------------------------

    def _placed(self, conditions: list[exp.Expr]) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """Give tables the conditions that are theirs; gives those before joins and behind."""
        first: list[exp.Expr] = []
        last: list[exp.Expr] = []
        for condition in conditions:
            looks_at = self.all.tables(condition)
            if looks_at <= {self.alias}:
                first.append(condition)
            elif not self._cuts(looks_at, condition):
                last.append(condition)
        return first, last

    def _cuts(self, looks_at: set[str], condition: exp.Expr) -> bool:
        """Give a condition to its table, unless rows without a partner have to see it too."""
        for i, table in enumerate(self._tables):
            if looks_at == {table.alias} and table.how == "inner":
                where = (*table.where, condition)
                self._tables[i] = _Table(table.alias, table.table, table.how, table.pairs, where)
                return True
        return False

    def _places(self, nodes: Iterable[exp.Expr]) -> set[Place]:
        """Find all columns that parts of a query may mean."""
        columns = (c for node in nodes for c in node.find_all(exp.Column))
        return {place for column in columns for place in self.all.places(column)}


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Take a condition apart where it says AND."""
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from conjuncts(node.this)
        yield from conjuncts(node.expression)
    else:
        yield node


def filtered(stream: Stream, conditions: Iterable[exp.Expr], to: Translator) -> Stream:
    """Keep the tuples for which all conditions hold."""
    for condition in conditions:
        stream = stream.filter(checked(to.expression(condition), stream.fields, condition, True))
    return stream


def _how(join: exp.Join) -> How:
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    only(join, "this", "on", "side", "kind", hint=f"say {_JOIN}")
    known = {("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER")}
    if (side, kind) not in known or join.args.get("on") is None:
        raise refused(join, expected=_JOIN)
    return "left" if side else "inner"


def _narrowed(stream: Stream, used: set[str]) -> Stream:
    """Keep the fields that are used; tuples have at least one."""
    kept = [name for name in stream.fields.names if name in used] or [stream.fields.names[0]]
    return stream if len(kept) == len(stream.fields) else stream.select(*kept)


def _joined(stream: Stream, names: Names, table: _Table, used: set[Place]) -> tuple[Stream, Names]:
    """Join with what is needed of a table, under names that nothing else has."""
    keys: dict[str, str] = {}
    on: dict[str, str] = {}
    for place, theirs in table.pairs.items():
        on[names.fields[place]] = name = free(theirs, keys)
        keys[name] = theirs
    added: dict[Place, str] = {}
    for name in table.table.fields.names:
        if (table.alias, name) in used:
            taken = {*stream.fields.names, *keys, *added.values()}
            added[table.alias, name] = free(name, taken)
    columns = keys | {field: name for (_, name), field in added.items()}
    cut = CutTable(table.table, columns, _conditions(table))
    made = stream.join(cut, on, how=table.how)
    return made, Names({**names.fields, **added})


def _conditions(table: _Table) -> list[Expression]:
    to, fields = Translator(table.own), table.table.fields
    return [checked(to.expression(c), fields, c, True) for c in table.where]
