"""Snapshots of a run, and how the next run goes on from the last one.

A snapshot is taken while nothing is under way: what has changed in the state of every task, how far
every source was read, and what transactional sinks have taken in, all of one moment. It becomes
durable beside the run (see :mod:`thalweg.runtimes.local.committing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from thalweg.components import Kind
from thalweg.execution import Run
from thalweg.routing.routers import KeyRouter
from thalweg.runtimes.local.beginning import LOCAL, Begun, moves_by_hash, state_name
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.committing import Committer, Taken, Transactional
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.isolation import AnyTask, RemoteTask
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.replaying import Replaying
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.positions import Passing
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.runtimes.timing import Reached
from thalweg.statelog.arrangements import Arrangement
from thalweg.statelog.manifests import ENDED, RUNTIME
from thalweg.statelog.parts import hashes_of, milliseconds
from thalweg.statelog.reading import Version
from thalweg.statelog.tracked import Changes, Tracked
from thalweg.topology import Component, Topology

#: Key of the notes: how far event time has come at components.
TIMES = "times"
#: Whether nothing of a source waits to enter any more.
_Ended = Callable[[AnySpoutTask], bool]


class InMemory:
    """Stands for the snapshots of a run that takes none.

    Sources with a position hear how far what they gave is processed.
    """

    def __init__(self, flights: Flights) -> None:
        self._passing = Passing(lambda: flights.begun, lambda: flights.oldest)
        self.times: Callable[[], Mapping[str, int]] = dict

    def restore(self) -> None:
        """Nothing was kept."""

    def is_over(self, _task: AnySpoutTask | AnyTask) -> bool:
        """Every run begins anew."""
        return False

    def prepare(self, task: AnySpoutTask | AnyTask) -> None:
        """Get a task ready."""
        task.prepare()

    def pending(self) -> Iterable[tuple[AnySpoutTask, Emission]]:
        """Nothing waits."""
        return ()

    def enter(self, task: AnySpoutTask, _emissions: Sequence[Emission]) -> None:
        """Hear what a source has given, before it enters."""
        self._passing.given(task)

    def tell_ends(self, _ended: _Ended, _reached: Reached) -> None:
        """Nobody has to know."""

    def due(self) -> bool:
        """Never ask for one; sources hear what has ended since."""
        self._passing.step()
        return False

    def take(self) -> None:
        """Nothing is kept."""

    def ending(self, topology: Topology, _stopped: bool) -> Iterable[Component]:
        """Say which components hear of the end: all."""
        return topology

    def finish(self, ended: bool) -> None:
        """All that was given is processed."""
        self._passing.step()

    def close(self) -> None:
        """Nothing is open."""


class Checkpoint:
    """The snapshots of one run."""

    def __init__(self, settings: Settings, built: Built, run: Run, begun: Begun) -> None:
        self._settings, self._built, self._clock = settings, built, settings.clock
        self._begun = begun
        self._committer = Committer(begun.location, built.topology, begun.manifest)
        spouts = [task for tasks in built.spouts.values() for task in tasks]
        self._sources = Replaying(begun, spouts, self._clock, run.stop)
        self._committer.committed = self._sources.committed
        self._next = 0.0
        #: The degrees and tables of the last snapshot.
        self._arranged = begun.arranged

        # --- beginning ---------------------------------------------------------------------------
        #: Gives how far event time has come at components.
        self.times: Callable[[], Mapping[str, int]] = dict

    def restore(self) -> None:
        """Give every task the state of its keys, and sinks what they have not been told of."""
        self._committer.open()
        version = Version(self._begun.location, self._begun.manifest)
        there = {name for names in version.components().values() for name in names}
        for operator in _stateful(self._built):
            component, tasks = operator.component, range(len(operator.tasks))
            names = {state_name(component, task): task for task in reversed(tasks)}
            for name in there & names.keys():
                for batch in version.batches(name, self._expired_before(component)):
                    _give(operator, batch, names[name])
        self._next = self._clock.now() + self._settings.snapshot_seconds

    def is_over(self, task: AnySpoutTask | AnyTask) -> bool:
        """Say whether a task is a source that had come to its end in an earlier run."""
        return isinstance(task, AnySpoutTask) and self._sources.has_ended(task)

    def prepare(self, task: AnySpoutTask | AnyTask) -> None:
        """Get a task ready; a source is brought to where it was."""
        if isinstance(task, AnySpoutTask):
            self._sources.prepare(task)
        else:
            task.prepare()

    def pending(self) -> Iterable[tuple[AnySpoutTask, Emission]]:
        """Give what has to enter before sources are asked."""
        return self._sources.pending()

    def enter(self, task: AnySpoutTask, emissions: Sequence[Emission]) -> None:
        """Hear what a source has given, before it enters."""
        self._sources.enter(task, emissions)

    def tell_ends(self, ended: _Ended, reached: Reached) -> None:
        """Hear how to find out whether all of a source has entered."""
        self._sources.ended, self._sources.reached = ended, reached

    def _expired_before(self, component: Component) -> int | None:
        ttl = component.options.ttl
        return None if ttl is None else milliseconds(self._clock.now()) - milliseconds(ttl)

    def ending(self, topology: Topology, stopped: bool) -> list[Component]:
        """Say which components hear of the end: none when the next run goes on from here.

        Where an earlier run had come to its end, only sinks do.
        """
        if stopped:
            return []
        return [c for c in topology if not self._had_ended or _is_sink(c)]

    @property
    def _had_ended(self) -> bool:
        """Whether an earlier run had come to its end, and nothing has entered since."""
        began = self._begun.manifest
        return ENDED in began.notes and self._sources.inputs() == began.inputs

    # --- snapshots ---------------------------------------------------------------------------

    def due(self) -> bool:
        """Say whether it is time for the next snapshot, and the last one is durable."""
        return self._clock.now() >= self._next and not self._committer.busy

    def take(self, ended: bool = False) -> None:
        """Take a snapshot, unless nothing has changed; nothing may be under way."""
        self._committer.wait()
        now, last = self._clock.now(), self._committer.manifest
        self._next = now + self._settings.snapshot_seconds
        notes: dict[str, Any] = {RUNTIME: LOCAL, **self._sources.notes()}
        if told := self.times():
            notes[TIMES] = dict(told)
        if ended or self._had_ended:
            notes[ENDED] = True
        taken = Taken(
            now,
            self._parts(now),
            self._sources.inputs(),
            notes,
            self._built.arranging.epoch,
            self._newly_arranged(),
            tuple(self._sinks()),
        )
        same = taken.inputs == last.inputs and taken.notes == last.notes
        if taken.parts or taken.sinks or taken.arranged is not None or not same:
            self._committer.begin(taken)

    def _newly_arranged(self) -> Mapping[str, Arrangement] | None:
        """Give the degrees and tables that were changed, if they are others than before."""
        built, before = self._built, self._arranged
        self._arranged = built.arranging.now(built.operators, built.tables)
        return None if self._arranged == before else self._arranged

    def _parts(self, now: float) -> dict[str, list[Changes | pa.RecordBatch]]:
        found: dict[str, list[Changes | pa.RecordBatch]] = {}
        for operator in _stateful(self._built):
            for number, task in enumerate([*operator.tasks, *operator.retired]):
                if (part := _changes(task, now)) is not None:
                    found.setdefault(state_name(operator.component, number), []).append(part)
        return found

    def _sinks(self) -> Iterator[tuple[int, Transactional]]:
        for operator in self._built.operators:
            for number, task in enumerate(operator.tasks):
                body = None if isinstance(task, RemoteTask) else task.body
                if isinstance(body, Transactional) and (handed := body.hand_over()) is not None:
                    yield number, handed

    def finish(self, ended: bool) -> None:
        """Take the last snapshot, and wait until it is durable."""
        self.take(ended)
        self._committer.finish()

    def close(self) -> None:
        """Let go of everything; what is on its way becomes durable."""
        self._committer.close()


def saving_of(
    settings: Settings, built: Built, run: Run, begun: Begun | None, flights: Flights
) -> Checkpoint | InMemory:
    """Make what takes the snapshots of a run."""
    return InMemory(flights) if begun is None else Checkpoint(settings, built, run, begun)


def _is_sink(component: Component) -> bool:
    return not component.outputs and component.kind is Kind.STATELESS


def _stateful(built: Built) -> list[Operator]:
    return [o for o in built.operators if o.component.kind is not Kind.STATELESS]


def _changes(task: AnyTask, now: float) -> Changes | pa.RecordBatch | None:
    """Give what has changed in the state of a task since the last snapshot."""
    if isinstance(task, RemoteTask):
        return task.delta()
    state = task.context.state
    return state.changes(task.component.name, now) if isinstance(state, Tracked) else None


def _give(operator: Operator, batch: pa.RecordBatch, task: int) -> None:
    """Give rows to the tasks that own their keys, or all of them to the only one there is."""
    tasks, routers = operator.tasks, operator.routers
    if not moves_by_hash(operator.component) or len(tasks) == 1:
        _take_back(tasks[task], batch)
        return
    table = next(router.table for router in routers if isinstance(router, KeyRouter))
    owners = table.places_of(hashes_of(batch))
    for number, other in enumerate(tasks):
        own = batch.filter(pa.array(owners == number))
        if own.num_rows:
            _take_back(other, own)


def _take_back(task: AnyTask, part: pa.RecordBatch) -> None:
    if isinstance(task, RemoteTask):
        task.take_back(part)
    elif isinstance(task.context.state, Tracked):
        task.context.state.take_back(part, task.component.name)
