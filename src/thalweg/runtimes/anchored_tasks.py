"""Tasks of bolts in Storm's manner, which say themselves what is done and what stems from what."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import countOf, itemgetter
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from thalweg.acking import Roots
from thalweg.anchored import AnchoredBolt
from thalweg.anyvalues import ANYTHING
from thalweg.blocks import DEFAULT_STREAM, Block, Rows
from thalweg.components import Kind
from thalweg.contexts import TaskContext
from thalweg.errors import SchemaError, ThalwegError, explain, shorten
from thalweg.eventtime import NEVER
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.receivers import Receivers
from thalweg.runtimes.refusals import Refusals
from thalweg.runtimes.tasks import BoltTask
from thalweg.schemas import Shape
from thalweg.topology import Component
from thalweg.validation import unknown


@dataclass
class _Sent:
    """What was sent on one stream, column by column: rows would be many objects."""

    shape: Shape
    columns: list[list[Any]] = field(init=False)
    #: Per tuple the numbers that it stems from, or the number of the one at hand.
    anchors: list[Sequence[int] | int] = field(default_factory=list)
    #: Receiving task per tuple, on direct streams, or where somebody asked who gets it.
    targets: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.columns = [[] for _ in self.shape.names]

    def __len__(self) -> int:
        return len(self.columns[0])

    def catch_up(self, at: int) -> None:
        """Let tuples that were added directly stem from the one at hand."""
        missing = len(self.columns[0]) - len(self.anchors)
        if missing:
            self.anchors.extend([at] * missing)

    def drop(self, bad: set[int]) -> None:
        """Forget some tuples."""
        kept = [row for row in range(len(self)) if row not in bad]
        chosen = [self.targets.get(row) for row in kept]
        self.columns = [[column[row] for row in kept] for column in self.columns]
        self.anchors = [self.anchors[row] for row in kept]
        self.targets = {row: task for row, task in enumerate(chosen) if task is not None}


class AnchoredTask(BoltTask):
    """A task that counts its tuples; those that are not done yet it knows by number."""

    body: AnchoredBolt

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        super().__init__(component, context, refusals)
        self._sent = {stream: _Sent(shape) for stream, shape in context.shapes.items()}
        self._next = self._first = 0
        #: Roots of the tuples that are not done, and how those have ended that just are.
        self._open: dict[int, Roots] = {}
        self._ended: dict[int, bool] = {}
        #: Those of them that had ended before the block at hand.
        self._ended_before: dict[int, bool] = {}
        #: First numbers of the blocks of those, and when they came.
        self._begins: deque[tuple[int, float]] = deque()
        self._receivers = Receivers(context)
        #: Whether it sent something while it got ready, which goes on before all else.
        self._early = False
        self.bind(emit=self._emit, ack=self._ack, fail=self._let_fail, refuse=self._refuse)
        self.bind(begin_again=self._begin_again)
        self._bind_outbox()

    def prepare(self) -> None:
        """Let the body get ready, and send."""
        super().prepare()
        self._early = any(map(len, self._sent.values()))

    @property
    def alarm(self) -> int:
        """When it wants to be woken, in microseconds of the clock: at once, if for anything."""
        return NEVER if self._early or self.body.waiting else super().alarm

    def _process(self, block: Block, lineage: bool) -> list[Emission]:
        """Show the bolt the tuples of a block."""
        _read_moments(block)
        self._first, self._next = self._next, self._next + len(block)
        self._block = block
        if block.roots is not None:
            self._open.update(enumerate(block.roots, self._first))
            self._note_begin()
        self._ended_before = dict(self._ended)
        for sent in self._sent.values():
            sent.catch_up(-1)  # what was sent before stems from none of these
        self._nothing_ended()
        self.bind(tracked=block.roots is not None, at=self._first)
        self.call(self.body.process_tuples, self._first, block)
        return self._done(lineage)

    def advance(self, now: int) -> list[Emission]:
        """Let event time go on."""
        return self._beside(partial(self._time, now))

    def wake(self) -> list[Emission]:
        """Let the bolt hear of timers that are due, and send what has come up."""
        return self._beside(self._woken)

    def tick(self) -> list[Emission]:
        """Let time pass."""
        return self._beside(self.body.process_tick)

    def pause(self) -> list[Emission]:
        """Let the bolt finish what it holds: it is about to be forgotten."""
        return self._beside(self.body.process_pause)

    @property
    def held(self) -> int:
        """How many tuples are not done, of those that are known to anybody."""
        return len(self._open)

    def end(self) -> list[Emission]:
        """Tell the bolt that its inputs have ended."""
        return self._beside(self._end)

    def forget(self, roots: frozenset[int]) -> None:
        """Let go of tuples whose roots have all failed by now."""
        gone = [number for number, own in self._open.items() if roots.issuperset(own)]
        for number in gone:
            del self._open[number]

    def settle_late(self) -> None:
        """Tell how tuples of earlier blocks have ended: what stems from them is on its way."""
        ended, self._ended = self._ended, {}
        now = time.perf_counter() if ended else 0.0
        for number, ok in ended.items():
            roots = self._open.pop(number, None)
            if roots is None:
                continue
            if ok:
                self.tally.seconds += now - self._begun(number)
            if number < self._first:
                self.tally.settled(ok)
                self.settle(roots, ok)

    def _begun(self, number: int) -> float:
        """Say when the block of a tuple came that is not done."""
        if number >= self._first:
            return self._begins[-1][1]
        return self._begins[bisect_right(self._begins, number, key=itemgetter(0)) - 1][1]

    def _note_begin(self) -> None:
        """Remember when blocks came of which something is not done."""
        oldest = next(iter(self._open), self._first)
        while len(self._begins) > 1 and self._begins[1][0] <= oldest:
            self._begins.popleft()
        self._begins.append((self._first, time.perf_counter()))

    # --- what the bolt calls -----------------------------------------------------------------

    def _emit(
        self,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Sequence[int] | None = None,
        task: int | None = None,
        ask: bool = False,
    ) -> list[int] | None:
        sent = self._sent.get(stream)
        if sent is None:
            where = f"outputs of {self.component.name!r}"
            raise unknown(stream, "stream", where, sorted(self._sent))
        if len(values) != len(sent.columns):
            raise _wrong_length(sent.shape, values)
        sent.catch_up(self.body.at)
        for column, value in zip(sent.columns, values, strict=True):
            column.append(value)
        sent.anchors.append(self.body.at if anchors is None else anchors)
        if task is not None:
            self._check_direct(stream)
            sent.targets[len(sent) - 1] = task
        elif ask:
            turn, ids = self._receivers.choose(stream, values)
            sent.targets[len(sent) - 1] = turn
            return ids
        return None

    def _ack(self, number: int) -> None:
        self._settle_number(number, True)

    def _let_fail(self, number: int) -> None:
        self._settle_number(number, False)

    def _settle_number(self, number: int, ok: bool) -> None:
        if number not in self._open or number in self._ended:
            return
        self._ended[number] = ok
        if number >= self._first:
            self.kept_rows.discard(number - self._first)
            if not ok:
                self.failed_rows.add(number - self._first)

    def _refuse(self, number: int, error: Exception) -> None:
        """Let a tuple fail as the component's policy says; one of an earlier block just fails."""
        self._settle_number(number, False)
        row, block = number - self._first, self._block
        values: dict[str, Any] = {}
        if block is not None and 0 <= row < len(block):
            self.failed_rows.add(row)
            values = {name: block.values(name)[row] for name in block.batch.schema.names}
        self.refusals.tuple_failed(values, error, self._user_call)

    @property
    def _user_call(self) -> Any:
        return self.body.process_tuples

    def _woken(self) -> None:
        self._timers()
        self.call(self.body.process_wake)

    def _begin_again(self) -> None:
        self._sent = {stream: _Sent(sent.shape) for stream, sent in self._sent.items()}
        self._ended = dict(self._ended_before)
        self._nothing_ended()
        self._bind_outbox()

    def _nothing_ended(self) -> None:
        """Keep all tuples of the block at hand of which anybody knows."""
        self.failed_rows.clear()
        self.kept_rows.clear()
        if self._block is not None and self._block.roots is not None:
            self.kept_rows.update(range(len(self._block)))

    # --- what goes out -----------------------------------------------------------------------

    def _beside(self, call: Callable[[], None]) -> list[Emission]:
        self._first = self._next  # no tuple is at hand
        self._ended_before = dict(self._ended)
        self.bind(at=-1)
        self.call(call)
        return self._done(lineage=False)

    def _done(self, lineage: bool) -> list[Emission]:
        taken = [self._emission(stream, sent, lineage) for stream, sent in self._sent.items()]
        self._block, self._early = None, False
        self._bind_outbox()
        return [emission for emission in taken if emission is not None]

    def _emission(self, stream: str, sent: _Sent, lineage: bool) -> Emission | None:
        if not len(sent):
            return None
        sent.catch_up(self.body.at)
        try:
            batch, lists = self._batch(stream, sent)
        except SchemaError:
            self._drop_misfits(sent)
            return self._emission(stream, sent, lineage)
        self._sent[stream] = _Sent(sent.shape)
        return Emission(
            stream,
            batch,
            self._parents(sent) if lineage and self._block is not None else None,
            targets=self._targets(stream, sent),
            lists=lists,
            roots=[self._roots(a) for a in sent.anchors] if self._open else None,
        )

    def _batch(self, stream: str, sent: _Sent) -> tuple[pa.RecordBatch, dict[str, list[Any]]]:
        """Make a record batch; of values of any type that nobody reads only the number counts."""
        shape = sent.shape
        unread = stream not in self.context.read_streams
        if unread and all(type_ is ANYTHING for type_ in shape.types):
            arrays = [pa.nulls(len(sent), ANYTHING) for _ in shape.names]
            return pa.RecordBatch.from_arrays(arrays, names=shape.names), {}
        return shape.make(sent.columns)

    def _bind_outbox(self) -> None:
        sent = self._sent.get(DEFAULT_STREAM)
        self.bind(outbox=None if sent is None else (sent.columns, sent.anchors))

    def _drop_misfits(self, sent: _Sent) -> None:
        found = sent.shape.misfits(sent.columns)
        for row, error in sorted(found.items()):
            anchors = sent.anchors[row]
            numbers = [anchors] if isinstance(anchors, int) else list(anchors)
            for number in numbers[1:]:
                self._settle_number(number, False)
            self._refuse(numbers[0] if numbers else -1, error)
        sent.drop(set(found))

    def _parents(self, sent: _Sent) -> Rows:
        """Give the rows of this block that tuples stem from, in order, as far as they do."""
        last: Any = sent.anchors
        if countOf(map(type, last), int) < len(last):
            last = [a if isinstance(a, int) else max(a, default=-1) for a in last]
        rows = np.maximum.accumulate(np.array(last, dtype=np.int64) - self._first)
        size = self._next - self._first
        parents: Rows = np.clip(rows, 0, size - 1)
        return parents

    def _roots(self, anchors: Sequence[int] | int) -> Roots:
        if isinstance(anchors, int):
            return self._open.get(anchors, ())
        if len(anchors) == 1:
            return self._open.get(anchors[0], ())
        return tuple(sorted({root for a in anchors for root in self._open.get(a, ())}))

    def _targets(self, stream: str, sent: _Sent) -> Rows | None:
        """Give the receiving tasks, if any tuple has one; the others go round."""
        if not sent.targets:
            return None
        rows = range(len(sent))
        if stream in self.body.direct_streams:
            return np.array([sent.targets[row] for row in rows], dtype=np.int64)
        turns = [sent.targets.get(row) for row in rows]
        chosen = [self._receivers.turn() if turn is None else turn for turn in turns]
        return np.array(chosen, dtype=np.int64)

    def _check_direct(self, stream: str) -> None:
        if stream not in self.body.direct_streams:
            raise ThalwegError(
                explain(
                    f"direct emit of {self.component.name!r} on stream {stream!r}",
                    expected="a direct stream",
                    hint="declare it as direct where the component is defined",
                )
            )


def _read_moments(block: Block) -> None:
    """Find out whether Python has all values, before anything begins."""
    for column in block.batch.schema:
        if pa.types.is_temporal(column.type) or pa.types.is_nested(column.type):
            block.values(column.name)


def holds_by_key(task: object) -> TypeGuard[AnchoredTask]:
    """Say whether a task may hold tuples of keys, which it has to finish before those move."""
    return isinstance(task, AnchoredTask) and task.component.kind is Kind.KEYED


def may_hold(task: object) -> TypeGuard[AnchoredTask]:
    """Say whether a task may hold tuples, which no snapshot has."""
    return isinstance(task, AnchoredTask)


def is_busy(task: object) -> TypeGuard[AnchoredTask]:
    """Say whether a task is still at what it was given before."""
    return isinstance(task, AnchoredTask) and task.body.busy


def _wrong_length(shape: Shape, values: Sequence[Any]) -> ThalwegError:
    names = ", ".join(shape.names)
    return ThalwegError(
        explain(
            f"emit of {shape.subject}",
            expected=f"{len(shape.names)} values: {names}",
            got=f"{len(values)}: {shorten(values, 80)}",
        )
    )
