"""Tasks of spouts: asked for tuples, they give emissions until they have finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import BlockSpout, Spout
from thalweg.contexts import TaskContext
from thalweg.errors import RAISED, ComponentError, SchemaError, ThalwegError, as_error
from thalweg.metrics import Tally
from thalweg.pacing import PATIENCE
from thalweg.runtimes.outputs import Emission, TupleOutput, TupleOutputs
from thalweg.runtimes.receivers import Receivers
from thalweg.runtimes.refusals import Refusals
from thalweg.runtimes.tasks import Task
from thalweg.schemas import Shape
from thalweg.topology import Component

#: Tuples between two looks at the clock, at most: looking after each would cost quick spouts time.
_BETWEEN_LOOKS = 16


class SpoutTask(Task):
    """A task of a tuple-at-a-time spout."""

    body: Spout

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        super().__init__(component, context, refusals)
        self.tally = Tally()
        self.finished = False
        self._active = False
        self._outputs = TupleOutputs(component, context.shapes)
        self.bind(emit=self._outputs.emit_with_id, emit_direct=self._outputs.emit_direct)
        self._receivers = Receivers(context)
        if self.body.asks:
            self.bind(emit=self._emit)
        self.bind(finish=self.finish)

    def _emit(
        self, *values: Any, id: Any = None, stream: str = DEFAULT_STREAM, ask: bool = False
    ) -> list[int] | None:
        """Take a tuple; tell at once who gets it, if the spout asks."""
        self._outputs.emit_with_id(*values, id=id, stream=stream)
        if not ask:
            return None
        turn, ids = self._receivers.choose(stream, values)
        output = self._outputs.streams[stream]
        self._go_round(output, len(output) - 1)
        output.targets.append(turn)
        return ids

    def _go_round(self, output: TupleOutput, rows: int) -> None:
        """Give turns to tuples about which nobody asked, where somebody did about others."""
        output.targets += [self._receivers.turn() for _ in range(rows - len(output.targets))]

    def finish(self) -> None:
        """Note that the spout has no more tuples."""
        self.finished = True

    def start(self) -> None:
        """Let the spout begin, or go on."""
        if not self._active:
            self._active = True
            self.call(self.body.activate)

    def stop(self) -> None:
        """Let the spout pause or end; called again and again, for one may take long to hear it."""
        if self._active or getattr(self.body, "pausing", False):
            self._active = False
            self.call(self.body.deactivate)

    def pull(self, limit: int) -> list[Emission]:
        """Ask for tuples until there are enough, or none now, or those there are have waited."""
        if not self.body.asks:
            self.bind(emit=self._outputs.emit_with_id_function())
        self._ask(limit)
        if not self.body.asks:
            self.bind(emit=self._outputs.emit_with_id)
        return self._take(self.body.next_tuple)

    def completed(self, id_: Any, ok: bool, seconds: float = 0.0) -> list[Emission]:
        """Tell the spout how a tuple ended, after so long; give what it sends in answer."""
        del seconds  # hooks hear of it
        told = self.body.ack if ok else self.body.fail
        self.call(told, id_)
        return self._take(told)

    def taken_in(self) -> None:
        """Nothing to tell: tuples with an id are acknowledged."""

    def wait_hint(self) -> float:
        """Storm's spouts cannot tell when they will have more."""
        return 0.0

    @property
    def awaited(self) -> bool:
        """Storm's spouts cannot tell that there is nothing to read."""
        return True

    @property
    def reached(self) -> int | None:
        """The newest tuple tells how far event time has come."""
        return None

    def _take(self, call: Callable[..., None]) -> list[Emission]:
        """Give what was emitted; tuples that do not fit are refused, and the others stay."""
        for stream, output in self._outputs.streams.items() if self.body.asks else ():
            if output.targets and stream not in self.body.direct_streams:
                self._go_round(output, len(output))
        try:
            return self._outputs.take()
        except SchemaError:
            for output in self._outputs.streams.values():
                self._refuse_misfits(output, call)
        return self.call(self._outputs.take)

    def _refuse_misfits(self, output: TupleOutput, call: Callable[..., None]) -> None:
        each = list(range(1, len(output) + 1))  # every tuple stands for itself
        found = output.misfits(each)
        for row, error in sorted(found.items()):
            values = [column[row] for column in output.columns]
            named = dict(zip(output.shape.names, values, strict=True))
            self.refusals.tuple_failed(named, error, call)
        output.drop(found, each)

    def _ask(self, limit: int) -> None:
        try:
            self._ask_for_a_while(limit)
        except ThalwegError:
            raise
        except StopIteration as error:
            text = "StopIteration; call self.finish() when there are no more tuples"
            made = self.refusals.call_failed(RuntimeError(text), self.body.next_tuple)
            raise made from error
        except RAISED as error:
            raise self.refusals.call_failed(as_error(error), self.body.next_tuple) from error

    def _ask_for_a_while(self, limit: int) -> None:
        """Ask again and again; the clock is looked at more and more seldom as that goes quickly."""
        next_tuple, count = self.body.next_tuple, self._outputs.counter()
        clock = self.context.clock.now
        before, now = -1, count()
        due, step = clock() + PATIENCE, 1
        while not self.finished and before < now < limit:
            mark = now + step if now + step < limit else limit
            while not self.finished and before < now < mark:
                next_tuple()
                before, now = now, count()
            if clock() >= due:
                break
            if step < _BETWEEN_LOOKS:
                step *= 2


class BlockSpoutTask(Task):
    """A task of a vectorised spout."""

    body: BlockSpout

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        super().__init__(component, context, refusals)
        self.tally = Tally()
        self.finished = False
        #: How far event time had come with what an earlier run has read of it.
        self.had_reached: int | None = None
        self.bind(finish=self.finish)

    def finish(self) -> None:
        """Note that the spout has no more rows."""
        self.finished = True

    def start(self) -> None:
        """Nothing to tell."""

    def stop(self) -> None:
        """Nothing to tell."""

    def pull(self, limit: int) -> list[Emission]:
        """Ask for a record batch."""
        batch = self.call(self.body.next_block, limit)
        if batch is not None and self.body.reached is None:
            self.had_reached = None  # it does not know any more
        ((stream, shape),) = self.context.shapes.items()
        if batch is None:
            return []
        try:
            fitting = shape.conform(batch)
        except SchemaError as error:
            if not isinstance(batch, pa.RecordBatch):
                raise self.refusals.call_failed(error, self.body.next_block) from error
            fitting = self._sifted(batch, shape)
        lists = dict(self.body.lists) if fitting is batch else {}
        return [Emission(stream, fitting, lists=lists)] if fitting.num_rows else []

    def _sifted(self, batch: pa.RecordBatch, shape: Shape) -> pa.RecordBatch:
        """Refuse the rows that do not fit, as the component's policy says; give the others."""
        good = [batch[:0]]
        for row in range(batch.num_rows):
            piece = batch[row : row + 1]
            try:
                good.append(shape.conform(piece))
            except SchemaError as error:
                self.refusals.record_failed(repr(piece.to_pylist()[0]), str(error))
        return pa.concat_batches(good[1:]) if good[1:] else good[0]

    def completed(self, id_: Any, ok: bool, seconds: float = 0.0) -> list[Emission]:
        """Never asked: rows of record batches have no ids."""
        del seconds
        raise ComponentError(self.component.name, 0, f"unexpected {id_!r} {ok!r}")

    def taken_in(self) -> None:
        """Tell the spout that all it gave has entered."""
        self.call(self.body.taken_in)

    def wait_hint(self) -> float:
        """Ask the spout when it is worth asking again."""
        return float(self.call(self.body.wait_hint))

    @property
    def awaited(self) -> bool:
        """Whether event time waits for it."""
        return self.body.awaited

    @property
    def reached(self) -> int | None:
        """How far event time has come with all that it gave, where the spout itself knows it."""
        return self.had_reached if self.body.reached is None else self.body.reached


AnySpoutTask = SpoutTask | BlockSpoutTask


def make_spout_task(component: Component, context: TaskContext, refusals: Refusals) -> AnySpoutTask:
    """Bring a spout to life."""
    kind = SpoutTask if isinstance(component.body, Spout) else BlockSpoutTask
    return kind(component, context, refusals)
