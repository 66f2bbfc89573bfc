"""Gives the rerouter of a run what was seen since it was asked last, and does what it decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import msgspec

from thalweg.clock import Clock
from thalweg.control.achieved import Achieved
from thalweg.control.keyview import KeyView
from thalweg.control.learning import Learner, in_words
from thalweg.control.links import comparable, parted
from thalweg.control.locality import NoChange, Reroute
from thalweg.control.rerouting import Ends, Rerouter, Rerouting, Seen, Tables
from thalweg.errors import ThalwegError
from thalweg.events import Event
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.local.pairs import Pairs
from thalweg.runtimes.local.reconfiguring import Change, Reconfiguring

#: Said to who asks for a decision where nobody can make one.
NOBODY = "nobody learns which keys occur together (locality=...)"
# Seconds between two looks, where decisions are made beside the stream.
_EVERY = 0.2


class Learning:
    """Stands between the tasks and a rerouter; called by the thread that runs the topology."""

    def __init__(
        self,
        rerouter: Rerouter,
        changing: Reconfiguring,
        pairs: Pairs,
        clock: Clock,
        notice: Callable[[str], None],
    ) -> None:
        self._rerouter, self._changing, self._pairs = rerouter, changing, pairs
        self._clock, self._notice = clock, notice
        self._busy, self._looked = 0.0, time.perf_counter()
        #: Hears which keys are frequent.
        self.listen: Callable[[Event], None] = lambda _event: None
        self._view = KeyView(time.perf_counter)
        #: The last decision when somebody asked for another, and who wants to know it.
        self._waits: list[tuple[Reroute | NoChange | None, Callable[[str], None]]] = []
        self._entered = False
        #: Between whom pairs were counted, ever.
        self._ends: set[Ends] = set()
        #: What was seen since the last reconfiguration, as long as it was not told.
        self._achieved = Achieved(0.0)
        changing.untold = self._tell
        #: Degrees that are wanted, and whether tables are being made for them.
        self._wanted: Change | None = None
        self._fitting = False
        self._deciding: Future[Rerouting | None] | None = None
        self._beside: ThreadPoolExecutor | None = None
        if getattr(rerouter, "takes_time", False):
            self._beside = ThreadPoolExecutor(1, "thalweg-learning")
        pairs.count(rerouter.sampling)

    def entered(self) -> None:
        """Note that a block of a source has come."""
        self._entered = True

    def look(self, busy: float) -> None:
        """Ask the rerouter, if something has come; ``busy`` is how long tasks have worked."""
        now = time.perf_counter()
        if self._beside is None:
            if self._entered:
                tables = self._tables()
                self._take(self._rerouter.after(self._seen(busy, now, tables), tables))
        elif self._deciding is not None:
            if self._deciding.done():
                decided, self._deciding = self._deciding.result(), None
                if self._fitting:
                    self._rescaled(decided)
                else:
                    self._take(decided)
        elif self._wanted is not None:
            self._fit(self._wanted, self._beside)
        elif self._entered and now - self._looked >= _EVERY:
            tables = self._tables()
            seen = self._seen(busy, now, tables)
            self._deciding = self._beside.submit(self._rerouter.after, seen, tables)

    @property
    def rescaling(self) -> bool:
        """Whether tables are being made for other degrees."""
        return self._wanted is not None

    def rescale(self, change: Change) -> None:
        """Change degrees; keys that occur together get tables that fit, so that all move once."""
        if self._beside is None or not isinstance(self._rerouter, Learner):
            self._changing.begin(change)
        else:
            self._wanted = change

    def parted(self, degrees: Mapping[str, int]) -> str:
        """Say whose keys are not brought together with these degrees; empty where all are."""
        tables = self._changing.tables
        wanted = {n: RoutingTable.even(degrees.get(n, t.places)) for n, t in tables.items()}
        return parted(sorted(self._ends), wanted)

    def ask(self, always: bool, answer: Callable[[str], None]) -> None:
        """Let the rerouter decide when it looks next; what it says is answered."""
        if not isinstance(self._rerouter, Learner):
            answer(NOBODY)
            return
        self._rerouter.ask(always)
        self._waits.append((self._rerouter.last, answer))

    def _answer(self) -> None:
        """Tell who has asked what was decided."""
        last = self._rerouter.last if isinstance(self._rerouter, Learner) else None
        if last is None:
            return
        text = f"{'rerouting' if isinstance(last, Reroute) else 'no change'}: {in_words(last)}"
        for _, answer in (waits for waits in self._waits if waits[0] is not last):
            answer(text)
        self._waits = [waits for waits in self._waits if waits[0] is last]

    def close(self) -> None:
        """Wait for a decision that is being made."""
        if self._beside is not None:
            self._beside.shutdown(wait=True, cancel_futures=True)
        self._tell()
        if self._wanted is not None:
            self._wanted.answer("nothing changes: the run has ended")
        for _, answer in self._waits:
            answer("no change: the run has ended")

    def _fit(self, change: Change, beside: ThreadPoolExecutor) -> None:
        """Let tables be made for other degrees, when nothing else is under way."""
        if self._changing.active or not isinstance(self._rerouter, Learner):
            return
        degrees = change.degrees
        tables = {
            name: table.resized(degrees.get(name, table.places), sharing=False)
            for name, table in self._changing.tables.items()
        }
        self._fitting = True
        self._deciding = beside.submit(self._rerouter.replanned, comparable(tables))

    def _rescaled(self, made: Rerouting | None) -> None:
        """Change degrees with the tables that were made, or with those that are there."""
        change, self._wanted, self._fitting = self._wanted, None, False
        assert change is not None  # noqa: S101 (it was asked for)
        if made is not None:
            change = replace(change, tables=made.tables, costs=made.costs)
        try:
            self._changing.begin(change)
        except ThalwegError as error:
            self._notice(f"degrees stay as they are: {error}")
            change.answer(f"nothing changes: {error}")

    def _take(self, decided: Rerouting | None) -> None:
        """Do what was decided."""
        self._answer()
        self._pairs.count(self._rerouter.sampling)
        if decided is None or self._changing.active:
            return
        try:
            self._changing.begin(Change.rerouting(decided))
        except ThalwegError as error:
            self._notice(f"keys stay where they are: {error}")

    def _tables(self) -> Tables:
        """Give the tables that can be compared: those of components with the most tasks."""
        return comparable(self._changing.tables)

    def _seen(self, busy: float, now: float, tables: Tables) -> Seen:
        burst = self._pairs.burst
        found, counting = self._pairs.take()
        self._ends |= found.keys()
        counts = {ends: pairs for ends, pairs in found.items() if set(ends) <= tables.keys()}
        work, self._busy = busy - self._busy, busy
        seconds, self._looked = now - self._looked, now
        self._entered = False
        keys, size = self._changing.take_moved()
        seen = Seen(
            clock=self._clock.now(),
            seconds=seconds,
            pairs=counts,
            work=work,
            counting=counting,
            state=self._changing.sizes(),
            moved_keys=keys,
            moved_bytes=size,
            moving=self._changing.active,
            burst=burst,
        )
        self._show(seen, tables)
        self._report(seen, tables)
        return seen

    def _show(self, seen: Seen, tables: Tables) -> None:
        """Tell now and then which keys are frequent, and ask for the names of those."""
        if not seen.pairs:
            return
        view, naming = self._view, self._pairs.naming
        view.name(naming.take())
        told = view.note(seen.clock, seen.pairs, tables, self._rerouter.sampling, seen.burst)
        moving = self._changing.counted
        if told is not None or moving:
            view.want(moving)
            naming.want(view.unnamed)
        if told is not None:
            self.listen(told)

    def _report(self, seen: Seen, tables: Tables) -> None:
        """Tell what a reconfiguration has come to, when it is over and enough was seen since.

        Where that takes long, or another one begins, it is told with what there is.
        """
        if self._changing.active or seen.moved_keys or not self._changing.has_report:
            self._achieved = Achieved(seen.clock)
            return
        self._achieved.note(seen)
        if self._rerouter.sampling <= 0 or self._achieved.is_known(seen.clock):
            self._tell()

    def _tell(self) -> None:
        """Tell what the last reconfiguration has come to, if that was not told yet."""
        report = self._changing.take_report()
        if report is not None:
            after = self._achieved.score(self._tables())
            self._changing.tell(msgspec.structs.replace(report, after=after), self._view.names)
            self._achieved = Achieved(self._clock.now())
