"""Aggregates of keys that may be too heavy for one task: partial values first, merged after that.

The *parts* of a table keep no state. They make one partial value of each key in a block, wherever
the block is, and the table behind them merges these. So a key's tuples may be anywhere, and what
its one task gets is a value per block, however many tuples there were. Nothing depends on which
task made a partial value: degrees and places may change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa

from thalweg.blocks import Rows
from thalweg.codecs import MsgpackCodec
from thalweg.components import Kind
from thalweg.errors import StateError, TopologyError, explain, shorten
from thalweg.keys import Key
from thalweg.operators import keyed
from thalweg.operators.calls import Call, Function
from thalweg.schemas import Fields

#: Partial values of any kind travel as bytes, in the way in which state is written.
PARTIAL = pa.binary()
_NO_TABLE = ""


def checked_merge(merge: Function | None, table: str) -> Function:
    """Refuse to spread a fold that nobody can merge."""
    if not callable(merge):
        raise TopologyError(
            explain(
                f"fold {table!r} with spread=True",
                expected="merge=..., a function that makes one value of two",
                got=shorten(merge),
                hint="for example merge=lambda a, b: a + b, or leave out spread=True",
            )
        )
    return merge


class CountParts(keyed.Count):
    """What a block adds to the count of each key."""

    kind = Kind.STATELESS

    def __init__(self, names: tuple[str, ...], outputs: Fields) -> None:
        super().__init__(_NO_TABLE, outputs)
        self.names = names

    @property
    def takes(self) -> tuple[str, ...] | None:
        """The key, and what is counted or added."""
        return (*self.names, *(self.reads or ()))

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Send one number per key."""
        self.key = self.names  # by itself a stream that is not grouped by key has none
        self._send(dict(zip(*self._additions(batch), strict=True)), batch)


class SumParts(CountParts, keyed.Sum):
    """What a block adds to the sum of each key."""

    def __init__(self, names: tuple[str, ...], field: str, outputs: Fields) -> None:
        keyed.Sum.__init__(self, _NO_TABLE, field, outputs)
        self.names = names


class FoldParts(keyed.StepBolt):
    """The value that a function makes of the tuples of each key in a block."""

    kind = Kind.STATELESS

    def __init__(
        self, names: tuple[str, ...], step: Call, start: Callable[[], Any], outputs: Fields
    ) -> None:
        super().__init__(step, start, outputs)
        self.names = names

    @property
    def takes(self) -> tuple[str, ...] | None:
        """The key, and the fields that the function takes."""
        return None if self.step.names is None else (*self.names, *self.step.names)

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Fold the block by itself, and send one value per key."""
        self.key = self.names  # by itself a stream that is not grouped by key has none

        def done(keys: list[Any], after: list[Any], rows: Rows) -> None:
            last = {keys[row]: value for row, value in zip(rows, after, strict=True)}
            self._send({key: self._written(value) for key, value in last.items()}, batch)

        self._fold(batch, self._combine(), done)

    def _combine(self) -> Function:
        return self.step.function

    def _working(self, keys: Sequence[Key]) -> AbstractContextManager[dict[Key, Any]]:
        return nullcontext({})

    def _written(self, value: Any) -> bytes:
        try:
            return MsgpackCodec().encode(value)
        except StateError as error:
            subject = f"partial value in {self.context.component!r}"
            text = "plain values: numbers, text, times, and lists, tuples, sets and dicts of them"
            hint = "leave out spread=True for others"
            raise StateError(explain(subject, "", text, type(value).__name__, hint)) from error


class ReduceParts(FoldParts):
    """The combined values of a field, for each key in a block."""

    def _combine(self) -> Function:
        return keyed.or_first(self.step.function)


class Merged(keyed.Reduce):
    """A table of values that a function merges from partial ones, two by two."""

    def __init__(self, table: str, merge: Function, outputs: Fields) -> None:
        step = Call(merge, (outputs.names[-1],))
        super().__init__(table, step, lambda: keyed.MISSING, outputs)

    def _combine(self) -> Function:
        merge, read = super()._combine(), MsgpackCodec().decode
        return lambda before, partial: merge(before, read(partial))
