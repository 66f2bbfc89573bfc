"""Joins of two streams by key and event time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from thalweg.components import BlockBolt, Kind, Shared
from thalweg.contexts import TaskContext
from thalweg.eventtime import ALWAYS, SECOND, EventTime
from thalweg.keys import Key, key_values
from thalweg.operators.due_keys import DueKeys
from thalweg.operators.fielding import timed_rows
from thalweg.schemas import Fields

JoinName = Literal["inner", "left"]
#: A tuple that waits: its time, whether it has found another, and its values.
Waits = list[Any]
_TIME = itemgetter(0)


@dataclass(frozen=True)
class Side:
    """One of the two streams."""

    #: The (component, stream) pairs that it consists of.
    origins: frozenset[tuple[str, str]]
    time: EventTime
    #: Fields that are part of the result.
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Joining:
    """What a join of streams does."""

    left: Side
    right: Side
    how: JoinName = "inner"
    #: Microseconds that tuples may be apart; None for any.
    within: int | None = None


class StreamJoin(Shared, BlockBolt):
    """Common to joins of streams: tuples of both sides wait, by key."""

    kind = Kind.KEYED
    timed: ClassVar[bool] = True
    reads_first = True

    def __init__(self, what: Joining, outputs: Fields) -> None:
        self.what, self.outputs = what, outputs
        self.watermark_step = SECOND if what.within is None else max(1, what.within // 8)
        self.holds, self.sends_every = (what.within or 0) / SECOND, 0.0

    def prepare(self, context: TaskContext) -> None:
        """Begin where time has come to."""
        self._due = DueKeys(self.state, self.due)
        self._now = context.watermark
        self._late = context.metric("late")

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Bring the tuples of one side to those of the other."""
        is_left = (self.origin.component, self.origin.stream) in self.what.left.origins
        side = self.what.left if is_left else self.what.right
        keys = key_values([batch.column(name) for name in self.key], self.key)
        values = [self.values(name) for name in side.fields]
        _, rows, times = timed_rows(batch, side.time, self.context)
        good = times >= self._now
        late = len(rows) - int(good.sum())
        self._late.incr(late)
        self.context.late(late)
        found: list[tuple[int, list[Any]]] = []
        meets = [key for key in dict.fromkeys(keys[row] for row in rows[good]) if may_equal(key)]
        with self.state.working(meets) as states:
            for row, time in zip(rows[good].tolist(), times[good].tolist(), strict=True):
                tuple_ = [time, False, [column[row] for column in values]]
                if not may_equal(keys[row]):
                    found += [(row, pair) for pair in self._lonely([tuple_] if is_left else [])]
                    continue
                kept = states.get(keys[row]) or [[], []]
                found += [(row, pair) for pair in self.arrived(kept, tuple_, is_left)]
                states[keys[row]] = kept
            self._due.note([(key, states[key]) for key in meets])
        self._send([pair for _, pair in found], np.array([row for row, _ in found], dtype=np.int64))

    def _lonely(self, waits: Iterable[Waits]) -> list[list[Any]]:
        """Give tuples of the left that will find nobody, if these are wanted."""
        nobody = [None] * len(self.what.right.fields)
        return [[*values, *nobody] for _, _, values in waits if self.what.how == "left"]

    def process_watermark(self, now: int) -> None:
        """Let go of tuples that will find nobody any more."""
        if now <= self._now:
            return
        self._now = now
        pairs: list[list[Any]] = []
        changed: dict[Key, Any] = {}
        gone: list[Key] = []
        for key, kept in self._due.take(now).items():
            left, sent = self.passed(kept, now)
            pairs += sent
            if not (left[0] or left[1]):
                gone.append(key)
            else:
                changed[key] = left
        self.state.put_many(changed)
        self._due.note(changed.items())
        for key in gone:
            self.state.delete(key)
        self._send(pairs, None)

    def process_end(self) -> None:
        """Let time pass."""
        self.process_watermark(ALWAYS)

    def arrived(self, kept: list[list[Waits]], new: Waits, is_left: bool) -> Iterable[list[Any]]:
        """Let a tuple wait; gives the results that it completes."""
        raise NotImplementedError

    def due(self, kept: list[list[Waits]]) -> int:
        """Give the time at which something of a key does not wait any more."""
        raise NotImplementedError

    def passed(
        self, kept: list[list[Waits]], now: int
    ) -> tuple[list[list[Waits]], list[list[Any]]]:
        """Give what still waits when time has come so far, and results."""
        raise NotImplementedError

    def _send(self, pairs: Sequence[list[Any]], rows: Any) -> None:
        if not pairs:
            return
        columns = [list(column) for column in zip(*pairs, strict=True)]
        if rows is None:
            self.emit(self.make_batch(columns))
        else:
            self.send(columns, rows)


class WithinJoin(StreamJoin):
    """Brings tuples together whose times are not further apart than so much."""

    def __init__(self, what: Joining, outputs: Fields) -> None:
        super().__init__(what, outputs)
        self.watermark_lag = what.within or 0

    def arrived(self, kept: list[list[Waits]], new: Waits, is_left: bool) -> Iterable[list[Any]]:
        """Give the new tuple with all of the other side that are near."""
        own, others = kept if is_left else reversed(kept)
        apart = self.what.within or 0
        begin = bisect_left(others, new[0] - apart, key=_TIME)
        near = others[begin : bisect_right(others, new[0] + apart, key=_TIME)]
        insort(own, new, key=_TIME)
        for other in near:
            new[1] = other[1] = True
            first, second = (new, other) if is_left else (other, new)
            yield [*first[2], *second[2]]

    def due(self, kept: list[list[Waits]]) -> int:
        """Give the time at which the first one is too old."""
        return min(side[0][0] for side in kept if side) + (self.what.within or 0) + 1

    def passed(
        self, kept: list[list[Waits]], now: int
    ) -> tuple[list[list[Waits]], list[list[Any]]]:
        """Let go of what is too old to meet anybody; lonely ones of the left may be told."""
        apart = self.what.within or 0
        bounds = [bisect_left(side, now - apart, key=_TIME) for side in kept]
        lonely = self._lonely(waits for waits in kept[0][: bounds[0]] if not waits[1])
        return [side[bound:] for side, bound in zip(kept, bounds, strict=True)], lonely


class AsOfJoin(StreamJoin):
    """Gives each tuple of the left the last one of the right that was not later."""

    def arrived(self, kept: list[list[Waits]], new: Waits, is_left: bool) -> Iterable[list[Any]]:
        """Let it wait until time has passed it: an earlier one may still come."""
        insort(kept[0 if is_left else 1], new, key=_TIME)
        return ()

    def due(self, kept: list[list[Waits]]) -> int:
        """Give the time at which one of the left is told, or one of the right is not needed."""
        left, right = kept
        times = [left[0][0] + 1] if left else []
        if len(right) > 1:
            times.append(right[1][0])
        if right and self.what.within is not None:
            times.append(right[0][0] + self.what.within + 1)
        return min(times, default=ALWAYS)

    def passed(
        self, kept: list[list[Waits]], now: int
    ) -> tuple[list[list[Waits]], list[list[Any]]]:
        """Give the tuples that time has passed; of the right side the last one stays."""
        left, right = kept
        due = bisect_left(left, now, key=_TIME)
        found: list[list[Any]] = []
        for waits in left[:due]:
            time, _, values = waits
            at = bisect_right(right, time, key=_TIME) - 1
            far = at < 0 or (
                self.what.within is not None and time - right[at][0] > self.what.within
            )
            if not far:
                found.append([*values, *right[at][2]])
            else:
                found += self._lonely([waits])
        first = max(0, bisect_right(right, now, key=_TIME) - 1)
        if self.what.within is not None and now != ALWAYS:  # the next run goes on with the last one
            first = max(first, bisect_left(right, now - self.what.within, key=_TIME))
        return [left[due:], right[first:]], found


def may_equal(key: Key) -> bool:
    """Say whether a key equals any: null and NaN do not, as in joins with tables.

    >>> may_equal(0), may_equal(("a", None)), may_equal(float("nan"))
    (True, False, False)
    """
    if isinstance(key, tuple):
        return all(map(may_equal, key))
    return key is not None and key == key  # noqa: PLR0124 (NaN is not)
