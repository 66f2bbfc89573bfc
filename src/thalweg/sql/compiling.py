"""A query becomes a stream: filters and projections first, then joins, windows, results.

>>> import thalweg as tw
>>> flow = tw.Flow("query")
>>> posts = flow.source(
...     "posts",
...     tw.items([(1, "eu", 3), (2, "eu", 4), (70, "us", 1)]),
...     fields={"at": int, "region": str, "likes": int},
...     time="at",
... )
>>> made = compiled(
...     "SELECT region, count(*) AS n, sum(likes) * 2 AS double FROM posts "
...     "WINDOW TUMBLING 1 MINUTE GROUP BY region",
...     {"posts": posts},
... )
>>> made.fields.names
('region', 'n', 'double')
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from thalweg.errors import UsageError, explain
from thalweg.expressions import Expression
from thalweg.flow import Stream
from thalweg.schemas import Fields
from thalweg.sql.aggregates import BOUNDS, Aggregates, Behind, has_aggregate, is_bound
from thalweg.sql.clauses import not_sql, taken
from thalweg.sql.expressions import Translator, checked, type_of
from thalweg.sql.scope import Names
from thalweg.sql.sources import Sources, conjuncts, filtered
from thalweg.sql.strict import note_calls, only, plain, refused, written
from thalweg.validation import unknown
from thalweg.windows import agg
from thalweg.windows.specs import CountWindow, WindowSpec, whole

#: Parts of a SELECT that are understood.
_KNOWN = {"expressions", "from_", "joins", "where", "group", "having"}
_HINTS = {
    "order": "a stream has no end at which to sort it; put .top(k) behind it",
    "limit": "stop the run instead, or put .top(k) behind it",
    "distinct": "GROUP BY the columns",
    "with_": "compile the inner query first, and give its stream a name",
}
_A_NAME = "a name that Python accepts, without leading '_'"
_NO_TIME = 'say --time FIELD, in a program time="FIELD" where the stream begins'


def compiled(query: str, sources: Mapping[str, Any], **options: Any) -> Stream:
    """Make a stream of a query; ``sources`` are streams, and tables to join with, by name.

    Options are for the component with the window: ``degree=2``.
    """
    text, window = taken(query)
    select = _parsed(text)
    plan = Sources(select, sources)
    outputs = _outputs(select, plan)
    group, having = _clause(select, "group"), _clause(select, "having")
    parts = [*outputs.values(), *group, *having]
    by_time = window is not None and not isinstance(window, CountWindow)
    stream, names = plan.stream(parts, _time(select, sources) if by_time else ())
    if group or has_aggregate(parts):
        cut = _Group(outputs, group, having, window)
        return cut.put_behind(stream, names, options)
    if window is not None or having:
        hint = "say count(*) or sum(x) ... in SELECT"
        clause = "HAVING" if window is None else "a WINDOW"
        raise UsageError(explain(f"query with {clause}", "", "an aggregate", "none", hint))
    return _projected(stream, outputs, Translator(names))


def _parsed(text: str) -> exp.Select:
    try:
        found = sqlglot.parse_one(text, read="duckdb")
    except SqlglotError as error:
        raise not_sql(error) from error
    note_calls(text, found)
    if not isinstance(found, exp.Select):
        raise UsageError(explain("query", expected="SELECT ... FROM ...", got=_kind(text, found)))
    for part, value in found.args.items():
        if value and part not in _KNOWN:
            name = part.strip("_").upper()
            raise UsageError(explain(f"{name} in the query", "", "none", hint=_HINTS.get(part, "")))
    if any(inner is not found for inner in found.find_all(exp.Query)):
        raise UsageError(explain("query within a query", "", "none", hint=_HINTS["with_"]))
    for type_ in found.find_all(exp.DataType):
        if type_.this == exp.DType.TIMESTAMPNTZ:  # what people have written as TIMESTAMP
            type_.set("this", exp.DType.TIMESTAMP)
    return found


def _kind(text: str, found: exp.Expr) -> str:
    """Name what was written instead of a SELECT."""
    if isinstance(found, exp.Block):
        return "several queries, with ; between them"
    if isinstance(found, exp.SetOperation):
        return str(found.key.upper())
    return text.split(maxsplit=1)[0]


def _clause(select: exp.Select, name: str) -> list[exp.Expr]:
    """Give the parts of GROUP BY, or of HAVING."""
    node = select.args.get(name)
    if node is None:
        return []
    only(
        node, "expressions" if name == "group" else "this", hint="GROUP BY columns is all there is"
    )
    return list(node.expressions) if name == "group" else list(conjuncts(node.this))


def _time(select: exp.Select, sources: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the field that a window needs, whatever the query says."""
    name = select.args["from_"].this.name
    stream: Stream = sources[name]
    if stream.time is None:
        if stream.apart:
            return ()  # the window says what they are
        expected, hint = "to know when something happened", _NO_TIME
        raise UsageError(explain(f"WINDOW on {name!r}", "", expected, hint=hint))
    if stream.time.field not in stream.fields:
        raise unknown(stream.time.field, "field", f"time of {name!r}", stream.fields.names)
    return (stream.time.field,)


# --- columns of the result -----------------------------------------------------------------------


def _outputs(select: exp.Select, plan: Sources) -> dict[str, exp.Expr]:
    """Give the columns of the result by name; a star stands for all of the query's tables."""
    found: dict[str, exp.Expr] = {}
    for node in select.expressions:
        for name, made in _output(node, plan):
            if name in found or not _fits(name):
                got = "it twice" if name in found else ""
                expected = "one column of that name" if got else _A_NAME
                hint = f"say {written(made)} AS another_name"
                raise UsageError(explain(f"column {name!r}", "SELECT", expected, got, hint))
            found[name] = made
    return found


def _fits(name: str) -> bool:
    """Say whether a field may be called like that."""
    taken = keyword.iskeyword(name) or name.startswith("_") or name == "self"
    return name.isidentifier() and not taken


def _output(node: exp.Expr, plan: Sources) -> Iterator[tuple[str, exp.Expr]]:
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star):
        only(star)
        only(node, "this", "table")
        of = node.table if isinstance(node, exp.Column) else ""
        tables = {table for table, _ in plan.all.fields}
        if of and of not in tables:
            raise refused(node, expected=f"one of the tables {sorted(tables)}")
        for table, name in plan.all.fields:
            if of in ("", table):
                yield name, exp.column(name, table, quoted=True)
        return
    if isinstance(node, exp.Alias):
        only(node, "this", "alias")
    yield _name(node), node.unalias()


def _name(node: exp.Expr) -> str:
    """Give the name of a column: what it is called, or what it is made of."""
    if isinstance(node, exp.Alias | exp.Column):
        return str(node.alias_or_name)
    made = re.sub(r"\W+", "_", plain(node).lower()).strip("_")
    return made if made.isidentifier() else f"value_{made}".strip("_")


def _projected(stream: Stream, outputs: Mapping[str, exp.Expr], to: Translator) -> Stream:
    """Give the stream these columns, in their order."""
    made = {n: checked(to.expression(node), stream.fields, node) for n, node in outputs.items()}
    new = {name: e for name, e in made.items() if not _is_field(e, name)}
    extended = _extended(stream, new) if new else stream
    return extended if extended.fields.names == tuple(made) else extended.select(*made)


def _extended(stream: Stream, columns: Mapping[str, Expression]) -> Stream:
    """Put computed columns behind a stream, of types that are known before there are values."""
    types = {name: type_of(made, stream.fields) for name, made in columns.items()}
    known = {name: None if type_ == pa.null() else type_ for name, type_ in types.items()}
    made = stream.extend(**columns)
    return replace(made, fields=made.fields.extend(Fields(tuple(known), tuple(known.values()))))


def _is_field(made: Expression, name: str) -> bool:
    return not made.function and made.fields == {name}


# --- groups --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """What a query makes of groups of rows."""

    outputs: Mapping[str, exp.Expr]
    by: list[exp.Expr]
    having: list[exp.Expr]
    window: WindowSpec | None

    def put_behind(self, stream: Stream, names: Names, options: Mapping[str, Any]) -> Stream:
        """Put windows and aggregates behind a stream, then what is computed of them."""
        aggregates = Aggregates(names, stream.fields)
        keys = self._keys(aggregates)
        behind = Behind(names, aggregates, keys, self.window is not None)
        aliased = Behind(names, aggregates, keys, self.window is not None, self.outputs)
        for node in self.outputs.values():
            behind.expression(node)
        for node in self.having:
            aliased.expression(node)
        if not aggregates.made:
            aggregates.made[aggregates.free("agg_1")] = agg.count()
        if aggregates.computed:
            stream = _extended(stream, aggregates.computed)
        spec = whole() if self.window is None else self.window
        fields = tuple(keys.values())
        cut = stream.key_by(*fields).window(spec) if fields else stream.window(spec)
        result = cut.aggregate(**aggregates.made, **options)
        if self.window is None:  # the whole of time has bounds that are no dates
            result = result.select(*fields, *aggregates.made)
        return _projected(filtered(result, self.having, aliased), self.outputs, behind)

    def _keys(self, aggregates: Aggregates) -> dict[str, str]:
        """Name the fields of keys, by what they are made of; some have to be computed."""
        names, found = aggregates.names, dict[str, str]()
        for node in (self._meant(part, names) for part in self.by):
            if node is None or names.canonical(node) in found:
                continue
            sets = isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets)
            if sets or node.find(exp.Column) is None:
                expected = "a column, an expression or a name of SELECT behind GROUP BY"
                raise refused(node, expected=expected)
            made = checked(Translator(names).expression(node), aggregates.fields, node)
            field = names.of(node) if isinstance(node, exp.Column) else "end"
            if field in BOUNDS.values():
                field = aggregates.compute("key_1", made)
            found[names.canonical(node)] = field
        return found

    def _meant(self, node: exp.Expr, names: Names) -> exp.Expr | None:
        """Give what a part of GROUP BY means; None for a bound, since windows are groups anyway.

        Columns go before names of SELECT.
        """
        named = isinstance(node, exp.Column) and not node.table and not names.places(node)
        meant = self.outputs.get(node.name, node) if named else node
        bound = self.window is not None and is_bound(meant, names)
        return None if bound else meant.unnest()
