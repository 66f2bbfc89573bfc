"""The keyed state of one place during one batch: a version, and what the batch changes in it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pyarrow as pa

from thalweg.components import Kind
from thalweg.hashing import Hashes
from thalweg.runtimes.failpoints import hit
from thalweg.runtimes.making import codec_of
from thalweg.runtimes.spark.planning import state_name
from thalweg.runtimes.spark.program import Facts, Program
from thalweg.statelog.garbage import run_name
from thalweg.statelog.location import MissingObject
from thalweg.statelog.objects import CorruptRun
from thalweg.statelog.parts import Owns, merge, with_hashes
from thalweg.statelog.runs import Run, RunRef, write_run
from thalweg.statelog.versioned import StateSettings, VersionedState
from thalweg.topology import Component

#: Name of a state, the stage that changed it, and the changes.
Change = tuple[str, int, pa.RecordBatch]


class Stores:
    """States of the components at a place."""

    def __init__(self, program: Program, facts: Facts, place: int) -> None:
        self._program, self._facts, self._place = program, facts, place
        self._refs = facts.runs[place] if place < len(facts.runs) else ()
        self._runs: list[Run] | None = None
        program.opened.keep_only(ref.name for refs in facts.runs for ref in refs)
        #: What earlier stages of this batch changed, by the name of the state and the stage.
        self._earlier: dict[str, list[tuple[int, pa.RecordBatch]]] = {}
        self._states: dict[tuple[str, int], VersionedState] = {}

    def get(self, component: Component, task: int) -> VersionedState | None:
        """Give the state of a task; None for stateless components."""
        if component.kind is Kind.STATELESS:
            return None
        key = component.name, task
        if key not in self._states:
            name = state_name(component, task)
            settings = StateSettings(
                component=component.name,
                now=self._facts.clock,
                codec=codec_of(component),
                ttl=component.options.ttl,
                owns=self._owns(component, task),
            )
            self._states[key] = VersionedState(self._parts(name), settings)
        return self._states[key]

    def prefetch(self, component: Component, task: int, columns: Sequence[pa.Array]) -> None:
        """Look up the keys of a block that a task is about to process."""
        state = self.get(component, task)
        if state is not None:
            state.prefetch(columns)

    def overlay(self, name: str, stage: int, changes: pa.RecordBatch) -> None:
        """Take in what an earlier stage changed at this place."""
        self._earlier.setdefault(name, []).append((stage, changes))

    def changes(self, stage: int) -> list[Change]:
        """Give all changes of this batch so far, those of this stage last."""
        found = [(name, *change) for name, earlier in self._earlier.items() for change in earlier]
        for (name, task), state in self._states.items():
            component = self._program.plan.topology.component(name)
            delta = state.delta()
            if delta is not None:
                found.append((state_name(component, task), stage, delta))
        return found

    def rows_of(self, name: str, hashes: Hashes) -> pa.RecordBatch:
        """Give the rows of some keys, whose hashes ascend, as they were before the batch.

        While places share runs, also those of deleted keys: other places have their old values.
        """
        parts = [with_hashes(part, hashes) for part in self._parts(name)]
        return merge(parts, oldest=not self._is_shared)

    def write_run(self, changes: list[Change]) -> RunRef | None:
        """Write what the batch changed at this place as one object; None when that is nothing."""
        found: dict[str, list[tuple[int, pa.RecordBatch]]] = {}
        for name, stage, batch in changes:
            found.setdefault(name, []).append((stage, batch))
        if not found:
            return None
        parts = {name: merge(_in_turn(batches), oldest=False) for name, batches in found.items()}
        version = self._facts.version
        name = run_name(version, self._place, uuid.uuid4().hex)
        return write_run(self._program.location, name, parts, (version, version))

    def _parts(self, name: str) -> list[pa.RecordBatch]:
        if self._runs is None:
            hit("during catch-up")
            self._runs = [self._open(ref) for ref in self._refs]
        stored = [run.part(name) for run in self._runs]
        return [part for part in stored if part is not None] + _in_turn(self._earlier.get(name, []))

    def _open(self, ref: RunRef) -> Run:
        try:
            return self._program.opened.open(self._program.location, ref)
        except MissingObject as error:  # as bad as one that is damaged
            raise CorruptRun(str(error)) from error

    @property
    def _is_shared(self) -> bool:
        return any(ref.shared for ref in self._refs)

    def _owns(self, component: Component, task: int) -> Owns | None:
        """Tell a task's keys from those of others, where a run holds both."""
        if component.degree <= self._program.plan.places and not self._is_shared:
            return None
        owners = self._program.owners(self._facts.tabled)
        return owners.of_task(state_name(component, task), task)


def _in_turn(changes: list[tuple[int, pa.RecordBatch]]) -> list[pa.RecordBatch]:
    """Give changes in the order of the stages that made them; Spark may have mixed them up."""
    return [batch for _, batch in sorted(changes, key=lambda pair: pair[0])]
