"""Values of an expression's operands as types that Arrow takes beside each other.

>>> import pyarrow as pa
>>> found = alike([pa.array([2**53 + 1]), pa.scalar(0.5)])
>>> [str(value.type) for value in found]
['double', 'double']
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COMPARING = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
#: Functions that take whole and floating numbers beside each other, and times of several kinds.
MIXING = COMPARING | {"add_checked", "subtract_checked", "multiply_checked", "divide"}
MIXING |= {"if_else", "coalesce", "max_element_wise", "min_element_wise"}
#: Units of times, the finest first.
_UNITS = ("ns", "us", "ms", "s")


def operands_of(function: str, values: list[Any]) -> list[Any]:
    """Give the values as the function takes them."""
    if function in MIXING:
        return times_alike(alike(values), comparing=function in COMPARING)
    return [one_zero(value) for value in values] if function == "is_in" else values


def alike(values: list[Any]) -> list[Any]:
    """Turn whole numbers beside floating ones into these, as Arrow refuses to do beyond 2**53."""
    if not any(pa.types.is_floating(value.type) for value in values):
        return values
    return [
        value.cast(pa.float64(), safe=False) if pa.types.is_integer(value.type) else value
        for value in values
    ]


def times_alike(values: list[Any], comparing: bool) -> list[Any]:
    """Give times of several zones in UTC, and those of several units in the finest of them.

    A single time that is beyond those of the finest unit is compared in its own: no time of that
    unit is near it.
    """
    types = {value.type for value in values if pa.types.is_timestamp(value.type)}
    if len(types) < 2 or len({type_.tz is None for type_ in types}) == 2:
        return values
    zones = {type_.tz for type_ in types}
    zone = zones.pop() if len(zones) == 1 else "UTC"
    finest, *_, coarsest = sorted((type_.unit for type_ in types), key=_UNITS.index)
    try:
        return [_in_unit(value, finest, zone, safe=True) for value in values]
    except pa.ArrowInvalid:
        single = all(isinstance(v, pa.Scalar) for v in values if _unit(v) != finest)
        if not comparing or not single:
            raise
    # What a coarser unit cuts off does not matter there.
    return [_in_unit(value, coarsest, zone, safe=False) for value in values]


def _unit(value: Any) -> str | None:
    return value.type.unit if pa.types.is_timestamp(value.type) else None


def _in_unit(value: Any, unit: str, zone: str | None, safe: bool) -> Any:
    return value if _unit(value) is None else value.cast(pa.timestamp(unit, zone), safe=safe)


def one_zero(values: Any) -> Any:
    """Make 0.0 of -0.0, as Arrow looks numbers up by their bits."""
    if not (pa.types.is_float32(values.type) or pa.types.is_float64(values.type)):
        return values
    return pc.add(values, pa.scalar(0.0, values.type))
