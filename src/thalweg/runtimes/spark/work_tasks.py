"""The tasks of components that one task of Spark has brought to life, and what they count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM
from thalweg.clock import ManualClock
from thalweg.config import DeadLetter
from thalweg.connectors.frames import Decoder
from thalweg.errors import ThalwegError
from thalweg.events import ChildSaid, Event, Noticed, RecordRefused, TupleRefused
from thalweg.eventtime import ALWAYS
from thalweg.execution import Run
from thalweg.metrics import Counter
from thalweg.runtimes.anchored_tasks import AnchoredTask
from thalweg.runtimes.block_tasks import AnyBoltTask
from thalweg.runtimes.making import Shapes, TaskMaker, make_shapes
from thalweg.runtimes.refusals import Lines
from thalweg.runtimes.spark.notes import MAX_REFUSED, ChildWords, Counts, Note, Refused
from thalweg.runtimes.spark.program import Facts, Program
from thalweg.runtimes.spark.staging import Staging, StagingSink
from thalweg.runtimes.spark.stores import Stores
from thalweg.runtimes.tasks import BoltTask
from thalweg.schemas import Fields, Shape
from thalweg.statelog.staged import StagedBatch
from thalweg.topology import Component


@dataclass
class _Letters:
    """Takes dead letters of one component; the driver puts them into the file after the commit."""

    component: str
    staging: Staging

    def write(self, line: bytes) -> None:
        self.staging.add_letter(self.component, line)

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Kept:
    """Tuples whose bolts have not said yet whether they are done (``auto_ack = False``)."""

    open: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)

    def settle(self, roots: tuple[int, ...], ok: bool) -> None:
        """Note that a bolt has acknowledged a tuple of an earlier block, or let it fail."""
        known = self.open.intersection(roots)
        self.open -= known
        if not ok:
            self.failed |= known


class WorkTasks:
    """Makes tasks when they are first needed."""

    def __init__(
        self, program: Program, facts: Facts, stores: Stores, staging: Staging, seed: str
    ) -> None:
        self._program, self._facts, self._stores = program, facts, stores
        self._tasks: dict[tuple[str, int], AnyBoltTask] = {}
        self._shapes: dict[str, Shapes] = {}
        self._counts: dict[str, Counts] = {}
        self._counters: dict[str, Counter] = {}
        self._refused: list[Refused] = []
        self._said: list[ChildWords] = []
        self.kept = Kept()
        self._run = Run(listen=self._listen, settings=program.settings)
        topology = program.plan.topology
        letters: dict[str, Lines] = {
            c.name: _Letters(c.name, staging)
            for c in topology
            if isinstance(c.options.on_error, DeadLetter)
        }
        self._maker = TaskMaker(
            topology,
            ManualClock(facts.clock),
            seed,
            program.key_groups,
            self._run,
            letters,
            program.plan.read_streams,
            lasting=str(program.location),
            watermarks={name: before for name, (before, _) in facts.times.items()},
            due=facts.due,
        )

    def get(self, component: Component, task: int) -> AnyBoltTask:
        """Give a task, ready to work."""
        key = component.name, task
        if key not in self._tasks:
            counter = self._counter(component)
            state = self._stores.get(component, task)
            made = self._maker.bolt(component, task, counter, self.shapes(component), state)
            self._tasks[key] = made
            if component.name in self._facts.side_tables:
                made.bind(side=self._facts.side_tables[component.name].table())
            if isinstance(made, BoltTask):
                made.settle = self.kept.settle
            made.prepare()
        return self._tasks[key]

    def pausing(self, name: str) -> Iterator[tuple[int, AnchoredTask]]:
        """Give the tasks of a component that may hold tuples, each once."""
        for (component, task), made in self._tasks.items():
            if component == name and isinstance(made, AnchoredTask):
                yield task, made

    def _counter(self, component: Component) -> Counter:
        known = self._counters
        return known.setdefault(component.name, Counter(component.name, component.degree))

    def fitting(self, source: Component) -> Callable[[pa.RecordBatch], pa.RecordBatch | None]:
        """Give what makes the fields of a source of rows of its DataFrame.

        What cannot be read is refused as the policy of the source says.
        """
        shape = self.shapes(source)[DEFAULT_STREAM]
        decoder: Decoder | None = getattr(source.body, "decoder", None)
        if decoder is None:
            return shape.conform
        failed = self._maker.refusals(source, 0, self._counter(source)).record_failed
        return decoder.reading(shape, lambda where, raw, why: failed(raw, f"{where}: {why}"))

    def shapes(self, component: Component) -> Shapes:
        """Give the shapes of a component's streams, with the types learnt in earlier batches."""
        if component.name not in self._shapes:
            made = make_shapes(component)
            for stream, shape in made.items():
                learnt = self._facts.types.get(f"{component.name}/{stream}")
                if learnt is not None:
                    made[stream] = _with_types(shape, learnt)
            self._shapes[component.name] = made
        return self._shapes[component.name]

    def counts_of(self, name: str) -> Counts:
        """Give the counts of a component."""
        if name not in self._counts:
            self._counts[name] = Counts(name)
        return self._counts[name]

    def report(self, note: Note, place: int) -> None:
        """Write down what the tasks staged, counted, refused and learnt."""
        batch = StagedBatch(self._program.location, self._facts.version, place)
        for task in self._tasks.values():
            if isinstance(task.body, StagingSink):
                note.staged += task.call(task.body.finish_batch, batch)
        for (name, _), task in self._tasks.items():
            if task.timers is not None:
                known = note.due.get(name, (ALWAYS, ALWAYS)), task.timers.soonest()
                note.due[name] = min(d[0] for d in known), min(d[1] for d in known)
        for name, counter in self._counters.items():
            counts = self.counts_of(name)
            counts.errors, counts.late = counter.errors, counter.late
        note.counts = list(self._counts.values())
        note.refused = self._refused
        note.said = self._said
        note.stop = self._run.stop.is_set()
        note.failed += sorted(self.kept.open | self.kept.failed)
        for name, shapes in self._shapes.items():
            component = self._program.plan.topology.component(name)
            for stream, shape in shapes.items():
                if None in component.outputs[stream].types and any(shape.types):
                    note.types[f"{name}/{stream}"] = _schema_bytes(shape)

    def close(self) -> list[ThalwegError]:
        """Let all tasks let go; gives what they raised."""
        errors = [error for task in self._tasks.values() if (error := _closed(task))]
        self._tasks.clear()
        return errors

    def _listen(self, event: Event) -> None:
        match event:
            case TupleRefused() if len(self._refused) < MAX_REFUSED:
                self._refused.append(
                    Refused(event.component, event.task, event.tuple_text, event.reason)
                )
            case RecordRefused() if len(self._refused) < MAX_REFUSED:
                refused = Refused(event.component, 0, event.raw, event.reason, unread=True)
                self._refused.append(refused)
            case ChildSaid() if len(self._said) < MAX_REFUSED:
                said = ChildWords(event.component, event.task, event.level, event.text)
                self._said.append(said)
            case Noticed() if len(self._said) < MAX_REFUSED:
                self._said.append(ChildWords("", 0, 0, event.text))


def _closed(task: AnyBoltTask) -> ThalwegError | None:
    try:
        task.close()
    except ThalwegError as error:
        return error
    return None


def _with_types(shape: Shape, learnt: bytes) -> Shape:
    schema = pa.ipc.read_schema(pa.py_buffer(learnt))
    known = {field.name: field.type for field in schema if not pa.types.is_null(field.type)}
    pairs = zip(shape.names, shape.types, strict=True)
    merged = tuple(known.get(name) if type_ is None else type_ for name, type_ in pairs)
    return Shape(Fields(shape.names, merged), shape.subject)


def _schema_bytes(shape: Shape) -> bytes:
    types = [pa.null() if type_ is None else type_ for type_ in shape.types]
    schema = pa.schema(list(zip(shape.names, types, strict=True)))
    return bytes(schema.serialize().to_pybytes())
