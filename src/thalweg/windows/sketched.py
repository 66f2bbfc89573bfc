"""Aggregates that need little room, whatever comes, and say nearly the truth (Apache DataSketches).

Their partial results are bytes of a sketch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import pyarrow as pa
from datasketches import hll_sketch, hll_union, kll_doubles_sketch, tgt_hll_type

from thalweg.blocks import Rows
from thalweg.errors import TopologyError, explain
from thalweg.hashing import hash_key
from thalweg.windows.aggregates import Aggregate, Partial

#: 4096 registers: about 1.6 % off in two of three cases.
_LG_K = 12
#: Rank error of about 1.3 %.
_K = 200


@dataclass(frozen=True)
class Distinct(Aggregate):
    """How many different values a field has (HyperLogLog)."""

    of_keys: ClassVar[bool] = True

    def partials(self, column: pa.Array | None, starts: Rows, rows: int) -> list[Partial]:
        """Take times with nanoseconds as numbers, since keys have microseconds only."""
        if column is not None and getattr(column.type, "unit", None) == "ns":
            column = column.cast(pa.int64())
        return super().partials(column, starts, rows)

    def of(self, values: list[Any]) -> bytes:
        """Note values."""
        sketch = hll_sketch(_LG_K, tgt_hll_type.HLL_8)
        for value in values:
            sketch.update(hash_key(value) - 2**63)
        return bytes(sketch.serialize_compact())

    def add(self, one: bytes, other: bytes) -> bytes:
        """Put two together."""
        return self.combine([one, other])

    def combine(self, partials: list[bytes]) -> bytes:
        """Put several together."""
        union = hll_union(_LG_K)
        for partial in partials:
            union.update(hll_sketch.deserialize(partial))
        return bytes(union.get_result(tgt_hll_type.HLL_8).serialize_compact())

    def result(self, partial: bytes | None) -> int:
        """Estimate the number."""
        return 0 if partial is None else round(hll_sketch.deserialize(partial).get_estimate())

    def type(self, field: pa.DataType | None) -> pa.DataType | None:
        """Give whole numbers."""
        return pa.int64()


@dataclass(frozen=True)
class Quantiles(Aggregate):
    """Values below which given shares of a field's values are (KLL).

    The sketch draws lots: runs may differ, within its error.
    """

    of_numbers: ClassVar[bool] = True

    shares: Sequence[float] = (0.5,)

    def __post_init__(self) -> None:
        given = self.shares if isinstance(self.shares, Sequence) else ()
        if not given or not all(isinstance(s, Real) and 0 <= s <= 1 for s in given):
            subject = f"quantiles of field {self.field!r}"
            expected = "a list of shares of 0 to 1, such as [0.5]"
            raise TopologyError(explain(subject, "", expected, repr(self.shares)))

    def of(self, values: list[Any]) -> bytes:
        """Note values."""
        sketch = kll_doubles_sketch(_K)
        for value in values:
            sketch.update(value)
        return bytes(sketch.serialize())

    def add(self, one: bytes, other: bytes) -> bytes:
        """Put two together."""
        return self.combine([one, other])

    def combine(self, partials: list[bytes]) -> bytes:
        """Put several together."""
        sketch = kll_doubles_sketch.deserialize(partials[0])
        for partial in partials[1:]:
            sketch.merge(kll_doubles_sketch.deserialize(partial))
        return bytes(sketch.serialize())

    def result(self, partial: bytes | None) -> list[float] | None:
        """Give the values; the smallest and the greatest one are known exactly."""
        if partial is None:
            return None
        sketch = kll_doubles_sketch.deserialize(partial)
        if sketch.is_empty():  # NaN is not counted
            return None
        ends: dict[float, float] = {0: sketch.get_min_value(), 1: sketch.get_max_value()}
        values = sketch.get_quantiles(list(self.shares))
        return [ends.get(share, value) for share, value in zip(self.shares, values, strict=True)]

    def type(self, field: pa.DataType | None) -> pa.DataType | None:
        """Give lists of floating numbers."""
        return pa.list_(pa.float64())
