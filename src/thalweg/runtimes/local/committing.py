"""Making snapshots durable, one after the other, in a thread beside the run.

First the runs with what has changed and the files of sinks are written; the manifest that names
them is the commit; then sinks make their files known. Whatever is killed in between leaves either
the last snapshot or this one, with sinks that are told again by the next run.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import msgspec
import pyarrow as pa

from thalweg.components import AnyBolt
from thalweg.errors import UsageError, explain
from thalweg.runtimes.failpoints import hit
from thalweg.runtimes.marks import marks_of
from thalweg.runtimes.segments import FOLDER as ENTRIES
from thalweg.statelog.arrangements import ARRANGEMENTS, Arrangement, save_arrangements
from thalweg.statelog.compaction import CompactionLimits, Trim, compact, plan, replaced
from thalweg.statelog.delivered import read_mark, write_mark
from thalweg.statelog.garbage import RUNS, garbage, needed, run_name
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import FOLDER, ComponentMark, Manifest, Manifests, StagedRef
from thalweg.statelog.parts import milliseconds
from thalweg.statelog.runs import RunRef, Runs, write_run
from thalweg.statelog.staged import STAGED, StagedBatch
from thalweg.statelog.tracked import Changes, together
from thalweg.topology import Component, Topology

# Versions that are kept, and runs; more of them are merged.
_VERSIONS, _RUNS = 10, 12
# Folders of what snapshots name, and nobody else.
_FOLDERS = (RUNS, ARRANGEMENTS, STAGED)


@runtime_checkable
class Transactional(Protocol):
    """A sink whose output is known with a snapshot, or not at all."""

    def for_batches(self) -> AnyBolt:
        """Give a sink that leaves it to others when its output is known."""

    def hand_over(self) -> Self | None:
        """Give what was taken in to an object for another thread; None when there is nothing."""

    def finish_batch(self, batch: StagedBatch) -> list[StagedRef]:
        """Write what was taken in, under names that no other attempt uses."""

    def commit_batch(self, session: Any, batch: StagedBatch, refs: list[StagedRef]) -> None:
        """Make what was written known; the same batch may come again."""

    def cleanup(self) -> None:
        """Let go of what is left."""


@dataclass(frozen=True)
class Taken:
    """What a snapshot consists of, all of one moment."""

    clock: float
    #: What has changed, by name of the state; of each task that has such state.
    parts: Mapping[str, Sequence[Changes | pa.RecordBatch]]
    #: How far each source was read.
    inputs: Mapping[str, int]
    notes: Mapping[str, Any]
    epoch: int
    #: Degrees and tables that were changed; None for those of the last snapshot.
    arranged: Mapping[str, Arrangement] | None
    #: What transactional sinks have taken in, with the number of the task.
    sinks: tuple[tuple[int, Transactional], ...] = ()


class Committer:
    """Commits snapshots; ``manifest`` is the last one that was committed."""

    def __init__(self, location: Location, topology: Topology, manifest: Manifest) -> None:
        self.manifest = manifest
        self._location, self._topology = location, topology
        self._manifests = Manifests(location)
        self._retained: list[Manifest] = []
        self._thread = ThreadPoolExecutor(1, "thalweg-checkpoint")
        self._under_way: Future[None] | None = None
        #: Called with a snapshot when it is durable.
        self.committed: Callable[[Taken], None] = lambda _taken: None

    def open(self) -> None:
        """Bring to an end what an earlier run has left, and delete what nobody needs."""
        last = self.manifest
        if last.staged and read_mark(self._location) < last.version:
            self._deliver(last)
        older = list(self._manifests.older(last.version))
        self._retained = [*reversed(older), *([last] if last.version else [])]
        self._forget()
        for folder in ("", FOLDER, ENTRIES, *_FOLDERS):
            self._location.sweep(folder)
        self._collect()

    def _collect(self) -> None:
        """Delete what attempts have left that were killed before they had committed."""
        names = [f"{f}/{name}" for f in _FOLDERS for name in self._location.names(f)]
        for name in garbage(names, self._retained):
            self._location.delete(name)

    @property
    def busy(self) -> bool:
        """Whether a snapshot is on its way; raises what went wrong with the last one."""
        if self._under_way is not None and self._under_way.done():
            self.wait()
        return self._under_way is not None

    def begin(self, taken: Taken) -> None:
        """Let a snapshot become durable; only one at a time."""
        self._under_way = self._thread.submit(self._commit, taken)

    def wait(self) -> None:
        """Wait until the snapshot on its way is durable; raises what went wrong."""
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()

    def finish(self) -> None:
        """Wait for the last snapshot, and delete what nobody needs."""
        self.wait()
        self._collect()

    def close(self) -> None:
        """Wait for what is under way, and let the thread end."""
        self._thread.shutdown(wait=True)

    # --- in the thread -----------------------------------------------------------------------

    def _commit(self, taken: Taken) -> None:
        try:
            manifest = self._write(taken)
        finally:
            for _, sink in taken.sinks:
                sink.cleanup()
        hit("before manifest")
        self._manifests.commit(manifest)
        hit("after manifest")
        self.manifest = manifest
        if manifest.staged:
            self._deliver(manifest)
        self.committed(taken)
        self._retained.append(manifest)
        self._forget()

    def _write(self, taken: Taken) -> Manifest:
        last, version = self.manifest, self.manifest.version + 1
        runs = self._merged(list(last.runs[0]))
        hit("before run")
        if taken.parts:
            name = run_name(version, 0, uuid.uuid4().hex)
            parts = {state: together(list(map(_part, p))) for state, p in taken.parts.items()}
            runs = [*runs, write_run(self._location, name, parts, (version, version))]
        hit("after run")
        staged = [
            ref
            for task, sink in taken.sinks
            for ref in sink.finish_batch(StagedBatch(self._location, version, task))
        ]
        arrangements = last.arrangements
        if taken.arranged is not None:
            arrangements = save_arrangements(self._location, taken.arranged, version)
        return msgspec.structs.replace(
            last,
            version=version,
            epoch=taken.epoch,
            arrangements=arrangements,
            clock=taken.clock,
            runs=[runs],
            inputs=dict(taken.inputs),
            topology=_marks(last, self._topology),
            staged=staged,
            notes=dict(taken.notes),
        )

    def _deliver(self, manifest: Manifest) -> None:
        for component in self._topology:
            refs = [ref for ref in manifest.staged if ref.component == component.name]
            if refs and isinstance(component.body, Transactional):
                batch = StagedBatch(self._location, manifest.version)
                component.body.commit_batch(None, batch, refs)
        hit("before delivery mark")
        write_mark(self._location, manifest.version)

    def _forget(self) -> None:
        """Delete the versions that are no longer kept, with what only they name."""
        dropped, self._retained = self._retained[:-_VERSIONS], self._retained[-_VERSIONS:]
        for manifest in dropped:
            self._manifests.delete(manifest.version)
        for name in sorted(needed(dropped) - needed(self._retained) if dropped else ()):
            if name.startswith(_FOLDERS):
                self._location.delete(name)

    def _merged(self, runs: list[RunRef]) -> list[RunRef]:
        """Merge runs when there are many."""
        merge = plan(runs, CompactionLimits(_RUNS))
        if merge is None:
            return runs
        hit("during compaction")
        name = run_name(merge.refs[-1].last, 0, uuid.uuid4().hex)
        made = compact(self._location, Runs(), merge, name, Trim(self._expired(merge.refs)))
        return replaced(runs, merge, made)

    def _expired(self, refs: tuple[RunRef, ...]) -> dict[str, int]:
        """Give the times before which rows of these runs have expired."""
        ttls = {c.name: c.options.ttl for c in self._topology if c.options.ttl is not None}
        names = {name for ref in refs for name in ref.keys}
        return {
            name: milliseconds(self.manifest.clock) - milliseconds(ttls[component])
            for name in names
            if (component := name.partition("#")[0]) in ttls
        }


def _part(changes: Changes | pa.RecordBatch) -> pa.RecordBatch:
    return changes.part() if isinstance(changes, Changes) else changes


def _marks(last: Manifest, topology: Topology) -> dict[str, ComponentMark]:
    """Describe the topology; components that are gone stay known while their state is there."""
    held = {name.partition("#")[0] for ref in last.runs[0] for name in ref.keys}
    gone = {name: mark for name, mark in last.topology.items() if name in held}
    return gone | marks_of(topology)


def for_snapshots(topology: Topology) -> Topology:
    """Let transactional sinks leave it to snapshots when their output is known."""
    return replace(topology, components=tuple(map(_for_snapshots, topology)))


def _for_snapshots(component: Component) -> Component:
    body = component.body
    if not isinstance(body, Transactional):
        return component
    if component.options.isolation == "process":
        hint = "let it run in a thread: its files are written beside the run"
        where = f"component {component.name!r} with a checkpoint"
        raise UsageError(explain("isolation", where, "'thread'", "'process'", hint))
    return replace(component, body=body.for_batches())
