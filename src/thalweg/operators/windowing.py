"""Operators on windows of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM, Rows
from thalweg.components import BlockBolt, Kind, Shared
from thalweg.contexts import TaskContext
from thalweg.eventtime import ALWAYS, SECOND, EventTime, Micros
from thalweg.keys import Key, key_values
from thalweg.noticing import LATE_STREAM
from thalweg.operators.due_keys import DueKeys
from thalweg.operators.fielding import key_columns, timed_rows
from thalweg.schemas import Fields
from thalweg.windows.aggregates import Aggregate, results
from thalweg.windows.grouping import Groups, codes, grouped, pieces
from thalweg.windows.keeping import Keeping, Piece, Told, keeping
from thalweg.windows.specs import SessionWindow, TimeSpec

LateName = Literal["drop", "side"]
#: The stream of what windows would give if they ended now.
EARLY_STREAM = "early"
#: The key of a state that has none.
_WHOLE = ""


@dataclass(frozen=True)
class Windowing:
    """What a window operator does."""

    spec: TimeSpec
    time: EventTime
    #: Names of the results, and how they are made.
    into: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    #: How long a window is told again for tuples that came late, in microseconds.
    allowed: int = 0
    late: LateName = "drop"


class TimeWindows(Shared, BlockBolt):
    """Gives a tuple for each key and window, as soon as time has passed it."""

    timed: ClassVar[bool] = True
    #: Whether time makes a difference before the end of the stream.
    timely: bool
    reads_first = True

    def __init__(
        self, what: Windowing, key: tuple[str, ...], outputs: Fields, streams: Mapping[str, Fields]
    ) -> None:
        self.what = what
        self.kind = Kind.KEYED if key else Kind.GLOBAL  # type: ignore[misc]  # of this one
        self.key_names = key
        self.outputs = outputs
        self.streams = streams
        self.watermark_step, self.watermark_offset = what.spec.step, what.spec.phase
        self.timely = bool(what.time.field)
        self.stepwise = not isinstance(what.spec, SessionWindow)
        self.holds = what.spec.holds
        # Sessions end one by one.
        self.sends_every = what.spec.step / SECOND if self.stepwise and self.holds else 0.0

    def prepare(self, context: TaskContext) -> None:
        """Begin where time has come to."""
        self._rules: Keeping = keeping(self.what.spec, self.what.aggregates, self.what.allowed)
        self._due = DueKeys(self.state, self._rules.next)
        self._now = context.watermark
        self._types: list[pa.DataType] = []
        self._late = context.metric("late")

    # --- tuples ------------------------------------------------------------------------------

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Add the tuples to the windows of their keys."""
        batch, rows, times = self._timed(batch)
        if not batch.num_rows:
            return
        keys = [batch.column(name) for name in self.key_names]
        self._types = [column.type for column in keys]
        stretches = self._rules.stretches(times)
        gap = self.what.spec.gap if isinstance(self.what.spec, SessionWindow) else None
        groups = grouped(codes(keys, batch.num_rows), stretches[0], gap)
        columns = [None if a.field is None else batch.column(a.field) for a in self.what.aggregates]
        made = pieces(groups, stretches, self._rules.parts, columns)
        first = [column.take(pa.array(groups.rows)) for column in keys]
        again, late = self._add(
            key_values(first, self.key_names) if keys else [_WHOLE], groups, made
        )
        self._tell(again)
        if late:
            self._tell_late(batch, rows, groups, late)

    def _timed(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Rows, Micros]:
        """Refuse tuples without a time, or whose windows no dates can name."""
        if not self.what.time.field:
            return batch, np.arange(batch.num_rows), np.zeros(batch.num_rows, dtype=np.int64)
        return timed_rows(batch, self.what.time, self.context, self.what.spec)

    def _add(
        self, keys: Sequence[Key], groups: Groups, made: Sequence[Piece]
    ) -> tuple[list[tuple[Key, Told]], list[int]]:
        """Add the pieces of each key to what is kept of it; gives what is told again, and late."""
        kept = self.state.get_many(keys)
        changed: dict[Key, Any] = {}
        again: list[tuple[Key, Told]] = []
        late: list[int] = []
        ends = [*groups.firsts.tolist()[1:], len(made)]
        for key, a, b in zip(keys, groups.firsts.tolist(), ends, strict=True):
            added = self._rules.add(kept.get(key), made[a:b], self._now)
            if added.kept is not None:
                changed[key] = added.kept
            again += [(key, told) for told in added.again]
            late += [a + number for number in added.late]
        self._put(changed)
        return again, late

    def _put(self, changed: Mapping[Key, Any]) -> None:
        self.state.put_many(changed)
        self._due.note(changed.items())

    def _tell_late(
        self, batch: pa.RecordBatch, rows: Rows, groups: Groups, late: Sequence[int]
    ) -> None:
        """Count tuples that came too late, and send them aside if that is wanted."""
        ends = np.append(groups.starts[1:], len(groups.order))
        parts = [groups.order[groups.starts[g] : ends[g]] for g in late]
        chosen = np.sort(np.concatenate(parts))
        self._late.incr(len(chosen))
        self.context.late(len(chosen))
        if self.what.late == "side" and LATE_STREAM in self.context.read_streams:
            self.emit(batch.take(pa.array(chosen)), stream=LATE_STREAM, parents=rows[chosen])

    # --- time --------------------------------------------------------------------------------

    def process_watermark(self, now: int) -> None:
        """Tell the windows that are complete."""
        if now <= self._now:
            return
        self._now = now
        found: list[tuple[Key, Told]] = []
        changed: dict[Key, Any] = {}
        gone: list[Key] = []
        for key, kept in self._due.take(now).items():
            left, windows = self._rules.due(kept, now)
            found += [(key, told) for told in windows]
            if left is None:
                gone.append(key)
            elif left is not kept:
                changed[key] = left
        self._put(changed)
        for key in gone:
            self.state.delete(key)
        self._tell(sorted(found, key=lambda pair: pair[1].end))

    def process_tick(self) -> None:
        """Tell what windows would give if they ended now."""
        if EARLY_STREAM in self.context.read_streams:
            found = (
                (key, told)
                for key, kept in self.state.items()
                # Of a copy: what the next window can use goes on with the one that is kept.
                for told in self._rules.due([int(kept[0]), *kept[1:]], ALWAYS)[1]
            )
            self._tell(found, EARLY_STREAM)

    def process_end(self) -> None:
        """Let time pass."""
        self.process_watermark(ALWAYS)

    def _tell(self, found: Iterable[tuple[Key, Told]], stream: str = DEFAULT_STREAM) -> None:
        rows = list(found)
        if not rows or stream not in self.context.read_streams:
            return
        keys = key_columns([key for key, _ in rows], self._key_types(stream))
        made = [results(self.what.aggregates, told.partials) for _, told in rows]
        bounds = [
            pa.array([told[at] for _, told in rows], pa.int64()).cast(pa.timestamp("us"))
            for at in (0, 1)
        ]
        columns = [list(column) for column in zip(*made, strict=True)]
        self.emit(self.make_batch([*keys, *bounds, *columns], stream), stream=stream)

    def _key_types(self, stream: str) -> Sequence[pa.DataType | None]:
        """Give the types of the key: as they came, or else as far as they are known."""
        return self._types or self.context.shapes[stream].types[: len(self.key_names)]
