"""A run on Spark: spouts are asked beside the driver, batches run one after the other."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from thalweg.connectors.frames import SparkSource
from thalweg.control.learning import Learner
from thalweg.control.rerouting import Tables
from thalweg.errors import ComponentError, SchemaError, ThalwegError
from thalweg.events import Noticed, Progress, RunFinished, RunStarted
from thalweg.execution import Result, Run
from thalweg.runtimes.activity import Activity
from thalweg.runtimes.failpoints import hit
from thalweg.runtimes.making import TaskMaker
from thalweg.runtimes.segments import Entry, SegmentLog
from thalweg.runtimes.spark.asked import Hands, Wishes
from thalweg.runtimes.spark.batches import Done, GivenUp
from thalweg.runtimes.spark.delivery import Delivery
from thalweg.runtimes.spark.engine import Engine
from thalweg.runtimes.spark.executors import elastic
from thalweg.runtimes.spark.frames import Frames
from thalweg.runtimes.spark.inputs import SLICE_ROWS, BatchInput, from_entry
from thalweg.runtimes.spark.kafka_frames import check_way, connected
from thalweg.runtimes.spark.limits import SET_ASIDE
from thalweg.runtimes.spark.planning import Plan, check_movable
from thalweg.runtimes.spark.pools import own_pool
from thalweg.runtimes.spark.pump import Pump
from thalweg.runtimes.spark.rerouting import Learning
from thalweg.runtimes.spark.respreading import Respreading
from thalweg.runtimes.spark.scaling import Parts, Scaler
from thalweg.runtimes.spark.session import session_for
from thalweg.runtimes.spark.settings import AVAILABLE_NOW, SparkSettings
from thalweg.runtimes.spark.starting import check_settings, fall_back, greet, parted
from thalweg.runtimes.spark.tables import OwnFolder
from thalweg.runtimes.spark.tables import Tables as ResultTables
from thalweg.runtimes.spark.ticking import Ticks
from thalweg.runtimes.spark.totals import Totals, batch_done
from thalweg.statelog.delivered import read_mark, write_mark
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import ENDED, LOG
from thalweg.statelog.objects import CorruptRun
from thalweg.statelog.requests import Requests
from thalweg.topology import Topology
from thalweg.watermarks import Silence

_LONGEST_SLEEP = 0.1


def run_on_spark(settings: SparkSettings, topology: Topology, run: Run) -> Result:
    """Run a topology on Spark until its sources end or it is told to stop."""
    with ExitStack() as stack:
        session = stack.enter_context(
            session_for(settings.session, settings.master, topology.name, settings.config)
        )
        pool = stack.enter_context(own_pool(session.sparkContext, topology.name))
        folder = None if settings.state else OwnFolder()
        while True:
            reading = connected(topology, settings, session)
            running = _Running(settings, reading, run, session, folder, pool)
            try:
                return running.run()
            except CorruptRun as error:
                older = fall_back(running.location, error)
                text = f"{error}; going back to version {older.version} and replaying the log"
                run.listen(Noticed(text))


class _Running:
    """One run of a topology."""

    def __init__(
        self,
        settings: SparkSettings,
        topology: Topology,
        run: Run,
        session: Any,
        folder: OwnFolder | None,
        pool: str,
    ) -> None:
        self._settings, self._run, self._folder, self._pool = settings, run, folder, pool
        self._session, self._context = session, session.sparkContext
        root = settings.state if folder is None else folder.path
        self.location = Location.of(root or "")
        self._engine = Engine(
            self._context, settings, topology, self.location, run.settings, self._notice
        )
        self._activity = Activity(run.steering, run.listen)
        self._clock = settings.clock
        self._totals = Totals(self._plan, self._clock)
        self._lock = threading.Lock()
        self._not_before = float("-inf")
        self._went_on = False

    # --- begin and end -----------------------------------------------------------------------

    def run(self) -> Result:
        self._start = self._clock.now()
        if self._settings.scales is not None:
            for component in self._plan.topology:
                check_movable(component)
        self.location.probe()
        check_settings(self._context, self._notice)
        greet(self._context, self.location, self._plan.places)
        self._log = SegmentLog(self.location)
        self._engine.begin(self._log, self._pool)
        locality = self._settings.locality
        rerouter = self._settings.rerouter or (Learner(locality) if locality else None)
        self._learning = Learning(self._engine, rerouter, self._run.listen) if rerouter else None
        self._elastic = elastic(self._settings, self._context, self._engine.anchoring, self._notice)
        maker = TaskMaker(
            self._plan.topology,
            self._clock,
            self._settings.seed,
            self._settings.key_groups,
            self._run,
        )
        self._delivery = Delivery(
            self._plan, maker, self.location, self._session, lasting=self._folder is None
        )
        self._pump = self._make_pump(maker)
        self._respreading = Respreading(self._run.listen)
        self._scaler = self._make_scaler()
        hands = Hands(self._engine, self._learning, self._scaler, self._rebalance, self._notice)
        self._wishes = Wishes(Requests(self.location), self._run.steering, hands, self._lock)
        self._ticks = Ticks(self._plan.topology, self._start)
        self._silence = Silence(self._plan.topology, self._start)
        committed = self._engine.batches.manifest.inputs
        self._frames = Frames(
            self._plan.topology, self._settings, self._on_frame, committed, self._notice
        )
        self._totals.beside = [*self._delivery.counters.values(), *self._pump.counters.values()]
        ended = self._follow()
        snapshot = self._snapshot()
        stopped = self._run.stop.is_set() and not ended
        self._run.listen(RunFinished(snapshot, stopped))
        tables = ResultTables(
            self._plan.topology, self.location, self._engine.batches.manifest, self._folder
        )
        return Result(self._plan.topology.name, snapshot, stopped, tables)

    def _make_pump(self, maker: TaskMaker) -> Pump:
        topology = self._plan.topology
        own = tuple(c for c in topology if not isinstance(c.body, SparkSource))
        stopping = self._run.stop.is_set
        return Pump(
            replace(topology, components=own),
            maker.spouts,
            self._log,
            self._clock,
            self._settings.pump,
            stopping,
        )

    def _make_scaler(self) -> Scaler | None:
        """Make what lets places follow the stream, if that is wanted."""
        how, settings = self._settings.scales, self._settings
        if how is None:
            return None
        parts = Parts(
            self._engine,
            self._pump,
            list(self._delivery.counters.values()),
            self._rebalance,
            self._learning,
            self._elastic,
        )
        most = how.limit("", self._context.defaultParallelism)
        return Scaler(how, most, settings.batch_seconds, parts, self._run.listen)

    def _rebalance(self, places: int, tables: Tables | None = None) -> bool:
        """Go on with another number of places; False when that cannot be."""
        last = self._engine.batches.manifest
        changed = self._engine.rebalance(places, tables)
        if changed:
            self._totals.use(self._plan)
            self._respreading.begin(last, places, f"{places} places in place of {last.places}")
        return changed

    def _follow(self) -> bool:
        """Open everything, run until the end, close everything; True when all sources ended."""
        try:
            self._engine.housekeeping.begin(self._engine.batches.manifest)
            self._delivery.open()
            self._deliver_again()
            self._pump.open(self._engine.batches.manifest.inputs.get(LOG, 0))
            self._check_way()
            self._run.listen(RunStarted(self._plan.topology.name, self._settings.name))
            self._frames.start(self._session)
            ended = self._loop()
            self._frames.stop()
            self._frames.check()
            if ended or self._folder is not None:
                self._end()
            self._pump.give_up()
        except BaseException as error:
            for other in self._close():
                error.add_note(f"while closing: {other}")
            raise
        for problem in self._close():
            raise problem
        return ended

    def _check_way(self) -> None:
        last, committed = self._log.last, self._engine.batches.manifest.inputs
        check_way(self._plan.topology, committed, last.positions if last else ())

    def _close(self) -> list[Exception]:
        errors = self._frames.close()
        with self._lock:  # a batch of a query may still be under way
            if self._learning is not None:
                self._learning.close()
            if self._scaler is not None:
                self._scaler.close()
            if self._elastic is not None:
                self._elastic.close()
            self._engine.close()
            return [*errors, *self._pump.close(), *self._delivery.close()]

    @property
    def _plan(self) -> Plan:
        return self._engine.plan

    def _notice(self, text: str) -> None:
        self._run.listen(Noticed(text))

    def _deliver_again(self) -> None:
        """Deliver what was committed when an earlier run ended before its sinks had it."""
        last = self._engine.batches.manifest
        if last.staged and read_mark(self.location) < last.version:
            self._delivery.deliver(last)
            write_mark(self.location, last.version)

    # --- the loop ----------------------------------------------------------------------------

    def _loop(self) -> bool:
        """Run batches; True when the sources have ended, False when told to stop."""
        pending = self._pump.pending()
        while not self._run.stop.is_set():
            self._frames.check()
            self._wishes.look(self._clock.now())
            if self._clock.now() < self._not_before:
                self._wait()
                continue
            active = self._activity.follow(self._pump.tasks)
            entry = pending.pop(0) if pending else self._pump.pull() if active else None
            self._scale(entry)
            if entry is not None:
                self._run_entry(entry)
                continue
            if self._frames.ended:
                self._frames.check()
                if self._settings.trigger == AVAILABLE_NOW and self._frames.streaming:
                    return False
                if self._pump.finished:
                    return True
            if self._fire_ticks():
                continue
            idle = active and self._frames.ended and self._pump.idle
            if self._settings.trigger == AVAILABLE_NOW and idle:
                return False
            self._wait()
        return False

    def _scale(self, taken: Entry | None) -> None:
        """Let places follow the stream, between two batches."""
        if self._scaler is not None:
            with self._lock:
                self._scaler.look(self._clock.now(), taken)

    def _run_entry(self, entry: Entry) -> None:
        hit("after segment")
        interval, least = self._settings.interval, SLICE_ROWS
        if self._scaler is not None:
            interval, least = max(interval, self._scaler.interval), self._scaler.slice_rows
        self._not_before = self._clock.now() + interval
        with self._lock:
            taken = from_entry(self._context, entry, self._plan.places, least)
            failed = self._run_batch(taken)
        self._pump.committed([entry.number], failed)

    def _on_frame(self, taken: BatchInput) -> None:
        """Run a batch that Structured Streaming drives, unless it was committed before."""
        while not (self._activity.wanted or self._run.stop.wait(_LONGEST_SLEEP)):
            pass
        with self._lock:
            (component, number), *_ = taken.inputs.items()
            committed = self._engine.batches.manifest.inputs.get(component, -1)
            if number == committed + 1:
                self._run_batch(taken)
                if self._scaler is not None:
                    self._scaler.look(self._clock.now())
            elif number != committed:
                raise parted(component, number, committed)

    def _fire_ticks(self) -> bool:
        with self._lock:
            now = self._clock.now()
            due = self._engine.batches.has_due(now, self._silent(now))
            if self._ticks.wait(now) > 0 and not (due or self._activity.early):
                return False
            self._run_batch(BatchInput(clock=now))
            return True

    def _end(self) -> None:
        with self._lock:
            if self._went_on or ENDED not in self._engine.batches.manifest.notes:
                self._run_batch(BatchInput(clock=self._clock.now(), end=True))
            self._delivery.end()

    def _run_batch(self, taken: BatchInput) -> set[int]:
        """Run a batch with the ticks that are due; gives the serials of tuples that failed."""
        if not taken.end:
            silent = self._silent(taken.clock) - taken.tasks
            early = self._activity.take_early(self._plan.topology)
            ticks = self._ticks.due(taken.clock).union(early)
            taken = replace(taken, ticks=ticks, silent=silent)
        self._went_on = self._went_on or taken.lane is not None
        self._begun = time.perf_counter()
        try:
            done = self._engine.batches.run(taken)
        except (ComponentError, SchemaError, GivenUp) as error:
            if self._settings.retries.then != SET_ASIDE or taken.save is None:
                raise
            return self._set_aside(taken, error)
        return self._after(done, taken)

    def _silent(self, now: float) -> frozenset[str]:
        """Give the tasks of sources that keep nobody waiting, though they have not ended."""
        return self._silence.at(now) | self._frames.over | self._pump.unawaited

    def _set_aside(self, taken: BatchInput, error: ThalwegError) -> set[int]:
        """Keep the input of a batch that cannot be processed, and go on behind it."""
        assert taken.save is not None  # noqa: S101 (the caller has looked)
        folder = f"set-aside/{self._engine.batches.manifest.version + 1:012}"
        taken.save(self.location, folder)
        self._engine.batches.skip(taken, str(error))
        if self._scaler is not None:
            self._scaler.failed()
        self._engine.housekeeping.after(self._engine.batches.manifest)
        self._notice(f"{error}\n  its input was set aside in {self.location}/{folder}")
        return set(taken.serials)

    def _after(self, done: Done, taken: BatchInput) -> set[int]:
        """Deliver and report what a batch has committed; gives the serials of what failed."""
        begin = time.perf_counter()
        failed = {serial for note in done.notes for serial in note.failed}
        self._silence.heard((n for note in done.notes for n in note.newest), self._clock.now())
        failed |= self._delivery.deliver(done.manifest, taken.tracked)
        if done.manifest.staged and self._folder is None:
            hit("before delivery mark")
            write_mark(self.location, done.manifest.version)
        delivering = time.perf_counter() - begin
        self._engine.housekeeping.after(done.manifest)
        if self._elastic is not None:
            self._elastic.after(done.manifest, self._scaler.needed if self._scaler else 0)
        self._delivery.tick(taken.ticks)
        self._totals.add(done.notes, done.seconds, done.manifest.hosts)
        self._respreading.after(done)
        if self._learning is not None:
            self._learning.after(done)
        rows = len(taken.serials) or self._totals.entered(done.notes)
        if self._scaler is not None:
            self._scaler.ran(done, rows, time.perf_counter() - self._begun)
        for note in done.notes:
            for said in note.said:
                self._run.listen(said.event())
            for refused in note.refused:
                self._run.listen(refused.event())
            if note.stop:
                self._run.stop.set()
        seconds = time.perf_counter() - self._begun
        self._run.listen(batch_done(done, rows, delivering, seconds))
        self._run.listen(Progress(self._snapshot()))
        return failed

    def _wait(self) -> None:
        now = self._clock.now()
        due = self._engine.batches.next_timer - now
        waits = [self._ticks.wait(now), due if due > 0 else _LONGEST_SLEEP, _LONGEST_SLEEP]
        waits += [self._pump.wait_hint()] if self._activity.active else []
        self._clock.sleep(max(0.0, min(waits)))

    def _snapshot(self) -> Any:
        self._totals.acked, self._totals.failed = self._pump.acked, self._pump.failed
        elapsed = self._clock.now() - self._start
        pending = sum(entry.rows for entry in self._pump.pending())
        return self._totals.snapshot(elapsed, self._engine.batches.manifest, pending)
