"""RollingSort: a window of 100 messages, sorted at intervals. It is bound by memory.

As in the document: messages are 100 digits from 0 to 8 long, a bolt keeps the latest hundred of
those that come to it, and sorts and sends them every ten seconds.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.builder import TopologyBuilder
from thalweg.components import BlockBolt, BlockSpout, Bolt, Shared, Spout
from thalweg.contexts import TaskContext
from thalweg.topology import Topology
from thalweg.workloads.stormmc.turns import turns

#: Characters of a message, messages of a window, and different messages that a spout has.
LENGTH = CHUNK = MESSAGES = 100
#: Seconds between two times that a window is sorted.
EVERY = 10.0


def messages(chance: random.Random) -> list[str]:
    """Make different messages of random digits.

    >>> made = messages(random.Random(1))
    >>> len(made), len(made[0]), made[0].isdigit(), "9" in "".join(made)
    (100, 100, True, False)
    """
    return ["".join(chance.choices("012345678", k=LENGTH)) for _ in range(MESSAGES)]


class Messages(Shared, Spout):
    """Gives one of its messages at random; ``count`` over all tasks, or without end."""

    outputs = {"message": str}  # noqa: RUF012 (as users write it)

    def __init__(self, count: int | None = None) -> None:
        self.count = count

    def prepare(self, context: TaskContext) -> None:
        """Make messages, and choose among them."""
        self._messages = messages(context.random)
        self._turns = turns(context.task, context.degree, self.count)

    def next_tuple(self) -> None:
        """Give one."""
        if next(self._turns, None) is None:
            self.finish()
        else:
            self.emit(self._messages[int(self.context.random.random() * MESSAGES)])


class Sort(Bolt):
    """Keeps the latest messages in a ring; sorts and sends them when a tick comes."""

    outputs = {"messages": list[str]}  # noqa: RUF012 (as users write it)

    def prepare(self, context: TaskContext) -> None:
        """Begin with an empty ring."""
        self.ring: list[str] = []
        self.next = 0

    def process(self, t: Any) -> None:
        """Put a message in the place of the oldest one."""
        if len(self.ring) < CHUNK:
            self.ring.append(t.message)
        else:
            self.ring[self.next] = t.message
            self.next = (self.next + 1) % CHUNK

    def process_tick(self) -> None:
        """Send the window in order."""
        self.emit(sorted(self.ring))

    def process_end(self) -> None:
        """Send what there is at the end."""
        self.process_tick()


def rolling_sort(degree: int = 1, count: int | None = None, every: float = EVERY) -> Topology:
    """Sort with plain bolts.

    >>> [component.name for component in rolling_sort()]
    ['messages', 'sort']
    """
    builder = TopologyBuilder("rolling-sort")
    builder.add_spout("messages", Messages(count), degree=degree)
    builder.add_bolt("sort", Sort(), degree=degree, tick=every).shuffle("messages")
    return builder.build()


class MessageBlocks(Shared, BlockSpout):
    """Gives messages as :class:`Messages` does, a block at a time."""

    outputs = {"message": str}  # noqa: RUF012 (as users write it)

    def __init__(self, count: int | None = None) -> None:
        self.count = count

    def prepare(self, context: TaskContext) -> None:
        """Make messages, and choose among them."""
        self._messages = pa.array(messages(context.random))
        self._chance = np.random.default_rng(context.random.getrandbits(64))
        share = range(context.task, self.count or 0, context.degree)
        self._left = None if self.count is None else len(share)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Choose as many as are asked for."""
        size = limit if self._left is None else min(limit, self._left)
        if not size:
            self.finish()
            return None
        if self._left is not None:
            self._left -= size
        chosen = self._chance.integers(0, MESSAGES, size)
        return self.make_batch([self._messages.take(pa.array(chosen))])


class SortBlock(BlockBolt):
    """Keeps the latest messages of all blocks; sorts and sends them when a tick comes."""

    outputs = {"messages": list[str]}  # noqa: RUF012 (as users write it)

    def prepare(self, context: TaskContext) -> None:
        """Begin with nothing."""
        self.window: list[str] = []

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Keep the last ones."""
        latest = batch.column(0).slice(max(0, batch.num_rows - CHUNK)).to_pylist()
        self.window = [*self.window, *latest][-CHUNK:]

    def process_tick(self) -> None:
        """Send the window in order."""
        self.emit(self.make_batch([[sorted(self.window)]]))

    def process_end(self) -> None:
        """Send what there is at the end."""
        self.process_tick()


def rolling_sort_blocks(
    degree: int = 1, count: int | None = None, every: float = EVERY
) -> Topology:
    """Sort with bolts on whole blocks.

    >>> [component.name for component in rolling_sort_blocks()]
    ['messages', 'sort']
    """
    builder = TopologyBuilder("rolling-sort")
    builder.add_spout("messages", MessageBlocks(count), degree=degree)
    builder.add_bolt("sort", SortBlock(), degree=degree, tick=every).shuffle("messages")
    return builder.build()
