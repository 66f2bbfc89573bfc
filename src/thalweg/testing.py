"""For tests of topologies: sources with failures as data, a collecting run, a manual clock.

>>> import thalweg as tw
>>> flow = tw.Flow("shout")
>>> flow.source("words", tw.items([]), fields=["word"]).map(str.upper).sink("out", tw.stdout())
>>> run_inline(flow.build(), {"words": ["to", "be"]}).outputs["out"]
[Tuple(word='TO'), Tuple(word='BE')]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM
from thalweg.builder import TopologyBuilder
from thalweg.clock import Clock, ManualClock, seconds
from thalweg.components import BlockSpout, Shared
from thalweg.config import DeadLetter, Options
from thalweg.connectors.memory import collect, fitting_batch
from thalweg.errors import Aborted, UsageError, explain
from thalweg.events import Event, RecordRefused, TupleRefused
from thalweg.execution import Result, Run
from thalweg.flow import Flow
from thalweg.groupings import Global
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.runtime import Spark
from thalweg.topology import Component, Input, Topology
from thalweg.tuples import Tuple

__all__ = ["ABORT", "EOF", "PAUSE", "ManualClock", "Outcome", "Pause", "run_inline", "source"]


@dataclass(frozen=True)
class _Marker:
    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pause:
    """A marker: let this much time pass before the next item."""

    seconds: float


#: The source ends here; the next run of the same source goes on behind it.
EOF = _Marker("EOF")
#: The run is cut off here, as by a crash; the next run goes on behind it.
ABORT = _Marker("ABORT")


def PAUSE(duration: float | str) -> Pause:
    """Let time pass before the next item: ``PAUSE("10 s")``."""
    return Pause(seconds(duration))


class MarkedSource(Shared, BlockSpout):
    """Items with markers among them; remembers how far earlier runs have come."""

    ends = True

    def __init__(self, items: Sequence[Any], position: list[int]) -> None:
        self._given = items
        self._position = position
        self._until: float | None = None

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Take items up to the next marker, and obey it; all of them go to the first task."""
        if self.context.task > 0:
            self.finish()
            return None
        if self._paused():
            return None
        start = at = self._position[0]
        while at < len(self._given) and at - start < limit and not _is_marker(self._given[at]):
            at += 1
        self._position[0] = at
        if at > start:
            return fitting_batch(self.context, list(self._given[start:at]))
        self._obey(self._given[at] if at < len(self._given) else EOF)
        return None

    def wait_hint(self) -> float:
        """Give what is left of a pause."""
        return 0.0 if self._until is None else self._until - self.context.clock.now()

    def _paused(self) -> bool:
        if self._until is not None and self.context.clock.now() < self._until:
            return True
        self._until = None
        return False

    def _obey(self, marker: Any) -> None:
        self._position[0] += 1
        if marker is EOF:
            self.finish()
        elif marker is ABORT:
            text = f"the source {self.context.component!r} met ABORT"
            raise Aborted(text)
        else:
            self._until = self.context.clock.now() + marker.seconds


def _is_marker(item: Any) -> bool:
    return item is EOF or item is ABORT or isinstance(item, Pause)


def source(items: Iterable[Any]) -> MarkedSource:
    """Make a source of items and markers; a second run goes on where the first one stopped."""
    return MarkedSource(list(items), [0])


@dataclass(frozen=True)
class Outcome:
    """What came out of a run: tuples by sink, and by stream that nobody reads."""

    outputs: dict[str, list[Tuple]]
    result: Result
    #: What was refused by an error policy, in order; dead letters are kept here, not in files.
    refused: list[TupleRefused | RecordRefused]
    clock: Clock

    def table(self, name: str) -> dict[Any, Any]:
        """Give a table as a dictionary."""
        return self.result.table(name)


def run_inline(
    topology: Topology | Flow | TopologyBuilder,
    inputs: Mapping[str, Iterable[Any]] | None = None,
    *,
    runtime: Inline | Local | Spark | None = None,
    run: Run | None = None,
    write_dead_letters: bool = False,
) -> Outcome:
    """Run a topology on given inputs, with a manual clock; sinks are replaced by lists.

    Nothing is written, unless asked for: what was refused is in ``Outcome.refused``. Another
    ``runtime``, such as ``Spark(session, clock=ManualClock())``, runs the same.
    """
    topology = topology if isinstance(topology, Topology) else topology.build()
    given = dict(inputs or {})
    for name in given:
        if not topology.component(name).is_spout:
            raise UsageError(explain(f"input {name!r}", expected="the name of a source"))
    outputs: dict[str, list[Tuple]] = {}
    prepared = tuple(_replaced(c, given, outputs) for c in topology)
    if not write_dead_letters:
        prepared = tuple(map(_without_dead_letters, prepared))
    listeners = tuple(_listeners(topology, outputs))
    chosen = runtime or Inline(clock=ManualClock())
    told = run or Run()
    refused: list[TupleRefused | RecordRefused] = []

    def listen(event: Event) -> None:
        if isinstance(event, TupleRefused | RecordRefused):
            refused.append(event)
        told.listen(event)

    whole = replace(topology, components=prepared + listeners)
    result = chosen.run(whole, replace(told, listen=listen))
    return Outcome(outputs, result, refused, chosen.clock)


def _replaced(
    component: Component, inputs: dict[str, Iterable[Any]], outputs: dict[str, list[Tuple]]
) -> Component:
    if component.is_spout and component.name in inputs:
        return replace(component, body=source(inputs[component.name]))
    if not component.is_spout and not component.outputs:
        return replace(component, body=collect(outputs.setdefault(component.name, [])))
    return component


def _without_dead_letters(component: Component) -> Component:
    if isinstance(component.options.on_error, DeadLetter):
        return replace(component, options=replace(component.options, on_error="skip"))
    return component


def _listeners(topology: Topology, outputs: dict[str, list[Tuple]]) -> Iterable[Component]:
    """Make a collecting sink for each stream that nobody reads."""
    for component in topology:
        for stream in component.outputs:
            if not topology.readers(component.name, stream):
                shown = component.name if stream == DEFAULT_STREAM else f"{component.name}:{stream}"
                body = collect(outputs.setdefault(shown, []))
                input_ = Input(component.name, stream, Global(), "total")
                yield Component(f"collect:{shown}", body, Options(), (input_,), {})
