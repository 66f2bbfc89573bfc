"""Tasks of spouts: asked for tuples, they give emissions until they have finished."""

from __future__ import annotations

from typing import Any

from thalweg.components import BlockSpout, Spout, TaskContext
from thalweg.errors import ComponentError, ThalwegError
from thalweg.runtimes.outputs import Emission, TupleOutputs
from thalweg.runtimes.refusals import Refusals
from thalweg.runtimes.tasks import Task
from thalweg.topology import Component


class SpoutTask(Task):
    """A task of a tuple-at-a-time spout."""

    body: Spout

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        super().__init__(component, context, refusals)
        self.finished = False
        self._outputs = TupleOutputs(component, context.shapes)
        self.bind(emit=self._outputs.emit_with_id, emit_direct=self._outputs.emit_direct)
        self.bind(finish=self.finish)

    def finish(self) -> None:
        """Note that the spout has no more tuples."""
        self.finished = True

    def start(self) -> None:
        """Let the spout begin."""
        self.call(self.body.activate)

    def stop(self) -> None:
        """Let the spout pause or end."""
        self.call(self.body.deactivate)

    def pull(self, limit: int) -> list[Emission]:
        """Ask for tuples until there are enough, or none now."""
        asked = -1
        while not self.finished and asked < len(self._outputs) < limit:
            asked = len(self._outputs)
            self._ask()
        return self._outputs.take()

    def completed(self, id_: Any, ok: bool) -> list[Emission]:
        """Tell the spout how a tuple ended; give what it sends in answer."""
        self.call(self.body.ack if ok else self.body.fail, id_)
        return self._outputs.take()

    def wait_hint(self) -> float:
        """Storm's spouts cannot tell when they will have more."""
        return 0.0

    def _ask(self) -> None:
        try:
            self.body.next_tuple()
        except ThalwegError:
            raise
        except StopIteration as error:
            text = "StopIteration; call self.finish() when there are no more tuples"
            made = self.refusals.call_failed(RuntimeError(text), self.body.next_tuple)
            raise made from error
        except Exception as error:
            raise self.refusals.call_failed(error, self.body.next_tuple) from error


class BlockSpoutTask(Task):
    """A task of a vectorised spout."""

    body: BlockSpout

    def __init__(self, component: Component, context: TaskContext, refusals: Refusals) -> None:
        super().__init__(component, context, refusals)
        self.finished = False
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
        if batch is None or not batch.num_rows:
            return []
        ((stream, shape),) = self.context.shapes.items()
        return [Emission(stream, shape.conform(batch))]

    def completed(self, id_: Any, ok: bool) -> list[Emission]:
        """Never asked: rows of record batches have no ids."""
        raise ComponentError(self.component.name, 0, f"unexpected {id_!r} {ok!r}")

    def wait_hint(self) -> float:
        """Ask the spout when it is worth asking again."""
        return float(self.call(self.body.wait_hint))


AnySpoutTask = SpoutTask | BlockSpoutTask


def make_spout_task(component: Component, context: TaskContext, refusals: Refusals) -> AnySpoutTask:
    """Bring a spout to life."""
    kind = SpoutTask if isinstance(component.body, Spout) else BlockSpoutTask
    return kind(component, context, refusals)
