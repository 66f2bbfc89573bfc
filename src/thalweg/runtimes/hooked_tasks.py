"""Tasks whose hooks are told what they do; made only for components that have hooks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, wraps
from typing import Any

from thalweg.anchored import AnchoredBolt
from thalweg.blocks import DEFAULT_STREAM, Block
from thalweg.components import Bolt, Spout
from thalweg.contexts import TaskContext
from thalweg.errors import RAISED
from thalweg.hooks import (
    CALLS,
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
    listeners,
)
from thalweg.runtimes.anchored_tasks import AnchoredTask
from thalweg.runtimes.block_tasks import AnyBoltTask, BlockBoltTask
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.refusals import Refusals
from thalweg.runtimes.spout_tasks import AnySpoutTask, BlockSpoutTask, SpoutTask
from thalweg.runtimes.tasks import BoltTask, Task
from thalweg.topology import Component
from thalweg.tuples import Tuple


class _Hooked(Task):
    """What all hooked tasks have in common."""

    @cached_property
    def _heard(self) -> dict[str, tuple[Callable[[Any], None], ...]]:
        return {call: listeners(self.context.hooks, call) for call in CALLS}

    def prepare(self) -> None:
        """Let the hooks get ready, and then the component."""
        for hook in self.context.hooks:
            if hasattr(hook, "prepare"):
                self.call(hook.prepare, self.context)
        super().prepare()

    def _clean_up(self) -> None:
        """Let the component let go, and then the hooks."""
        try:
            super()._clean_up()
        finally:
            for hook in self.context.hooks:
                if hasattr(hook, "cleanup"):
                    self.call(hook.cleanup)

    def bind(self, **attributes: Any) -> None:
        """Put what the runtime provides onto the body; emitting is told."""
        told = self._heard["emit"]
        for name in ("emit", "emit_direct") if told and self.emits_tuples else ():
            if name in attributes:
                attributes[name] = self._telling(attributes[name], told, name == "emit_direct")
        super().bind(**attributes)

    #: Whether ``emit`` is called with the values of one tuple.
    emits_tuples = True

    def _telling(
        self, emit: Callable[..., Any], told: Iterable[Callable[[EmitInfo], None]], direct: bool
    ) -> Callable[..., Any]:
        component, task = self.component.name, self.context.task

        @wraps(emit)
        def emit_and_tell(*values: Any, **more: Any) -> Any:
            given = emit(*values, **more)
            stream = more.get("stream", DEFAULT_STREAM)
            chosen, rest = (values[0], values[1:]) if direct else (None, values)
            info = EmitInfo(component, task, stream, rest, chosen)
            for tell in told:
                tell(info)
            return given

        return emit_and_tell

    def _tell(self, call: str, kind: Callable[..., Any], *about: Any, count: int = 1) -> None:
        told = self._heard[call]
        if told:
            counted = {} if call.startswith("spout_") else {"count": count}
            info = kind(self.component.name, self.context.task, *about, **counted)
            for tell in told:
                self.call(tell, info)

    def _tell_emissions(self, emissions: Iterable[Emission]) -> None:
        told = self._heard["emit"]
        for emission in emissions if told else ():
            batch = emission.batch
            about = self.component.name, self.context.task, emission.stream, batch
            for tell in told:
                self.call(tell, EmitInfo(*about, count=batch.num_rows))

    def _tell_end(self, ok: bool, t: Any, begin: float | None, count: int = 1) -> None:
        seconds = None if begin is None else time.perf_counter() - begin
        if ok:
            self._tell("bolt_ack", BoltAckInfo, t, seconds, count=count)
        else:
            self._tell("bolt_fail", BoltFailInfo, t, seconds, count=count)


class HookedBoltTask(_Hooked, BoltTask):
    """A task of a tuple-at-a-time bolt."""

    def __init__(self, *arguments: Any) -> None:
        self._let_fail = False
        super().__init__(*arguments)

    def _timed(self, process: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        inner, auto_ack = super()._timed(process), self.body.auto_ack
        executed, ended = self._heard["bolt_execute"], self._heard["bolt_ack"]
        component, task, now = self.component.name, self.context.task, time.perf_counter

        @wraps(process)
        def process_and_tell(t: Tuple) -> None:
            self._let_fail, begin = False, now()
            try:
                inner(t)
            except RAISED:
                self._tell("bolt_execute", BoltExecuteInfo, t, now() - begin)
                self._tell_end(False, t, begin)
                raise
            if executed:
                info = BoltExecuteInfo(component, task, t, now() - begin)
                for tell in executed:
                    tell(info)
            if auto_ack and (ended or self._let_fail):
                self._tell_end(not self._let_fail, t, begin)

        return process_and_tell

    def _fail(self, t: Tuple) -> None:
        self._let_fail = True
        super()._fail(t)

    def _settle(self, t: Tuple, ok: bool) -> None:
        held = self._held.get(id(t))
        super()._settle(t, ok)
        if not self.body.auto_ack:
            self._tell_end(ok, t, None if held is None else held.begin)


class HookedAnchoredTask(_Hooked, AnchoredTask):
    """A task of a bolt in Storm's manner: it is given blocks, and settles tuples by number."""

    emits_tuples = False

    def __init__(self, *arguments: Any) -> None:
        #: Tuples of the block at hand that nobody waits for, and whose end was told.
        self._told: set[int] = set()
        super().__init__(*arguments)

    def process(self, block: Block, lineage: bool = True) -> list[Emission]:
        """Show the bolt the tuples of a block."""
        self._told.clear()
        begin = time.perf_counter()
        emissions = super().process(block, lineage)
        took = time.perf_counter() - begin
        self._tell("bolt_execute", BoltExecuteInfo, block.batch, took, count=len(block))
        return emissions

    def _emit(
        self,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Sequence[int] | None = None,
        task: int | None = None,
        ask: bool = False,
    ) -> list[int] | None:
        given = super()._emit(values, stream, anchors, task, ask)
        about = self.component.name, self.context.task, stream, tuple(values)
        for tell in self._heard["emit"]:
            self.call(tell, EmitInfo(*about, task))
        return given

    def _bind_outbox(self) -> None:
        """Let nothing be added directly while somebody is told of each tuple."""
        if self._heard["emit"]:
            self.bind(outbox=None)
        else:
            super()._bind_outbox()

    def _settle_number(self, number: int, ok: bool) -> None:
        if number in self._ended or number in self._told:
            return
        waited_for = number in self._open
        begin = self._begun(number) if waited_for else None
        super()._settle_number(number, ok)
        if not waited_for and number >= self._first:
            self._told.add(number)
        self._tell_end(ok, number, begin)


class HookedBlockBoltTask(_Hooked, BlockBoltTask):
    """A task of a vectorised bolt: hooks are told of blocks."""

    emits_tuples = False

    def process(self, block: Block, lineage: bool = True) -> list[Emission]:
        """Show the bolt the record batch of a block."""
        begin = time.perf_counter()
        emissions = super().process(block, lineage)
        took, rows = time.perf_counter() - begin, len(block)
        self._tell_emissions(emissions)
        self._tell("bolt_execute", BoltExecuteInfo, block.batch, took, count=rows)
        for ok, count in ((True, rows - len(self.failed_rows)), (False, len(self.failed_rows))):
            if count:
                self._tell_end(ok, block.batch, begin, count)
        return emissions

    def tick(self) -> list[Emission]:
        """Let time pass."""
        return self._told(super().tick())

    def end(self) -> list[Emission]:
        """Tell the bolt that its inputs have ended."""
        return self._told(super().end())

    def _told(self, emissions: list[Emission]) -> list[Emission]:
        self._tell_emissions(emissions)
        return emissions


class HookedSpoutTask(_Hooked, SpoutTask):
    """A task of a tuple-at-a-time spout."""

    def completed(self, id_: Any, ok: bool, seconds: float = 0.0) -> list[Emission]:
        """Tell the spout how a tuple ended, and then the hooks."""
        given = super().completed(id_, ok, seconds)
        if ok:
            self._tell("spout_ack", SpoutAckInfo, id_, seconds)
        else:
            self._tell("spout_fail", SpoutFailInfo, id_, seconds)
        return given


class HookedBlockSpoutTask(_Hooked, BlockSpoutTask):
    """A task of a vectorised spout."""

    emits_tuples = False

    def pull(self, limit: int) -> list[Emission]:
        """Ask for a record batch."""
        emissions = super().pull(limit)
        self._tell_emissions(emissions)
        return emissions


def hooked_bolt_task(component: Component, context: TaskContext, refusals: Refusals) -> AnyBoltTask:
    """Bring a bolt with hooks to life."""
    body = component.body
    if isinstance(body, AnchoredBolt):
        return HookedAnchoredTask(component, context, refusals)
    kind = HookedBoltTask if isinstance(body, Bolt) else HookedBlockBoltTask
    return kind(component, context, refusals)


def hooked_spout_task(
    component: Component, context: TaskContext, refusals: Refusals
) -> AnySpoutTask:
    """Bring a spout with hooks to life."""
    kind = HookedSpoutTask if isinstance(component.body, Spout) else HookedBlockSpoutTask
    return kind(component, context, refusals)
