"""Functions of SQL as expressions on columns: what each may have, and what is made of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from thalweg.errors import UsageError, meant
from thalweg.expressions import Expression, lit
from thalweg.sql.strict import plain, refused
from thalweg.sql.truncating import UNITS, cut

#: Parts of times, and the functions of Arrow that give them; weeks begin with Sunday, as 0.
_PARTS: dict[str, tuple[str, Any]] = {
    **{part: (part, None) for part in ("year", "quarter", "month", "day")},
    **{part: (part, None) for part in ("hour", "minute", "second")},
    "week": ("iso_week", None),
    "dow": ("day_of_week", pc.DayOfWeekOptions(count_from_zero=True, week_start=7)),
    "doy": ("day_of_year", None),
}
#: Likely causes, by the function of Arrow that does not take some values.
CAUSES = {
    "'floor_temporal'": "date_trunc takes times, and --types FIELD:timestamp reads text as such",
    "'binary_join_element_wise'": "|| and concat take texts alone, and CAST(x AS TEXT) makes one",
    **{
        f"'{function}'": f"{part} is of times, and --types FIELD:timestamp reads text as such"
        for part, (function, _) in _PARTS.items()
    },
}
#: Functions of groups, whose place is behind a window.
AGGREGATES = (
    *("count", "sum", "avg", "min", "max", "variance", "stddev", "array_agg"),
    *("approx_distinct", "approx_quantile"),
)
#: What can be counted of digits and of letters.
_DIGITS, _LETTERS = range(-18, 19), range(-(2**31), 2**31)
_WHOLE = re.compile(r"-?\d{1,10}")


class Translating(Protocol):
    """Makes expressions on columns."""

    def expression(self, node: exp.Expr) -> Expression:
        """Translate any expression."""


@dataclass(frozen=True)
class Form:
    """A kind of node: which of its arguments are understood, and what is made of them."""

    understood: tuple[str, ...]
    translate: Callable[[Any, Any], Expression]


def changed(change: Callable[[Any], Any], made: Expression) -> Expression:
    """Change the values of an expression, whatever their type turns out to be."""
    return replace(made, evaluate=lambda batch: change(made.evaluate(batch)))


def unknown_function(node: exp.Expr, name: str) -> UsageError:
    """Make the error for a function that is not there, with the closest one that is."""
    hint = meant(name.lower(), [*NAMES, *AGGREGATES], alike=0.7)
    return refused(node, hint, f"one of the functions {', '.join(NAMES)}")


def _unary(function: str, options: Any = None, change: Callable[[Any], Any] | None = None) -> Form:
    def translate(to: Translating, node: exp.Expr) -> Expression:
        made = to.expression(node.this)
        return (changed(change, made) if change else made).call(function, options=options)

    return Form(("this",), translate)


def _floats(values: Any) -> Any:
    """Make the nearest floating numbers of whole ones, as Arrow refuses to do beyond 2**53."""
    return values.cast(pa.float64(), safe=False) if pa.types.is_integer(values.type) else values


def _moments(values: Any) -> Any:
    """Let days have hours: each begins at midnight."""
    return values.cast(pa.timestamp("s")) if pa.types.is_date(values.type) else values


def _first_of(function: str, *flags: str, options: Any = None) -> Form:
    """Make it of values, any number of which may be missing."""

    def translate(to: Translating, node: exp.Expr) -> Expression:
        # NULL that stands in the query has no type, and is never what is taken.
        given = (part.unnest() for part in (node.this, *node.expressions))
        parts = [part for part in given if not isinstance(part, exp.Null)]
        if not parts:
            return lit(None)
        first, *others = map(to.expression, parts)
        return first.call(function, *others, options=options)

    return Form(("this", "expressions", *flags), translate)


def _part(to: Translating, node: exp.Extract) -> Expression:
    """Take the hour, the day ... out of times, by their own clock."""
    part = node.name.lower()
    if part not in _PARTS:
        raise refused(node, expected=f"one of the parts {list(_PARTS)}")
    function, options = _PARTS[part]
    return changed(_moments, to.expression(node.expression)).call(function, options=options)


def _cut(to: Translating, node: exp.TimestampTrunc | exp.DateTrunc) -> Expression:
    """Cut times off at the beginning of an hour, a day ..."""
    unit = node.args["unit"].name.lower()
    if unit not in UNITS:
        raise refused(node, expected=f"one of the units {list(UNITS)}")
    return changed(partial(cut, unit=unit), to.expression(node.this))


def _rounded(to: Translating, node: exp.Round) -> Expression:
    """Round halves away from 0."""
    digits = _number(node, "decimals", _DIGITS) if node.args.get("decimals") else 0
    options = pc.RoundOptions(digits, "half_towards_infinity")
    return to.expression(node.this).call("round", options=options)


def _letters(to: Translating, node: exp.Substring) -> Expression:
    """Take letters from the first one, 1, or from the end, -1; those before 1 count as well."""
    start = _number(node, "start", _LETTERS)
    first = start - 1 if start > 0 else start
    end = None
    if node.args.get("length"):
        length = _number(node, "length", range(_LETTERS.stop))
        end = first + length if start else max(length - 1, 0)
        end = None if start < 0 <= end else end
    options = pc.SliceOptions(first, end)
    return to.expression(node.this).call("utf8_slice_codeunits", options=options)


def _number(node: exp.Expr, name: str, among: range) -> int:
    """Read a whole number that stands in the query."""
    given = node.args.get(name)
    text = "" if given is None else plain(given)
    if not _WHOLE.fullmatch(text) or int(text) not in among:
        expected = f"a whole number from {among.start} to {among.stop - 1} as {name}"
        raise refused(node, expected=expected)
    return int(text)


def _null_if(to: Translating, node: exp.Nullif) -> Expression:
    value = to.expression(node.this)
    same = (value == to.expression(node.expression)).call("coalesce", lit(False))
    return same.call("if_else", lit(None), value)


def _joined(to: Translating, node: exp.DPipe) -> Expression:
    """Put texts behind each other; with NULL there is none."""
    return _texts(to, (node.this, node.expression), "emit_null")


def _concat(to: Translating, node: exp.Concat) -> Expression:
    """Put texts behind each other; NULL is passed over."""
    # Arrow fails on values alone that are all NULL.
    return _texts(to, [*node.expressions, exp.Literal.string("")], "skip")


def _texts(to: Translating, nodes: Iterable[exp.Expr], null: str) -> Expression:
    # NULL that stands in a query has no type, which Arrow does not join.
    none = lit(None).call("cast", options=pc.CastOptions.safe(pa.string()))
    inner = (node.unnest() for node in nodes)
    first, *others = (none if isinstance(n, exp.Null) else to.expression(n) for n in inner)
    return first.call("binary_join_element_wise", *others, "", options=pc.JoinOptions(null))


_ALL_VALUES = pc.ElementWiseAggregateOptions(skip_nulls=True)
FUNCTIONS: dict[type[exp.Func], Form] = {
    exp.Lower: _unary("utf8_lower"),
    exp.Upper: _unary("utf8_upper"),
    exp.Length: _unary("utf8_length"),
    exp.Trim: _unary("utf8_trim", pc.TrimOptions(" ")),
    exp.Substring: Form(("this", "start", "length"), _letters),
    exp.Concat: Form(("expressions", "safe", "coalesce"), _concat),
    exp.Abs: _unary("abs_checked"),
    exp.Floor: _unary("floor", change=_floats),
    exp.Ceil: _unary("ceil", change=_floats),
    exp.Round: Form(("this", "decimals"), _rounded),
    exp.Sqrt: _unary("sqrt_checked", change=_floats),
    exp.Coalesce: _first_of("coalesce"),
    exp.Greatest: _first_of("max_element_wise", "ignore_nulls", options=_ALL_VALUES),
    exp.Least: _first_of("min_element_wise", "ignore_nulls", options=_ALL_VALUES),
    exp.Nullif: Form(("this", "expression"), _null_if),
    exp.DateTrunc: Form(("this", "unit"), _cut),
    exp.TimestampTrunc: Form(("this", "unit"), _cut),
    exp.Extract: Form(("this", "expression"), _part),
    exp.Year: _unary("year", change=_moments),
    exp.Month: _unary("month", change=_moments),
    exp.Day: _unary("day", change=_moments),
    exp.Hour: _unary("hour", change=_moments),
    exp.Minute: _unary("minute", change=_moments),
    exp.Second: _unary("second", change=_moments),
}
JOINED = Form(("this", "expression", "safe"), _joined)
#: Functions by the names that they are known by; ``cast`` and ``if`` are forms of their own.
NAMES = tuple(
    sorted({"cast", "if", *(f.sql_names()[0].lower() for f in FUNCTIONS)} - {"timestamp_trunc"})
)
