"""Tasks of vectorised bolts: record batches in, emissions out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.anchored import AnchoredBolt
from thalweg.blocks import DEFAULT_STREAM, Block, Rows
from thalweg.components import BlockBolt, Bolt
from thalweg.contexts import TaskContext
from thalweg.errors import RAISED, SchemaError, ThalwegError, as_error, explain
from thalweg.foreign import NoValue, foreign_rows, refusal, row_shown
from thalweg.runtimes.anchored_tasks import AnchoredTask
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.refusals import Refusals
from thalweg.runtimes.tasks import BoltTask, Task
from thalweg.schemas import Shape, column_rows
from thalweg.sketches.costs import Floats
from thalweg.topology import Component
from thalweg.validation import unknown


class BlockBoltTask(Task):
    """A task of a vectorised bolt."""

    body: BlockBolt

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        super().__init__(component, context, refusals)
        self.failed_rows: set[int] = set()
        self.kept_rows: set[int] = set()
        self._emitted: list[Emission] = []
        self._block: Block | None = None
        self._lineage = True
        #: Rows of the task's block that the block at hand is; None when it is all of it.
        self._rows: Rows | None = None
        #: Refusals that wait until the block has turned out to fit; None when none has to wait.
        self._waiting: list[tuple[int, Exception]] | None = None
        self._made: tuple[str, pa.RecordBatch, dict[str, list[Any]]] | None = None
        self.bind(emit=self._emit, values=self._values, make_batch=self._make_batch)
        self.bind(send=self._send)

    def _context(self, context: TaskContext) -> TaskContext:
        return replace(super()._context(context), refuse=self._refuse)

    def process(self, block: Block, lineage: bool = True) -> list[Emission]:
        """Show the bolt the record batch of a block."""
        self._lineage = lineage
        self.failed_rows.clear()
        try:
            self._process(block, None)
        finally:
            self._block = self._made = self._waiting = None
        return self._take()

    def _process(self, block: Block, rows: Rows | None) -> None:
        """Process a block, or what is left of it, and refuse what is to blame for an error."""
        self._waiting = [] if self.context.tolerant else None
        try:
            self._show(block, rows)
            waiting, self._waiting = self._waiting, None
            for row, error in waiting or ():
                self._refuse(row, error)
        except SchemaError as error:
            self._emitted.clear()
            self._waiting = None
            self._misfit(block, rows, error)
        except ThalwegError:
            raise
        except RAISED as error:
            self._waiting = None
            self._whole_block_failed(block, as_error(error))

    def _show(self, block: Block, rows: Rows | None) -> None:
        self._block, self._rows = block, rows
        returned = self.within(self.body.process_block, block.batch)
        if returned is not None:
            self._emit(returned)

    def _misfit(self, block: Block, rows: Rows | None, error: SchemaError) -> None:
        """Refuse the tuples that do not fit, as far as it is known which these are."""
        foreign = self._foreign(block.batch, error)
        if foreign and (self.body.reads_first or not self.context.tolerant):
            for row, why in foreign.items():
                self._refuse(row, why)
            kept = np.delete(np.arange(len(block)), list(foreign))
            if len(kept):
                self._process(block.take(kept), kept if rows is None else rows[kept])
        elif self.body.by_row and self.context.tolerant:
            self._row_by_row(block, rows)
        elif self.body.by_row:
            self._refuse(min(error.row or 0, len(block) - 1), error)
        else:
            self._whole_block_failed(block, error)

    def _foreign(self, batch: pa.RecordBatch, error: SchemaError) -> dict[int, SchemaError]:
        """Find the rows with values that Python has not, if that is the error."""
        if not isinstance(error, NoValue) or error.field not in batch.schema.names:
            return {}
        column = batch.column(error.field)
        return {row: refusal(column, error.field, row) for row in foreign_rows(column)}

    def _row_by_row(self, block: Block, rows: Rows | None) -> None:
        """Go through a block again to refuse only the tuples whose results do not fit."""
        for row in range(len(block)):
            sent = len(self._emitted)
            try:
                at = np.array([row if rows is None else rows[row]])
                self._show(block.slice(row, row + 1), at)
            except SchemaError as error:
                del self._emitted[sent:]
                self._refuse(0, error)

    def advance(self, now: int) -> list[Emission]:
        """Let event time go on."""
        self._time(now)
        return self._take()

    def wake(self) -> list[Emission]:
        """Let the bolt hear of timers that are due."""
        self._timers()
        return self._take()

    def tick(self) -> list[Emission]:
        """Let time pass."""
        self.call(self.body.process_tick)
        return self._take()

    def end(self) -> list[Emission]:
        """Tell the bolt that its inputs have ended."""
        self._end()
        return self._take()

    def _take(self) -> list[Emission]:
        taken, self._emitted = self._emitted, []
        return taken

    def _emit(
        self,
        batch: pa.RecordBatch,
        *,
        stream: str = DEFAULT_STREAM,
        parents: Rows | Callable[[], Rows] | None = None,
    ) -> None:
        shapes = self.context.shapes
        if stream not in shapes:
            where = f"outputs of {self.component.name!r}"
            raise unknown(stream, "stream", where, sorted(shapes))
        lists = self._known_lists(batch)
        if self._made is None or self._made[0] != stream or self._made[1] is not batch:
            batch = shapes[stream].conform(batch)
        if callable(parents):
            parents = parents() if self._lineage else None
        if parents is not None and len(parents) != batch.num_rows:
            text = explain("parents", expected=f"{batch.num_rows} rows", got=f"{len(parents)}")
            raise ThalwegError(text)
        if batch.num_rows:
            whole = parents is None and (self._block is None or len(self._block) != batch.num_rows)
            rows = self._parents(batch, parents)
            self._emitted.append(Emission(stream, batch, rows, whole, lists=lists))

    def _send(
        self,
        columns: Sequence[Any],
        parents: Rows | Callable[[], Rows],
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Send columns; a row that does not fit refuses the tuple that it stems from, alone."""
        try:
            self._emit(self._make_batch(columns, stream), stream=stream, parents=parents)
        except SchemaError:
            parents = parents() if callable(parents) else parents
            kept = self._refuse_misfits(columns, parents, self.context.shapes[stream])
            rest = [column_rows(column, kept) for column in columns]
            self._emit(self._make_batch(rest, stream), stream=stream, parents=parents[kept])

    def _refuse_misfits(self, columns: Sequence[Any], parents: Rows, shape: Shape) -> Rows:
        rows = shape.misfits(columns)
        found = {int(parents[row]): rows[row] for row in sorted(rows, reverse=True)}
        for parent in sorted(found):
            self._refuse(parent, found[parent])
        return np.flatnonzero(~np.isin(parents, list(found)))

    def _make_batch(self, columns: Sequence[Any], stream: str = DEFAULT_STREAM) -> pa.RecordBatch:
        """Make a record batch, and remember the lists it was made of for the next component."""
        batch, lists = self.context.shapes[stream].make(columns)
        self._made = stream, batch, lists
        return batch

    def _known_lists(self, batch: pa.RecordBatch) -> dict[str, list[Any]]:
        """Find the Python values of a batch: it was made of them, or its columns passed through."""
        block = self._block
        if block is not None and batch is block.batch:
            return block.lists
        known = dict(self._made[2]) if self._made and self._made[1] is batch else {}
        if block is not None and block.lists and batch.num_rows == len(block):
            for name in set(batch.schema.names) & block.lists.keys() - known.keys():
                if _same_memory(batch.column(name), block.batch.column(name)):
                    known[name] = block.lists[name]
        return known

    def _values(self, name: str) -> list[Any]:
        assert self._block is not None  # noqa: S101 (only called while a block is processed)
        return self._block.values(name)

    def _parents(self, batch: pa.RecordBatch, parents: Rows | None) -> Rows | None:
        """Apply the rule for outputs without parents (see BlockBolt)."""
        if self._block is None:
            return None
        if parents is None:
            if not self._lineage:
                return None
            rows = len(self._block)
            aligned = batch.num_rows == rows
            parents = np.arange(rows) if aligned else np.full(batch.num_rows, rows - 1)
        return parents if self._rows is None else self._rows[parents]

    @property
    def _user_call(self) -> Any:
        return getattr(self.body, "function", self.body.process_block)

    def _refuse(self, row: int, error: Exception) -> None:
        if self._waiting is not None:
            self._waiting.append((row, error))
            return
        assert self._block is not None  # noqa: S101 (only called while a block is processed)
        self.failed_rows.add(row if self._rows is None else int(self._rows[row]))
        values = row_shown(self._block.batch, row)
        self.refusals.tuple_failed(values, error, self._user_call)

    def _whole_block_failed(self, block: Block, error: Exception) -> None:
        self._emitted.clear()
        rows = range(len(block)) if self._rows is None else self._rows.tolist()
        self.failed_rows.update(rows)
        self.refusals.block_failed(block.batch, error, self._user_call)


def _same_memory(a: pa.Array, b: pa.Array) -> bool:
    """Say whether two columns of equal length are the same piece of memory."""
    if a.type != b.type or a.offset != b.offset:
        return False
    pairs = zip(a.buffers(), b.buffers(), strict=True)
    return all((x and x.address) == (y and y.address) for x, y in pairs)


AnyBoltTask = BoltTask | BlockBoltTask


def seconds_of(task: object, part: Block, took: float) -> Floats:
    """Say what each tuple of a part took; a vectorised bolt takes the same time for all of them."""
    if isinstance(task, BoltTask) and len(task.seconds) == len(part):
        return np.array(task.seconds)
    return np.full(len(part), took / len(part))


def make_bolt_task(component: Component, context: TaskContext, refusals: Refusals) -> AnyBoltTask:
    """Bring a bolt to life."""
    if isinstance(component.body, AnchoredBolt):
        return AnchoredTask(component, context, refusals)
    kind = BoltTask if isinstance(component.body, Bolt) else BlockBoltTask
    return kind(component, context, refusals)
