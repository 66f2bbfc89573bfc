"""Tasks: bodies of components brought to life, whatever runtime they are on.

A task takes blocks and gives emissions. The tuple-at-a-time classes become views over blocks here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.acking import Roots
from thalweg.blocks import DEFAULT_STREAM, Block, Rows
from thalweg.components import AnyBody, BlockBolt, Bolt, TaskContext
from thalweg.errors import SchemaError, ThalwegError
from thalweg.runtimes.outputs import Emission, TupleOutputs
from thalweg.runtimes.refusals import Refusals
from thalweg.topology import Component
from thalweg.tuples import Tuple, tuples_of
from thalweg.validation import unknown


class Task:
    """Common to the tasks of all bodies: a private copy of the body, and its life cycle."""

    body: AnyBody

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        self.component = component
        self.refusals = refusals
        self.body = copy.deepcopy(component.body)
        self.context = self._context(context)
        self.bind(context=self.context)
        if context.state is not None:
            self.bind(state=context.state)

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
        """Let the body and the refusals let go."""
        try:
            self.call(self.body.cleanup)
        finally:
            self.refusals.close()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method that has no tuple; an exception becomes a ComponentError."""
        try:
            return function(*arguments)
        except ThalwegError:
            raise
        except Exception as error:
            raise self.refusals.call_failed(error, function) from error


@dataclass
class _Held:
    """A tuple that its bolt has not acknowledged yet."""

    t: Tuple
    roots: Roots
    row: int
    block: Block


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
        self._held: dict[int, _Held] = {}
        self._block: Block | None = None
        self.bind(emit=outputs.emit_function(), emit_direct=outputs.emit_direct)
        self.bind(ack=lambda t: self._settle(t, True), fail=self._fail)

    def process(self, block: Block) -> list[Emission]:
        """Show the bolt each tuple of a block."""
        outputs, process = self._outputs, self.body.process
        holding = not self.body.auto_ack and block.roots is not None
        self._block = block
        self.failed_rows.clear()
        for row, t in enumerate(tuples_of(block.batch)):
            outputs.row = row
            if holding:
                self._hold(t, row, block)
            try:
                process(t)
            except Exception as error:
                self._tuple_failed(t, row, error)
        outputs.row = -1
        self._block = None
        self.kept_rows = {held.row for held in self._held.values() if held.block is block}
        return self._take(block.batch)

    def tick(self) -> list[Emission]:
        """Let time pass."""
        self.call(self.body.process_tick)
        return self._outputs.take()

    def end(self) -> list[Emission]:
        """Tell the bolt that its inputs have ended."""
        self.call(self.body.process_end)
        return self._outputs.take()

    def _take(self, batch: pa.RecordBatch) -> list[Emission]:
        try:
            return self._outputs.take()
        except SchemaError as error:
            self._outputs.clear()
            self.failed_rows.update(range(batch.num_rows))
            self.refusals.block_failed(batch, error, self.body.process)
            return []

    def _tuple_failed(self, t: Tuple, row: int, error: Exception) -> None:
        assert self._block is not None  # noqa: S101 (only called while a block is processed)
        self._outputs.drop_row(row)
        self._held.pop(id(t), None)
        self.failed_rows.add(row)
        values = self._block.batch[row : row + 1].to_pylist()[0]
        self.refusals.tuple_failed(values, error, self.body.process)

    def _hold(self, t: Tuple, row: int, block: Block) -> None:
        assert block.roots is not None  # noqa: S101 (the caller has looked)
        self._held[id(t)] = _Held(t, block.roots[row], row, block)

    def _fail(self, t: Tuple) -> None:
        if self.body.auto_ack:
            self.failed_rows.add(self._outputs.row)
        else:
            self._settle(t, False)

    def _settle(self, t: Tuple, ok: bool) -> None:
        held = self._held.pop(id(t), None)
        if held is None:
            return
        if held.block is not self._block:
            self.settle(held.roots, ok)
        elif not ok:
            self.failed_rows.add(held.row)


class BlockBoltTask(Task):
    """A task of a vectorised bolt."""

    body: BlockBolt

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        super().__init__(component, context, refusals)
        self.failed_rows: set[int] = set()
        self.kept_rows: set[int] = set()
        self._emitted: list[Emission] = []
        self._batch: pa.RecordBatch | None = None
        self.bind(emit=self._emit)

    def _context(self, context: TaskContext) -> TaskContext:
        return replace(super()._context(context), refuse=self._refuse)

    def process(self, block: Block) -> list[Emission]:
        """Show the bolt the record batch of a block."""
        self._batch = block.batch
        self.failed_rows.clear()
        try:
            returned = self.body.process_block(block.batch)
            if returned is not None:
                self._emit(returned)
        except ThalwegError as error:
            if not isinstance(error, SchemaError):
                raise
            self._whole_block_failed(block.batch, error)
        except Exception as error:
            self._whole_block_failed(block.batch, error)
        self._batch = None
        return self._take()

    def tick(self) -> list[Emission]:
        """Let time pass."""
        self.call(self.body.process_tick)
        return self._take()

    def end(self) -> list[Emission]:
        """Tell the bolt that its inputs have ended."""
        self.call(self.body.process_end)
        return self._take()

    def _take(self) -> list[Emission]:
        taken, self._emitted = self._emitted, []
        return taken

    def _emit(
        self, batch: pa.RecordBatch, *, stream: str = DEFAULT_STREAM, parents: Rows | None = None
    ) -> None:
        shapes = self.context.shapes
        if stream not in shapes:
            where = f"outputs of {self.component.name!r}"
            raise unknown("stream", stream, where, sorted(shapes))
        batch = shapes[stream].conform(batch)
        if batch.num_rows:
            self._emitted.append(Emission(stream, batch, self._parents(batch, parents)))

    def _parents(self, batch: pa.RecordBatch, parents: Rows | None) -> Rows | None:
        """Apply the rule for outputs without parents (see BlockBolt)."""
        if self._batch is None or parents is not None:
            return parents
        rows = self._batch.num_rows
        if batch.num_rows == rows:
            return np.arange(rows, dtype=np.int64)
        return np.full(batch.num_rows, rows - 1, dtype=np.int64)

    @property
    def _user_call(self) -> Any:
        return getattr(self.body, "function", self.body.process_block)

    def _refuse(self, row: int, error: Exception) -> None:
        assert self._batch is not None  # noqa: S101 (only called while a block is processed)
        self.failed_rows.add(row)
        self.refusals.tuple_failed(
            self._batch[row : row + 1].to_pylist()[0], error, self._user_call
        )

    def _whole_block_failed(self, batch: pa.RecordBatch, error: Exception) -> None:
        self._emitted.clear()
        self.failed_rows.update(range(batch.num_rows))
        self.refusals.block_failed(batch, error, self._user_call)


AnyBoltTask = BoltTask | BlockBoltTask


def make_bolt_task(component: Component, context: TaskContext, refusals: Refusals) -> AnyBoltTask:
    """Bring a bolt to life."""
    kind = BoltTask if isinstance(component.body, Bolt) else BlockBoltTask
    return kind(component, context, refusals)
