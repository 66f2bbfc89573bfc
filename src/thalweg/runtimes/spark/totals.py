"""Metrics of a run on Spark: what the notes of its batches add up to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from thalweg.clock import Clock
from thalweg.events import BatchDone
from thalweg.metrics import ComponentMetrics, Counter, LatencySketch, Snapshot
from thalweg.runtimes.spark.anchoring import addresses_of
from thalweg.runtimes.spark.batches import Done
from thalweg.runtimes.spark.notes import Note
from thalweg.runtimes.spark.planning import Plan
from thalweg.runtimes.timing import marked
from thalweg.statelog.manifests import Manifest
from thalweg.watermarks import BatchTimes, Came

#: Seconds that the latency of now is of: batches take longer than blocks, and are fewer.
_RECENT = 60.0


@dataclass
class _Total:
    degree: int
    received: dict[int, int] = field(default_factory=dict)
    emitted: int = 0
    errors: int = 0
    busy: float = 0.0
    shuffled: int = 0
    shuffled_bytes: int = 0
    local: int = 0
    late: int = 0


class Totals:
    """Adds up notes, and shows them as the snapshot that every runtime gives."""

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._plan = plan
        self._totals = {c.name: _Total(c.degree) for c in plan.topology}
        self._latency = LatencySketch(clock, _RECENT)
        #: Counters of what runs beside the driver: spouts and sinks.
        self.beside: list[Counter] = []
        self.batches = 0
        self.acked = self.failed = 0
        self._hosts: dict[int, str] = {}
        self._placed = self._stayed = 0
        #: The newest event time that each task of a source has given in this run.
        self._given: dict[str, int] = {}

    def use(self, plan: Plan) -> None:
        """Go on with another number of places."""
        self._plan = plan
        self._hosts.clear()
        for component in plan.topology:
            self._totals[component.name].degree = component.degree

    def add(self, notes: Iterable[Note], seconds: float, hosts: Sequence[str] = ()) -> None:
        """Take in the notes of a batch whose places were wanted on these hosts."""
        self.batches += 1
        self._latency.add([seconds])
        self._placed = self._stayed = 0
        for note in notes:
            self._place(note, hosts)
            for name, at in note.newest.items():
                self._given[name] = max(self._given.get(name, at), at)
            for counts in note.counts:
                total = self._totals[counts.component]
                for task, rows in counts.received.items():
                    total.received[task] = total.received.get(task, 0) + rows
                total.emitted += counts.emitted
                total.errors += counts.errors
                total.busy += counts.busy
                total.shuffled += counts.shuffled
                total.shuffled_bytes += counts.shuffled_bytes
                total.local += counts.local
                total.late += counts.late

    def entered(self, notes: Iterable[Note]) -> int:
        """Count the rows of sources that a batch took in."""
        spouts = {component.name for component in self._plan.topology.spouts}
        counts = (counts for note in notes for counts in note.counts)
        return sum(each.emitted for each in counts if each.component in spouts)

    def _place(self, note: Note, hosts: Sequence[str]) -> None:
        """Count how often a place is where it is wanted, or, on one host, where it was before."""
        if not note.stage:
            return
        before = self._hosts.get(note.place)
        if hosts:
            self._placed += 1
            self._stayed += note.host in addresses_of(hosts[note.place])
        elif before is not None:
            self._placed += 1
            self._stayed += before == note.host
        self._hosts[note.place] = note.host

    def snapshot(self, elapsed: float, manifest: Manifest, pending: int = 0) -> Snapshot:
        """Show what there is so far."""
        topology = self._plan.topology
        came = Came(manifest.newest, self._given, manifest.ended)
        marks = BatchTimes(topology).marks(came, manifest.told)
        components = marked((self._component(c.name, manifest) for c in topology), marks)
        by_name = {metrics.component: metrics for metrics in components}
        read = {input_.component for component in topology for input_ in component.inputs}
        last = [c for c in topology if not c.is_spout and c.name not in read]
        return Snapshot(
            elapsed=elapsed,
            components=components,
            tuples_in=sum(by_name[c.name].emitted for c in topology.spouts),
            tuples_out=sum(by_name[c.name].received for c in last),
            errors=sum(metrics.errors for metrics in components),
            latency=self._latency.freeze(),
            recent=self._latency.recent(),
            acked=self.acked,
            failed=self.failed,
            pending=pending,
            batches=self.batches,
            stickiness=self._stayed / self._placed if self._placed else None,
        )

    def _component(self, name: str, manifest: Manifest) -> ComponentMetrics:
        total = self._totals[name]
        keys, size = state_size(name, manifest)
        beside = [counter for counter in self.beside if counter.component == name]
        tasks = max(total.degree, 1 + max(total.received, default=0))
        per_task = [total.received.get(task, 0) for task in range(tasks)]
        for counter in beside:
            pairs = zip_longest(per_task, counter.per_task, fillvalue=0)
            per_task = [a + b for a, b in pairs]
        return ComponentMetrics(
            component=name,
            degree=total.degree,
            received=sum(per_task),
            emitted=total.emitted + sum(counter.emitted for counter in beside),
            errors=total.errors + sum(counter.errors for counter in beside),
            busy=total.busy + sum(counter.busy for counter in beside),
            per_task=tuple(per_task),
            shuffled=total.shuffled,
            shuffled_bytes=total.shuffled_bytes,
            local=total.local,
            late=total.late,
            state_keys=keys,
            state_bytes=size,
        )


def state_size(name: str, manifest: Manifest) -> tuple[int, int]:
    """Give a component's keys and bytes; a key counts once per run that holds it."""
    keys, size = 0, 0.0
    for ref in (ref for refs in manifest.runs for ref in refs):
        found = sum(n for part, n in ref.keys.items() if part.partition("#")[0] == name)
        keys += found
        size += ref.size * found / max(1, sum(ref.keys.values()))
    return keys, round(size)


def batch_done(done: Done, rows: int, delivering: float, seconds: float) -> BatchDone:
    """Describe a committed batch, of which all took so many seconds."""
    counts = [each for note in done.notes for each in note.counts]
    stages: dict[int, float] = {}
    for note in done.notes:
        stages[note.stage] = max(note.seconds, stages.get(note.stage, 0.0))
    sizes = [state_size(name, done.manifest) for name in done.manifest.topology]
    rest = max(0.0, seconds - done.seconds - delivering)
    commit = done.seconds - done.job
    return BatchDone(
        version=done.manifest.version,
        epoch=done.manifest.epoch,
        rows=rows,
        seconds=seconds,
        attempts=done.attempts,
        phases={"job": done.job, "commit": commit, "deliver": delivering, "rest": rest},
        stages=tuple(stages[stage] for stage in sorted(stages)),
        shuffled=sum(each.shuffled for each in counts),
        shuffled_bytes=sum(each.shuffled_bytes for each in counts),
        local=sum(each.local for each in counts),
        spilled=sum(note.spilled for note in done.notes),
        moved_keys=sum(note.moved_keys for note in done.notes),
        moved_bytes=sum(note.moved_bytes for note in done.notes),
        state_keys=sum(keys for keys, _ in sizes),
        state_bytes=sum(size for _, size in sizes),
    )
