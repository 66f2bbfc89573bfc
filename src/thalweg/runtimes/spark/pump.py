"""The pump: asks spouts for tuples beside the driver, and logs what they give.

What a micro-batch processes comes from the log alone. After a crash the entries that were not
committed are processed again, and the spouts go on behind all that is logged.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from thalweg.clock import Clock
from thalweg.components import AT_ONCE
from thalweg.errors import StateError, UsageError, explain
from thalweg.eventtime import NEVER
from thalweg.metrics import Counter
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.positions import Positioned, has_position, position_of, tell_processed
from thalweg.runtimes.segments import Entry, Piece, SegmentLog, read_block, task_name
from thalweg.runtimes.skipping import Skipping
from thalweg.runtimes.spout_tasks import AnySpoutTask, BlockSpoutTask
from thalweg.topology import Component, Topology

#: Makes the tasks of a spout; see ``TaskMaker.spouts``.
MakeTasks = Callable[[Component, Counter], list[AnySpoutTask]]


@dataclass(frozen=True)
class PumpSettings:
    """How much is asked of spouts at a time."""

    #: Rows of an entry after which no spout is asked any more.
    rows: int = 200_000
    #: Rows that are asked of a spout at once.
    block_rows: int = 4096
    #: Seconds of an entry after which no spout is asked any more.
    seconds: float = 0.5
    #: Seconds to wait when no spout has anything and none says when to ask again.
    idle: float = 0.01
    #: Nothing is asked while more entries than these are not committed.
    pending_entries: int = 4

    def __post_init__(self) -> None:
        least_of = {"rows": 1, "block_rows": 1, "seconds": 0, "idle": 0, "pending_entries": 0}
        for name, least in least_of.items():
            value = getattr(self, name)
            if not value >= least:  # also nan
                raise UsageError(explain(name, expected=f"at least {least}", got=str(value)))


# Rows that a spout is asked for at first.
_FIRST_ROWS = 16


def _never() -> bool:
    return False


@dataclass(frozen=True)
class _Tracked:
    """A row that was sent with an id and has not ended."""

    serial: int
    task: AnySpoutTask
    id: Any


class Pump:
    """Asks the spouts of a topology in turn, in one thread; ``stopping`` ends a round early."""

    def __init__(
        self,
        topology: Topology,
        make_tasks: MakeTasks,
        log: SegmentLog,
        clock: Clock,
        settings: PumpSettings | None = None,
        stopping: Callable[[], bool] = _never,
    ) -> None:
        self._topology = topology
        self._make_tasks = make_tasks
        self._log = log
        self._clock = clock
        self._settings = settings or PumpSettings()
        self._stopping = stopping
        #: Counts of each spout, by name.
        self.counters = {c.name: Counter(c.name, c.degree) for c in topology.spouts}
        #: Tuples with an id that have ended, well and badly.
        self.acked = 0
        self.failed = 0
        self._tasks: list[AnySpoutTask] = []
        self._opened: list[AnySpoutTask] = []
        self._turns: deque[AnySpoutTask] = deque()
        self._skipping: dict[AnySpoutTask, Skipping] = {}
        #: Where tasks were when an earlier run was cut off, of those that say so themselves.
        self._positions: dict[str, Any] = {}
        #: How far tasks say that event time has come, as it is logged.
        self._reached: dict[str, int] = {}
        #: Tasks that have ended: logged, and not logged yet.
        self._ended: set[str] = set()
        self._ending: set[str] = set()
        #: Sent but not logged yet, in order.
        self._waiting: list[tuple[AnySpoutTask, Emission]] = []
        self._entries: dict[int, Entry] = {}
        self._tracked: dict[int, list[_Tracked]] = {}
        self._failure: Exception | None = None
        #: Whether nobody had anything when the spouts were asked last.
        self.idle = False
        #: How many rows each task is asked for at once: more and more, unless it is slow.
        self._sizes: dict[AnySpoutTask, int] = {}
        #: Rows of the next entries, where fewer are wanted than the settings allow.
        self.most_rows: int | None = None
        #: Rows that were logged, by spout and stream.
        self.sent: dict[tuple[str, str], int] = {}
        #: Rows that each task gave when it was asked last, where it then had more.
        self._more: dict[AnySpoutTask, int] = {}

    # --- begin and end -----------------------------------------------------------------------

    def open(self, committed: int = 0) -> None:
        """Bring the spouts to where the log ends; ``committed`` is the last entry that is done.

        Spouts that have ended are left alone. Call :meth:`close` also when this raises.
        """
        entries = self._log.after(committed)
        last = self._log.last
        totals: dict[str, int] = last.totals if last else {}
        self._positions = dict(last.positions) if last else {}
        self._ended = set(last.finished if last else ())
        made = [
            t for c in self._topology.spouts for t in self._make_tasks(c, self.counters[c.name])
        ]
        self._learn(entries, made)
        # Behind its position there may be more by now.
        self._ended -= {_name(task) for task in made if has_position(task)}
        self._tasks = [task for task in made if _name(task) not in self._ended]
        for task in self._tasks:
            self._prepare(task, totals.get(_name(task), 0))
        for task in self._tasks:
            task.start()
        self._turns.extend(self._tasks)

    def _learn(self, entries: list[Entry], tasks: list[AnySpoutTask]) -> None:
        """Take in entries of an earlier run: what they count, and types learnt from their rows."""
        shapes = {task.component.name: task.context.shapes for task in tasks}
        for entry in entries:
            for segment in entry.segments:
                if segment.component not in shapes:
                    continue
                self.counters[segment.component].emitted += segment.rows
                self._count(segment.component, segment.stream, segment.rows)
                shape = shapes[segment.component].get(segment.stream)
                if shape is not None and None in shape.types:
                    shape.conform(read_block(self._log.location, entry.name, segment).batch)
            self._entries[entry.number] = _untracked(entry)

    def _prepare(self, task: AnySpoutTask, sent: int) -> None:
        """Prepare a task that had sent so many rows; it goes on behind them if it can."""
        if isinstance(task.body, Positioned):
            self._opened.append(task)
            task.prepare()
            if _name(task) in self._positions:
                task.call(task.body.seek, self._positions[_name(task)])
            return
        resume = getattr(task.body, "resume", None)
        if sent and resume is None and isinstance(task, BlockSpoutTask) and task.body.replays:
            self._skipping[task] = Skipping(task, sent)
        self._opened.append(task)
        task.prepare()
        if sent and resume is not None:
            task.call(resume, sent)

    def give_up(self) -> None:
        """End the run: spouts pause, and all that is open fails."""
        self._turns.clear()
        for task in self._tasks:
            task.stop()
        tracked, self._tracked = self._tracked, {}
        for row in (row for rows in tracked.values() for row in rows):
            self._tell(row, ok=False)  # what it sends in answer comes too late for this run

    def close(self) -> list[Exception]:
        """Close every task that was opened, also when one of them raises; give what they raised."""
        errors: list[Exception] = []
        for skipping in self._skipping.values():
            skipping.end()
        while self._opened:
            try:
                self._opened.pop().close()
            except Exception as error:
                errors.append(error)
        return errors

    @property
    def tasks(self) -> Sequence[AnySpoutTask]:
        """The tasks that are asked."""
        return self._tasks

    @property
    def unawaited(self) -> frozenset[str]:
        """The tasks that have nothing to read, so that event time does not wait for them."""
        return frozenset(_name(task) for task in self._tasks if not task.awaited)

    @property
    def finished(self) -> bool:
        """Whether all spouts have ended, that is logged, and everything is committed."""
        ended = all(_name(task) in self._ended for task in self._tasks)
        return ended and not self._entries and not self._waiting and self._failure is None

    # --- asking ------------------------------------------------------------------------------

    def pending(self) -> list[Entry]:
        """Give the entries that are logged but not committed, oldest first."""
        return list(self._entries.values())

    def pull(self) -> Entry | None:
        """Ask the spouts in turn, and log what came; None when there is nothing now.

        An entry without rows says that a spout has ended, or that event time goes on. An error of a
        spout is raised when all that came before it is committed.
        """
        full = len(self._entries) > self._settings.pending_entries
        entry = None if full or self._failure else self._ask_and_log()
        if self._failure is not None and not self._entries:
            raise self._failure
        return entry

    def _ask_and_log(self) -> Entry | None:
        try:
            self._ask_in_turn()
        except Exception as error:
            self._failure = error
        return self._write() if self._waiting or self._ending or self._goes_on() else None

    def _times(self) -> dict[str, int]:
        """Give how far tasks say that event time has come with all that they gave."""
        return {_name(task): task.reached for task in self._tasks if task.reached is not None}

    def _goes_on(self) -> bool:
        """Say whether event time goes on though nothing came: the end of a partition was seen."""
        return any(at > self._reached.get(name, NEVER) for name, at in self._times().items())

    def _ask_in_turn(self) -> None:
        """Go round until there is enough, the time is over, or nobody has anything."""
        settings, turns = self._settings, self._turns
        until = self._clock.now() + settings.seconds
        rows = sum(emission.batch.num_rows for _, emission in self._waiting)
        most = settings.rows if self.most_rows is None else min(settings.rows, self.most_rows)
        idle, before = 0, self._more
        self._more = {}
        while idle < len(turns) and rows < most and not self._stopping():
            task = turns.popleft()
            if not task.finished:  # it may have ended in answer to an ack
                given, new = self._ask(task, None if self.most_rows is None else most - rows)
                rows += new
                self._more[task] = self._more.get(task, 0) + given if given else 0
                idle = 0 if given or task.finished or _more_at_once(task) else idle + 1
            if task.finished:
                self._ending.add(_name(task))
            else:
                turns.append(task)
            if self._clock.now() >= until:
                break
        self.idle = idle >= len(turns)
        # Who was not asked this time has what it had.
        self._more = before | self._more

    def _ask(self, task: AnySpoutTask, room: int | None = None) -> tuple[int, int]:
        """Ask a spout once; give how many rows came, and how many of them are new."""
        skipping = self._skipping.get(task)
        limit = min(self._sizes.get(task, _FIRST_ROWS), self._settings.block_rows)
        limit = limit if room is None else min(limit, room)
        begin = time.perf_counter()
        emissions = task.pull(limit if skipping is None else skipping.limit(limit))
        took = time.perf_counter() - begin
        self.counters[task.component.name].busy += took
        given = _rows(emissions)
        if given:
            self._sizes[task] = _next_size(limit, took, self._settings.seconds)
        if skipping:
            emissions = skipping.behind(emissions)
        self._waiting += [(task, emission) for emission in emissions]
        return given, _rows(emissions)

    def backlog(self) -> dict[str, int]:
        """Say how many rows each spout holds that were not logged yet.

        One that has more, but does not say how much, counts with as many as it gave last.
        """
        found = dict.fromkeys(self.counters, 0)
        for task in self._turns:
            tell = getattr(task.body, "backlog", None)
            known = None if tell is None or task.finished else task.call(tell)
            found[task.component.name] += self._more.get(task, 0) if known is None else known
        return found

    def wait_hint(self) -> float:
        """Give the seconds after which it is worth asking again."""
        idle = self._settings.idle
        if self._waiting:
            return 0.0
        active = [task for task in self._tasks if not task.finished]
        return min((max(task.wait_hint(), 0.0) or idle for task in active), default=idle)

    def _write(self) -> Entry:
        """Log what waits, and remember the ids; they live in memory only."""
        pieces = [_piece(task, emission) for task, emission in self._waiting]
        ended = self._ended | self._ending
        at = {_name(task): position_of(task) for task in self._tasks if has_position(task)}
        self._reached = self._times()
        entry = self._log.append(self._clock.now(), pieces, sorted(ended), at, self._reached)
        self._entries[entry.number] = entry
        self._tracked[entry.number] = list(self._ids(entry))
        for piece in pieces:
            self.counters[piece.component].emitted += piece.batch.num_rows
            self._count(piece.component, piece.stream, piece.batch.num_rows)
        given = dict.fromkeys(task for task, _ in self._waiting)
        self._waiting, self._ended, self._ending = [], ended, set()
        for task in given:
            task.taken_in()
        return entry

    def _count(self, spout: str, stream: str, rows: int) -> None:
        self.sent[spout, stream] = self.sent.get((spout, stream), 0) + rows

    def _ids(self, entry: Entry) -> Iterator[_Tracked]:
        serial = entry.next_serial - entry.rows
        for task, emission in self._waiting:
            for row, id_ in enumerate(emission.ids or ()):
                if id_ is not None:
                    yield _Tracked(serial + row, task, id_)
            serial += emission.batch.num_rows

    # --- telling -----------------------------------------------------------------------------

    def committed(self, entry_numbers: Collection[int], failed: Collection[int] = ()) -> None:
        """Hear that the oldest entries are done, and tell the spouts.

        Rows whose serial number is in ``failed`` fail, the others are acknowledged. What spouts
        send in answer is logged with the next entry.
        """
        numbers, bad = sorted(entry_numbers), frozenset(failed)
        oldest = list(self._entries)[: len(numbers)]
        if numbers != oldest:
            raise StateError(
                explain("committed entries", expected=f"the oldest: {oldest}", got=str(numbers))
            )
        done = [row for number in numbers for row in self._tracked.pop(number, ())]
        newest = [self._entries.pop(number) for number in numbers][-1:]
        for task in self._tasks if newest else ():
            if _name(task) in newest[0].positions:
                tell_processed(task, newest[0].positions[_name(task)])
        for row in done:
            for emission in self._tell(row, ok=row.serial not in bad):
                self._waiting.append((row.task, emission))

    def _tell(self, row: _Tracked, ok: bool) -> list[Emission]:
        self.acked += ok
        self.failed += not ok
        return row.task.completed(row.id, ok)


def _name(task: AnySpoutTask) -> str:
    return task_name(task.component.name, task.context.task)


def _more_at_once(task: AnySpoutTask) -> bool:
    """Say whether a spout that gave nothing has more: it is between two files, say."""
    return task.wait_hint() == AT_ONCE


def _next_size(size: int, took: float, seconds: float) -> int:
    """Choose how many rows to ask for next, so that one question never takes long.

    >>> _next_size(16, took=0.001, seconds=0.5), _next_size(64, took=3.2, seconds=0.5)
    (64, 5)
    """
    if took <= seconds / 8:
        return size * 4
    return max(1, int(size * seconds / 2 / took)) if took > seconds / 2 else size


def _rows(emissions: list[Emission]) -> int:
    return sum(emission.batch.num_rows for emission in emissions)


def _piece(task: AnySpoutTask, emission: Emission) -> Piece:
    return Piece(
        component=task.component.name,
        task=task.context.task,
        batch=emission.batch,
        stream=emission.stream,
        targets=emission.targets,
        tracked=emission.ids is not None,
    )


def _untracked(entry: Entry) -> Entry:
    """Nobody knows the ids of an earlier run."""
    segments = tuple(msgspec.structs.replace(segment, tracked=False) for segment in entry.segments)
    return msgspec.structs.replace(entry, segments=segments)
