"""Expressions of SQL as expressions on columns.

For each kind of node there is what it may have and who translates it; all others are refused.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from thalweg.errors import UsageError, explain
from thalweg.expressions import Expression, as_float, col, lit
from thalweg.schemas import Fields
from thalweg.sql.functions import CAUSES, FUNCTIONS, JOINED, Form, changed, unknown_function
from thalweg.sql.scope import Names
from thalweg.sql.strict import called, only, plain, refused, written

_TYPES = {"INT": pa.int64(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "FLOAT": pa.float64()}
_TYPES |= {"TEXT": pa.string(), "VARCHAR": pa.string(), "BOOLEAN": pa.bool_()}
#: Types of times; only texts that stand in the query become such.
_TIMES = {"TIMESTAMP": pa.timestamp("us"), "TIMESTAMPTZ": pa.timestamp("us", "UTC")}
_TIMES |= {"DATE": pa.date32()}
_TIME_FORMS = (
    "TIMESTAMP '2026-01-31 12:30:00', TIMESTAMPTZ '2026-01-31 12:30:00Z' or DATE '2026-01-31'"
)
#: Likely causes, by the function of Arrow that does not take some values.
_CAUSES = CAUSES | {"'bit_wise_and'": "// and % take whole numbers alone"}
_WHOLE = range(-(2**63), 2**63)


@dataclass
class Translator:
    """Makes expressions on columns."""

    names: Names

    def expression(self, node: exp.Expr) -> Expression:
        """Translate any expression."""
        form = _FORMS.get(type(node))
        if isinstance(node, exp.AggFunc):
            raise refused(node, "an aggregate belongs into SELECT or HAVING, and not into another")
        if form is None:
            name = called(node)
            raise unknown_function(node, name) if name else refused(node)
        only(node, *form.understood)
        return form.translate(self, node)

    def column(self, node: exp.Column) -> Expression:
        """Find a column."""
        return col(self.names.of(node))


def checked(made: Expression, fields: Fields, node: exp.Expr, truth: bool = False) -> Expression:
    """Try an expression out on a row without values; with ``truth`` it is a condition.

    Where types of fields are not known, nothing is tried.
    """
    if truth:
        made = changed(_truth, made)
    try:
        got = type_of(made, fields)
    except (pa.ArrowException, TypeError) as error:
        looked_at = fields.select(sorted(made.fields))
        expected, said = "values that go together", str(error).splitlines()[0]
        hint = "; ".join(filter(None, [looked_at.describe(), remedy(looked_at, said)]))
        text = explain(f"{written(node)!r}", "the query", expected, said, hint)
        raise UsageError(text) from error
    if truth and got not in (None, pa.bool_()):
        expected = "a condition, which is true or false"
        raise UsageError(explain(f"{written(node)!r}", "the query", expected, str(got)))
    return replace(made, text=written(node))  # what a run will call it where it raises


def type_of(made: Expression, fields: Fields) -> pa.DataType | None:
    """Give the type that an expression has; None where those of its fields are not known."""
    names = sorted(made.fields)
    types = [fields.type_of(name) for name in names]
    if None in types:
        return None
    # One row, since some functions look at types only where there are rows.
    row = pa.RecordBatch.from_arrays([pa.nulls(1, type_) for type_ in types], names=names)
    found: pa.DataType = made.evaluate(row).type
    return found


def remedy(fields: Fields, said: str = "") -> str:
    """Say what may help where values of these fields do not go together."""
    cause = next((hint for function, hint in _CAUSES.items() if function in said), "")
    if cause:
        return cause
    types = {name: fields.type_of(name) for name in fields.names}
    text = next((name for name, type_ in types.items() if type_ == pa.string()), "")
    if text and ("timestamp" in said or "date" in said):
        return f"--types {text}:timestamp makes times of it"
    if text:
        return f"CAST({text} AS INT), or --types {text}:int, makes numbers of it"
    return f"write {_TIME_FORMS}" if any(map(_is_moment, types.values())) else ""


def _is_moment(type_: pa.DataType | None) -> bool:
    return type_ is not None and (pa.types.is_timestamp(type_) or pa.types.is_date(type_))


def value(node: exp.Expr) -> Any:
    """Read a value that stands in a query."""
    match node:
        case exp.Literal() if node.is_string:
            return node.this
        case exp.Literal():
            return _number(node)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.Cast() if _type_name(node) in _TIMES:
            return _moment(node)
        case exp.Neg(this=exp.Literal() as inner) if not inner.is_string:
            return _number(inner, -1)
    raise refused(node, expected="a value")


def _number(node: exp.Literal, sign: int = 1) -> int | float:
    text = str(node.this).replace("_", "")
    if not text.isdigit():
        return sign * float(text)
    if sign * int(text) not in _WHOLE:
        raise refused(node, expected="whole numbers of 64 bits", hint=f"{text}.0 is a float")
    return sign * int(text)


def _type_name(node: exp.Cast) -> str:
    return plain(node.to).upper()


def _moment(node: exp.Cast) -> Any:
    """Read a time that stands in a query."""
    only(node, "this", "to")
    if not (isinstance(node.this, exp.Literal) and node.this.is_string):
        hint = "--types FIELD:timestamp reads a field as times"
        raise refused(node, hint, f"a text, as in {_TIME_FORMS}")
    try:
        return pa.scalar(node.this.this).cast(_TIMES[_type_name(node)]).as_py()
    except (pa.ArrowException, OverflowError) as error:
        raise refused(node.this, expected=f"a time, as in {_TIME_FORMS}") from error


def _binary(make: Callable[[Any, Any], Any], *flags: str) -> Form:
    def translate(to: Translator, node: exp.Binary) -> Expression:
        made: Expression = make(to.expression(node.this), to.expression(node.expression))
        return made

    return Form(("this", "expression", *flags), translate)


def _both(make: Callable[[Any, Any], Expression]) -> Form:
    return _binary(lambda a, b: make(changed(_truth, a), changed(_truth, b)))


def _truth(values: Any) -> Any:
    """Make a NULL that stands in the query, which has no type, the unknown of conditions."""
    return values.cast(pa.bool_()) if pa.types.is_null(values.type) else values


def _is(to: Translator, node: exp.Is) -> Expression:
    if not isinstance(node.expression, exp.Null):
        raise refused(node, "IS [NOT] NULL is all there is")
    made = to.expression(node.this).is_null()
    return ~made if node.args.get("negate") else made


def _in(to: Translator, node: exp.In) -> Expression:
    """Make it as SQL does: unknown for no value, and for no match among values and NULL."""
    left, values = to.expression(node.this), [value(e) for e in node.expressions]
    known = [v for v in values if v is not None]
    if not known:
        return left == lit(None)
    if all(isinstance(v, dt.date) for v in known):
        # Not looked up, since Arrow would cut the time of day off to find it among days.
        found = reduce(or_, [left == v for v in known])
    else:
        found = left.isin(_of_one_type(known, node))
    if len(known) < len(values):
        found = found.call("if_else", True, lit(None))
    return left.call("is_valid").call("if_else", found, lit(None))


def _of_one_type(values: list[Any], node: exp.In) -> list[Any]:
    try:
        pa.array(values)
    except pa.ArrowException as error:
        raise refused(node, expected="values of one type behind IN") from error
    return values


def _between(to: Translator, node: exp.Between) -> Expression:
    parts = (node.this, node.args["low"], node.args["high"])
    middle, low, high = map(to.expression, parts)
    return (middle >= low) & (middle <= high)


def _like(to: Translator, node: exp.Like) -> Expression:
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise refused(node, expected="a text behind LIKE")
    # SQL has no escapes unless it says so; Arrow does.
    options = pc.MatchSubstringOptions(str(pattern.this).replace("\\", "\\\\"))
    made = to.expression(node.this).call("match_like", options=options)
    return ~made if node.args.get("negate") else made


def _negated(to: Translator, node: exp.Neg) -> Expression:
    number = isinstance(node.this, exp.Literal) and not node.this.is_string
    return lit(value(node)) if number else -to.expression(node.this)


def _cast(to: Translator, node: exp.Cast) -> Expression:
    name = _type_name(node)
    if name in _TIMES:
        return lit(_moment(node))
    if name not in _TYPES:
        raise refused(node, expected=f"one of the types {sorted(_TYPES)}")
    floating = _TYPES[name] == pa.float64()
    options = as_float() if floating else pc.CastOptions.safe(_TYPES[name])
    return to.expression(node.this).call("cast", options=options)


def _case(to: Translator, node: exp.Case) -> Expression:
    if node.this is not None:
        raise refused(node, "say CASE WHEN x = 1 THEN ...")
    default = node.args.get("default")
    made = lit(None) if default is None else to.expression(default)
    for branch in reversed(node.args["ifs"]):
        only(branch, "this", "true")
        made = _chosen(to, branch, made)
    return made


def _if(to: Translator, node: exp.If) -> Expression:
    if node.args.get("false") is None:
        raise refused(node, expected="IF(condition, value, other)")
    return _chosen(to, node, to.expression(node.args["false"]))


def _chosen(to: Translator, node: exp.If, other: Expression) -> Expression:
    # A condition that is unknown is not met.
    condition = changed(_truth, to.expression(node.this)).call("coalesce", lit(False))
    return condition.call("if_else", to.expression(node.args["true"]), other)


def _quotient(one: Expression, other: Expression) -> Expression:
    """Divide whole numbers, and give a whole one, cut towards 0."""
    return _whole(one).call("divide_checked", _whole(other))


def _remainder(one: Expression, other: Expression) -> Expression:
    """Give what division leaves, with the sign of what is divided; of whole numbers alone."""
    return _whole(one) - _quotient(one, other) * _whole(other)


def _whole(number: Expression) -> Expression:
    """Have Arrow refuse all but whole numbers: nothing else has bits."""
    return number.call("bit_wise_and", number)


def _inner(to: Translator, node: exp.Expr) -> Expression:
    return to.expression(node.this)


_LITERAL = Form(("this", "is_string"), lambda _, node: lit(value(node)))
_FORMS: dict[type, Form] = {
    **FUNCTIONS,
    exp.Column: Form(("this", "table"), lambda to, node: to.column(node)),
    exp.Literal: _LITERAL,
    exp.Boolean: _LITERAL,
    exp.Null: _LITERAL,
    exp.Paren: Form(("this",), _inner),
    exp.EQ: _binary(lambda a, b: a == b),
    exp.NEQ: _binary(lambda a, b: a != b),
    exp.GT: _binary(lambda a, b: a > b),
    exp.GTE: _binary(lambda a, b: a >= b),
    exp.LT: _binary(lambda a, b: a < b),
    exp.LTE: _binary(lambda a, b: a <= b),
    exp.Add: _binary(lambda a, b: a + b),
    exp.Sub: _binary(lambda a, b: a - b),
    exp.Mul: _binary(lambda a, b: a * b),
    exp.Div: _binary(lambda a, b: a / b, "typed", "safe"),
    exp.Mod: _binary(_remainder),
    exp.IntDiv: _binary(_quotient),
    exp.DPipe: JOINED,
    exp.And: _both(lambda a, b: a & b),
    exp.Or: _both(lambda a, b: a | b),
    exp.Neg: Form(("this",), _negated),
    exp.Not: Form(("this",), lambda to, node: ~changed(_truth, to.expression(node.this))),
    exp.Is: Form(("this", "expression", "negate"), _is),
    exp.In: Form(("this", "expressions"), _in),
    exp.Between: Form(("this", "low", "high"), _between),
    exp.Like: Form(("this", "expression", "negate"), _like),
    exp.Cast: Form(("this", "to"), _cast),
    exp.Case: Form(("this", "ifs", "default"), _case),
    exp.If: Form(("this", "true", "false"), _if),
}
