"""Making the tasks of a topology: contexts, state, shapes, error policies."""

from __future__ import annotations

import random
from dataclasses import dataclass

from thalweg.clock import Clock
from thalweg.codecs import MsgpackCodec
from thalweg.components import BlockBolt, Bolt, Kind, TaskContext
from thalweg.execution import Run
from thalweg.metrics import Counter
from thalweg.runtimes.block_tasks import AnyBoltTask, make_bolt_task
from thalweg.runtimes.refusals import Refusals
from thalweg.runtimes.spout_tasks import AnySpoutTask, make_spout_task
from thalweg.schemas import Shape
from thalweg.state import MemoryState
from thalweg.topology import Component, Topology


@dataclass(frozen=True)
class TaskMaker:
    """Makes tasks; what they need of a run is here."""

    topology: Topology
    clock: Clock
    seed: int
    key_groups: int
    run: Run

    def spouts(self, component: Component, counter: Counter) -> list[AnySpoutTask]:
        """Make the tasks of a spout."""
        return [
            make_spout_task(component, context, self._refusals(component, context, counter))
            for context in self._contexts(component)
        ]

    def bolts(self, component: Component, counter: Counter) -> list[AnyBoltTask]:
        """Make the tasks of a bolt."""
        return [
            make_bolt_task(component, context, self._refusals(component, context, counter))
            for context in self._contexts(component)
        ]

    def _refusals(self, component: Component, context: TaskContext, counter: Counter) -> Refusals:
        return Refusals(component, context.task, counter, self.run.listen)

    def _contexts(self, component: Component) -> list[TaskContext]:
        """Make a context per task; the shapes are shared, so that a stream has one schema."""
        shapes = {s: Shape(f, f"{component.name!r}, {s}") for s, f in component.outputs.items()}
        read = frozenset(s for s in component.outputs if self.topology.readers(component.name, s))
        return [
            TaskContext(
                topology=self.topology.name,
                component=component.name,
                task=task,
                degree=component.options.degree,
                clock=self.clock,
                random=random.Random(f"{self.seed}/{component.name}/{task}"),  # noqa: S311 (to be repeatable)
                state=self._state(component),
                shapes=shapes,
                read_streams=read,
                settings=self.run.settings,
                stop=self.run.stop.set,
                tolerant=component.options.on_error != "fail",
            )
            for task in range(component.options.degree)
        ]

    def _state(self, component: Component) -> MemoryState | None:
        body = component.body
        if not isinstance(body, Bolt | BlockBolt) or component.kind is Kind.STATELESS:
            return None
        return MemoryState(body.state_codec or MsgpackCodec(body.state_type), self.key_groups)
