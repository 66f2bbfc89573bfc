"""Tracks tuples that spouts emitted with an id, from block to block, and tells the spouts."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from thalweg.acking import Acker, Completed, Roots
from thalweg.blocks import Block
from thalweg.errors import UsageError, explain
from thalweg.groupings import All
from thalweg.metrics import Tally
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.topology import Component, Input


def check_times(ack_timeout: float, idle: float) -> None:
    """Refuse what is no time, for runtimes that follow tuples."""
    if not isinstance(ack_timeout, int | float) or not ack_timeout > 0:
        expected = "seconds above 0, or math.inf for no end"
        raise UsageError(explain("ack_timeout", "", expected, repr(ack_timeout)))
    if not isinstance(idle, int | float) or not 0 <= idle < math.inf:
        raise UsageError(explain("idle", "", "seconds from 0 on", repr(idle)))


class Processed(Protocol):
    """A task that has processed a block."""

    #: Rows of it that failed, and rows that the task keeps.
    failed_rows: set[int]
    kept_rows: set[int]

    @property
    def tally(self) -> Tally:
        """Where they are counted."""


#: A tuple of a spout that has ended: whose, its id, whether well, and seconds since it was emitted.
Ended = tuple[AnySpoutTask, Any, bool, float]


class Tracker:
    """The acker of a run, with the spout task and id behind each root."""

    def __init__(self, timeout: float, acking: bool = True) -> None:
        self._acker, self._acking = Acker(timeout), acking
        self._owners: dict[int, tuple[AnySpoutTask, Any, float]] = {}
        self._completed: list[Completed] = []
        #: Tuples of each spout task that have not ended, or of which it has not heard.
        self._pending: Counter[AnySpoutTask] = Counter()
        self.acked = 0
        self.failed = 0

    def __len__(self) -> int:
        return len(self._acker)

    @property
    def counts(self) -> bool:
        """Whether something may be under way, be it of tuples that have failed."""
        return self._acker.counts

    @property
    def idle(self) -> bool:
        """Whether no tuple is open, and there is nothing to tell anybody."""
        return not len(self._acker) and not self._completed

    def room(self, task: AnySpoutTask) -> int:
        """Say how many tuples more a spout task may have open."""
        most = task.component.options.max_pending
        return sys.maxsize if most is None else most - self._pending[task]

    def opened(self, task: AnySpoutTask) -> int:
        """Say how many tuples of a spout task are open."""
        return self._pending[task]

    def open(self, task: AnySpoutTask, ids: Sequence[Any], now: float) -> list[Roots] | None:
        """Begin a root for each tuple that has an id; None where nobody acknowledges."""
        roots = self._begin(task, ids, now)
        if self._acking:
            return roots
        self.unread(roots)
        return None

    def _begin(self, task: AnySpoutTask, ids: Sequence[Any], now: float) -> list[Roots]:
        roots: list[Roots] = []
        roots += [() if id_ is None else (self._open(task, id_, now),) for id_ in ids]
        self._pending[task] += sum(map(len, roots))
        return roots

    def _open(self, task: AnySpoutTask, id_: Any, now: float) -> int:
        root = self._acker.open(now)
        self._owners[root] = task, id_, now
        return root

    def delivered(self, reader: Component, input_: Input, block: Block) -> None:
        """Note that a block is on its way to a reader."""
        if block.roots is not None:
            copies = reader.degree if isinstance(input_.grouping, All) else 1
            for _ in range(copies):
                self._acker.hold(block.roots)

    def processed(self, task: Processed, part: Block) -> None:
        """Note that a task is done with a part, but for the tuples that it keeps."""
        if part.roots is not None:
            failed, kept, tally = len(task.failed_rows), len(task.kept_rows), task.tally
            tally.failed += failed
            tally.acked += len(part) - failed - kept
            bad = [part.roots[row] for row in sorted(task.failed_rows)]
            self._completed += self._acker.fail(bad)
            done = [roots for row, roots in enumerate(part.roots) if row not in task.kept_rows]
            self._completed += self._acker.release(done)

    def settled(self, roots: Roots, ok: bool) -> None:
        """Note that a bolt acknowledged, or let fail, a tuple that it had kept."""
        if not ok:
            self._completed += self._acker.fail([roots])
        self._completed += self._acker.release([roots])

    def unread(self, roots: Sequence[Roots]) -> None:
        """End the roots of tuples that nobody reads."""
        for (root,) in filter(None, roots):
            self._completed += self._acker.settle(root)

    def refused(self, task: AnySpoutTask, ids: Sequence[Any], now: float) -> None:
        """Let tuples fail that were dropped before they entered."""
        roots = self._begin(task, ids, now)
        self._completed += self._acker.fail(roots)
        self.unread(roots)

    def expire(self, now: float) -> frozenset[int]:
        """Let the roots fail that have taken too long; name them, for bolts may keep them."""
        late, ended = self._acker.expire(now)
        self._completed += ended
        self._acker.validate()
        return frozenset(late)

    def take_completed(self, now: float) -> list[Ended]:
        """Give the tuples that have ended since the last call."""
        ended, self._completed = self._completed, []
        self.acked += sum(end.ok for end in ended)
        self.failed += sum(not end.ok for end in ended)
        owners, pending, found = self._owners, self._pending, list[Ended]()
        for end in ended:  # in one go: there are many
            task, id_, begun = owners.pop(end.root)
            pending[task] -= 1
            took, tally = now - begun, task.tally
            if end.ok:
                tally.acked += 1
                tally.seconds += took
            else:
                tally.failed += 1
            found.append((task, id_, end.ok, took))
        return found
