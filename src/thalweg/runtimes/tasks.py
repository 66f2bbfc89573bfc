"""Tasks: bodies of components brought to life, whatever runtime they are on.

A task takes blocks and gives emissions. The tuple-at-a-time classes become views over blocks here.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from thalweg.acking import Roots
from thalweg.blocks import Block
from thalweg.components import AnyBody, Bolt, has_timers
from thalweg.contexts import TaskContext
from thalweg.errors import RAISED, SchemaError, ThalwegError, as_error
from thalweg.eventtime import ALWAYS
from thalweg.foreign import NoValue, foreign_rows, refusal, row_shown
from thalweg.keys import Key
from thalweg.runtimes.outputs import Emission, TupleOutputs
from thalweg.runtimes.refusals import Refusals
from thalweg.timers import KeyTimers, TimedState
from thalweg.topology import Component
from thalweg.tuples import Tuple, tuples_of


class Calls(Protocol):
    """Calls functions somewhere else."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Give what a function returns, or raise what it raises."""

    def close(self) -> None:
        """Let go."""


class Task:
    """Common to the tasks of all bodies: a private copy of the body, and its life cycle."""

    body: AnyBody
    #: The thread in which the body is called, where it has one of its own.
    own_thread: Calls | None = None
    #: Those of its keys, where the body hears of timers.
    timers: KeyTimers | None = None

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        self.component = component
        self.refusals, self.tally = refusals, refusals.tally
        self.body = self._own_copy()
        self.context = self._context(context)
        self.bind(context=self.context)
        self._bind_state(self.context)

    def _bind_state(self, context: TaskContext) -> None:
        """Let the body see its state; one with timers sees them apart from its values."""
        state = context.state
        if state is not None and has_timers(type(self.body)):
            self.timers = KeyTimers(state, context.clock, context.watermark, context.due)
            self.bind(state=TimedState(state), timers=self.timers)
        elif state is not None:
            self.bind(state=state)

    def _own_copy(self) -> Any:
        body = self.component.body
        try:
            return copy.deepcopy(body)
        except Exception as error:
            text = f"each task works on a copy, which failed: {error}; make such things in prepare"
            raise self.refusals.call_failed(TypeError(text), type(body)) from error

    def _context(self, context: TaskContext) -> TaskContext:
        return replace(context, refuse_record=self.refusals.record_failed)

    def bind(self, **attributes: Any) -> None:
        """Put what the runtime provides onto the body."""
        for name, value in attributes.items():
            setattr(self.body, name, value)

    def prepare(self) -> None:
        """Let the body get ready."""
        self.call(self.body.prepare, self.context)

    def close(self) -> None:
        """Let the body and the refusals let go, and its thread when all else has."""
        try:
            self._clean_up()
        finally:
            self.refusals.close()
            if self.own_thread is not None:
                self.own_thread.close()

    def _clean_up(self) -> None:
        self.call(self.body.cleanup)

    def settle_late(self) -> None:
        """Tell how tuples have ended of which something may be on its way; most tasks told it."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method that has no tuple; an exception becomes a ComponentError."""
        try:
            return self.within(function, *arguments)
        except ThalwegError:
            raise
        except RAISED as error:
            raise self.refusals.call_failed(as_error(error), function) from error

    def within(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call something in the thread of the body."""
        if self.own_thread is None:
            return function(*arguments)
        return self.own_thread.call(function, *arguments)

    # --- time --------------------------------------------------------------------------------

    @property
    def alarm(self) -> int:
        """When it wants to be woken because of its timers, in microseconds of the clock."""
        return ALWAYS if self.timers is None else self.timers.alarm

    def _time(self, now: int) -> None:
        """Let the body hear of its timers, and of the time."""
        if self.timers is not None:
            self.within(self.timers.advance, now, self._due)
        self.call(self.body.process_watermark, now)  # type: ignore[union-attr]  # only of bolts

    def _timers(self) -> None:
        if self.timers is not None:
            self.within(self.timers.fire, self._due)

    def _end(self) -> None:
        if self.timers is not None:
            self.within(self.timers.end, self._due)
        self.call(self.body.process_end)  # type: ignore[union-attr]  # only of bolts

    def _due(self, key: Key, at: int, name: str) -> None:
        self.call(self.body.process_timer, key, at, name)  # type: ignore[union-attr]  # as above


@dataclass
class _Held:
    """A tuple that its bolt has not acknowledged yet."""

    t: Tuple
    roots: Roots
    row: int
    block: Block
    #: When the bolt was given it.
    begin: float


class BoltTask(Task):
    """A task of a tuple-at-a-time bolt."""

    body: Bolt

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        super().__init__(component, context, refusals)
        self._outputs = outputs = TupleOutputs(component, context.shapes)
        #: Rows of the last block that failed, and rows that the bolt keeps (auto_ack = False).
        self.failed_rows: set[int] = set()
        self.kept_rows: set[int] = set()
        #: Called when a tuple of an earlier block is acknowledged (True) or fails (False).
        self.settle: Callable[[Roots, bool], None] = lambda _roots, _ok: None
        #: A clock, where somebody wants to know what tuples take; and what those of the last block
        #: took.
        self.timer: Callable[[], float] | None = None
        self.seconds: list[float] = []
        self._held: dict[int, _Held] = {}
        self._block: Block | None = None
        #: Per stream, how many tuples had been sent when each row of the block was done.
        self._ends: dict[str, list[int]] = {}
        self.bind(emit=outputs.emit, emit_direct=outputs.emit_direct)
        self.bind(ack=lambda t: self._settle(t, True), fail=self._fail)

    def process(self, block: Block, lineage: bool = True) -> list[Emission]:
        """Show the bolt each tuple of a block; with lineage, outputs know their input rows."""
        try:
            return self._process(block, lineage)
        except NoValue:
            return self._process_rest(block, lineage)

    def _process(self, block: Block, lineage: bool) -> list[Emission]:
        tuples: Iterable[Tuple] = tuples_of(block.batch, block.values)
        self._block = block
        self.failed_rows.clear()
        self.kept_rows.clear()
        self._ends = {stream: [] for stream in self._outputs.streams}
        self.bind(emit=self._outputs.emit_function())
        if not self.body.auto_ack and block.roots is not None:
            tuples = self._holding(tuples, block)
        self.within(self._each, tuples)
        self._block = None
        self.bind(emit=self._outputs.emit)
        return self._take(block, lineage)

    def _process_rest(self, block: Block, lineage: bool) -> list[Emission]:
        """Refuse the tuples with values that Python has not; the bolt is shown the others."""
        refused = self._refuse_foreign(block.batch)
        kept = np.delete(np.arange(len(block)), refused)
        self.failed_rows.clear()
        self.kept_rows.clear()
        emissions = self._process(block.take(kept), lineage) if len(kept) else []
        for rows in (self.failed_rows, self.kept_rows):
            found = kept[list(rows)].tolist()
            rows.clear()
            rows.update(found)
        self.failed_rows.update(refused)
        return [e if e.parents is None else replace(e, parents=kept[e.parents]) for e in emissions]

    def _refuse_foreign(self, batch: pa.RecordBatch) -> list[int]:
        found: dict[int, SchemaError] = {}
        for name in batch.schema.names:
            column = batch.column(name)
            found |= {row: refusal(column, name, row) for row in foreign_rows(column)}
        for row in sorted(found):
            self.refusals.tuple_failed(row_shown(batch, row), found[row], self._user_call)
        return sorted(found)

    @property
    def _user_call(self) -> Any:
        return self.body.process

    def _each(self, tuples: Iterable[Tuple]) -> None:
        """Call the bolt on each tuple: the inner loop, with next to nothing in it."""
        process, outputs = self._timed(self.body.process), self._outputs.streams
        marks = [(outputs[stream].columns[0], ends.append) for stream, ends in self._ends.items()]
        if len(marks) == 1:
            ((sent, mark),) = marks
            for t in tuples:
                try:
                    process(t)
                except RAISED as error:
                    self._tuple_failed(t, as_error(error))
                mark(len(sent))
            return
        for row, t in enumerate(tuples):
            self._row = row
            try:
                process(t)
            except RAISED as error:
                self._tuple_failed(t, as_error(error))
            for sent, mark in marks:
                mark(len(sent))

    def _timed(self, process: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """Note what each tuple takes, where there is a timer."""
        now = self.timer
        if now is None:
            return process
        seconds = self.seconds = []

        def timed(t: Tuple) -> None:
            begin = now()
            try:
                process(t)
            finally:
                seconds.append(now() - begin)

        return timed

    def advance(self, now: int) -> list[Emission]:
        """Let event time go on."""
        self._time(now)
        return self._outputs.take()

    def wake(self) -> list[Emission]:
        """Let the bolt hear of timers that are due."""
        self._timers()
        return self._outputs.take()

    def tick(self) -> list[Emission]:
        """Let time pass."""
        self.call(self.body.process_tick)
        return self._outputs.take()

    def end(self) -> list[Emission]:
        """Tell the bolt that its inputs have ended."""
        self._end()
        return self._outputs.take()

    def _take(self, block: Block, lineage: bool) -> list[Emission]:
        try:
            return self._outputs.take(self._ends if lineage else None, block)
        except SchemaError:
            self._refuse_misfits(block)
            return self._outputs.take(self._ends if lineage else None, block)

    def _refuse_misfits(self, block: Block) -> None:
        """Refuse the tuples that have sent something which does not fit, and no others."""
        streams = self._outputs.streams
        found: dict[int, SchemaError] = {}
        for stream, ends in self._ends.items():
            found |= streams[stream].misfits(ends)
        for row in sorted(found):
            self.failed_rows.add(row)
            values = row_shown(block.batch, row)
            self.refusals.tuple_failed(values, found[row], self.body.process)
        for stream, ends in self._ends.items():
            self._ends[stream] = streams[stream].drop(found, ends)

    @property
    def _at(self) -> int:
        """The row at hand."""
        ends = next(iter(self._ends.values()), None)
        return self._row if ends is None else len(ends)

    def _tuple_failed(self, t: Tuple, error: Exception) -> None:
        """Forget what the tuple has sent; its component's policy says what else."""
        assert self._block is not None  # noqa: S101 (only called while a block is processed)
        row = self._at
        for stream, ends in self._ends.items():
            self._outputs.streams[stream].cut(ends[-1] if ends else 0)
        self._held.pop(id(t), None)
        self.kept_rows.discard(row)
        self.failed_rows.add(row)
        values = row_shown(self._block.batch, row)
        self.refusals.tuple_failed(values, error, self.body.process, self._outputs.hint(error))

    def _holding(self, tuples: Iterable[Tuple], block: Block) -> Iterator[Tuple]:
        """Keep each tuple until the bolt acknowledges it."""
        assert block.roots is not None  # noqa: S101 (the caller has looked)
        now = time.perf_counter
        for row, t in enumerate(tuples):
            self._held[id(t)] = _Held(t, block.roots[row], row, block, now())
            self.kept_rows.add(row)
            yield t

    def forget(self, roots: frozenset[int]) -> None:
        """Let go of tuples whose roots have all failed by now."""
        gone = [key for key, held in self._held.items() if roots.issuperset(held.roots)]
        for key in gone:
            del self._held[key]

    def _fail(self, t: Tuple) -> None:
        if self.body.auto_ack:
            self.failed_rows.add(self._at)
        else:
            self._settle(t, False)

    def _settle(self, t: Tuple, ok: bool) -> None:
        held = self._held.pop(id(t), None)
        if held is None:
            return
        if ok:
            self.tally.seconds += time.perf_counter() - held.begin
        if held.block is not self._block:
            self.tally.settled(ok)
            self.settle(held.roots, ok)
            return
        self.kept_rows.discard(held.row)
        if not ok:
            self.failed_rows.add(held.row)
