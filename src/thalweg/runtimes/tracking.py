"""Tracks tuples that spouts emitted with an id, from block to block, and tells the spouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from thalweg.acking import Acker, Completed, Roots
from thalweg.blocks import Block
from thalweg.groupings import All
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.topology import Component, Input


class Processed(Protocol):
    """A task that has processed a block."""

    #: Rows of it that failed, and rows that the task keeps.
    failed_rows: set[int]
    kept_rows: set[int]


class Tracker:
    """The acker of a run, with the spout task and id behind each root."""

    def __init__(self, timeout: float) -> None:
        self._acker = Acker(timeout)
        self._owners: dict[int, tuple[AnySpoutTask, Any]] = {}
        self._completed: list[Completed] = []
        self.acked = 0
        self.failed = 0

    def __len__(self) -> int:
        return len(self._acker)

    @property
    def idle(self) -> bool:
        """Whether no tuple is open, and there is nothing to tell anybody."""
        return not len(self._acker) and not self._completed

    def open(self, task: AnySpoutTask, ids: Sequence[Any], now: float) -> list[Roots]:
        """Begin a root for each tuple that has an id."""
        return [() if id_ is None else (self._open(task, id_, now),) for id_ in ids]

    def _open(self, task: AnySpoutTask, id_: Any, now: float) -> int:
        root = self._acker.open(now)
        self._owners[root] = task, id_
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
            self._acker.fail([part.roots[row] for row in task.failed_rows])
            done = [roots for row, roots in enumerate(part.roots) if row not in task.kept_rows]
            self._completed += self._acker.release(done)

    def settled(self, roots: Roots, ok: bool) -> None:
        """Note that a bolt acknowledged, or let fail, a tuple that it had kept."""
        if not ok:
            self._acker.fail([roots])
        self._completed += self._acker.release([roots])

    def unread(self, roots: Sequence[Roots]) -> None:
        """End the roots of tuples that nobody reads."""
        for (root,) in filter(None, roots):
            self._completed += self._acker.settle(root)

    def refused(self, task: AnySpoutTask, ids: Sequence[Any], now: float) -> None:
        """Let tuples fail that were dropped before they entered."""
        roots = self.open(task, ids, now)
        self._acker.fail(roots)
        self.unread(roots)

    def expire(self, now: float) -> frozenset[int]:
        """Let the roots fail that have taken too long, and name them."""
        expired = self._acker.expire(now)
        self._completed += expired
        self._acker.validate()
        return frozenset(end.root for end in expired)

    def take_completed(self) -> list[tuple[AnySpoutTask, Any, bool]]:
        """Give the tuples that have ended since the last call: spout task, id, and how."""
        ended, self._completed = self._completed, []
        self.acked += sum(end.ok for end in ended)
        self.failed += sum(not end.ok for end in ended)
        return [(*self._owners.pop(end.root), end.ok) for end in ended]
