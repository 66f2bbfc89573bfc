"""Aggregates of a query, and what is computed of them behind a window."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from thalweg.errors import SchemaError, UsageError, explain
from thalweg.expressions import Expression, col
from thalweg.schemas import Fields
from thalweg.sql.expressions import Translator, checked, remedy, type_of, value
from thalweg.sql.functions import AGGREGATES
from thalweg.sql.scope import Names, free
from thalweg.sql.strict import only, refused, written
from thalweg.windows import agg
from thalweg.windows.aggregates import Aggregate, check_field

#: What a window adds to each result, as queries call it.
BOUNDS = {"window_start": "start", "window_end": "end"}
_OF_FIELD: dict[type, Callable[[str], Aggregate]] = {
    exp.Sum: agg.sum,
    exp.Avg: agg.mean,
    exp.Min: agg.min,
    exp.Max: agg.max,
    exp.Variance: agg.variance,
    exp.Stddev: agg.deviation,
    exp.StddevSamp: agg.deviation,
    exp.ApproxDistinct: agg.distinct,
    exp.ArrayAgg: agg.values,
}
_KNOWN = f"{', '.join(AGGREGATES)}(x, q)"


@dataclass
class Aggregates:
    """Aggregates that a query has, each under a name, and what they are made of."""

    names: Names
    #: Fields before the window.
    fields: Fields
    #: Columns to be computed before, by name.
    computed: dict[str, Expression] = field(default_factory=dict)
    made: dict[str, Aggregate] = field(default_factory=dict)
    _by_text: dict[str, str] = field(default_factory=dict)

    def expression(self, node: exp.Expr) -> Expression:
        """Stand for the value that an aggregate will have."""
        text = self.names.canonical(node)
        if text not in self._by_text:
            made = self._aggregate(node)
            self._by_text[text] = self.free("agg_1")
            self.made[self._by_text[text]] = made
        found = col(self._by_text[text])
        # The sketch gives a list of values, for a list of shares.
        return found.call("list_element", 0) if isinstance(node, exp.ApproxQuantile) else found

    def compute(self, wanted: str, made: Expression) -> str:
        """Have something computed before the window; gives the name of its field."""
        name = self.free(wanted)
        self.computed[name] = made
        return name

    def free(self, wanted: str) -> str:
        """Give a name that no field has, before or behind the window."""
        return free(wanted, {*self.fields.names, *self.computed, *self.made, *BOUNDS.values()})

    def _aggregate(self, node: exp.Expr) -> Aggregate:
        inner = node.this
        if isinstance(inner, exp.Distinct):
            hint = "approx_distinct(x) estimates it to about 2 %"
            raise refused(node, hint if isinstance(node, exp.Count) else "", "no DISTINCT")
        if isinstance(node, exp.Count):
            only(node, "this", "big_int")
            if isinstance(inner, exp.Star):
                only(inner)
                return agg.count()
            return agg.count(self._field(inner))
        if isinstance(node, exp.ApproxQuantile):
            only(node, "this", "quantile")
            return self._fitting(agg.quantiles(self._field(inner), [_share(node)]), node)
        if type(node) not in _OF_FIELD:
            raise refused(node, expected=_KNOWN)
        only(node, "this")
        return self._fitting(_OF_FIELD[type(node)](self._field(inner)), node)

    def _fitting(self, made: Aggregate, node: exp.Expr) -> Aggregate:
        """Refuse an aggregate of numbers where there are none."""
        read = self.computed.get(str(made.field), col(str(made.field)))
        type_ = type_of(read, self.fields)
        try:
            check_field(made, type_, written(node))
        except SchemaError as error:
            nested = pa.types.is_nested(type_)
            expected = "single values" if nested else "whole or floating numbers"
            hint = remedy(self.fields.select(sorted(read.fields)))
            text = explain(f"{written(node)!r}", "the query", expected, str(type_), hint)
            raise UsageError(text) from error
        return made

    def _field(self, node: exp.Expr) -> str:
        """Give the field that an aggregate looks at, which may have to be computed."""
        if isinstance(node, exp.Column):
            return self.names.of(node)
        made = Translator(self.names).expression(node)
        return self.compute("arg_1", checked(made, self.fields, node))


def _share(node: exp.ApproxQuantile) -> float:
    share = node.args["quantile"]
    number = value(share) if isinstance(share, exp.Literal) and not share.is_string else None
    if number is None or not 0 <= number <= 1:
        raise refused(node, expected="a share between 0 and 1, as in approx_quantile(x, 0.9)")
    return float(number)


@dataclass
class Behind(Translator):
    """Translates what stands behind a window: keys, aggregates, and what is computed of them."""

    aggregates: Aggregates
    #: Fields of keys, by what they are made of.
    keys: Mapping[str, str]
    #: Whether the query says which window; without one, there is nothing to tell of it.
    windowed: bool
    #: What names of SELECT stand for, where they may be used.
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)

    def expression(self, node: exp.Expr) -> Expression:
        """Translate any expression."""
        key = self.keys.get(self.names.canonical(node))
        if key is not None:
            return col(key)
        if isinstance(node, exp.AggFunc):
            return self.aggregates.expression(node)
        return super().expression(node)

    def column(self, node: exp.Column) -> Expression:
        """Find what a name means: a bound of the window, or a name of SELECT."""
        if is_bound(node, self.names):
            if not self.windowed:
                raise UsageError(explain(f"column {node.name}", "the query", "a WINDOW", "none"))
            return col(BOUNDS[node.name])
        if not node.table and node.name in self.aliases:
            return replace(self, aliases={}).expression(self.aliases[node.name])
        self.names.of(node)  # names that mean nothing are told as such
        hint = f"GROUP BY {written(node)}, or say max({written(node)})"
        raise refused(node, hint, "a column of GROUP BY, or an aggregate")


def is_bound(node: exp.Expr, names: Names) -> bool:
    """Say whether a name is a bound of the window."""
    if not isinstance(node, exp.Column) or node.table or node.name not in BOUNDS:
        return False
    return not names.places(node)


def has_aggregate(nodes: Collection[exp.Expr]) -> bool:
    """Say whether there is an aggregate in any of these."""
    return any(node.find(exp.AggFunc) for node in nodes)
