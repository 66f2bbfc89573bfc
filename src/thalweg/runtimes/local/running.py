"""One run of a topology on this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from thalweg.acking import Roots
from thalweg.blocks import Block, Origin
from thalweg.clock import SystemClock
from thalweg.columns import settle_arrow
from thalweg.events import RunFinished, RunStarted
from thalweg.execution import Result, Run
from thalweg.runtimes.activity import Activity
from thalweg.runtimes.alarms import Alarms
from thalweg.runtimes.anchored_tasks import is_busy, may_hold
from thalweg.runtimes.block_tasks import BlockBoltTask
from thalweg.runtimes.following import close_all, read_tables
from thalweg.runtimes.local.asking import Asking
from thalweg.runtimes.local.beginning import begin
from thalweg.runtimes.local.building import build
from thalweg.runtimes.local.checkpoints import TIMES, saving_of
from thalweg.runtimes.local.crew import MAIN, Crew
from thalweg.runtimes.local.executors import make_crew
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.holding import HeldSources
from thalweg.runtimes.local.isolation import AnyTask, RemoteTask, abandon_all
from thalweg.runtimes.local.links import Link, Streams, Wiring
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.pairs import pairs_of
from thalweg.runtimes.local.resettling import Isolating
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.local.steering import RunHands, Steered
from thalweg.runtimes.local.telling import Telling, one_at_a_time
from thalweg.runtimes.local.units import Call, Special
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.services import Services
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.runtimes.timing import Timing
from thalweg.runtimes.tracking import Tracker
from thalweg.topology import Topology

# How long a wait may keep a stop waiting, in seconds.
_LONGEST_WAIT = 0.1


class Running:
    """Brings a topology to life, asks its sources, and ends it."""

    def __init__(self, settings: Settings, topology: Topology, run: Run) -> None:
        self._settings, self._topology, self._run = settings, topology, run
        self._clock = settings.clock
        self._tracking = threading.Lock()
        self._tracker = Tracker(settings.ack_timeout, settings.acking)
        self._flights = Flights(settings.window, self._landed)
        self._specials: dict[int, Special] = {}
        self._serial = 0
        self._ticks: dict[str, float] = {}
        pairs = pairs_of(settings, topology)
        wiring = Wiring(
            flights=self._flights,
            specials=self._specials,
            woken=self._woken,
            delivered=self._delivered,
            processed=self._processed,
            now=time.perf_counter,
            ring=settings.ring,
            bound=settings.queue_rows,
            pause=settings.pause,
            pairs=pairs,
        )
        services = Services.of_run(run, self._clock.now())
        told = replace(run, listen=one_at_a_time(run.listen), services=services)
        begun = None if settings.checkpoint is None else begin(settings, topology, told)
        #: How far event time has come; tasks that are added begin with it.
        times: dict[str, int] = dict(begun.manifest.notes.get(TIMES, {})) if begun else {}
        arranging = begun.arranging if begun else None
        self._built = build(settings, topology, told, wiring, arranging, times)
        self._saving = saving_of(settings, self._built, told, begun, self._flights)
        self._telling = Telling(self._built, self._tracker, self._clock, told)
        spouts = [task for tasks in self._built.spouts.values() for task in tasks]
        self._spouts = [task for task in spouts if not self._saving.is_over(task)]
        self._asking = Asking(self._spouts, settings, self._built, self._refused)
        self._asking.pending, self._asking.opened = self._tracker.room, self._tracker.opened
        self._held = HeldSources(self._built.holdings)
        self._activity = Activity(run.steering, told.listen)
        self._saving.tell_ends(self._asking.ended, self._asking.reached)
        self._crew = make_crew(settings, self._built, self._asking.always)
        hands = RunHands(self._special, self._open, self._crew, self._asking.shedder, self._drain)
        self._steered = Steered(self._built, told, hands, pairs)
        self._isolating = Isolating(settings, self._built, told)
        self._timing = Timing(topology, self._clock, self._advance, self._may_advance, times)
        self._saving.times, self._telling.timed = self._timing.told, self._timing.onto
        self._alarms = Alarms(topology, self._built.bolts, self._wake, self._may_wake)
        #: The last unit with which each task was woken.
        self._woken_with: dict[tuple[str, int], int] = {}
        #: Tasks that have to be closed at the end.
        self._opened: list[AnySpoutTask | AnyTask] = []
        #: Whether it was told to stop before the sources ended.
        self._stopped = False

    # --- begin and end -----------------------------------------------------------------------

    def run(self) -> Result:
        """Run until the sources end, or until told to stop."""
        try:
            self._prepare()
            self._telling.begin()
            self._telling.listen(RunStarted(self._topology.name, self._settings.name))
            wait = True
            try:
                self._loop()
            except KeyboardInterrupt:
                wait = False  # a worker may be stuck
                self._telling.abandon()
                raise
            finally:
                self._isolating.close(wait)
                self._crew.close(wait)
                self._steered.close()
                self._saving.close()
            self._raise()
            self._telling.end()
        except BaseException as error:
            self._telling.give_up(error)
            if isinstance(error, KeyboardInterrupt):
                abandon_all(self._opened)
            for other in close_all(self._still_open()):
                error.add_note(f"while closing: {other}")
            raise
        for problem in close_all(self._still_open()):
            raise problem
        snapshot = self._telling.snapshot(self._crew.choices, last=True)
        self._telling.listen(RunFinished(snapshot, self._stopped))
        tables = MappingProxyType(read_tables(self._topology, self._built.bolts))
        return Result(self._topology.name, snapshot, self._stopped, tables)

    def _prepare(self) -> None:
        """Get all tasks ready; those that have to be closed again are put into a list."""
        settle_arrow()
        tasks = [task for task in self._built.tasks_backwards() if not self._saving.is_over(task)]
        self._opened += [task for task in tasks if isinstance(task, RemoteTask)]  # they run already
        self._saving.restore()
        for task in tasks:
            if not isinstance(task, RemoteTask):
                self._opened.append(task)
            self._saving.prepare(task)

    def _open(self, task: AnyTask) -> None:
        """Take on a task that has come while the topology runs."""
        self._opened.append(task)
        if not isinstance(task, BlockBoltTask):
            task.settle = self._settled

    def _still_open(self) -> list[AnySpoutTask | AnyTask]:
        retired = [task for operator in self._built.operators for task in operator.retired]
        return [task for task in self._opened if task not in retired]

    def _loop(self) -> None:
        for component in self._topology:
            if component.tick:
                self._ticks[component.name] = self._telling.start + component.tick
        for bolt in (task for tasks in self._built.bolts.values() for task in tasks):
            if not isinstance(bolt, BlockBoltTask):
                bolt.settle = self._settled
        for task in self._spouts:
            task.start()
        self._crew.start()
        for task, emission in self._saving.pending():
            self._enter(task, emission, self._settings.block_rows)
        while not self._run.stop.is_set() and self._step():
            self._raise()
            self._save_if_due()
        self._stopped = self._run.stop.is_set()
        for task in self._spouts:
            task.stop()
        self._end(self._stopped)

    def _step(self) -> bool:
        """Do what there is to do; False when nothing can happen any more."""
        self._asking.paused = not self._activity.follow(self._spouts)
        came = self._asking.receive()
        self._held.look(self._may_pull)  # nobody is asked while there is work, but may have room
        moved = not self._eager() and self._crew.work(MAIN)
        if not moved:
            asked = [self._pull(task) for task in self._spouts if self._may_pull(task)]
            moved = any(asked)
            if moved and not self._eager():  # a lone block goes all the way before anything else
                self._crew.work(MAIN)
        self._fire_ticks()
        self._timing.look(self._spouts, self._asking.ended, self._asking.reached)
        self._alarms.look(self._clock.now())
        self._expire(self._clock.now())
        moved = self._steered.step() or moved or came
        moved = self._tell_spouts() or moved
        self._telling.show_progress(self._crew.choices)
        self._isolate()
        return moved or self._crew.work(MAIN) or self._wait()

    def _isolate(self) -> None:
        """Let a component go on in processes of its own, as soon as they are ready."""
        if self._steered.active or not self._isolating.ready(time.perf_counter()):
            return
        if self._settings.checkpoint is not None:
            self._rest()
            self._saving.take()  # keys that were deleted are known to the old tasks alone
        if isinstance(self._crew, Crew):
            with self._crew.at_rest():
                self._isolating.make(self._replaced)

    def _replaced(self, operator: Operator, tasks: Sequence[AnyTask]) -> None:
        for problem in close_all(operator.tasks):
            raise problem
        self._opened = [task for task in self._opened if task not in operator.tasks] + [*tasks]

    def _save_if_due(self) -> None:
        """Take a snapshot when it is time for one; what is under way is finished first."""
        if self._saving.due():
            self._rest()
            self._saving.take()

    def _end(self, stopped: bool) -> None:
        """Let every component emit what is left, sources first, then end what is open.

        A run that is stopped and can go on later has not come to its end.
        """
        self._let_in()
        if stopped:
            self._drain()
            self._alarms.look(self._clock.now())  # what bolts say by themselves goes on as well
        self._rest()
        if not stopped:
            self._timing.finish()
            self._drain()
        for component in self._saving.ending(self._topology, stopped):
            for task in range(len(self._built.bolts.get(component.name, ()))):
                self._special(component.name, task, "end")
                self._drain()
        self._tracker.expire(float("inf"))
        for spout, id_, ok, seconds in self._tracker.take_completed(self._clock.now()):
            spout.completed(id_, ok, seconds)  # what it sends in answer comes too late for this run
        self._saving.finish(ended=not stopped)

    def _rest(self) -> None:
        """Work until nothing is under way, and no task holds tuples: no snapshot has them."""
        self._drain()
        for name, tasks in self._built.bolts.items():
            self._hear_out(name)
            for number, task in enumerate(tasks) if self._settings.checkpoint else ():
                if may_hold(task):
                    self._special(name, number, "pause")
            self._drain()

    def _hear_out(self, name: str) -> None:
        """Let tasks come to the end of what they are at; what they send meanwhile goes on."""
        tasks = self._built.bolts[name]
        while busy := [number for number, task in enumerate(tasks) if is_busy(task)]:
            for number in busy:
                self._special(name, number, "tick")
            self._drain()

    def _drain(self) -> None:
        """Work until nothing is under way."""
        while len(self._flights) or self._steered.active:
            self._work_or_wait()

    def _work_or_wait(self) -> None:
        self._raise()
        self._steered.advance()  # what is under way may wait for it
        came = self._asking.receive()
        if not self._crew.work(MAIN) and not came:
            self._crew.wait(self._settings.idle if self._asking.always else _LONGEST_WAIT)

    def _raise(self) -> None:
        if self._crew.error is not None:
            self._crew.close()  # what others are at may be an earlier tuple, which fails as well
            raise self._crew.error

    # --- sources -----------------------------------------------------------------------------

    def _eager(self) -> bool:
        """Say whether other workers could take a block more, while this one asks for it."""
        if not self._asking.full or len(self._flights) >= 2 * self._crew.hunger:
            return False
        return self._asking.largest or self._crew.worth_sharing

    def _may_pull(self, task: AnySpoutTask) -> bool:
        if not self._asking.has(task):
            return self._held.note(task, False)
        room = self._flights.open and self._asking.room(task) >= 1
        full = not room or self._blocked(self._built.sources[task.component.name])
        return not self._held.note(task, full)

    def _blocked(self, streams: Streams) -> bool:
        bound = self._settings.queue_rows
        return any(link.waiting >= bound for links in streams.values() for link in links)

    def _pull(self, task: AnySpoutTask) -> bool:
        """Let in what a source gives."""
        limit = self._asking.limit(task)
        try:
            emissions = self._asking.take(task)
        except Exception:
            self._drain()  # what it gave before is not to blame
            raise
        self._saving.enter(task, emissions)
        if emissions:
            task.taken_in()
        for emission in emissions:
            self._enter(task, emission, limit)
        return bool(emissions)

    def _let_in(self) -> None:
        """Ask nobody any more; what waits of sources is let in as there is room."""
        self._asking.close()
        for task in self._spouts:
            self._held.note(task, False)
        for task in self._spouts if self._asking.always else ():
            while self._asking.has(task):
                if self._may_pull(task):
                    self._pull(task)
                else:
                    self._work_or_wait()

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
        task.tally.emitted += rows
        task.tally.transferred += rows * sum(link.copies for link in links)
        if roots is not None:
            for link in links:
                self._delivered(link, whole)
        for start in range(0, rows, size):
            while not self._flights.open or (start and self._blocked({"": links})):
                self._held.note(task, True)
                self._work_or_wait()
            self._held.note(task, False)
            self._send(links, [whole.slice(start, start + size)])
        if roots is not None:
            with self._tracking:
                self._tracker.unread(roots)
        self._timing.entered(task, emission)

    def _send(self, links: Sequence[Link], blocks: list[Block]) -> None:
        """Begin a unit: all whose order matters hear of it, some get something."""
        self._settings.pause("send")
        number = self._flights.begin(time.perf_counter())
        self._announce(number, links, blocks)
        self._flights.release(number, time.perf_counter())
        self._steered.entered()

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
            ended = self._tracker.take_completed(self._clock.now())
        for task, id_, ok, seconds in ended:
            for emission in task.completed(id_, ok, seconds):
                if not self._asking.line_up(task, emission):
                    self._saving.enter(task, [emission])
                    self._enter(task, emission, self._settings.block_rows)
        return bool(ended)

    # --- time --------------------------------------------------------------------------------

    def _fire_ticks(self) -> None:
        """Let due ticks happen; one that was missed is not made up for."""
        now = self._clock.now()
        for name, due in self._ticks.items():
            if due <= now and not self._steered.is_changing(name):
                every = self._topology.component(name).tick or 0.0
                self._ticks[name] = due + every if due + every > now else now + every
                self._tick(name)
        for name in self._activity.take_early(self._topology, self._may_advance):
            self._tick(name)

    def _tick(self, component: str) -> None:
        for task in range(len(self._built.bolts.get(component, ()))):
            self._special(component, task, "tick")

    def _may_advance(self, component: str) -> bool:
        return not self._steered.is_changing(component)

    def _advance(self, component: str, now: int) -> None:
        """Tell a component how far event time has come."""
        for task in range(len(self._built.bolts[component])):
            self._special(component, task, "advance", now)

    def _may_wake(self, component: str, task: int) -> bool:
        waking = self._woken_with.get((component, task)) in self._specials
        return not waking and not self._steered.is_changing(component)

    def _wake(self, component: str, task: int) -> None:
        self._special(component, task, "wake")
        self._woken_with[component, task] = self._flights.begun - 1  # only this thread begins units

    def _special(self, component: str, task: int, call: Call, time_: int = 0) -> None:
        """Send a tick, or the end, to a task, or let routers switch, in its turn."""
        while not self._flights.open:
            self._work_or_wait()
        number = self._flights.begin(time.perf_counter())
        special = self._specials[number] = Special(component, task, call, self._serial, time=time_)
        for operator in self._built.operators:
            if not operator.ordered and operator.takes(special):
                operator.begin_special(number, special)
        self._announce(number, (), [])
        self._flights.release(number, time.perf_counter())

    def _expire(self, now: float) -> None:
        """Let tuples fail that have taken too long, and bolts forget those they still keep."""
        if not self._tracker.counts:
            return
        with self._tracking:
            expired = self._tracker.expire(now)
        for operator in self._built.operators if expired else ():
            operator.forget(expired)

    def _wait(self) -> bool:
        """Wait until something may happen; False when nothing can happen any more."""
        active = [task for task in self._spouts if not self._asking.ended(task)]
        # In this order: what ends as a unit lands is known to the tracker before.
        over = not active and not len(self._flights) and self._tracker.idle
        if over and not self._steered.active:
            return False
        now = self._clock.now()
        waits = [due - now for due in (*self._ticks.values(), self._steered.due)]
        waits.append(self._alarms.wait(now))
        asked = () if self._asking.paused else active
        waits += [max(task.wait_hint(), 0.0) or self._settings.idle for task in asked]
        seconds = max(0.0, min([*waits, _LONGEST_WAIT]))
        busy = len(self._flights) or self._steered.active
        if busy or isinstance(self._clock, SystemClock):
            self._crew.wait(seconds)
        else:
            self._clock.sleep(seconds)
        return True

    # --- what operators tell -----------------------------------------------------------------

    def _landed(self, number: int, seconds: float) -> None:
        if self._specials.pop(number, None) is None:
            with self._tracking:
                self._telling.latency.add([seconds])
        self._crew.tell()

    def _woken(self, operator: Operator) -> None:
        self._crew.woken(operator)

    def _delivered(self, link: Link, block: Block) -> None:
        with self._tracking:
            self._tracker.delivered(link.reader.component, link.input, block)

    def _processed(self, task: AnyTask, part: Block) -> None:
        with self._tracking:
            self._tracker.processed(task, part)

    def _refused(self, task: AnySpoutTask, ids: list[Any]) -> None:
        with self._tracking:
            self._tracker.refused(task, ids, self._clock.now())

    def _settled(self, roots: Roots, ok: bool) -> None:
        with self._tracking:
            self._tracker.settled(roots, ok)
