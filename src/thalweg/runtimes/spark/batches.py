"""Running batches: one Spark job each, tried again as a whole, committed by one manifest."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from thalweg.errors import SchemaError, ThalwegError, explain
from thalweg.eventtime import ALWAYS, NEVER, SECOND
from thalweg.runtimes.failpoints import hit
from thalweg.runtimes.marks import marks_of
from thalweg.runtimes.spark.anchoring import Anchoring
from thalweg.runtimes.spark.exchange import (
    Lane,
    collect,
    descriptors,
    exchange,
    remove_shuffles,
    run_at,
    side_by_side,
)
from thalweg.runtimes.spark.inputs import BatchInput
from thalweg.runtimes.spark.limits import Retries
from thalweg.runtimes.spark.moving import move_order
from thalweg.runtimes.spark.notes import Commit, Note, decode_commit
from thalweg.runtimes.spark.program import Facts, Program, Shipped, spare_collections
from thalweg.runtimes.spark.side_tables import SideTables
from thalweg.runtimes.spark.stage import StageWork
from thalweg.runtimes.spark.tabled import Tabled
from thalweg.runtimes.spark.ticking import next_due
from thalweg.runtimes.spark.watching import watched
from thalweg.statelog.manifests import ENDED, ComponentMark, Manifest, Manifests
from thalweg.statelog.runs import RunRef
from thalweg.topology import Topology
from thalweg.watermarks import BatchTimes, Came


class GivenUp(ThalwegError):
    """Spark could not finish a batch, however often it was tried."""


@dataclass(frozen=True)
class Done:
    """A committed batch."""

    manifest: Manifest
    notes: list[Note]
    seconds: float
    attempts: int
    #: Seconds of these until Spark had finished its job.
    job: float = 0.0


@dataclass
class Batches:
    """Runs one batch after the other; the next begins with the version of ``manifest``.

    ``sleep`` waits between attempts; it is an argument so that tests need not wait.
    """

    context: SparkContext
    program: Program
    shipped: Shipped
    manifests: Manifests
    manifest: Manifest
    retries: Retries = field(default_factory=Retries)
    sleep: Callable[[float], None] = time.sleep
    #: Told of what people should know: attempts that failed, batches that stand still.
    notice: Callable[[str], None] = field(default=lambda _text: None)
    #: Gives the anchor of a batch with so many places, where there are several hosts.
    anchoring: Anchoring | None = None
    #: Tables in which keys have places of their own, as of the last committed batch.
    tabled: Tabled | None = None
    #: The share of the tuples on which keys are counted together.
    sampling: float = 0.0
    #: Hashes of frequent keys whose names people would like to know.
    unnamed: frozenset[int] = frozenset()
    #: Gives the versions of the tables that streams are joined with.
    side_tables: SideTables | None = None
    #: Runs that replace others from the next commit on, by place (see compaction).
    adopt: Callable[[list[list[RunRef]]], list[list[RunRef]]] = field(default=lambda runs: runs)

    def run(self, taken: BatchInput) -> Done:
        """Run a batch and commit it; raises when a component fails or all attempts have."""
        begin = time.perf_counter()
        facts = self._facts(taken)
        commits, attempts = self._try(facts, taken)
        job = time.perf_counter() - begin
        notes = [note for commit in commits for note in commit.notes]
        failures = [note for note in notes if note.failure is not None]
        for note in sorted(failures, key=lambda note: note.stage):  # the first is the cause
            assert note.failure is not None  # noqa: S101 (chosen above)
            raise note.failure.error()
        hit("before manifest")
        manifest = self._next(facts, taken, commits, notes)
        self.manifests.commit(manifest)
        hit("after manifest")
        self.manifest = manifest
        self.tabled = self.tabled and self.tabled.committed(manifest.tables)
        return Done(manifest, notes, time.perf_counter() - begin, attempts, job)

    def skip(self, taken: BatchInput, reason: str) -> Manifest:
        """Commit that an input was set aside: the state stays, the input counts as read."""
        facts = self._facts(taken)
        manifest = self._next(facts, taken, [], [])
        self.manifest = replace_notes(manifest, {"set aside": reason})
        self.manifests.commit(self.manifest)
        return self.manifest

    def _facts(self, taken: BatchInput) -> Facts:
        last = self.manifest
        return replace(
            self._timely(taken.clock, taken.silent),
            ticks=taken.ticks,
            end=taken.end,
            tracked=taken.tracked,
            runs=tuple(map(tuple, last.runs)),
            types={name: base64.b64decode(text) for name, text in last.types.items()},
            frame=taken.frame,
            tabled=self.tabled and self.tabled.next(),
            sampling=self.sampling,
            unnamed=self.unnamed,
            side_tables={} if self.side_tables is None else self.side_tables.at(taken.clock),
        )

    def has_due(self, clock: float, silent: frozenset[str]) -> bool:
        """Say whether there is something to do without input: time goes on, or a timer is due."""
        facts = self._timely(clock, silent)
        goes_on = any(now > before for before, now in facts.times.values())
        return goes_on or any(map(facts.is_due, facts.due))

    @property
    def next_timer(self) -> float:
        """When the next timer may be due by the clock."""
        due = self._timely(0.0, frozenset()).due
        return min((clock for _, clock in due.values()), default=ALWAYS) / SECOND

    def _timely(self, clock: float, silent: frozenset[str]) -> Facts:
        """Give what a batch at a time is, as far as it is about time."""
        last, topology = self.manifest, self.program.plan.topology
        following = BatchTimes(topology).next(Came(last.newest, {}, last.ended, silent), last.told)
        names = {component.name for component in topology}
        return Facts(
            version=last.version + 1,
            clock=clock,
            seed=last.seed,
            times={name: (last.told.get(name, NEVER), now) for name, now in following.items()},
            due={name: due for name, due in last.due.items() if name in names},
        )

    def _try(self, facts: Facts, taken: BatchInput) -> tuple[list[Commit], int]:
        """Run the job, as often as it takes: always the whole batch, from the same version."""
        waits = self.retries.waits()
        attempt = 1
        while True:
            try:
                return self._attempt(facts, taken), attempt
            except (Py4JError, PySparkException) as error:
                wait = next(waits, None)
                if wait is None:
                    raise _given_up(facts, attempt, error) from error
                text = f"batch {facts.version}: attempt {attempt} failed, next in {wait:g} s"
                self.notice(f"{text}: {reason_of(error)}")
                self.sleep(wait)
                attempt += 1

    def _attempt(self, facts: Facts, taken: BatchInput) -> list[Commit]:
        plan = self.program.plan
        anchor = None if self.anchoring is None else self.anchoring.at(plan.places)
        lane, first = self._input(facts, taken)
        for stage in range(first, plan.stages):
            lane = run_at(lane, partial(run_stage, self.shipped, facts, stage))
            if stage < plan.stages - 1:
                lane = exchange(lane, plan.places, anchor)
        name, stall = f"batch {facts.version}", self.program.limits.stall
        try:
            with watched(self.context, name, stall, self.notice):
                return [decode_commit(data) for data in collect(lane)]
        finally:
            remove_shuffles(lane)

    def _input(self, facts: Facts, taken: BatchInput) -> tuple[Lane, int]:
        """Give what the job begins with, and its first stage: without input there is no source."""
        orders = [move_order(place) for place in facts.tabled.sources()] if facts.tabled else []
        lanes = [taken.lane()] if taken.lane is not None else []
        lanes += [descriptors(self.context, orders, len(orders))] if orders else []
        if lanes:
            return side_by_side(lanes), 0
        first = min(1, self.program.plan.stages - 1)
        return descriptors(self.context, [], self.program.plan.places), first

    def _next(
        self, facts: Facts, taken: BatchInput, commits: list[Commit], notes: list[Note]
    ) -> Manifest:
        last, plan = self.manifest, self.program.plan
        hosts = [] if self.anchoring is None else list(self.anchoring.hosts)
        # An input that is set aside has moved nothing.
        tabled = facts.tabled if commits else self.tabled
        tables = None if tabled is None else tabled.ref
        moved = hosts != last.hosts or tables != last.tables
        gone = {name: due for name, due in last.due.items() if name not in facts.due}
        runs = self.adopt([list(refs) for refs in last.runs])
        for commit in commits:
            if commit.run is not None:
                runs[commit.place].append(commit.run)
        return Manifest(
            version=facts.version,
            epoch=last.epoch + moved,
            clock=facts.clock,
            seed=facts.seed,
            watermark=last.watermark,
            places=plan.places,
            hosts=hosts,
            key_groups=self.program.key_groups,
            tables=tables,
            runs=runs,
            inputs={**last.inputs, **taken.inputs},
            topology=_marks(last, plan.topology),
            notes={ENDED: True} if facts.end else {},
            types=_types(last.types, notes),
            newest=_newest(last.newest, notes, taken.reached if commits else {}),
            ended=sorted((set(last.ended) - taken.tasks) | taken.ended),
            told={name: now for name, (_, now) in facts.times.items()} if commits else last.told,
            due={**gone, **next_due(facts, notes)} if commits else last.due,
            staged=[ref for note in notes for ref in note.staged],
        )


def _marks(last: Manifest, topology: Topology) -> dict[str, ComponentMark]:
    """Describe the topology; components that are gone stay known while their state is there."""
    held = {part.partition("#")[0] for refs in last.runs for ref in refs for part in ref.keys}
    gone = {name: mark for name, mark in last.topology.items() if name in held}
    return {**gone, **marks_of(topology)}


def run_stage(
    shipped: Shipped, facts: Facts, stage: int, place: int, payloads: Iterator[bytes]
) -> Iterator[bytes]:
    """Run one stage at one place; this is what Spark calls."""
    spare_collections()
    return StageWork(shipped.program(), facts, stage, place).run(iter(payloads))


def replace_notes(manifest: Manifest, notes: Mapping[str, Any]) -> Manifest:
    """Give a manifest with other notes."""
    return msgspec.structs.replace(manifest, notes=dict(notes))


def _types(known: Mapping[str, str], notes: list[Note]) -> dict[str, str]:
    """Add what tasks have learnt; where they learnt apart, the type that holds both."""
    found = {name: [_schema(base64.b64decode(text))] for name, text in known.items()}
    for note in notes:
        for name, schema in note.types.items():
            learnt = _schema(schema)
            before = found.get(name, [])
            # Fields may have changed since: only what is still there counts.
            found[name] = [*(s for s in before if s.names == learnt.names), learnt]
    return {name: _unified(name, schemas) for name, schemas in found.items()}


def _newest(
    known: Mapping[str, int], notes: list[Note], reached: Mapping[str, int]
) -> dict[str, int]:
    """Say how far tasks of sources have come: as they say themselves, or by their newest tuples."""
    came = [reached, *(note.newest for note in notes)]
    found = dict(known)
    for number, each in enumerate(came):
        for name, time_ in each.items():
            if number == 0 or name not in reached:
                found[name] = max(found.get(name, time_), time_)
    return found


def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))


def _unified(name: str, schemas: list[pa.Schema]) -> str:
    try:
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        hint = "declare the types of its fields"
        raise SchemaError(explain(f"stream {name}", "", "one schema", str(error), hint)) from error
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def reason_of(error: Exception) -> str:
    """Say in one line why Spark gave up on a job."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "Error" in line]
    return (telling or lines or [type(error).__name__])[0][:500]


def _given_up(facts: Facts, attempts: int, error: Exception) -> GivenUp:
    subject = f"batch {facts.version}"
    got = f"{attempts} failed attempts, the last one: {reason_of(error)}"
    return GivenUp(explain(subject, expected="Spark to finish its job", got=got))
