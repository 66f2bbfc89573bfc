"""The reference runtime: one thread, an injected clock, the same result every time.

One block enters at a time and is followed to its end before the next one, component by component
in topological order: a *wave*. Where the order of a stream asks for it, rows are brought into the
order of a serial execution.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from thalweg.blocks import Block, Origin
from thalweg.clock import Clock, SystemClock
from thalweg.control.rerouting import Rerouter
from thalweg.errors import UsageError, explain
from thalweg.events import Progress, RunFinished, RunStarted
from thalweg.execution import Result, Run
from thalweg.groupings import LoadAware
from thalweg.hashing import KEY_GROUPS
from thalweg.metrics import Counter, LatencySketch, Snapshot, Tally
from thalweg.ordering import Arrival, interleave, ordered, traced
from thalweg.routing.load_router import LoadRouter
from thalweg.runtimes.activity import Activity
from thalweg.runtimes.alarms import Alarms
from thalweg.runtimes.anchored_tasks import holds_by_key, is_busy
from thalweg.runtimes.block_tasks import AnyBoltTask, seconds_of
from thalweg.runtimes.counting import count_sent, looked
from thalweg.runtimes.following import close_all, joined, last_bolts, output_block, read_tables
from thalweg.runtimes.inline_rerouting import Learning, Pairs
from thalweg.runtimes.inline_routing import Owners, make_edges
from thalweg.runtimes.making import TaskMaker
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.positions import has_position, position_of, tell_processed
from thalweg.runtimes.reporting import Reporting
from thalweg.runtimes.services import Services
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.runtimes.tasks import BoltTask
from thalweg.runtimes.timing import Timing
from thalweg.runtimes.tracking import Tracker, check_times
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
    #: Whether tuples with an id are followed; otherwise spouts hear at once that all went well.
    acking: bool = True
    #: Seconds to sleep when no source has anything and none says when to ask again.
    idle: float = 0.01
    #: Decides, after each block of a source, which keys get tasks of their own; None for none.
    rerouter: Rerouter | None = None
    name: str = "inline"

    def __post_init__(self) -> None:
        if self.block_rows < 1:
            raise UsageError(explain("block_rows", expected="at least 1", got=str(self.block_rows)))
        check_times(self.ack_timeout, self.idle)

    def run(self, topology: Topology, run: Run | None = None) -> Result:
        """Run a topology until its sources end or it is told to stop."""
        checked = (run or Run()).checked(topology)
        services = Services.of_run(checked, self.clock.now())
        return _Running(self, topology, replace(checked, services=services)).run()


def _has_finished(task: AnySpoutTask) -> bool:
    return task.finished


class _Running:
    """One run of a topology."""

    def __init__(self, settings: Inline, topology: Topology, run: Run) -> None:
        self._settings = settings
        self._clock = settings.clock
        self._topology = topology
        self._run = run
        self._serial = 0
        self._tracker = Tracker(settings.ack_timeout, settings.acking)
        self._traced = traced(topology)
        self._ordered = ordered(topology)
        self._latency = LatencySketch(self._clock)
        self._counters = {c.name: Counter(c.name, c.degree) for c in topology}
        self._edges = make_edges(topology, settings.key_groups)
        self._spouts: dict[str, list[AnySpoutTask]] = {}
        self._bolts: dict[str, list[AnyBoltTask]] = {}
        self._ticks: dict[str, float] = {}
        self._timing = Timing(topology, self._clock, self._advance)
        self._alarms = Alarms(topology, self._bolts, self._wake)
        self._activity = Activity(run.steering, run.listen)
        look = partial(looked, self._spouts, self._bolts, self._counters)
        self._reporting = Reporting(run, topology.name, self._clock, look, threaded=False)
        self._learning: Learning | None = None
        self._pairs: Pairs | None = None
        self._stopped = False

    # --- begin and end -----------------------------------------------------------------------

    def run(self) -> Result:
        self._start = self._shown = self._clock.now()
        opened: list[AnySpoutTask | AnyBoltTask] = []
        self._make_tasks()
        self._begin_learning()
        try:
            for component in reversed(self._topology.components):
                for task in self._tasks(component.name):
                    opened.append(task)
                    task.prepare()
            self._reporting.begin()
            self._run.listen(RunStarted(self._topology.name, self._settings.name))
            self._loop()
            self._reporting.end()
        except BaseException as error:
            self._reporting.give_up(error)
            for other in close_all(opened):
                error.add_note(f"while closing: {other}")
            raise
        for problem in close_all(opened):
            raise problem
        snapshot = self._snapshot(last=True)
        self._run.listen(RunFinished(snapshot, self._stopped))
        tables = MappingProxyType(read_tables(self._topology, self._bolts))
        return Result(self._topology.name, snapshot, self._stopped, tables)

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
                task.tally = Tally()  # the counter is for all tasks
                if isinstance(task, BoltTask):
                    task.settle = self._tracker.settled
                    if any(isinstance(i.grouping, LoadAware) for i in component.inputs):
                        task.timer = self._clock.now

    def _begin_learning(self) -> None:
        settings, rerouter = self._settings, self._settings.rerouter
        if rerouter is not None:
            owners = Owners(self._topology, self._edges, self._bolts)
            self._pairs = Pairs(self._topology, self._edges, settings.seed)
            listen, pause = self._run.listen, self._pause
            self._learning = Learning(rerouter, owners, self._pairs, self._clock, listen, pause)

    def _tasks(self, name: str) -> Sequence[AnySpoutTask | AnyBoltTask]:
        return self._spouts[name] if name in self._spouts else self._bolts[name]

    # --- the loop ----------------------------------------------------------------------------

    def _loop(self) -> None:
        spouts = [task for tasks in self._spouts.values() for task in tasks]
        for component in self._topology:
            if component.tick:
                self._ticks[component.name] = self._start + component.tick
        for task in spouts:
            task.start()
        while not self._run.stop.is_set():
            asked = spouts if self._activity.follow(spouts) else ()
            moved = [self._pull(task) for task in asked if not task.finished]
            self._fire_ticks()
            self._timing.look(spouts, _has_finished)
            self._alarms.look(self._clock.now())
            self._expire(self._clock.now())
            moved.append(self._tell_spouts())
            self._show_progress()
            if not any(moved) and not self._wait(spouts):
                break
        self._stopped = self._run.stop.is_set()
        for task in spouts:
            task.stop()
        self._end()

    def _pull(self, task: AnySpoutTask) -> bool:
        room = self._tracker.room(task)
        if room < 1:
            return False
        begin = time.perf_counter()
        emissions = task.pull(min(self._settings.block_rows, room))
        self._counters[task.component.name].busy += time.perf_counter() - begin
        for emission in emissions:
            self._enter(task, emission)
        if emissions:
            task.taken_in()
        if emissions and has_position(task):
            tell_processed(task, position_of(task))
        return bool(emissions)

    def _wait(self, spouts: Sequence[AnySpoutTask]) -> bool:
        """Sleep until something may happen; False when nothing can happen any more."""
        active = [task for task in spouts if not task.finished]
        if not active and not len(self._tracker):
            return False
        now = self._clock.now()
        waits = [self._alarms.wait(now), *(due - now for due in self._ticks.values())]
        asked = active if self._activity.active else ()
        waits += [max(task.wait_hint(), 0.0) or self._settings.idle for task in asked]
        self._clock.sleep(max(0.0, min([*waits, _LONGEST_SLEEP])))
        return True

    def _fire_ticks(self) -> None:
        """Let due ticks happen; one that was missed is not made up for."""
        now = self._clock.now()
        for name, due in self._ticks.items():
            if due <= now:
                every = self._topology.component(name).tick or 0.0
                self._ticks[name] = due + every if due + every > now else now + every
                self._tick(name)
        for name in self._activity.take_early(self._topology):
            self._tick(name)

    def _tick(self, name: str) -> None:
        for index, task in enumerate(self._bolts.get(name, ())):
            self._wave(self._topology.component(name), index, task.tick())

    def _hear_out(self, component: Component, number: int) -> None:
        """Let a task come to the end of what it is at; what it sends meanwhile goes on."""
        task = self._bolts[component.name][number]
        while is_busy(task):
            self._wave(component, number, task.tick())

    def _advance(self, name: str, now: int) -> None:
        """Tell a component how far event time has come."""
        component = self._topology.component(name)
        for index, task in enumerate(self._bolts[name]):
            self._wave(component, index, task.advance(now))

    def _wake(self, name: str, index: int) -> None:
        self._wave(self._topology.component(name), index, self._bolts[name][index].wake())

    def _pause(self) -> None:
        """Let tasks finish what they hold of keys that are about to move."""
        for component in self._topology:
            for index, task in enumerate(self._bolts.get(component.name, ())):
                if holds_by_key(task):
                    self._wave(component, index, task.pause())

    def _end(self) -> None:
        """Let every component emit what is left, sources first, then end what is open."""
        self._timing.finish()
        for component in self._topology:
            for index, task in enumerate(self._bolts.get(component.name, ())):
                self._hear_out(component, index)
                self._wave(component, index, task.end())
        self._tracker.expire(float("inf"))
        for spout, id_, ok, seconds in self._tracker.take_completed(self._clock.now()):
            spout.completed(id_, ok, seconds)  # what it sends in answer comes too late for this run

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
            self._timing.saw(task, emission.batch.slice(start, size))
            self._timing.look((), _has_finished)
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
            block = Block(emission.batch, origin, serials, None, emission.roots, emission.targets)
            self._deliver([block], inbox)
        self._bolts[component.name][task].settle_late()
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
            task = self._bolts[component.name][number]
            self._tracker.processed(task, part)
            task.settle_late()

    def _run_task(
        self, component: Component, input_: Input, number: int, part: Block, lineage: bool
    ) -> list[Emission]:
        task = self._bolts[component.name][number]
        self._hear_out(component, number)
        counter = self._counters[component.name]
        counter.per_task[number] += len(part)
        task.bind(origin=part.origin, key=input_.key)
        begin = time.perf_counter()
        emissions = task.process(part, lineage or part.roots is not None)
        took = time.perf_counter() - begin
        counter.busy += took
        task.tally.busy += took
        counter.emitted += sum(emission.batch.num_rows for emission in emissions)
        return emissions

    def _deliver(self, blocks: list[Block], inbox: Inbox) -> None:
        """Hand the parts of one output to the readers of its stream."""
        origin = blocks[0].origin
        if self._pairs is not None:
            self._pairs.sent(blocks)
        edges = self._edges[origin.component, origin.stream]
        count_sent(self._tasks(origin.component), blocks, edges)
        for edge in edges:
            ordered = edge.reader.name in self._ordered
            for block in joined(edge.input, blocks) if ordered else blocks:
                inbox.setdefault(edge.reader.name, []).append((edge.index, block))
                self._tracker.delivered(edge.reader, edge.input, block)

    def _tell_spouts(self) -> bool:
        """Tell spouts how their tuples ended; what they send in answer enters like any other."""
        ended = self._tracker.take_completed(self._clock.now())
        for task, id_, ok, seconds in ended:
            for emission in task.completed(id_, ok, seconds):
                self._enter(task, emission)
        return bool(ended)

    # --- what people see ---------------------------------------------------------------------

    def _show_progress(self) -> None:
        self._reporting.step()
        now = self._clock.now()
        if now - self._shown >= _PROGRESS_EVERY:
            self._shown = now
            self._run.listen(Progress(self._snapshot()))

    def _snapshot(self, last: bool = False) -> Snapshot:
        counters = self._counters
        counted = (counter.freeze() for counter in counters.values())
        ends = last_bolts(self._topology)
        return Snapshot(
            elapsed=self._clock.now() - self._start,
            components=self._timing.onto(self._reporting.onto(counted, last)),
            tuples_in=sum(counters[c.name].emitted for c in self._topology.spouts),
            tuples_out=sum(counters[c.name].received for c in ends),
            errors=sum(counter.errors for counter in counters.values()),
            latency=self._latency.freeze(),
            recent=self._latency.recent(),
            acked=self._tracker.acked,
            failed=self._tracker.failed,
        )
