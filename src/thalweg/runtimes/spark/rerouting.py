"""Gives the rerouter of a run what batches were like, and does what it decides."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from thalweg.control.achieved import Achieved
from thalweg.control.differences import Moved, difference
from thalweg.control.keyview import KeyView
from thalweg.control.learning import Learner, in_words
from thalweg.control.locality import NoChange, Reroute
from thalweg.control.rerouting import Cost, Ends, Rerouter, Rerouting, Seen, Tables
from thalweg.errors import ThalwegError
from thalweg.events import Event, Noticed, Reconfigured
from thalweg.migration.report import Report
from thalweg.runtimes.spark.batches import Done
from thalweg.runtimes.spark.engine import Engine, Prepared
from thalweg.runtimes.spark.notes import Note
from thalweg.runtimes.spark.totals import state_size
from thalweg.sketches.pairs import PairCounts, merged

#: Pairs of one link of one batch that are looked at.
_MOST = 1 << 20
#: Batches that say what is usual.
_USUAL = 20
_Decided = tuple[Rerouting, Prepared, Moved]


@dataclass
class _Underway:
    """A reconfiguration whose keys are on their way, or have just arrived."""

    wanted: Rerouting
    steps: int
    moved: Moved
    #: Median seconds of the batches before it.
    usual: float
    keys: int = 0
    bytes: int = 0
    longest: float = 0.0
    #: What was seen from the first batch behind the last step on, its epoch, and the last clock.
    achieved: Achieved | None = None
    epoch: int = 0
    clock: float = 0.0

    def note(self, seen: Seen) -> None:
        self.keys += seen.moved_keys
        self.bytes += seen.moved_bytes
        self.longest = max(self.longest, seen.seconds)

    def is_known(self, epoch: int, seen: Seen) -> bool:
        """Say whether batches show what has come of it, or that was waited for long enough."""
        self.achieved = self.achieved or Achieved(seen.clock)
        self.achieved.note(seen)
        self.epoch, self.clock = epoch, seen.clock
        return self.achieved.is_known(seen.clock)

    def report(self, tables: Tables) -> Report:
        return Report(
            epoch=self.epoch,
            reason=self.wanted.reason,
            keys=self.keys,
            bytes=self.bytes,
            steps=self.steps,
            pause=max(0.0, self.longest - self.usual),
            before=self.wanted.before,
            predicted=self.wanted.predicted,
            after=None if self.achieved is None else self.achieved.score(tables),
            ago=0.0 if self.achieved is None else self.clock - self.achieved.over,
        )


class Learning:
    """Stands between the batches and a rerouter."""

    def __init__(self, engine: Engine, rerouter: Rerouter, listen: Callable[[Event], None]) -> None:
        self._engine, self._rerouter, self._listen = engine, rerouter, listen
        self._seconds: deque[float] = deque(maxlen=_USUAL)
        self._view = KeyView(time.perf_counter)
        self._underway: _Underway | None = None
        #: The last decision when somebody asked for another, and who wants to know it.
        self._waits: tuple[Reroute | NoChange | None, Callable[[str], None]] | None = None
        engine.batches.sampling = rerouter.sampling
        self._waiting: list[Seen] = []
        self._deciding: Future[_Decided | str | None] | None = None
        self._beside: ThreadPoolExecutor | None = None
        #: Whether tables are being made for another number of places.
        self._replanning = False
        if getattr(rerouter, "takes_time", False):
            self._beside = ThreadPoolExecutor(1, "thalweg-learning")

    def after(self, done: Done) -> None:
        """Tell of a batch, and reroute if that is decided."""
        engine = self._engine
        moving = engine.batches.tabled is not None and engine.batches.tabled.pending
        seen, tables = self._seen(done, moving), engine.tables()
        self._follow(done.manifest.epoch, seen, tables)
        self._show(done, seen, tables)
        self._waiting.append(seen)
        if self._replanning:  # what is decided for the places that there are would come too late
            return
        if self._beside is None:
            self._take(self._decide(self._waiting, tables))
            self._waiting = []
        elif self._deciding is None or self._deciding.done():
            if self._deciding is not None:
                self._take(self._deciding.result())
            self._deciding = self._beside.submit(self._decide, self._waiting, engine.tables())
            self._waiting = []

    def replan(self, places: int) -> Future[Tables | None] | None:
        """Let tables be made for another number of places; None where nobody can.

        Nothing else is decided until :meth:`resume` is called.
        """
        rerouter, tables = self._rerouter, self._engine.fitting(places)
        if self._beside is None or not isinstance(rerouter, Learner):
            return None
        self._tell(self._engine.tables())
        self._replanning = True

        def made() -> Tables | None:
            found = rerouter.replanned(tables)
            return None if found is None else found.tables

        return self._beside.submit(made)

    def resume(self) -> None:
        """Go on with the number of places that there is now."""
        self._replanning = False

    def close(self) -> None:
        """Wait for a decision that is being made; whoever waits for it hears that it is over."""
        if self._beside is not None:
            self._beside.shutdown(wait=True, cancel_futures=True)
        self._tell(self._engine.tables())
        if self._waits is not None:
            self._waits[1]("no change: the run has ended")
            self._waits = None

    def _decide(self, waiting: list[Seen], tables: Tables) -> _Decided | str | None:
        """Let the rerouter look at batches, the newest last, and prepare what it decides."""
        decided = None
        for seen in waiting:
            decided = self._rerouter.after(seen, tables)
            if decided is not None:
                break
        if decided is None or waiting[-1].moving:
            return None
        try:
            return decided, self._engine.prepare(decided), _moved(decided, tables)
        except ThalwegError as error:
            return f"keys stay where they are: {error}"

    def _take(self, found: _Decided | str | None) -> None:
        """Do what was decided, from the next batch on."""
        self._answer()
        tables = self._engine.tables()
        self._engine.batches.sampling = self._rerouter.sampling
        if isinstance(found, str):
            self._listen(Noticed(found))
        elif found is not None and self._engine.use(found[1]):
            self._tell(tables)
            usual = statistics.median(self._seconds) if self._seconds else 0.0
            self._underway = _Underway(found[0], found[1].plan.steps, found[2], usual)
            self._view.want(found[2].counted)

    def ask(self, always: bool, answer: Callable[[str], None]) -> bool:
        """Let the rerouter decide after the next batch; False when it is not one to be asked."""
        if not isinstance(self._rerouter, Learner):
            return False
        self._rerouter.ask(always)
        self._waits = self._rerouter.last, answer
        return True

    def _answer(self) -> None:
        """Tell who has asked what was decided."""
        if self._waits is None or not isinstance(self._rerouter, Learner):
            return
        before, answer = self._waits
        last = self._rerouter.last
        if last is not None and last is not before:
            self._waits = None
            answer(f"{'rerouting' if isinstance(last, Reroute) else 'no change'}: {in_words(last)}")

    def _follow(self, epoch: int, seen: Seen, tables: Tables) -> None:
        """Add a batch to the report, or give it with a batch behind the last step."""
        if self._underway is None:
            self._seconds.append(seen.seconds)
        elif seen.moving or seen.moved_keys:
            self._underway.note(seen)
        elif self._underway.is_known(epoch, seen):
            self._tell(tables)

    def _tell(self, tables: Tables) -> None:
        """Tell what a reconfiguration has come to, if it is over and was not told yet."""
        known = self._underway
        if known is not None and known.achieved is not None:
            self._underway = None
            report, made = known.report(tables), known.moved.named(self._view.names)
            self._listen(Reconfigured(report.text(), msgspec.to_builtins(report), made))

    def _show(self, done: Done, seen: Seen, tables: Tables) -> None:
        """Tell now and then which keys are frequent, and ask for the names of those."""
        for note in done.notes:
            self._view.name(note.names)
        told = self._view.note(seen.clock, seen.pairs, tables, self._rerouter.sampling)
        if told is not None:
            self._listen(told)
        self._engine.batches.unnamed = self._view.unnamed

    def _seen(self, done: Done, moving: bool) -> Seen:
        notes, manifest = done.notes, done.manifest
        sent: dict[str, tuple[int, int]] = {}
        for counts in (counts for note in notes for counts in note.counts):
            size, rows = sent.get(counts.component, (0, 0))
            sent[counts.component] = size + counts.shuffled_bytes, rows + counts.shuffled
        sizes = {name: state_size(name, manifest) for name in manifest.topology}
        return Seen(
            clock=manifest.clock,
            seconds=done.seconds,
            pairs=_pairs(notes),
            work=sum(note.seconds for note in notes),
            counting=sum(note.pairing for note in notes),
            sent=sent,
            state={name: (size, keys) for name, (keys, size) in sizes.items()},
            moved_keys=sum(note.moved_keys for note in notes),
            moved_bytes=sum(note.moved_bytes for note in notes),
            moving=moving,
        )


def _moved(wanted: Rerouting, old: Tables) -> Moved:
    """Compare tables; here only keys that have a place of their own are known."""
    before = {name: old[name] for name in wanted.tables}
    costs = ((name, wanted.costs.get(name, Cost())) for name in before)
    held = {name: cost.held(before[name], wanted.tables[name]) for name, cost in costs}
    return difference(before, wanted.tables, held)


def _pairs(notes: Iterable[Note]) -> dict[Ends, PairCounts]:
    found: dict[Ends, list[PairCounts]] = {}
    for note in notes:
        for sender, by_reader in note.pairs.items():
            for reader, data in by_reader.items():
                found.setdefault((sender, reader), []).append(PairCounts.from_bytes(data))
    return {ends: merged(parts, _MOST) for ends, parts in found.items()}
