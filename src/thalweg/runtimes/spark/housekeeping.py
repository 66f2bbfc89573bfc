"""What happens beside the batches: runs are merged, and objects that nobody needs are deleted.

Both in one thread of their own. Merging is a Spark job, or, where the driver's machine is the only
one, done by that thread: a job would keep a batch waiting for one of the few cores. Its result is
adopted by the next commit.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import msgspec
from pyspark import SparkContext

from thalweg.runtimes.failpoints import hit
from thalweg.runtimes.segments import SegmentLog
from thalweg.runtimes.spark.exchange import collect, descriptors, run_at
from thalweg.runtimes.spark.planning import state_name
from thalweg.runtimes.spark.program import Program, Shipped
from thalweg.runtimes.spark.tabled import Tabled
from thalweg.statelog.compaction import CompactionLimits, Merge, Trim, compact, plan_all, replaced
from thalweg.statelog.garbage import garbage, needed, run_name
from thalweg.statelog.manifests import LOG, Manifest, Manifests
from thalweg.statelog.owners import Owners
from thalweg.statelog.parts import milliseconds
from thalweg.statelog.runs import RunRef, Runs

_FOLDERS = ("runs", "staged", "letters", "tables")
# Merges that fail one after the other before the run does: then the number of runs has no bound.
_FAILURES = 5
# The thread gives way to workers of batches, as far as Linux permits.
_NICE = 5
# A batch waits for a merge when a place has so many times the runs that it should have.
_PATIENCE = 4


class Merging(msgspec.Struct, frozen=True, array_like=True):
    """A merge at a place."""

    place: int
    merge: Merge


class Merged(msgspec.Struct, frozen=True, array_like=True):
    """Its result."""

    place: int
    merge: Merge
    run: RunRef


class Housekeeping:
    """Keeps the number of objects bounded while batches run."""

    def __init__(
        self,
        context: SparkContext,
        shipped: Shipped,
        manifests: Manifests,
        log: SegmentLog,
        notice: Callable[[str], None],
        in_thread: Callable[[], None] = lambda: None,
    ) -> None:
        self._context, self._shipped = context, shipped
        self._manifests, self._log, self._notice = manifests, log, notice
        program = shipped.program()
        self._location, self._limits = program.location, program.limits
        self._retained: list[Manifest] = []
        self._here = str(context.master).startswith("local")
        begin = _give_way if self._here else in_thread
        self._thread = ThreadPoolExecutor(1, "thalweg-housekeeping", initializer=begin)
        self._merging: Future[list[Merged]] | None = None
        self._deleting: Future[None] | None = None
        self._failures = 0
        #: Tables in which keys have places of their own.
        self.tabled: Tabled | None = None

    def use(self, shipped: Shipped) -> None:
        """Go on with another program; what is being merged for the last one is given up."""
        if self._merging is not None:
            self._merging.exception()  # waits; what was written stays until the next start
            self._merging = None
        self._shipped = shipped

    def begin(self, manifest: Manifest) -> None:
        """Look at what earlier runs have left, and delete what no retained manifest names."""
        older = list(self._manifests.older(manifest.version))
        kept, dropped = older[: self._limits.versions - 1], older[self._limits.versions - 1 :]
        self._retained = [*reversed(kept), *([manifest] if manifest.version else [])]
        names = [f"{folder}/{name}" for folder in _FOLDERS for name in self._location.names(folder)]
        self._delete(garbage(names, self._retained), [old.version for old in reversed(dropped)])

    def adopt(self, runs: list[list[RunRef]]) -> list[list[RunRef]]:
        """Put merged runs, if there are any by now, in the place of those they were made of."""
        most = max(map(len, runs), default=0)
        if self._merging is None:
            return runs
        if not self._merging.done() and most <= _PATIENCE * self._limits.runs:
            return runs
        merging, self._merging = self._merging, None
        try:
            found = merging.result()
            self._failures = 0
        except Exception as error:
            self._failures += 1
            self._notice(f"merging runs failed, it is tried again: {error}")
            if self._failures >= _FAILURES:
                raise
            return runs
        for done in found:
            runs[done.place] = replaced(runs[done.place], done.merge, done.run)
        return runs

    def after(self, manifest: Manifest) -> None:
        """Begin what a committed version asks for."""
        self._retained.append(manifest)
        dropped = self._retained[: -self._limits.versions]
        if dropped and (self._deleting is None or self._deleting.done()):
            self._retained = self._retained[-self._limits.versions :]
            gone = needed(dropped) - needed(self._retained)
            versions = [old.version for old in dropped]
            self._deleting = self._thread.submit(self._delete, sorted(gone), versions)
        self._merge(manifest)

    def close(self) -> None:
        """Wait for what is under way."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _delete(self, names: list[str], versions: list[int]) -> None:
        for version in versions:
            self._manifests.delete(version)
        for name in names:
            if name.startswith(_FOLDERS):
                self._location.delete(name)
        if self._retained:
            self._log.forget(self._retained[0].inputs.get(LOG, 0))

    def _merge(self, manifest: Manifest) -> None:
        if self._merging is not None:
            return
        limits = CompactionLimits(max_runs=self._limits.runs)
        merges = [Merging(place, merge) for place, merge in plan_all(manifest.runs, limits)]
        if merges:
            # The step of these very runs: keys that came with it are not of others any more.
            tabled = self.tabled and self.tabled.committed(manifest.tables)
            self._merging = self._thread.submit(self._run_merges, merges, tabled, manifest.clock)

    def _run_merges(
        self, merges: list[Merging], tabled: Tabled | None, clock: float
    ) -> list[Merged]:
        if self._here:
            program, opened = self._shipped.program(), Runs()
            return [merged(program, opened, tabled, clock, merging) for merging in merges]
        payloads = [msgspec.msgpack.encode(merging) for merging in merges]
        # Half of the cores at most: the others are for batches.
        at_once = max(1, self._context.defaultParallelism // 2)
        rdd = descriptors(self._context, payloads, min(len(payloads), at_once))
        results = run_at(rdd, partial(run_merges, self._shipped, tabled, clock))
        return [msgspec.msgpack.decode(data, type=Merged) for data in collect(results)]


def run_merges(
    shipped: Shipped,
    tabled: Tabled | None,
    clock: float,
    _partition: int,
    payloads: Iterator[bytes],
) -> Iterator[bytes]:
    """Merge runs; this is what Spark calls."""
    program = shipped.program()
    for payload in payloads:
        merging = msgspec.msgpack.decode(payload, type=Merging)
        yield msgspec.msgpack.encode(merged(program, program.opened, tabled, clock, merging))


def merged(
    program: Program, opened: Runs, tabled: Tabled | None, clock: float, merging: Merging
) -> Merged:
    """Merge runs of one place."""
    hit("during compaction")
    name = run_name(merging.merge.refs[-1].last, merging.place, uuid.uuid4().hex)
    trim = _trim(program, program.owners(tabled), merging, clock)
    run = compact(program.location, opened, merging.merge, name, trim)
    return Merged(merging.place, merging.merge, run)


def _give_way() -> None:
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _trim(program: Program, owners: Owners, merging: Merging, clock: float) -> Trim:
    """Say what may be left out: keys that have expired, and, of shared runs, those of others."""
    topology = program.plan.topology
    expired = {
        state_name(c, task): milliseconds(clock) - milliseconds(c.options.ttl)
        for c in topology
        if c.options.ttl is not None
        for task in range(c.degree)
    }
    refs = merging.merge.refs
    names = {name for ref in refs for name in ref.keys} if any(r.shared for r in refs) else ()
    return Trim(expired, {name: owners.at_place(name, merging.place) for name in names})
