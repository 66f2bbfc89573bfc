"""How far sources have been read, and how they go on from there in another run.

A source that gives the same rows again is asked from its beginning, or told to ``resume``; how many
rows it gave is all that is kept. One that knows its position is told to ``seek`` it. What others
give is logged before it enters; after a crash what no snapshot holds comes from the log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from thalweg.clock import Clock
from thalweg.components import BlockSpout
from thalweg.runtimes.failpoints import hit
from thalweg.runtimes.local.beginning import Begun
from thalweg.runtimes.local.committing import Taken
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.positions import (
    POSITIONS,
    Positioned,
    has_position,
    position_of,
    tell_processed,
)
from thalweg.runtimes.segments import Piece, read_block, task_name
from thalweg.runtimes.skipping import Skipping
from thalweg.runtimes.spout_tasks import AnySpoutTask, BlockSpoutTask
from thalweg.runtimes.timing import Reached, said
from thalweg.statelog.manifests import LOG

#: Key of a manifest's notes that names the tasks of spouts that have ended.
FINISHED = "finished"
# Rows that are asked for at once while they are only let go by; seconds to wait for more.
_ROWS, _IDLE = 8192, 0.01


class Replaying:
    """The positions of all spouts of a run."""

    def __init__(
        self, begun: Begun, tasks: Sequence[AnySpoutTask], clock: Clock, stop: threading.Event
    ) -> None:
        self._tasks = {_name(task): task for task in tasks}
        self._clock, self._stop = clock, stop
        self._log, self._entries, last = begun.log, begun.entries, begun.manifest
        #: Rows that have entered, by task, of sources that give them again.
        self._rows = {name: rows for name, rows in last.inputs.items() if name != LOG}
        self._ended = set(last.notes.get(FINISHED, ()))
        self._ended.update(self._log.last.finished if self._log.last else ())
        # Behind its position there may be more by now.
        self._ended -= {name for name, task in self._tasks.items() if has_position(task)}
        #: Where sources are that say so themselves: behind the snapshot, or what only the log has.
        self._positions = dict(last.notes.get(POSITIONS, {}))
        for entry in self._entries:
            named = {task_name(segment.component, segment.task) for segment in entry.segments}
            self._positions |= {
                name: entry.positions[name] for name in named & set(entry.positions)
            }
        self._prepared: list[AnySpoutTask] = []
        #: What sources gave beyond the rows that were let go by.
        self._beyond: list[tuple[AnySpoutTask, Emission]] = []
        #: Says whether nothing of a source waits to enter any more.
        self.ended: Callable[[AnySpoutTask], bool] = lambda task: task.finished
        #: Says how far event time has come with what has entered of a source that knows it.
        self.reached: Reached = said

    def has_ended(self, task: AnySpoutTask) -> bool:
        """Say whether a source had come to its end in an earlier run."""
        return _name(task) in self._ended

    def prepare(self, task: AnySpoutTask) -> None:
        """Prepare a source, and bring it to where it was."""
        if isinstance(task.body, Positioned):
            self._seek(task, task.body)
            return
        rows = self._rows.get(_name(task), 0)
        resume = getattr(task.body, "resume", None)
        skipping = None
        if rows and resume is None and isinstance(task, BlockSpoutTask) and task.body.replays:
            skipping = Skipping(task, rows)
        task.prepare()
        if rows and resume is not None:
            task.call(resume, rows)
        if skipping is not None:
            self._skip(task, skipping)

    def _seek(self, task: AnySpoutTask, body: Positioned) -> None:
        task.prepare()
        if _name(task) in self._positions:
            task.call(body.seek, self._positions[_name(task)])
        self._prepared.append(task)

    def _skip(self, task: AnySpoutTask, skipping: Skipping) -> None:
        while skipping and not self._stop.is_set():
            given = task.pull(skipping.limit(_ROWS))
            self._beyond += [(task, emission) for emission in skipping.behind(given)]
            if not given:  # it may be between two files, or wait for more
                self._clock.sleep(max(task.wait_hint(), 0.0) or _IDLE)
        skipping.end()

    def pending(self) -> Iterator[tuple[AnySpoutTask, Emission]]:
        """Give what has to enter before sources are asked: what only the log has, first."""
        entries, self._entries = self._entries, []
        for segment, logged in [(s, entry) for entry in entries for s in entry.segments]:
            name = task_name(segment.component, segment.task)
            task = self._tasks.get(name)
            if task is not None:
                if isinstance(task, BlockSpoutTask) and name in logged.reached:
                    task.had_reached = logged.reached[name]
                block = read_block(self._log.location, logged.name, segment)
                batch = task.context.shapes[segment.stream].conform(block.batch)
                yield task, Emission(segment.stream, batch, targets=block.targets)
        beyond, self._beyond = self._beyond, []
        for task, emission in beyond:
            self.enter(task, [emission])
            yield task, emission

    def enter(self, task: AnySpoutTask, emissions: Sequence[Emission]) -> None:
        """Hear what is about to enter; rows that would not come again are logged.

        A source that has come to its end says so even with nothing.
        """
        if comes_again(task):
            name, rows = _name(task), sum(emission.batch.num_rows for emission in emissions)
            self._rows[name] = self._rows.get(name, 0) + rows
        elif emissions or self.ended(task):
            hit("before log")
            pieces = [_piece(task, emission) for emission in emissions]
            name, came = _name(task), self.reached(task)
            at = {name: position_of(task)} if has_position(task) else {}
            reached = {} if came is None else {name: came}
            self._log.append(self._clock.now(), pieces, self._logged_ends(), at, reached)
            hit("after log")

    def _logged_ends(self) -> list[str]:
        """Name the tasks that have ended, of those whose rows are logged."""
        logged = {name for name, task in self._tasks.items() if not comes_again(task)}
        return [name for name in self._finished() if name in logged]

    def inputs(self) -> dict[str, int]:
        """Say how far all sources were read."""
        last = self._log.last
        return self._rows | ({LOG: last.number} if last is not None else {})

    def notes(self) -> dict[str, Any]:
        """Name the tasks that have ended, and say where those are that know."""
        self._positions |= {_name(task): position_of(task) for task in self._prepared}
        found = {FINISHED: self._finished()}
        return found | ({POSITIONS: dict(self._positions)} if self._positions else {})

    def _finished(self) -> list[str]:
        return sorted(
            self._ended | {name for name, task in self._tasks.items() if self.ended(task)}
        )

    def committed(self, taken: Taken) -> None:
        """Delete what a snapshot holds from the log, and tell sources how far it goes."""
        self._log.forget(taken.inputs.get(LOG, 0))
        positions = taken.notes.get(POSITIONS, {})
        for task in self._prepared:
            if _name(task) in positions:
                tell_processed(task, positions[_name(task)])


def _name(task: AnySpoutTask) -> str:
    return task_name(task.component.name, task.context.task)


def _piece(task: AnySpoutTask, emission: Emission) -> Piece:
    context, batch = task.context, emission.batch
    return Piece(context.component, context.task, batch, emission.stream, emission.targets)


def comes_again(task: AnySpoutTask) -> bool:
    """Say whether a source can be brought to where it was: by a number of rows, or a position."""
    if task.component.options.overflow not in (None, "block"):
        return False  # some of its rows are dropped
    body = task.body
    known = hasattr(body, "resume") or isinstance(body, Positioned)
    return known or (isinstance(body, BlockSpout) and body.replays)
