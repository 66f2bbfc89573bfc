"""From relations to streams, as in CQL: what has come into the results of windows, or gone.

The results of all keys at the end of a window are a relation, which changes with every step.
RSTREAM is all of it, again and again; ISTREAM is what was not there a step before; DSTREAM is what
was there then, and is no more.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import BlockBolt, Kind, Shared
from thalweg.contexts import TaskContext
from thalweg.eventtime import ALWAYS, LAST, SECOND, micros
from thalweg.keys import Key, key_values
from thalweg.operators.due_keys import DueKeys
from thalweg.operators.fielding import key_columns
from thalweg.schemas import Fields
from thalweg.windows.specs import TimeWindow

RelationName = Literal["rstream", "istream", "dstream"]
#: What was there last of a key: the end of its window, and its values.
Was = list[Any]
#: The key of a state that has none.
_WHOLE = ""


class _Row(NamedTuple):
    """A row that has come or gone, and the moment at which it has."""

    key: Key
    end: int
    values: list[Any]


class Changes(Shared, BlockBolt):
    """Compares the result of each key with that of the window a step before.

    Results of a key come in the order of their ends, each before time has passed it. So, as time
    goes on, a key without the next result has none.
    """

    timed: ClassVar[bool] = True
    reads_first = True
    stepwise = True

    def __init__(
        self, relation: RelationName, spec: TimeWindow, key: tuple[str, ...], outputs: Fields
    ) -> None:
        self.relation, self.spec, self.key_names = relation, spec, key
        self.kind = Kind.KEYED if key else Kind.GLOBAL  # type: ignore[misc]  # of this one
        self.outputs = outputs
        self.watermark_step, self.watermark_offset = spec.step, spec.phase
        self.holds = self.sends_every = spec.step / SECOND if spec.holds else 0.0
        self._value_names = outputs.names[len(key) + 2 :]

    def prepare(self, context: TaskContext) -> None:
        """Begin where time has come to."""
        self._due = DueKeys(self.state, self._next)
        self._now = context.watermark
        self._types: list[pa.DataType] = []

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Compare the results of a block."""
        columns = [batch.column(name) for name in self.key_names]
        self._types = [column.type for column in columns]
        keys: list[Key] = (
            key_values(columns, self.key_names) if columns else [_WHOLE] * batch.num_rows
        )
        ends = micros(batch.column("end")).tolist()
        values = map(list, zip(*(self.values(name) for name in self._value_names), strict=True))
        found: list[tuple[int, _Row]] = []
        known = list(dict.fromkeys(keys))
        with self.state.working(known) as states:
            for row, (key, end, new) in enumerate(zip(keys, ends, values, strict=True)):
                changed = self._changed(key, states.get(key), end, new)
                found += [] if changed is None else [(row, changed)]
                states[key] = [end, new]
            self._due.note([(key, states[key]) for key in known])
        self._tell([changed for _, changed in found], [row for row, _ in found])

    def process_watermark(self, now: int) -> None:
        """Find the keys that have no result any more."""
        if now <= self._now:
            return
        self._now = now
        gone = [_Row(key, self._next(was), was[1]) for key, was in self._due.take(now).items()]
        for row in gone:
            self.state.delete(row.key)
        if self.relation == "dstream":  # nothing goes when there are no dates any more
            dated = [row for row in gone if row.end <= LAST]
            self._tell(sorted(dated, key=lambda row: row.end), None)

    def process_end(self) -> None:
        """Let time pass."""
        self.process_watermark(ALWAYS)

    def _next(self, was: Was) -> int:
        """Give the time at which there has to be another result."""
        end: int = was[0]
        return end + self.spec.every

    def _changed(self, key: Key, was: Was | None, end: int, new: list[Any]) -> _Row | None:
        """Say what a result changes, as far as somebody wants to know."""
        follows = was is not None and was[0] + self.spec.every == end
        if was is not None and follows and same(was[1], new):
            return None
        if self.relation == "istream":
            return _Row(key, end, new)
        return None if was is None else _Row(key, was[0] + self.spec.every, was[1])

    def _tell(self, rows: list[_Row], parents: list[int] | None) -> None:
        if not rows or DEFAULT_STREAM not in self.context.read_streams:
            return
        known = self.context.shapes[DEFAULT_STREAM].types[: len(self.key_names)]
        keys = key_columns([row.key for row in rows], self._types or known)
        bounds = [
            pa.array([row.end - back for row in rows], pa.int64()).cast(pa.timestamp("us"))
            for back in (self.spec.size, 0)
        ]
        columns = [list(column) for column in zip(*(row.values for row in rows), strict=True)]
        made = self.make_batch([*keys, *bounds, *columns])
        self.emit(made, parents=None if parents is None else np.array(parents, dtype=np.int64))


def same(one: Any, other: Any) -> bool:
    """Say whether two results are the same; what is no number at all equals itself.

    >>> same([1, float("nan")], [1.0, float("nan")]), same([1, 2], [1])
    (True, False)
    """
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124 (NaN)
