"""Expressions on columns: vectorised by pyarrow.compute, with known fields.

>>> batch = pa.record_batch({"price": [2.0, 30.0], "n": [3, 1]})
>>> cost = col("price") * col("n")
>>> cost.evaluate(batch).to_pylist(), sorted(cost.fields)
([6.0, 30.0], ['n', 'price'])
>>> ((cost > 10) & col("n").isin([1, 2])).evaluate(batch).to_pylist()
[False, True]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.unifying import one_zero, operands_of


@dataclass(frozen=True, eq=False)
class Expression:
    """A computation on the columns of a block; made with :func:`col` and operators."""

    evaluate: Callable[[pa.RecordBatch], Any]
    #: The fields that it reads.
    fields: frozenset[str]
    text: str
    #: What it was made of: the function of pyarrow.compute and its operands; a column has none.
    function: str = ""
    operands: tuple[Expression, ...] = ()

    def call(self, function: str, *others: Any, options: Any = None) -> Expression:
        """Apply any function of pyarrow.compute by name: ``col("s").call("utf8_upper")``."""
        operands = (self, *(_lift(other) for other in others))
        # As bytes, because Arrow's objects cannot travel to other processes.
        written = None if options is None else options.serialize().to_pybytes()

        def evaluate(batch: pa.RecordBatch) -> Any:
            chosen = (
                None if written is None else pc.FunctionOptions.deserialize(pa.py_buffer(written))
            )
            values = operands_of(function, [o.evaluate(batch) for o in operands])
            return pc.call_function(function, values, chosen)

        text = f"{function}({', '.join(o.text for o in operands)})"
        reads = frozenset().union(*(o.fields for o in operands))
        return Expression(evaluate, reads, text, function, operands)

    def isin(self, values: Sequence[Any]) -> Expression:
        """Test whether the value is one of these."""
        wanted = one_zero(pa.array(list(values)))
        operand = self
        if pa.types.is_floating(wanted.type):
            # The first of its operands that is not null: itself, as a number of that kind.
            operand = self.call("coalesce", lit(None).call("cast", options=as_float()))
        return operand.call("is_in", options=pc.SetLookupOptions(wanted))

    def is_null(self) -> Expression:
        """Test whether there is no value."""
        return self.call("is_null")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override] # builds a comparison
        return self.call("equal", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override] # builds a comparison
        return self.call("not_equal", other)

    __hash__ = None  # type: ignore[assignment] # == builds an expression

    def __lt__(self, other: Any) -> Expression:
        return self.call("less", other)

    def __le__(self, other: Any) -> Expression:
        return self.call("less_equal", other)

    def __gt__(self, other: Any) -> Expression:
        return self.call("greater", other)

    def __ge__(self, other: Any) -> Expression:
        return self.call("greater_equal", other)

    def __add__(self, other: Any) -> Expression:
        return self.call("add_checked", other)

    def __sub__(self, other: Any) -> Expression:
        return self.call("subtract_checked", other)

    def __mul__(self, other: Any) -> Expression:
        return self.call("multiply_checked", other)

    def __truediv__(self, other: Any) -> Expression:
        divisor = _lift(other)
        floats = divisor.call("cast", options=as_float())
        return self.call("divide", floats)

    def __radd__(self, other: Any) -> Expression:
        return lit(other) + self

    def __rsub__(self, other: Any) -> Expression:
        return lit(other) - self

    def __rmul__(self, other: Any) -> Expression:
        return lit(other) * self

    def __rtruediv__(self, other: Any) -> Expression:
        return lit(other) / self

    def __neg__(self) -> Expression:
        return self.call("negate_checked")

    def __and__(self, other: Any) -> Expression:
        return self.call("and_kleene", other)

    def __or__(self, other: Any) -> Expression:
        return self.call("or_kleene", other)

    def __rand__(self, other: Any) -> Expression:
        return lit(other) & self

    def __ror__(self, other: Any) -> Expression:
        return lit(other) | self

    def __invert__(self) -> Expression:
        return self.call("invert")

    def __bool__(self) -> bool:
        text = (
            f"the truth of {self.text} is known only for a block; use & | ~ instead of and or not"
        )
        raise TypeError(text)

    def __repr__(self) -> str:
        return self.text


def col(name: str) -> Expression:
    """Stand for the column of a field."""
    return Expression(lambda batch: batch.column(name), frozenset([name]), name)


#: Before the names of a table's fields, where a condition looks at both sides of a join.
ROW = "row."


def row(name: str) -> Expression:
    """Stand for a field of the table, in the condition of a join.

    >>> (row("low") <= col("price")).text
    'less_equal(row.low, price)'
    """
    return col(ROW + name)


def lit(value: Any) -> Expression:
    """Stand for one value."""
    pa.scalar(value)  # refuses now what would be refused later
    return Expression(lambda _: pa.scalar(value), frozenset(), repr(value))


def as_float() -> pc.CastOptions:
    """Make floating numbers of all others; large whole ones become the nearest there is."""
    return pc.CastOptions.unsafe(pa.float64())


def _lift(value: Any) -> Expression:
    return value if isinstance(value, Expression) else lit(value)
