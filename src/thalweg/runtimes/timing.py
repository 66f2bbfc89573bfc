"""Event time of a run: what sources give moves it on, and components are told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM
from thalweg.clock import Clock
from thalweg.eventtime import NEVER, SECOND, newest
from thalweg.metrics import ComponentMetrics
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.topology import Topology
from thalweg.watermarks import Mark, Watermarks


def marked(
    components: Iterable[ComponentMetrics], marks: Mapping[str, Mark]
) -> tuple[ComponentMetrics, ...]:
    """Put how far event time has come onto metrics of components, where that is known."""
    return tuple(
        each if (mark := marks.get(each.component)) is None else _with(each, mark)
        for each in components
    )


def _with(metrics: ComponentMetrics, mark: Mark) -> ComponentMetrics:
    behind = (mark.newest - mark.came) / SECOND
    return replace(metrics, watermark=mark.came / SECOND, behind=max(0.0, behind))


#: How far event time has come with what has entered of a source, if the source itself knows it.
Reached = Callable[[AnySpoutTask], int | None]


def said(task: AnySpoutTask) -> int | None:
    """Give what a source says, all of which has entered that it has given."""
    return task.reached


def _always(_component: str) -> bool:
    return True


class Timing:
    """Watches what enters; ``advance`` tells a component how far time has come.

    What components have been told before is given as ``told``, which is kept up.
    """

    def __init__(
        self,
        topology: Topology,
        clock: Clock,
        advance: Callable[[str, int], None],
        ready: Callable[[str], bool] = _always,
        told: dict[str, int] | None = None,
    ) -> None:
        self._clock, self._advance, self._ready = clock, advance, ready
        self._marks = Watermarks(topology, clock.now(), told)

    def told(self) -> dict[str, int]:
        """Give how far components have been told that time has come."""
        return {name: at for name, at in self._marks.told.items() if at != NEVER}

    def onto(self, components: Iterable[ComponentMetrics]) -> tuple[ComponentMetrics, ...]:
        """Give metrics of components with how far time has come there."""
        return marked(components, self._marks.marks(self._clock.now()))

    def entered(self, task: AnySpoutTask, emission: Emission) -> None:
        """Note what a source has given."""
        if emission.stream == DEFAULT_STREAM:
            self.saw(task, emission.batch)

    def saw(self, task: AnySpoutTask, batch: pa.RecordBatch) -> None:
        """Note the time of tuples of a source."""
        name = task.component.name
        time = self._marks.time_of(name)
        if time is None:
            return
        found = newest(batch.column(time.field), time.unit)
        if found is not None:
            # A source that itself knows how far it has come says so when all has entered.
            now, knows = self._clock.now(), task.reached is not None
            self._marks.saw(name, task.context.task, found, now, knows)

    def look(
        self,
        spouts: Sequence[AnySpoutTask],
        ended: Callable[[AnySpoutTask], bool],
        reached: Reached = said,
    ) -> None:
        """Tell components for which time has gone on."""
        if not self._marks:
            return
        for task in spouts:
            name, number = task.component.name, task.context.task
            self._marks.awaited(name, number, task.awaited)
            came = reached(task)
            if came is not None:
                self._marks.reached(name, number, came)
            if ended(task):
                self._marks.ended(name, number)
        for name, came in self._marks.look(self._clock.now(), self._ready).items():
            self._advance(name, came)

    def finish(self) -> None:
        """Tell components how far time has come when all input has ended."""
        for name, came in self._marks.last().items():
            self._advance(name, came)
