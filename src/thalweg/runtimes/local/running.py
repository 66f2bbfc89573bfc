"""One run of a topology on this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import MappingProxyType

import numpy as np

from thalweg.acking import Roots
from thalweg.blocks import Block, Origin
from thalweg.clock import SystemClock
from thalweg.events import Event, Progress, RunFinished, RunStarted
from thalweg.execution import Result, Run
from thalweg.metrics import LatencySketch, Snapshot
from thalweg.runtimes.following import close_all, last_bolts, read_tables
from thalweg.runtimes.local.building import Built, build
from thalweg.runtimes.local.crew import MAIN, Crew
from thalweg.runtimes.local.executors import Executors
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.local.operators import Call, Link, Operator, Special, Streams, Wiring
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.local.waiting import STRATEGIES
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.runtimes.tasks import BoltTask
from thalweg.runtimes.tracking import Tracker
from thalweg.topology import Component, Topology

# How often listeners hear of progress, and how long a wait may keep a stop waiting, in seconds.
_PROGRESS_EVERY = 0.2
_LONGEST_WAIT = 0.1


class Running:
    """Brings a topology to life, asks its sources, and ends it."""

    def __init__(self, settings: Settings, topology: Topology, run: Run) -> None:
        self._settings, self._topology, self._run = settings, topology, run
        self._clock = settings.clock
        self._tracking = threading.Lock()
        self._tracker = Tracker(settings.ack_timeout)
        self._latency = LatencySketch()
        self._flights = Flights(settings.window, self._landed)
        self._specials: dict[int, Special] = {}
        self._serial = 0
        self._ticks: dict[str, float] = {}
        wiring = Wiring(
            flights=self._flights,
            specials=self._specials,
            woken=self._woken,
            delivered=self._delivered,
            processed=self._processed,
            now=time.perf_counter,
            ring=settings.ring,
            bound=settings.queue_rows,
        )
        told = Run(run.stop, _one_at_a_time(run.listen), run.settings)
        self._built: Built = build(settings, topology, told, wiring)
        self._listen = told.listen
        self._crew = _crew(settings, self._built)
        self._spouts = [task for tasks in self._built.spouts.values() for task in tasks]
        #: Rows that each source is asked for, and whether the last one had them.
        self._asked = {id(task): settings.block_rows for task in self._spouts}
        self._full = False

    # --- begin and end -----------------------------------------------------------------------

    def run(self) -> Result:
        """Run until the sources end, or until told to stop."""
        self._start = self._shown = self._clock.now()
        opened: list[AnySpoutTask | AnyTask] = []
        try:
            for task in self._built.tasks_backwards():
                opened.append(task)
                task.prepare()
            self._listen(RunStarted(self._topology.name, self._settings.name))
            try:
                self._loop()
            finally:
                self._crew.close()
            self._raise()
        except BaseException as error:
            for other in close_all(opened):
                error.add_note(f"while closing: {other}")
            raise
        for problem in close_all(opened):
            raise problem
        stopped = self._run.stop.is_set()
        snapshot = self._snapshot()
        self._listen(RunFinished(snapshot, stopped))
        tables = MappingProxyType(read_tables(self._topology, self._built.bolts))
        return Result(self._topology.name, snapshot, stopped, tables)

    def _loop(self) -> None:
        for component in self._topology:
            if component.options.tick:
                self._ticks[component.name] = self._start + component.options.tick
        for bolt in (task for tasks in self._built.bolts.values() for task in tasks):
            if isinstance(bolt, BoltTask):
                bolt.settle = self._settled
        for task in self._spouts:
            task.start()
        self._crew.start()
        while not self._run.stop.is_set() and self._step():
            self._raise()
        for task in self._spouts:
            task.stop()
        self._end()

    def _step(self) -> bool:
        """Do what there is to do; False when nothing can happen any more."""
        moved = not self._eager() and self._crew.work(MAIN)
        if not moved:
            asked = [self._pull(task) for task in self._spouts if self._may_pull(task)]
            moved = any(asked)
        self._fire_ticks()
        self._expire(self._clock.now())
        moved = self._tell_spouts() or moved
        self._show_progress()
        return moved or self._crew.work(MAIN) or self._wait()

    def _end(self) -> None:
        """Let every component emit what is left, sources first, then end what is open."""
        self._drain()
        for component in self._topology:
            for task in range(len(self._built.bolts.get(component.name, ()))):
                self._special(component, task, "end")
                self._drain()
        self._tracker.expire(float("inf"))
        for spout, id_, ok in self._tracker.take_completed():
            spout.completed(id_, ok)  # what it sends in answer comes too late for this run

    def _drain(self) -> None:
        """Work until nothing is under way."""
        while len(self._flights):
            self._work_or_wait()

    def _work_or_wait(self) -> None:
        self._raise()
        if not self._crew.work(MAIN):
            self._crew.wait(_LONGEST_WAIT)

    def _raise(self) -> None:
        if self._crew.error is not None:
            raise self._crew.error

    # --- sources -----------------------------------------------------------------------------

    def _eager(self) -> bool:
        """Say whether other workers could take a block more, while this one asks for it."""
        return self._full and len(self._flights) < 2 * self._crew.hunger

    def _may_pull(self, task: AnySpoutTask) -> bool:
        if task.finished or not self._flights.open:
            return False
        return not self._blocked(self._built.sources[task.component.name])

    def _blocked(self, streams: Streams) -> bool:
        bound = self._settings.queue_rows
        return any(link.waiting >= bound for links in streams.values() for link in links)

    def _pull(self, task: AnySpoutTask) -> bool:
        """Ask a source; it is asked for more at once as long as it has that much."""
        limit, counter = self._asked[id(task)], self._built.counters[task.component.name][0]
        begin = time.perf_counter()
        try:
            emissions = task.pull(limit)
        except Exception:
            self._drain()  # what it gave before is not to blame
            raise
        counter.busy += time.perf_counter() - begin
        self._full = sum(emission.batch.num_rows for emission in emissions) >= limit
        settings = self._settings
        most = max(settings.most_block_rows, settings.block_rows)
        self._asked[id(task)] = min(2 * limit, most) if self._full else settings.block_rows
        for emission in emissions:
            self._enter(task, emission, limit)
        return bool(emissions)

    def _enter(self, task: AnySpoutTask, emission: Emission, size: int) -> None:
        """Give serial numbers to what a source sent, and send it off, block by block."""
        rows, name = emission.batch.num_rows, task.component.name
        serials = np.arange(self._serial, self._serial + rows, dtype=np.int64)
        self._serial += rows
        self._crew.entered(rows)
        self._built.counters[name][0].emitted += rows
        roots = None
        if emission.ids:
            with self._tracking:
                roots = self._tracker.open(task, emission.ids, self._clock.now())
        origin = Origin(name, emission.stream, task.context.task)
        whole = Block(
            emission.batch, origin, serials, None, roots, emission.targets, emission.lists
        )
        links = self._built.sources[name][emission.stream]
        if roots is not None:
            for link in links:
                self._delivered(link, whole)
        for start in range(0, rows, size):
            while not self._flights.open or (start and self._blocked({"": links})):
                self._work_or_wait()
            self._send(links, [whole.slice(start, start + size)])
        if roots is not None:
            with self._tracking:
                self._tracker.unread(roots)

    def _send(self, links: Sequence[Link], blocks: list[Block]) -> None:
        """Begin a unit: all whose order matters hear of it, some get something."""
        number = self._flights.begin(time.perf_counter())
        self._announce(number, links, blocks)
        self._flights.release(number, time.perf_counter())

    def _announce(self, number: int, chosen: Sequence[Link], blocks: list[Block]) -> None:
        for streams in self._built.sources.values():
            for link in (link for links in streams.values() for link in links):
                if link in chosen:
                    link.reader.arrive(number, link, blocks)
                elif link.reader.ordered:
                    link.reader.arrive(number, link, [])

    def _tell_spouts(self) -> bool:
        """Tell spouts how their tuples ended; what they send in answer enters like any other."""
        with self._tracking:
            ended = self._tracker.take_completed()
        for task, id_, ok in ended:
            for emission in task.completed(id_, ok):
                self._enter(task, emission, self._settings.block_rows)
        return bool(ended)

    # --- time --------------------------------------------------------------------------------

    def _fire_ticks(self) -> None:
        """Let due ticks happen; one that was missed is not made up for."""
        now = self._clock.now()
        for name, due in self._ticks.items():
            if due <= now:
                component = self._topology.component(name)
                every = component.options.tick or 0.0
                self._ticks[name] = due + every if due + every > now else now + every
                for task in range(len(self._built.bolts.get(name, ()))):
                    self._special(component, task, "tick")

    def _special(self, component: Component, task: int, call: Call) -> None:
        """Send a tick, or the end, to a task, in its turn."""
        while not self._flights.open:
            self._work_or_wait()
        number = self._flights.begin(time.perf_counter())
        special = Special(component.name, task, call, self._serial)
        operator = self._built.operator(component.name)
        self._specials[number] = special
        if not operator.ordered:
            operator.begin_special(number, special)
        self._announce(number, (), [])
        self._flights.release(number, time.perf_counter())

    def _expire(self, now: float) -> None:
        """Let tuples fail that have taken too long, and bolts forget those they still keep."""
        if not len(self._tracker):
            return
        with self._tracking:
            expired = self._tracker.expire(now)
        for operator in self._built.operators if expired else ():
            operator.forget(expired)

    def _wait(self) -> bool:
        """Wait until something may happen; False when nothing can happen any more."""
        active = [task for task in self._spouts if not task.finished]
        # In this order: what ends as a unit lands is known to the tracker before.
        if not active and not len(self._flights) and self._tracker.idle:
            return False
        now = self._clock.now()
        waits = [due - now for due in self._ticks.values()]
        waits += [max(task.wait_hint(), 0.0) or self._settings.idle for task in active]
        seconds = max(0.0, min([*waits, _LONGEST_WAIT]))
        if len(self._flights) or isinstance(self._clock, SystemClock):
            self._crew.wait(seconds)
        else:
            self._clock.sleep(seconds)
        return True

    # --- what operators tell -----------------------------------------------------------------

    def _landed(self, number: int, seconds: float) -> None:
        if self._specials.pop(number, None) is None:
            with self._tracking:
                self._latency.add([seconds])
        self._crew.tell()

    def _woken(self, operator: Operator) -> None:
        self._crew.woken(operator)

    def _delivered(self, link: Link, block: Block) -> None:
        with self._tracking:
            self._tracker.delivered(link.reader.component, link.input, block)

    def _processed(self, task: AnyTask, part: Block) -> None:
        with self._tracking:
            self._tracker.processed(task, part)

    def _settled(self, roots: Roots, ok: bool) -> None:
        with self._tracking:
            self._tracker.settled(roots, ok)

    # --- what people see ---------------------------------------------------------------------

    def _show_progress(self) -> None:
        now = self._clock.now()
        if now - self._shown >= _PROGRESS_EVERY:
            self._shown = now
            self._listen(Progress(self._snapshot()))

    def _snapshot(self) -> Snapshot:
        components = self._built.metrics()
        by_name = {metrics.component: metrics for metrics in components}
        return Snapshot(
            elapsed=self._clock.now() - self._start,
            components=components,
            tuples_in=sum(by_name[c.name].emitted for c in self._topology.spouts),
            tuples_out=sum(by_name[c.name].received for c in last_bolts(self._topology)),
            errors=sum(metrics.errors for metrics in components),
            latency=self._latency.freeze(),
            acked=self._tracker.acked,
            failed=self._tracker.failed,
            pending=sum(o.worklist.rows for o in self._built.operators),
        )


def _crew(settings: Settings, built: Built) -> Crew | Executors:
    if settings.assigning == "executors":
        wait = STRATEGIES[settings.wait]()
        return Executors(built.operators, built.meter, wait, settings.block_rows)
    return Crew(built.operators, settings.scheduler(), built.meter, settings.crew())


def _one_at_a_time(listen: Callable[[Event], None]) -> Callable[[Event], None]:
    """Let only one thread at a time speak to a listener."""
    lock = threading.RLock()

    def tell(event: Event) -> None:
        with lock:
            listen(event)

    return tell
