"""Sinks beside the driver: they get what a committed batch staged for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from thalweg.blocks import Block
from thalweg.config import DeadLetter
from thalweg.metrics import Counter
from thalweg.ordering import Arrival
from thalweg.runtimes.anchored_tasks import AnchoredTask
from thalweg.runtimes.block_tasks import AnyBoltTask
from thalweg.runtimes.making import TaskMaker
from thalweg.runtimes.refusals import DeadLetters
from thalweg.runtimes.spark.arrivals import in_any_order, in_order
from thalweg.runtimes.spark.planning import Plan
from thalweg.runtimes.spark.staging import LETTERS, BatchSink, StagingSink, payloads
from thalweg.runtimes.spark.wire import unpack_block
from thalweg.runtimes.spark.work_tasks import Kept
from thalweg.runtimes.tasks import BoltTask
from thalweg.statelog.delivered import GIVEN, read_mark, read_number
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import LOG, Manifest, Manifests, StagedRef
from thalweg.statelog.staged import STAGED, StagedBatch
from thalweg.topology import Component


class Delivery:
    """Runs the sinks beside the driver, and fills the files of dead letters."""

    def __init__(
        self,
        plan: Plan,
        maker: TaskMaker,
        location: Location,
        session: Any,
        lasting: bool = True,
    ) -> None:
        self._plan, self._location, self._session = plan, location, session
        #: Whether the state stays after the run.
        self._lasting = lasting
        self.counters: dict[str, Counter] = {}
        self._tasks: dict[str, AnyBoltTask] = {}
        self._opened: list[AnyBoltTask] = []
        self._replay = Replay(location)
        for name in plan.beside_driver:
            component = plan.topology.component(name)
            if isinstance(component.body, BatchSink):
                component = replace(component, body=component.body.for_batches())
            self.counters[name] = counter = Counter(name, 1)
            (self._tasks[name],) = maker.bolts(component, counter)

    def open(self) -> None:
        """Get all sinks ready."""
        for task in self._tasks.values():
            self._opened.append(task)
            task.prepare()

    def close(self) -> list[Exception]:
        """Let all sinks let go; give what they raised."""
        errors: list[Exception] = []
        for task in reversed(self._opened):
            try:
                task.close()
            except Exception as error:
                errors.append(error)
        self._opened.clear()
        return errors

    def deliver(self, manifest: Manifest, tracked: bool = False) -> set[int]:
        """Give every sink what is staged for it; gives the serials of what failed there.

        What they were given before the log was replayed they are not given again.
        """
        failed: set[int] = set()
        if self._replay.has_given(manifest):
            return failed
        for name, task in self._tasks.items():
            refs = _of(manifest, STAGED, name)
            kept = Kept()
            if isinstance(task, BoltTask):
                task.settle = kept.settle
            for index, block in self._arrivals(self._plan.topology.component(name), refs):
                self._process(name, task, index, block, kept if tracked else None)
            if refs and isinstance(task, AnchoredTask):
                task.pause()
                task.settle_late()
            failed |= kept.open | kept.failed if tracked else set()
            if refs and isinstance(task.body, BatchSink):
                task.call(task.body.end_batch, self._batch(manifest), refs)
        self._commit_at_places(manifest)
        self._write_letters(manifest)
        return failed

    def _commit_at_places(self, manifest: Manifest) -> None:
        for component in self._plan.topology:
            refs = [ref for ref in manifest.staged if ref.component == component.name]
            if refs and isinstance(component.body, StagingSink):
                component.body.commit_batch(self._session, self._batch(manifest), refs)

    def _batch(self, manifest: Manifest) -> StagedBatch:
        return StagedBatch(self._location, manifest.version, lasting=self._lasting)

    def tick(self, names: Iterable[str]) -> None:
        """Let time pass at these sinks."""
        for name in names:
            if name in self._tasks:
                self._tasks[name].tick()

    def end(self) -> None:
        """Tell all sinks that there will be no more."""
        for task in self._tasks.values():
            task.end()

    def _arrivals(self, component: Component, refs: list[StagedRef]) -> Iterable[Arrival]:
        arrivals: list[Arrival] = []
        for ref in refs:
            for payload in payloads(self._location, ref):
                address, block = unpack_block(payload)
                arrivals.append((address.index, block))
        in_turn = component.name in self._plan.in_order
        return in_order(arrivals) if in_turn and arrivals else in_any_order(arrivals)

    def _process(
        self, name: str, task: AnyBoltTask, index: int, block: Block, kept: Kept | None
    ) -> None:
        input_ = self._plan.topology.component(name).inputs[index]
        task.bind(origin=block.origin, key=input_.key)
        if kept is not None and isinstance(task, BoltTask) and not task.body.auto_ack:
            block = replace(block, roots=[(serial,) for serial in block.serials.tolist()])
        self.counters[name].per_task[0] += len(block)
        task.process(block, False)
        if kept is not None:
            kept.open.update(block.serials[sorted(task.kept_rows)].tolist())
            kept.failed.update(block.serials[sorted(task.failed_rows)].tolist())
        task.settle_late()

    def _write_letters(self, manifest: Manifest) -> None:
        for component in self._plan.topology:
            policy = component.options.on_error
            refs = _of(manifest, LETTERS, component.name)
            if refs and isinstance(policy, DeadLetter):
                append_letters(policy.path, self._location, refs)


class Replay:
    """Entries of the log whose output the sinks have had, though a run has fallen back since."""

    def __init__(self, location: Location) -> None:
        self._given = read_number(location, GIVEN)
        self._entry = 0
        if self._given:
            manifests = Manifests(location)
            last = manifests.latest()
            if last is not None and read_mark(location) < last.version:
                last = next(manifests.older(last.version), None)
            self._entry = last.inputs.get(LOG, 0) if last is not None else 0

    def has_given(self, manifest: Manifest) -> bool:
        """Say whether this is the batch of such an entry; batches of ticks have none."""
        entry = manifest.inputs.get(LOG, 0)
        new, self._entry = entry != self._entry, entry
        return new and entry <= self._given

    @staticmethod
    def begin(location: Location, last: Manifest) -> None:
        """Note that sinks have had everything up to a version that is about to be given up."""
        given = max(read_number(location, GIVEN), last.inputs.get(LOG, 0))
        location.write(GIVEN, str(given).encode())


def append_letters(path: Path, location: Location, refs: Iterable[StagedRef]) -> None:
    """Put staged dead letters into their file."""
    letters = DeadLetters(path)
    try:
        for ref in refs:
            for line in payloads(location, ref):
                letters.write(line.to_pybytes())
    finally:
        letters.close()


def _of(manifest: Manifest, folder: str, component: str) -> list[StagedRef]:
    return [
        ref
        for ref in manifest.staged
        if ref.component == component and ref.name.startswith(f"{folder}/")
    ]
