"""When a tuple and a row of a table belong together: equal keys, or any condition on both.

>>> from thalweg.expressions import col, row
>>> stream, table = fields({"price": int}), fields({"low": int, "high": int, "name": str})
>>> found = condition((row("low") <= col("price")) & (col("price") < row("high")), stream, table)
>>> found.band.low, found.band.high
(Bound(row='low', inclusive=True), Bound(row='high', inclusive=False))
>>> condition("price", stream, fields({"price": int})).keys
(('price', 'price'),)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from thalweg.errors import TopologyError, explain, locate, shorten
from thalweg.expressions import ROW, Expression
from thalweg.operators.calls import Function
from thalweg.operators.lookups import key_type
from thalweg.operators.purity import Pure, plain
from thalweg.schemas import Fields, fields
from thalweg.validation import unknown


@dataclass(frozen=True)
class Bound:
    """A field of the table that a value is compared with."""

    row: str
    inclusive: bool


@dataclass(frozen=True)
class Band:
    """A field of the stream lies between two of the table, or on one side of one."""

    field: str
    low: Bound | None = None
    high: Bound | None = None
    #: Whether nothing else is asked.
    whole: bool = False


@dataclass(frozen=True)
class Condition:
    """What makes a pair: equal keys, and whatever else."""

    #: Fields of the stream and of the table that are equal.
    keys: tuple[tuple[str, str], ...] = ()
    #: What else has to be true, on columns of both; and the range that it contains.
    where: Expression | None = None
    band: Band | None = None
    #: A function of a tuple and a row, called on each pair.
    call: Function | None = None
    #: Whether somebody said of it, or it is clear, that it raises for no value.
    pure: bool = False

    @property
    def ways(self) -> tuple[str, ...]:
        """Ways to find pairs; comparing each with each is always one.

        >>> Condition((("a", "a"),)).ways
        ('hash', 'loop')
        """
        if self.keys:
            return "hash", "loop"
        return ("range", "loop") if self.band is not None else ("loop",)

    @property
    def reads(self) -> frozenset[str] | None:
        """Fields of the stream that matter; None for all."""
        if self.call is not None:
            return None
        own = frozenset() if self.where is None else self.where.fields
        return frozenset(f for f in own if not f.startswith(ROW)) | {one for one, _ in self.keys}


def condition(on: Any, stream: Fields, table: Fields, where: str = "join") -> Condition:
    """Read what a user says: names, names of both sides, an expression, or a function."""
    value = plain(on)
    if isinstance(value, Expression):
        return _expression(value, stream, table, where, isinstance(on, Pure))
    if callable(value):
        return Condition(call=value)
    pairs = tuple(value.items()) if isinstance(value, Mapping) else _same_names(value, where)
    for one, other in pairs:
        _check(one, other, stream, table, where)
    return Condition(pairs, pure=True)


def _same_names(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    names = fields(value).names if isinstance(value, str | list | tuple) else ()
    if not names:
        raise TopologyError(
            explain(
                f"on of {where}",
                expected='a field, several, {"of the stream": "of the table"} or a condition',
                got=shorten(value),
            )
        )
    return tuple((name, name) for name in names)


def _check(one: str, other: str, stream: Fields, table: Fields, where: str) -> None:
    for name, known, side in ((one, stream, "stream"), (other, table, "table")):
        if name not in known:
            raise unknown(name, "field", f"the {side} of {where}", known.names)
    ours, theirs = stream.type_of(one), table.type_of(other)
    if not _comparable(ours, theirs):
        raise TopologyError(
            explain(
                f"field {other!r} of the table of {where}",
                expected=f"keys that can be compared with {one!r}, {ours}",
                got=str(theirs),
                hint="declare one type for both",
            )
        )


def _comparable(ours: pa.DataType | None, theirs: pa.DataType | None) -> bool:
    """Say whether values of two types can be equal, as far as the types are known."""
    forms = [key_type(type_) for type_ in (ours, theirs) if type_ is not None]
    if None in forms or len(forms) < 2:
        return None not in forms
    one, other = forms
    numbers = (pa.types.is_integer, pa.types.is_floating)
    both = all(any(check(form) for check in numbers) for form in forms)
    return both or one == other or pa.types.is_null(one) or pa.types.is_null(other)


# --- expressions ---------------------------------------------------------------------------------


def _expression(
    value: Expression, stream: Fields, table: Fields, where: str, pure: bool
) -> Condition:
    for name in sorted(value.fields):
        known, side = (table, "table") if name.startswith(ROW) else (stream, "stream")
        if name.removeprefix(ROW) not in known:
            raise unknown(name.removeprefix(ROW), "field", f"the {side} of {where}", known.names)
    _try_out(value, stream, table, where)
    parts = list(_conjuncts(value))
    keys = tuple(pair for part in parts if (pair := _equal(part, stream, table)))
    return Condition(keys, value, None if keys else _band(parts, stream, table), pure=pure)


def _try_out(value: Expression, stream: Fields, table: Fields, where: str) -> None:
    """Evaluate a condition on no rows, to see whether it can be, where types are known."""
    names = sorted(value.fields)
    types = [(table if n.startswith(ROW) else stream).type_of(n.removeprefix(ROW)) for n in names]
    if None in types:
        return
    empty = pa.RecordBatch.from_arrays([pa.array([], type_) for type_ in types], names=names)
    try:
        got = value.evaluate(empty).type
    except pa.ArrowException as error:
        got = str(error)
    if got != pa.bool_():
        text = explain(f"condition {value.text}", where, "true or false", str(got))
        raise TopologyError(text)


def _conjuncts(value: Expression) -> Iterator[Expression]:
    if value.function != "and_kleene":
        yield value
        return
    for part in value.operands:
        yield from _conjuncts(part)


def _columns(part: Expression) -> tuple[str, str] | None:
    """Name the field and the table's field that are compared; None for anything else."""
    names = [o.text for o in part.operands if not o.function and o.fields == {o.text}]
    sides = {name.startswith(ROW): name for name in names}
    if len(part.operands) != 2 or len(names) != 2 or len(sides) != 2:
        return None
    return sides[False], sides[True].removeprefix(ROW)


def _equal(part: Expression, stream: Fields, table: Fields) -> tuple[str, str] | None:
    """Read a comparison that is one of keys; types have to be known for that."""
    names = _columns(part) if part.function == "equal" else None
    return names if names and _same_form(*names, stream, table) else None


def _same_form(one: str, other: str, stream: Fields, table: Fields) -> bool:
    ours, theirs = stream.type_of(one), table.type_of(other)
    return bool(ours and theirs and key_type(ours) and key_type(ours) == key_type(theirs))


_LESS = {"less": False, "less_equal": True}
_MORE = {"greater": False, "greater_equal": True}


def _band(parts: list[Expression], stream: Fields, table: Fields) -> Band | None:
    """Find the range that a field has to be in, with both ends if there are two."""
    found: dict[str, dict[str, Bound]] = {}
    for part in parts:
        names = _columns(part) if part.function in _LESS | _MORE else None
        if names is None or not _same_form(*names, stream, table) or not _ordered(stream, names[0]):
            continue
        ours_first = part.operands[0].text == names[0]
        end = "high" if ours_first == (part.function in _LESS) else "low"
        found.setdefault(names[0], {}).setdefault(
            end, Bound(names[1], (_LESS | _MORE)[part.function])
        )
    bands = [Band(field, **ends, whole=len(ends) == len(parts)) for field, ends in found.items()]
    return max(bands, key=lambda band: bool(band.low) + bool(band.high), default=None)


def _ordered(stream: Fields, name: str) -> bool:
    type_ = stream.type_of(name)
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_temporal)
    return any(check(type_) for check in checks)


def describe(found: Condition) -> str:
    """Write a condition as people do, for messages."""
    if found.call is not None:
        return locate(found.call)
    if found.where is not None:
        return found.where.text
    return ", ".join(one if one == other else f"{one} = {other}" for one, other in found.keys)
