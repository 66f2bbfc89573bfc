"""The reference runtime: one thread, an injected clock, the same result every time.

One block enters at a time and is followed to its end before the next one, component by component
in topological order: a *wave*. Where the order of a stream asks for it, rows are brought into the
order of a serial execution: by source tuple, then branch, then position.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from thalweg.acking import Acker, Completed, Roots
from thalweg.blocks import Block, Origin, merge
from thalweg.clock import Clock, SystemClock
from thalweg.codecs import MsgpackCodec
from thalweg.components import Kind, TaskContext
from thalweg.errors import UsageError, explain
from thalweg.events import Progress, RunFinished, RunStarted
from thalweg.execution import Result, Run
from thalweg.keys import KEY_GROUPS
from thalweg.metrics import Counter, LatencySketch, Snapshot
from thalweg.routing.routers import Router, make_router
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.refusals import Refusals
from thalweg.runtimes.spout_tasks import AnySpoutTask, make_spout_task
from thalweg.runtimes.tasks import AnyBoltTask, BoltTask, make_bolt_task
from thalweg.schemas import Shape
from thalweg.state import MemoryState
from thalweg.topology import Component, Input, Topology


@dataclass(frozen=True)
class Inline:
    """Settings of the reference runtime; ``Inline().run(topology)`` runs it."""

    #: Rows that are asked of a source at once.
    block_rows: int = 1024
    clock: Clock = field(default_factory=SystemClock)
    #: Seed of the random numbers that tasks are given.
    seed: int = 0
    key_groups: int = KEY_GROUPS
    #: Seconds after which a tuple that was not acknowledged fails.
    ack_timeout: float = 30.0
    #: Longest sleep in seconds while no source has anything.
    idle: float = 0.01
    name: str = "inline"

    def __post_init__(self) -> None:
        if self.block_rows < 1:
            raise UsageError(explain("block_rows", expected="at least 1", got=str(self.block_rows)))

    def run(self, topology: Topology, run: Run | None = None) -> Result:
        """Run a topology until its sources end or it is told to stop."""
        return _Running(self, topology, run or Run()).run()


@dataclass
class _Edge:
    """A stream on its way to one reader."""

    reader: Component
    index: int
    input: Input
    router: Router


class _Running:
    """One run: tasks, routers and counters of a topology."""

    def __init__(self, settings: Inline, topology: Topology, run: Run) -> None:
        self._settings = settings
        self._clock = settings.clock
        self._topology = topology
        self._run = run
        self._serial = 0
        self._acker = Acker(settings.ack_timeout)
        self._owners: dict[int, tuple[AnySpoutTask, int, object]] = {}
        self._acked = self._failed = 0
        self._latency = LatencySketch()
        self._counters = {c.name: Counter(c.name, c.options.degree) for c in topology}
        self._edges = {c.name: self._edges_from(c) for c in topology}
        self._spouts: dict[str, list[AnySpoutTask]] = {}
        self._bolts: dict[str, list[AnyBoltTask]] = {}
        self._completed: list[Completed] = []

    # --- set-up and end ----------------------------------------------------------------------

    def run(self) -> Result:
        self._start = self._shown = self._clock.now()
        opened: list[AnySpoutTask | AnyBoltTask] = []
        try:
            for component in reversed(self._topology.components):
                for task in self._make_tasks(component):
                    opened.append(task)
                    task.prepare()
            self._run.listen(RunStarted(self._topology.name, self._settings.name))
            self._loop()
        finally:
            _close_all(opened)
        stopped = self._run.stop.is_set()
        snapshot = self._snapshot()
        self._run.listen(RunFinished(snapshot, stopped))
        return Result(self._topology.name, snapshot, stopped, MappingProxyType(self._tables()))

    def _edges_from(self, producer: Component) -> dict[str, list[_Edge]]:
        edges: dict[str, list[_Edge]] = {stream: [] for stream in producer.outputs}
        for stream, readers in edges.items():
            for reader, input_ in self._topology.readers(producer.name, stream):
                table = RoutingTable.even(reader.options.degree, self._settings.key_groups)
                index = reader.inputs.index(input_)
                router = make_router(input_.grouping, table)
                readers.append(_Edge(reader, index, input_, router))
        return edges

    def _make_tasks(self, component: Component) -> Sequence[AnySpoutTask | AnyBoltTask]:
        shapes = {s: Shape(f, f"{component.name!r}, {s}") for s, f in component.outputs.items()}
        contexts = [self._context(component, i, shapes) for i in range(component.options.degree)]
        if component.is_spout:
            spouts = [make_spout_task(component, c, self._refusals(component, c)) for c in contexts]
            self._spouts[component.name] = spouts
            return spouts
        bolts = [make_bolt_task(component, c, self._refusals(component, c)) for c in contexts]
        for task in bolts:
            if isinstance(task, BoltTask):
                task.settle = self._settle
        self._bolts[component.name] = bolts
        return bolts

    def _context(self, component: Component, task: int, shapes: dict[str, Shape]) -> TaskContext:
        read = frozenset(s for s, edges in self._edges[component.name].items() if edges)
        state = None
        if component.kind is not Kind.STATELESS:
            body = component.body
            codec = getattr(body, "state_codec", None) or MsgpackCodec(body.state_type)  # type: ignore[union-attr] # bolts have it
            state = MemoryState(codec, self._settings.key_groups)
        return TaskContext(
            topology=self._topology.name,
            component=component.name,
            task=task,
            degree=component.options.degree,
            clock=self._clock,
            random=random.Random(f"{self._settings.seed}/{component.name}/{task}"),  # noqa: S311
            state=state,
            shapes=shapes,
            read_streams=read,
            settings=self._run.settings,
        )

    def _refusals(self, component: Component, context: TaskContext) -> Refusals:
        counter = self._counters[component.name]
        return Refusals(component, context.task, counter, self._run.listen)

    # --- the loop ----------------------------------------------------------------------------

    def _loop(self) -> None:
        spouts = [(name, i, task) for name, ts in self._spouts.items() for i, task in enumerate(ts)]
        spouts.sort(key=lambda s: self._topology.components.index(self._topology.component(s[0])))
        self._ticks = {
            c.name: self._start + c.options.tick for c in self._topology if c.options.tick
        }
        for _, _, task in spouts:
            task.start()
        while not self._run.stop.is_set():
            moved = [self._pull(name, i, task) for name, i, task in spouts if not task.finished]
            self._fire_ticks()
            self._complete(self._acker.expire(self._clock.now()))
            self._show_progress()
            if not any(moved) and not self._wait(spouts):
                break
        for _, _, task in spouts:
            task.stop()
        self._end()

    def _pull(self, name: str, index: int, task: AnySpoutTask) -> bool:
        emissions = task.pull(self._settings.block_rows)
        for emission in emissions:
            for piece in _pieces(emission, self._settings.block_rows):
                self._enter(name, index, task, piece)
        return bool(emissions)

    def _wait(self, spouts: Iterable[tuple[str, int, AnySpoutTask]]) -> bool:
        """Sleep until something may happen; False when nothing can happen any more."""
        active = [task for _, _, task in spouts if not task.finished]
        if not active and not len(self._acker):
            return False
        now = self._clock.now()
        waits = [due - now for due in self._ticks.values()]
        waits += [max(task.wait_hint(), 0.0) or self._settings.idle for task in active]
        # A hint may be long; look now and then whether somebody asked to stop.
        self._clock.sleep(max(0.0, min([*waits, max(self._settings.idle, 0.1)])))
        return True

    def _end(self) -> None:
        """Let every component emit what is left, sources first, then settle what is open."""
        for component in self._topology:
            for index, task in enumerate(self._bolts.get(component.name, ())):
                self._wave(component, [(index, emission) for emission in task.end()])
        self._complete(self._acker.expire(float("inf")))
        self._acker.validate()

    def _fire_ticks(self) -> None:
        now = self._clock.now()
        for name, due in self._ticks.items():
            if due <= now:
                component = self._topology.component(name)
                self._ticks[name] = max(due, now - (component.options.tick or 0)) + (
                    component.options.tick or 0
                )
                for index, task in enumerate(self._bolts.get(name, ())):
                    self._wave(component, [(index, emission) for emission in task.tick()])

    # --- blocks ------------------------------------------------------------------------------

    def _enter(self, name: str, index: int, task: AnySpoutTask, emission: Emission) -> None:
        """Number what a source sent, and follow it to its end."""
        begin = time.perf_counter()
        rows = emission.batch.num_rows
        serials = np.arange(self._serial, self._serial + rows, dtype=np.int64)
        self._serial += rows
        roots = None if emission.ids is None else self._open(task, emission.ids)
        origin = Origin(name, emission.stream, index)
        block = Block(emission.batch, origin, serials, None, roots, emission.targets)
        self._counters[name].emitted += rows
        inbox: dict[str, list[tuple[int, Block]]] = {}
        self._deliver([block], inbox)
        self._follow(inbox)
        if roots is not None:
            self._complete([c for r in roots if r for c in self._acker.settle(r[0])])
        self._latency.add([time.perf_counter() - begin])

    def _wave(self, component: Component, sent: Sequence[tuple[int, Emission]]) -> None:
        """Follow what a tick or the end made a component send."""
        inbox: dict[str, list[tuple[int, Block]]] = {}
        for index, emission in sent:
            rows = emission.batch.num_rows
            serials = np.full(rows, self._serial, dtype=np.int64)
            self._counters[component.name].emitted += rows
            origin = Origin(component.name, emission.stream, index)
            self._deliver(
                [Block(emission.batch, origin, serials, None, None, emission.targets)], inbox
            )
        self._follow(inbox)

    def _follow(self, inbox: dict[str, list[tuple[int, Block]]]) -> None:
        if inbox:
            for component in self._topology:
                waiting = inbox.pop(component.name, None)
                for index, block in _arrange(component, waiting or []):
                    self._process(component, index, block, inbox)
        completed, self._completed = self._completed, []
        self._complete(completed)

    def _process(
        self,
        component: Component,
        index: int,
        block: Block,
        inbox: dict[str, list[tuple[int, Block]]],
    ) -> None:
        edge = next(
            e
            for e in self._edges[block.origin.component][block.origin.stream]
            if e.reader is component
        )
        sent: dict[str, list[Block]] = {}
        done: list[Roots] = []
        for number, part in edge.router.route(block):
            task = self._bolts[component.name][number]
            for emission in self._run_task(component, number, task, edge, part):
                made = _output_block(component, number, part, emission)
                sent.setdefault(emission.stream, []).append(made)
            if part.roots is not None:
                done += self._done_rows(task, part.roots)
        for blocks in sent.values():
            self._deliver(blocks, inbox)
        # Outputs hold their roots before the input lets go, so that no root ends too early.
        self._completed += self._acker.release(done)

    def _run_task(
        self, component: Component, number: int, task: AnyBoltTask, edge: _Edge, part: Block
    ) -> list[Emission]:
        counter = self._counters[component.name]
        counter.per_task[number] += len(part)
        task.bind(origin=part.origin, key=edge.input.key)
        begin = time.perf_counter()
        emissions = task.process(part)
        counter.busy += time.perf_counter() - begin
        counter.emitted += sum(emission.batch.num_rows for emission in emissions)
        return emissions

    def _deliver(self, blocks: list[Block], inbox: dict[str, list[tuple[int, Block]]]) -> None:
        """Hand the parts of one output to the readers of its stream."""
        origin = blocks[0].origin
        for edge in self._edges[origin.component].get(origin.stream, ()):
            ordered = edge.input.order != "sender" and len(blocks) > 1
            for block in [merge(blocks)] if ordered else blocks:
                inbox.setdefault(edge.reader.name, []).append((edge.index, block))
                if block.roots is not None:
                    self._hold(edge, block.roots)

    # --- acknowledgements --------------------------------------------------------------------

    def _open(self, task: AnySpoutTask, ids: list[object]) -> list[Roots]:
        roots: list[Roots] = []
        for id_ in ids:
            if id_ is None:
                roots.append(())
                continue
            root = self._acker.open(self._clock.now())
            self._owners[root] = task, task.context.task, id_
            roots.append((root,))
        return roots

    def _hold(self, edge: _Edge, roots: Sequence[Roots]) -> None:
        copies = edge.reader.options.degree if _repeats(edge.input) else 1
        for _ in range(copies):
            self._acker.hold(roots)

    def _done_rows(self, task: AnyBoltTask, roots: Sequence[Roots]) -> list[Roots]:
        self._acker.fail([roots[row] for row in task.failed_rows])
        return [r for row, r in enumerate(roots) if row not in task.kept_rows]

    def _settle(self, roots: Roots, ok: bool) -> None:
        if not ok:
            self._acker.fail([roots])
        self._completed += self._acker.release([roots])

    def _complete(self, completed: Sequence[Completed]) -> None:
        for end in completed:
            task, index, id_ = self._owners.pop(end.root)
            self._acked += end.ok
            self._failed += not end.ok
            for emission in task.completed(id_, end.ok):
                self._enter(task.component.name, index, task, emission)

    # --- what people see ---------------------------------------------------------------------

    def _show_progress(self) -> None:
        now = self._clock.now()
        if now - self._shown >= 0.2:
            self._shown = now
            self._run.listen(Progress(self._snapshot()))

    def _snapshot(self) -> Snapshot:
        counters = self._counters
        last = [
            c for c in self._topology if not c.is_spout and not any(self._edges[c.name].values())
        ]
        return Snapshot(
            elapsed=self._clock.now() - self._start,
            components=tuple(counter.freeze() for counter in counters.values()),
            tuples_in=sum(counters[c.name].emitted for c in self._topology.spouts),
            tuples_out=sum(counters[c.name].received for c in last),
            errors=sum(counter.errors for counter in counters.values()),
            latency=self._latency.freeze(),
            acked=self._acked,
            failed=self._failed,
        )

    def _tables(self) -> dict[str, dict[object, object]]:
        tables: dict[str, dict[object, object]] = {}
        for name, component in self._topology.tables.items():
            states = [task.context.state for task in self._bolts[component.name]]
            tables[name] = {key: value for state in states if state for key, value in state.items()}
        return tables


def _repeats(input_: Input) -> bool:
    from thalweg.groupings import All  # noqa: PLC0415

    return isinstance(input_.grouping, All)


def _pieces(emission: Emission, rows: int) -> list[Emission]:
    """Cut what a source sent into blocks of at most ``rows``."""
    total = emission.batch.num_rows
    if total <= rows:
        return [emission]
    pieces = []
    for start in range(0, total, rows):
        part = slice(start, start + rows)
        pieces.append(
            replace(
                emission,
                batch=emission.batch[part],
                targets=None if emission.targets is None else emission.targets[part],
                ids=None if emission.ids is None else emission.ids[part],
            )
        )
    return pieces


def _output_block(component: Component, task: int, part: Block, emission: Emission) -> Block:
    """Make the block of an emission; its rows stem from rows of the part that was processed."""
    parents = emission.parents
    assert parents is not None  # noqa: S101 (a task that processes a block gives parents)
    positions = parents if part.positions is None else part.positions[parents]
    roots = None if part.roots is None else [part.roots[row] for row in parents]
    origin = Origin(component.name, emission.stream, task)
    return Block(emission.batch, origin, part.serials[parents], positions, roots, emission.targets)


def _arrange(
    component: Component, waiting: Sequence[tuple[int, Block]]
) -> Iterable[tuple[int, Block]]:
    """Bring what waits for a component into the order that its inputs promise."""
    if len(waiting) < 2 or component.inputs[0].order == "sender":
        return waiting
    sizes = [len(block) for _, block in waiting]
    serials = np.concatenate([block.serials for _, block in waiting])
    branches = np.repeat([index for index, _ in waiting], sizes)
    owners = np.repeat(np.arange(len(waiting)), sizes)
    rows = np.concatenate([np.arange(size) for size in sizes])
    order = np.lexsort((rows, owners, branches, serials))
    owners, rows = owners[order], rows[order]
    cuts = np.flatnonzero((np.diff(owners) != 0) | (np.diff(rows) != 1)) + 1
    starts, stops = [0, *cuts.tolist()], [*cuts.tolist(), len(order)]
    runs = [(owners[a], rows[a], rows[b - 1] + 1) for a, b in zip(starts, stops, strict=True)]
    return [(waiting[o][0], waiting[o][1].slice(int(a), int(b))) for o, a, b in runs]


def _close_all(tasks: Sequence[AnySpoutTask | AnyBoltTask]) -> None:
    """Close every task, also when one of them raises; the first error is the one reported."""
    errors: list[BaseException] = []
    for task in reversed(tasks):
        try:
            task.close()
        except Exception as error:  # noqa: BLE001 (raised below)
            errors.append(error)
    if errors:
        raise errors[0]
