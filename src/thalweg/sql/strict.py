"""Nothing of a query is passed over: what nobody has read is refused.

The parser knows far more SQL than there is here, and writes it down as arguments of its nodes. So
whoever translates a node says which of its arguments are understood.

>>> import sqlglot
>>> only(sqlglot.parse_one("trim(x)"), "this")
>>> only(sqlglot.parse_one("trim(x, 'j')"), "this")
Traceback (most recent call last):
...
thalweg.errors.UsageError: "TRIM(x, 'j')" in the query: expected no second argument
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import sqlglot
from sqlglot import Dialect, ErrorLevel, Token, TokenType, exp, generator

from thalweg.errors import UsageError, explain

KNOWN = (
    "columns, values, + - * / // %, ||, comparisons, AND OR NOT, IN, IS NULL, BETWEEN, LIKE, CASE"
)
#: Arguments of nodes as people call them, where that is something else.
_WORDS = {
    "expression": "second argument",
    "expressions": "further arguments",
    "decimals": "second argument",
    "count": "second argument",
    "query": "query within a query",
    "safe": "TRY_CAST",
    "position": "LEADING, TRAILING or BOTH",
    "db": "name before that of the source",
    "catalog": "name before that of the source",
    "columns": "names of columns behind the alias",
    "sample": "TABLESAMPLE",
    "except_": "EXCLUDE",
    "method": "ASOF or NATURAL",
}


class _Plain(Dialect):
    """Writes what the parser has read so that two parts alike are the same text, and no others."""

    class Generator(generator.Generator):
        TRANSFORMS: ClassVar = {
            **generator.Generator.TRANSFORMS,
            exp.IntDiv: lambda to, node: to.binary(node, "//"),
            exp.Concat: lambda to, node: to.func("CONCAT", *node.expressions),
            exp.ConcatWs: lambda to, node: to.func("CONCAT_WS", *node.expressions),
        }


class _AsSaid(_Plain):
    """Writes what the parser has read as it was said."""

    class Generator(_Plain.Generator):
        TRANSFORMS: ClassVar = {
            **_Plain.Generator.TRANSFORMS,
            exp.If: lambda to, node: to.func("IF", *node.args.values()),
        }

        def sql(self, expression: Any, key: str | None = None, comment: bool = True) -> str:
            made = str(super().sql(expression, key, comment))
            said = expression.meta.get(_SAID, "") if isinstance(expression, exp.Func) else ""
            return made if key or made.startswith(_name(said).upper()) else str(said)


_SAID = "said"


def note_calls(query: str, found: exp.Expr) -> None:
    """Keep how calls are written in a query, as the parser has words of its own for many."""
    words = sqlglot.tokenize(query, read="duckdb")
    for node in found.find_all(exp.Func):
        start = node.meta.get("start")
        if start is not None:
            node.meta[_SAID] = query[start : _end(words, start)]


def called(node: exp.Expr) -> str:
    """Give the name of the function by which a part of a query was called; else nothing."""
    return _name(node.meta.get(_SAID, ""))


def _name(said: str) -> str:
    return said.partition("(")[0].strip()


def _end(words: Sequence[Token], start: int) -> int:
    depth = 0
    for word in words:
        if word.start >= start:
            depth += word.token_type == TokenType.L_PAREN
            depth -= word.token_type == TokenType.R_PAREN
            if not depth and word.token_type == TokenType.R_PAREN:
                return word.end + 1
    return start


def written(node: exp.Expr) -> str:
    """Write a part of a query as it stands there, for people."""
    return str(node.sql(_AsSaid, unsupported_level=ErrorLevel.IGNORE))


def plain(node: exp.Expr) -> str:
    """Write a part of a query as no dialect does, for comparing and naming."""
    return str(node.sql(_Plain, unsupported_level=ErrorLevel.IGNORE))


def only(node: exp.Expr, *understood: str, hint: str = "") -> None:
    """Refuse a node with any other argument than those that are understood."""
    for name, value in node.args.items():
        if _is_set(value) and name not in understood:
            what = _WORDS.get(name, name.strip("_").upper())
            raise UsageError(explain(f"{written(node)!r}", "the query", f"no {what}", hint=hint))


def refused(node: exp.Expr, hint: str = "", expected: str = KNOWN) -> UsageError:
    """Make the error for what is SQL and not done here."""
    return UsageError(explain(f"{written(node)!r}", "the query", expected, hint=hint))


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and value != []
