"""Tasks: bodies of components brought to life, whatever runtime they are on.

A task takes blocks and gives emissions. The tuple-at-a-time classes become views over blocks here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
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
        #: Per stream, how many tuples had been sent when each row of the block was done.
        self._ends: dict[str, list[int]] = {}
        self.bind(emit=outputs.emit, emit_direct=outputs.emit_direct)
        self.bind(ack=lambda t: self._settle(t, True), fail=self._fail)

    def process(self, block: Block, lineage: bool = True) -> list[Emission]:
        """Show the bolt each tuple of a block; with lineage, outputs know their input rows."""
        self._block = block
        self.failed_rows.clear()
        self._ends = {stream: [] for stream in self._outputs.streams}
        self.bind(emit=self._outputs.emit_function())
        tuples: Iterable[Tuple] = tuples_of(block.batch, block.values)
        if not self.body.auto_ack and block.roots is not None:
            tuples = self._holding(tuples, block)
        self._each(tuples)
        self._block = None
        self.bind(emit=self._outputs.emit)
        self.kept_rows = {held.row for held in self._held.values() if held.block is block}
        return self._take(block, lineage)

    def _each(self, tuples: Iterable[Tuple]) -> None:
        """Call the bolt on each tuple: the inner loop, with next to nothing in it."""
        process, outputs = self.body.process, self._outputs.streams
        marks = [(outputs[stream].columns[0], ends.append) for stream, ends in self._ends.items()]
        if len(marks) == 1:
            ((sent, mark),) = marks
            for t in tuples:
                try:
                    process(t)
                except Exception as error:
                    self._tuple_failed(t, error)
                mark(len(sent))
            return
        for row, t in enumerate(tuples):
            self._row = row
            try:
                process(t)
            except Exception as error:
                self._tuple_failed(t, error)
            for sent, mark in marks:
                mark(len(sent))

    def tick(self) -> list[Emission]:
        """Let time pass."""
        self.call(self.body.process_tick)
        return self._outputs.take()

    def end(self) -> list[Emission]:
        """Tell the bolt that its inputs have ended."""
        self.call(self.body.process_end)
        return self._outputs.take()

    def _take(self, block: Block, lineage: bool) -> list[Emission]:
        try:
            return self._outputs.take(self._ends if lineage else None, block)
        except SchemaError as error:
            self._outputs.clear()
            self.failed_rows.update(range(len(block)))
            self.refusals.block_failed(block.batch, error, self.body.process)
            return []

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
        self.failed_rows.add(row)
        values = self._block.batch[row : row + 1].to_pylist()[0]
        self.refusals.tuple_failed(values, error, self.body.process, self._outputs.hint(error))

    def _holding(self, tuples: Iterable[Tuple], block: Block) -> Iterator[Tuple]:
        """Keep each tuple until the bolt acknowledges it."""
        assert block.roots is not None  # noqa: S101 (the caller has looked)
        for row, t in enumerate(tuples):
            self._held[id(t)] = _Held(t, block.roots[row], row, block)
            yield t

    def _fail(self, t: Tuple) -> None:
        if self.body.auto_ack:
            self.failed_rows.add(self._at)
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
        self._block: Block | None = None
        self._lineage = True
        self._made: tuple[pa.RecordBatch, dict[str, list[Any]]] | None = None
        self.bind(emit=self._emit, values=self._values, make_batch=self._make_batch)

    def _context(self, context: TaskContext) -> TaskContext:
        return replace(super()._context(context), refuse=self._refuse)

    def process(self, block: Block, lineage: bool = True) -> list[Emission]:
        """Show the bolt the record batch of a block."""
        self._block = block
        self._lineage = lineage
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
        self._block = self._made = None
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
            raise unknown(stream, "stream", where, sorted(shapes))
        lists = self._known_lists(batch)
        if self._made is None or self._made[0] is not batch:
            batch = shapes[stream].conform(batch)
        if batch.num_rows:
            if parents is None and self._lineage:
                parents = self._parents(batch)
            self._emitted.append(Emission(stream, batch, parents, lists=lists))

    def _make_batch(self, columns: Sequence[Any], stream: str = DEFAULT_STREAM) -> pa.RecordBatch:
        """Make a record batch, and remember the lists it was made of for the next component."""
        self._made = self.context.shapes[stream].make(columns)
        return self._made[0]

    def _known_lists(self, batch: pa.RecordBatch) -> dict[str, list[Any]]:
        """Find the Python values of a batch: it was made of them, or its columns passed through."""
        block = self._block
        known = dict(self._made[1]) if self._made and self._made[0] is batch else {}
        if block is not None and block.lists and batch.num_rows == len(block):
            for name in set(batch.schema.names) & block.lists.keys() - known.keys():
                if _same_memory(batch.column(name), block.batch.column(name)):
                    known[name] = block.lists[name]
        return known

    def _values(self, name: str) -> list[Any]:
        assert self._block is not None  # noqa: S101 (only called while a block is processed)
        return self._block.values(name)

    def _parents(self, batch: pa.RecordBatch) -> Rows | None:
        """Apply the rule for outputs without parents (see BlockBolt)."""
        if self._block is None:
            return None
        rows = len(self._block)
        if batch.num_rows == rows:
            return np.arange(rows, dtype=np.int64)
        return np.full(batch.num_rows, rows - 1, dtype=np.int64)

    @property
    def _user_call(self) -> Any:
        return getattr(self.body, "function", self.body.process_block)

    def _refuse(self, row: int, error: Exception) -> None:
        assert self._block is not None  # noqa: S101 (only called while a block is processed)
        self.failed_rows.add(row)
        self.refusals.tuple_failed(
            self._block.batch[row : row + 1].to_pylist()[0], error, self._user_call
        )

    def _whole_block_failed(self, batch: pa.RecordBatch, error: Exception) -> None:
        self._emitted.clear()
        self.failed_rows.update(range(batch.num_rows))
        self.refusals.block_failed(batch, error, self._user_call)


def _same_memory(a: pa.Array, b: pa.Array) -> bool:
    """Say whether two columns of equal length are the same piece of memory."""
    if a.type != b.type or a.offset != b.offset:
        return False
    pairs = zip(a.buffers(), b.buffers(), strict=True)
    return all((x and x.address) == (y and y.address) for x, y in pairs)


AnyBoltTask = BoltTask | BlockBoltTask


def make_bolt_task(component: Component, context: TaskContext, refusals: Refusals) -> AnyBoltTask:
    """Bring a bolt to life."""
    kind = BoltTask if isinstance(component.body, Bolt) else BlockBoltTask
    return kind(component, context, refusals)
