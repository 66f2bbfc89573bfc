"""Making the tasks of a topology: contexts, state, shapes, error policies."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from thalweg.clock import Clock
from thalweg.codecs import Codec, MsgpackCodec
from thalweg.components import BlockBolt, Bolt, Kind, has_timers
from thalweg.contexts import KeyedState, TaskContext
from thalweg.eventtime import ALWAYS, NEVER
from thalweg.execution import Run
from thalweg.metrics import Counter
from thalweg.runtimes.block_tasks import AnyBoltTask, make_bolt_task
from thalweg.runtimes.hooked_tasks import hooked_bolt_task, hooked_spout_task
from thalweg.runtimes.refusals import Lines, Refusals
from thalweg.runtimes.services import Services
from thalweg.runtimes.spout_tasks import AnySpoutTask, make_spout_task
from thalweg.schemas import Shape
from thalweg.state import ExpiringState, MemoryState
from thalweg.statelog.tracked import TrackedExpiringState, TrackedState
from thalweg.timers import TimersCodec
from thalweg.topology import Component, Topology

Shapes = Mapping[str, Shape]


def codec_of(component: Component) -> Codec:
    """Give the codec for the values of a component's state."""
    body = component.body
    assert isinstance(body, Bolt | BlockBolt)  # noqa: S101 (only bolts have state)
    codec: Codec = body.state_codec or MsgpackCodec(body.state_type)
    if has_timers(type(body)):
        return TimersCodec(codec)
    return codec


def make_shapes(
    component: Component, read: Mapping[str, frozenset[str]] | None = None
) -> dict[str, Shape]:
    """Make the shapes of a component's streams; its tasks share them: one schema per stream.

    ``read`` names the columns that somebody looks at, where it is known.
    """
    known = read or {}
    return {
        stream: Shape(fields, f"{component.name!r}, {stream}", known.get(stream))
        for stream, fields in component.outputs.items()
    }


class _Ending:
    """Knows since when a run is to end: since the first of its tasks has looked and seen it."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._since: float | None = None

    def since(self) -> float | None:
        if self._since is None and self._stopped():
            self._since = time.monotonic()
        return self._since


@dataclass(frozen=True)
class TaskMaker:
    """Makes tasks; what they need of a run is here."""

    topology: Topology
    clock: Clock
    seed: int | str
    key_groups: int
    run: Run
    #: Takes refused tuples instead of the files that their components name.
    letters: Mapping[str, Lines] | None = None
    #: Names of the streams of each component that are read, where the topology does not say it.
    read: Mapping[str, frozenset[str]] | None = None
    #: Whether states have to know what has changed, to be written down.
    tracked: bool = False
    #: Cores that tasks in processes stay on, in turn; none where they may run anywhere.
    cores: tuple[int, ...] = ()
    #: Where tasks come and go with each batch, the name under which what is dear may be kept.
    lasting: str = ""
    #: How far event time has come at components that have to know it.
    watermarks: Mapping[str, int] = field(default_factory=dict)
    #: Before which times no timer of a component is due, where its state does not tell.
    due: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def spouts(self, component: Component, counter: Counter) -> list[AnySpoutTask]:
        """Make the tasks of a spout."""
        shapes = make_shapes(component)
        contexts = [self.context(component, t, shapes, None) for t in range(component.degree)]
        made = hooked_spout_task if self._hooks(component) else make_spout_task
        return [
            made(component, context, self.refusals(component, context.task, counter))
            for context in contexts
        ]

    def bolts(self, component: Component, counter: Counter) -> list[AnyBoltTask]:
        """Make the tasks of a bolt."""
        shapes = make_shapes(component)
        return [
            self.bolt(component, task, counter, shapes, self.memory(component))
            for task in range(component.degree)
        ]

    def bolt(
        self,
        component: Component,
        task: int,
        counter: Counter,
        shapes: Shapes,
        state: KeyedState | None,
    ) -> AnyBoltTask:
        """Make one task of a bolt."""
        context = replace(self.context(component, task, shapes, state), late=counter.came_late)
        made = hooked_bolt_task if context.hooks else make_bolt_task
        return made(component, context, self.refusals(component, task, counter))

    def _hooks(self, component: Component) -> tuple[Any, ...]:
        return (*component.options.hooks, *self.run.hooks)

    def refusals(self, component: Component, task: int, counter: Counter) -> Refusals:
        """Make what applies the policy of a component at a task."""
        letters = self.letters.get(component.name) if self.letters else None
        return Refusals(component, task, counter, self.run.listen, letters)

    def context(
        self, component: Component, task: int, shapes: Shapes, state: KeyedState | None
    ) -> TaskContext:
        """Make what a task knows about itself."""
        services: Services | None = self.run.services
        offered: dict[str, Any] = {} if services is None else services.of(component.name, task)
        return TaskContext(
            topology=self.topology.name,
            component=component.name,
            task=task,
            degree=component.degree,
            clock=self.clock,
            random=random.Random(f"{self.seed}/{component.name}/{task}"),  # noqa: S311 (to be repeatable)
            state=state,
            shapes=shapes,
            read_streams=self._read(component),
            settings=self.run.settings,
            stop=self.run.stop.set,
            stopped=self.run.stop.is_set,
            stopped_at=self._ending.since,
            tolerant=component.options.on_error != "fail",
            graph=self.topology,
            key_groups=self.key_groups,
            tell=self.run.listen,
            lasting=self.lasting,
            watermark=self.watermarks.get(component.name, NEVER),
            due=self.due.get(component.name, (ALWAYS, ALWAYS)),
            hooks=self._hooks(component),
            **offered,
        )

    @cached_property
    def _ending(self) -> _Ending:
        return _Ending(self.run.stop.is_set)

    def _read(self, component: Component) -> frozenset[str]:
        if self.read is not None:
            return self.read[component.name]
        return frozenset(s for s in component.outputs if self.topology.readers(component.name, s))

    def memory(self, component: Component) -> MemoryState | None:
        """Make the state of a task, if its component keeps any."""
        if component.kind is Kind.STATELESS:
            return None
        codec, ttl = codec_of(component), component.options.ttl
        if ttl is not None:
            expiring = TrackedExpiringState if self.tracked else ExpiringState
            return expiring(self.clock, ttl, codec, self.key_groups)
        return (TrackedState if self.tracked else MemoryState)(codec, self.key_groups)
