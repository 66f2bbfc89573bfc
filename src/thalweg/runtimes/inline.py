"""The reference runtime: one thread, an injected clock, the same result every time.

One block enters at a time and is followed to its end before the next one, component by component
in topological order: a *wave*. Where the order of a stream asks for it, rows are brought into the
order of a serial execution.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from thalweg.blocks import Block, Origin
from thalweg.clock import Clock, SystemClock
from thalweg.control.rerouting import Rerouter
from thalweg.errors import UsageError, explain
from thalweg.events import Noticed, Progress, RunFinished, RunStarted
from thalweg.execution import Result, Run
from thalweg.groupings import LoadAware
from thalweg.hashing import KEY_GROUPS
from thalweg.metrics import Counter, LatencySketch, Snapshot
from thalweg.ordering import Arrival, interleave, ordered, traced
from thalweg.routing.load_router import LoadRouter
from thalweg.runtimes.block_tasks import AnyBoltTask, seconds_of
from thalweg.runtimes.following import close_all, joined, last_bolts, output_block, read_tables
from thalweg.runtimes.inline_rerouting import Learning, Pairs
from thalweg.runtimes.inline_routing import Owners, make_edges
from thalweg.runtimes.making import TaskMaker
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.runtimes.tasks import BoltTask
from thalweg.runtimes.tracking import Tracker
from thalweg.topology import Component, Input, Topology

# How often listeners hear of progress, and how long a sleep may keep a stop waiting, in seconds.
_PROGRESS_EVERY = 0.2
_LONGEST_SLEEP = 0.1

Inbox = dict[str, list[Arrival]]


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
    #: Seconds to sleep when no source has anything and none says when to ask again.
    idle: float = 0.01
    #: Decides, after each block of a source, which keys get tasks of their own; None for none.
    rerouter: Rerouter | None = None
    name: str = "inline"

    def __post_init__(self) -> None:
        if self.block_rows < 1:
            raise UsageError(explain("block_rows", expected="at least 1", got=str(self.block_rows)))

    def run(self, topology: Topology, run: Run | None = None) -> Result:
        """Run a topology until its sources end or it is told to stop."""
        return _Running(self, topology, run or Run()).run()


class _Running:
    """One run of a topology."""

    def __init__(self, settings: Inline, topology: Topology, run: Run) -> None:
        self._settings = settings
        self._clock = settings.clock
        self._topology = topology
        self._run = run
        self._serial = 0
        self._tracker = Tracker(settings.ack_timeout)
        self._traced = traced(topology)
        self._ordered = ordered(topology)
        self._latency = LatencySketch()
        self._counters = {c.name: Counter(c.name, c.degree) for c in topology}
        self._edges = make_edges(topology, settings.key_groups)
        self._spouts: dict[str, list[AnySpoutTask]] = {}
        self._bolts: dict[str, list[AnyBoltTask]] = {}
        self._ticks: dict[str, float] = {}
        self._learning: Learning | None = None
        self._pairs: Pairs | None = None

    # --- begin and end -----------------------------------------------------------------------

    def run(self) -> Result:
        self._start = self._shown = self._clock.now()
        opened: list[AnySpoutTask | AnyBoltTask] = []
        self._make_tasks()
        self._begin_learning()
        try:
            for component in reversed(self._topology.components):
                for task in self._tasks(component):
                    opened.append(task)
                    task.prepare()
            self._run.listen(RunStarted(self._topology.name, self._settings.name))
            self._loop()
        except BaseException as error:
            for other in close_all(opened):
                error.add_note(f"while closing: {other}")
            raise
        for problem in close_all(opened):
            raise problem
        stopped = self._run.stop.is_set()
        snapshot = self._snapshot()
        self._run.listen(RunFinished(snapshot, stopped))
        tables = MappingProxyType(read_tables(self._topology, self._bolts))
        return Result(self._topology.name, snapshot, stopped, tables)

    def _make_tasks(self) -> None:
        settings = self._settings
        maker = TaskMaker(
            self._topology, self._clock, settings.seed, settings.key_groups, self._run
        )
        for component in self._topology:
            counter = self._counters[component.name]
            if component.is_spout:
                self._spouts[component.name] = maker.spouts(component, counter)
                continue
            self._bolts[component.name] = tasks = maker.bolts(component, counter)
            for task in tasks:
                if isinstance(task, BoltTask):
                    task.settle = self._tracker.settled
                    if any(isinstance(i.grouping, LoadAware) for i in component.inputs):
                        task.timer = self._clock.now

    def _begin_learning(self) -> None:
        settings, rerouter = self._settings, self._settings.rerouter
        if rerouter is not None:
            owners = Owners(self._topology, self._edges, self._bolts)
            self._pairs = Pairs(self._topology, self._edges, settings.seed)
            self._learning = Learning(rerouter, owners, self._pairs, self._clock, self._notice)

    def _notice(self, text: str) -> None:
        self._run.listen(Noticed(text))

    def _tasks(self, component: Component) -> Sequence[AnySpoutTask | AnyBoltTask]:
        name = component.name
        return self._spouts[name] if component.is_spout else self._bolts[name]

    # --- the loop ----------------------------------------------------------------------------

    def _loop(self) -> None:
        spouts = [task for tasks in self._spouts.values() for task in tasks]
        for component in self._topology:
            if component.options.tick:
                self._ticks[component.name] = self._start + component.options.tick
        for task in spouts:
            task.start()
        while not self._run.stop.is_set():
            moved = [self._pull(task) for task in spouts if not task.finished]
            self._fire_ticks()
            self._expire(self._clock.now())
            moved.append(self._tell_spouts())
            self._show_progress()
            if not any(moved) and not self._wait(spouts):
                break
        for task in spouts:
            task.stop()
        self._end()

    def _pull(self, task: AnySpoutTask) -> bool:
        begin = time.perf_counter()
        emissions = task.pull(self._settings.block_rows)
        self._counters[task.component.name].busy += time.perf_counter() - begin
        for emission in emissions:
            self._enter(task, emission)
        return bool(emissions)

    def _wait(self, spouts: Sequence[AnySpoutTask]) -> bool:
        """Sleep until something may happen; False when nothing can happen any more."""
        active = [task for task in spouts if not task.finished]
        if not active and not len(self._tracker):
            return False
        now = self._clock.now()
        waits = [due - now for due in self._ticks.values()]
        waits += [max(task.wait_hint(), 0.0) or self._settings.idle for task in active]
        self._clock.sleep(max(0.0, min([*waits, _LONGEST_SLEEP])))
        return True

    def _fire_ticks(self) -> None:
        """Let due ticks happen; one that was missed is not made up for."""
        now = self._clock.now()
        for name, due in self._ticks.items():
            if due <= now:
                component = self._topology.component(name)
                every = component.options.tick or 0.0
                self._ticks[name] = due + every if due + every > now else now + every
                for index, task in enumerate(self._bolts.get(name, ())):
                    self._wave(component, index, task.tick())

    def _end(self) -> None:
        """Let every component emit what is left, sources first, then end what is open."""
        for component in self._topology:
            for index, task in enumerate(self._bolts.get(component.name, ())):
                self._wave(component, index, task.end())
        self._tracker.expire(float("inf"))
        for spout, id_, ok in self._tracker.take_completed():
            spout.completed(id_, ok)  # what it sends in answer comes too late for this run

    def _expire(self, now: float) -> None:
        """Let tuples fail that have taken too long, and bolts forget those they still keep."""
        expired = self._tracker.expire(now)
        for task in (task for tasks in self._bolts.values() for task in tasks):
            if expired and isinstance(task, BoltTask):
                task.forget(expired)

    # --- blocks ------------------------------------------------------------------------------

    def _enter(self, task: AnySpoutTask, emission: Emission) -> None:
        """Give serial numbers to what a source sent, and follow it to its end, block by block."""
        rows, size = emission.batch.num_rows, self._settings.block_rows
        name = task.component.name
        serials = np.arange(self._serial, self._serial + rows, dtype=np.int64)
        self._serial += rows
        self._counters[name].emitted += rows
        roots = emission.ids and self._tracker.open(task, emission.ids, self._clock.now())
        origin = Origin(name, emission.stream, task.context.task)
        whole = Block(
            emission.batch, origin, serials, None, roots, emission.targets, emission.lists
        )
        for start in range(0, rows, size):
            begin = time.perf_counter()
            inbox: Inbox = {}
            self._deliver([whole.slice(start, start + size)], inbox)
            self._follow(inbox)
            took = time.perf_counter() - begin
            self._latency.add([took])
            if self._learning is not None:
                self._learning.after(took, sum(self._counters[name].busy for name in self._bolts))
        if roots:
            self._tracker.unread(roots)

    def _wave(self, component: Component, task: int, emissions: Sequence[Emission]) -> None:
        """Follow what a tick or the end made a component send."""
        inbox: Inbox = {}
        for emission in emissions:
            rows = emission.batch.num_rows
            self._counters[component.name].emitted += rows
            serials = np.full(rows, self._serial, dtype=np.int64)
            origin = Origin(component.name, emission.stream, task)
            block = Block(emission.batch, origin, serials, targets=emission.targets)
            self._deliver([block], inbox)
        self._follow(inbox)

    def _follow(self, inbox: Inbox) -> None:
        """Let each component process what waits for it, producers before consumers."""
        for component in self._topology if inbox else ():
            waiting = inbox.pop(component.name, [])
            mixed = len(waiting) > 1 and component.name in self._ordered
            for index, block in interleave(waiting) if mixed else waiting:
                self._process(component, component.inputs[index], block, inbox)

    def _process(self, component: Component, input_: Input, block: Block, inbox: Inbox) -> None:
        """Give a block to the tasks of a component, and what they send to its readers."""
        edges = self._edges[input_.component, input_.stream]
        router = next(edge.router for edge in edges if edge.reader is component)
        trail = self._pairs.arrived(component, input_, block) if self._pairs is not None else ()
        lineage = component.name in self._traced or bool(trail)
        sent: dict[str, list[Block]] = {}
        parts = list(router.route(block))
        for number, part in parts:
            begin = self._clock.now()
            emissions = self._run_task(component, input_, number, part, lineage)
            if isinstance(router, LoadRouter):
                task = self._bolts[component.name][number]
                router.executed(number, part, seconds_of(task, part, self._clock.now() - begin))
            for emission in emissions:
                made = output_block(component, number, part, emission, trail)
                sent.setdefault(emission.stream, []).append(made)
        for blocks in sent.values():
            self._deliver(blocks, inbox)
        # Outputs hold their roots before the input lets go, so that no root ends too early.
        for number, part in parts:
            self._tracker.processed(self._bolts[component.name][number], part)

    def _run_task(
        self, component: Component, input_: Input, number: int, part: Block, lineage: bool
    ) -> list[Emission]:
        task = self._bolts[component.name][number]
        counter = self._counters[component.name]
        counter.per_task[number] += len(part)
        task.bind(origin=part.origin, key=input_.key)
        begin = time.perf_counter()
        emissions = task.process(part, lineage or part.roots is not None)
        counter.busy += time.perf_counter() - begin
        counter.emitted += sum(emission.batch.num_rows for emission in emissions)
        return emissions

    def _deliver(self, blocks: list[Block], inbox: Inbox) -> None:
        """Hand the parts of one output to the readers of its stream."""
        origin = blocks[0].origin
        if self._pairs is not None:
            self._pairs.sent(blocks)
        for edge in self._edges[origin.component, origin.stream]:
            ordered = edge.reader.name in self._ordered
            for block in joined(edge.input, blocks) if ordered else blocks:
                inbox.setdefault(edge.reader.name, []).append((edge.index, block))
                self._tracker.delivered(edge.reader, edge.input, block)

    def _tell_spouts(self) -> bool:
        """Tell spouts how their tuples ended; what they send in answer enters like any other."""
        ended = self._tracker.take_completed()
        for task, id_, ok in ended:
            for emission in task.completed(id_, ok):
                self._enter(task, emission)
        return bool(ended)

    # --- what people see ---------------------------------------------------------------------

    def _show_progress(self) -> None:
        now = self._clock.now()
        if now - self._shown >= _PROGRESS_EVERY:
            self._shown = now
            self._run.listen(Progress(self._snapshot()))

    def _snapshot(self) -> Snapshot:
        counters = self._counters
        last = last_bolts(self._topology)
        return Snapshot(
            elapsed=self._clock.now() - self._start,
            components=tuple(counter.freeze() for counter in counters.values()),
            tuples_in=sum(counters[c.name].emitted for c in self._topology.spouts),
            tuples_out=sum(counters[c.name].received for c in last),
            errors=sum(counter.errors for counter in counters.values()),
            latency=self._latency.freeze(),
            acked=self._tracker.acked,
            failed=self._tracker.failed,
        )
