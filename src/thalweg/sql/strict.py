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

from typing import Any

from sqlglot import ErrorLevel, exp

from thalweg.errors import UsageError, explain

KNOWN = "columns, values, + - * / %, ||, comparisons, AND OR NOT, IN, IS NULL, BETWEEN, LIKE, CASE"
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


def written(node: exp.Expr) -> str:
    """Write a part of a query as SQL."""
    return str(node.sql(unsupported_level=ErrorLevel.IGNORE))


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
