"""Operators on windows of so many tuples, as they arrive."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import BlockBolt, Kind, Shared
from thalweg.contexts import TaskContext
from thalweg.eventtime import NEVER
from thalweg.keys import Key, key_arrays, key_values
from thalweg.schemas import Fields
from thalweg.windows.aggregates import Aggregate, results
from thalweg.windows.grouping import codes, grouped, pieces
from thalweg.windows.keeping import Panes, Told
from thalweg.windows.specs import CountWindow, TimeWindow

#: The key of a state that has none.
_WHOLE = ""


class _Found(NamedTuple):
    """A window that is complete, and the row that has completed it."""

    row: int
    key: Key
    told: Told


class RowWindows(Shared, BlockBolt):
    """Gives a tuple for each window of a key, as soon as its last tuple has come.

    The number of a tuple among those of its key is its time; with each one, time goes on.
    """

    reads_first = True

    def __init__(
        self,
        spec: CountWindow,
        aggregates: tuple[Aggregate, ...],
        key: tuple[str, ...],
        outputs: Fields,
    ) -> None:
        self.spec, self.aggregates, self.key_names = spec, aggregates, key
        self.kind = Kind.KEYED if key else Kind.GLOBAL  # type: ignore[misc]  # of this one
        self.outputs = outputs

    def prepare(self, context: TaskContext) -> None:
        """Make the rules."""
        rows, every = self.spec.rows, self.spec.every
        # The first window ends behind the first so many tuples.
        self._rules = Panes(TimeWindow(rows, every, -rows % every), self.aggregates)

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Give the tuples of each key their numbers, and tell the windows that they complete."""
        columns = [batch.column(name) for name in self.key_names]
        numbers = codes(columns, batch.num_rows)
        first = np.unique(numbers, return_index=True)[1]
        chosen = [column.take(pa.array(first)) for column in columns]
        keys: list[Key] = key_values(chosen, self.key_names) if columns else [_WHOLE]
        known = self.state.get_many(keys)
        before = np.array([known[key][0] if key in known else 0 for key in keys], dtype=np.int64)
        # The rows of each key behind each other, and where those of a key begin.
        order = np.argsort(numbers, kind="stable")
        starts = np.searchsorted(numbers[order], np.arange(len(keys)))
        times = np.empty(batch.num_rows, dtype=np.int64)
        times[order] = np.arange(batch.num_rows) + (before - starts)[numbers[order]]
        stretches = self._rules.stretches(times)
        groups = grouped(numbers, stretches[0])
        looked = [None if a.field is None else batch.column(a.field) for a in self.aggregates]
        made = pieces(groups, stretches, self.aggregates, looked)
        ends = [*groups.firsts.tolist()[1:], len(made)]
        counts = before + np.bincount(numbers, minlength=len(keys))
        found: list[_Found] = []
        changed: dict[Key, Any] = {}
        bounds = zip(groups.firsts.tolist(), ends, counts.tolist(), strict=True)
        for number, (key, (a, b, count)) in enumerate(zip(keys, bounds, strict=True)):
            kept = known[key][1] if key in known else None
            added = self._rules.add(kept, made[a:b], NEVER)
            left, windows = self._rules.due(added.kept or [NEVER, []], count)
            last = starts[number] - before[number] - 1
            found += [_Found(int(order[last + told.end]), key, told) for told in windows]
            changed[key] = [count, left]
        self.state.put_many(changed)
        self._tell(found, [column.type for column in columns])

    def _tell(self, found: list[_Found], types: list[pa.DataType]) -> None:
        if not found or DEFAULT_STREAM not in self.context.read_streams:
            return
        found.sort(key=attrgetter("row"))  # as if tuples had come one by one
        keys = key_arrays([key for _, key, _ in found], types) if types else []
        bounds = [[max(0, told.start) for *_, told in found], [told.end for *_, told in found]]
        made = [results(self.aggregates, told.partials) for *_, told in found]
        columns = [list(column) for column in zip(*made, strict=True)]
        rows = np.array([row for row, *_ in found], dtype=np.int64)
        self.emit(self.make_batch([*keys, *bounds, *columns]), parents=rows)
