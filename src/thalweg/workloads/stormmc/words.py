"""WordCount: sentences are split into words, and each word is counted. It is bound by the CPU.

As in the document: a spout with some sentences in memory, which it gives again and again, a bolt
that splits, and one that counts by word. *Plain* bolts see one tuple at a time, in Storm's manner;
the *vectorised* topology does the same with whole blocks.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.builder import TopologyBuilder
from thalweg.components import BlockBolt, BlockSpout, Bolt, Kind, Shared, Spout
from thalweg.contexts import TaskContext
from thalweg.flow import Flow
from thalweg.topology import Topology
from thalweg.workloads.stormmc.turns import turns
from thalweg.workloads.stormmc.vocabulary import sentences

#: Different sentences that a spout keeps in memory.
SENTENCES = 10_000


class Sentences(Shared, Spout):
    """Gives sentences again and again; ``count`` of them over all tasks, or without end.

    With ``acking`` each has an id, so that all that stems from it is followed to its end.
    """

    outputs = {"sentence": str}  # noqa: RUF012 (as users write it)

    def __init__(self, lines: list[str], count: int | None = None, acking: bool = False) -> None:
        self.lines = lines
        self.count = count
        self.acking = acking

    def prepare(self, context: TaskContext) -> None:
        """Begin with this task's first sentence."""
        self._turns = turns(context.task, context.degree, self.count)

    def next_tuple(self) -> None:
        """Give one."""
        number = next(self._turns, None)
        if number is None:
            self.finish()
        else:
            line = self.lines[number % len(self.lines)]
            self.emit(line, id=number if self.acking else None)


class Split(Bolt):
    """Cuts a sentence into words."""

    outputs = {"word": str}  # noqa: RUF012 (as users write it)

    def process(self, t: Any) -> None:
        """Emit each word."""
        for word in t.sentence.split():
            self.emit(word)


class Count(Bolt):
    """Counts words, each with its running count."""

    kind = Kind.KEYED
    outputs = {"word": str, "count": int}  # noqa: RUF012 (as users write it)

    def process(self, t: Any) -> None:
        """Count one."""
        count = self.state.get(t.word, 0) + 1
        self.state.put(t.word, count)
        self.emit(t.word, count)


def wordcount(degree: int = 1, count: int | None = None, acking: bool = False) -> Topology:
    """Count words with plain bolts.

    >>> [component.name for component in wordcount()]
    ['sentences', 'split', 'count']
    """
    builder = TopologyBuilder("wordcount")
    source = Sentences(sentences(SENTENCES), count, acking)
    builder.add_spout("sentences", source, degree=degree)
    builder.add_bolt("split", Split(), degree=degree).shuffle("sentences")
    builder.add_bolt("count", Count(), degree=degree).fields("split", "word")
    return builder.build()


class SentenceBlocks(Shared, BlockSpout):
    """Gives the same sentences as :class:`Sentences`, a block at a time."""

    outputs = {"sentence": str}  # noqa: RUF012 (as users write it)

    def __init__(self, lines: list[str], count: int | None = None) -> None:
        # Twice, so that a block may begin anywhere and be as large as it is asked for.
        self.lines, self.size = pa.array(lines * 2, pa.string()), len(lines)
        self.count = count

    def prepare(self, context: TaskContext) -> None:
        """Begin where the task's share of all sentences does."""
        share = range(context.task, self.count or 0, context.degree)
        self._left = None if self.count is None else len(share)
        self._next = context.task * self.size // context.degree

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give the next ones; behind the last comes the first."""
        size = min(limit, self.size)
        if self._left is not None:
            size = min(size, self._left)
            self._left -= size
        if not size:
            self.finish()
            return None
        given = self.lines.slice(self._next, size)
        self._next = (self._next + size) % self.size
        return self.make_batch([given])


class WordBlocks(SentenceBlocks):
    """Gives the words of the sentences, a block at a time."""

    outputs = {"word": str}  # noqa: RUF012 (as users write it)

    def __init__(self, lines: list[str], count: int | None = None) -> None:
        super().__init__([word for line in lines for word in line.split()], count)


class SplitBlock(BlockBolt):
    """Cuts sentences into words, a block at a time."""

    outputs = {"word": str}  # noqa: RUF012 (as users write it)

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Split with Arrow."""
        return self.make_batch([pc.list_flatten(pc.split_pattern(batch.column(0), " "))])


def wordcount_blocks(degree: int = 1, count: int | None = None) -> Topology:
    """Count words with bolts on whole blocks; the counts are a table.

    >>> [component.name for component in wordcount_blocks()]
    ['sentences', 'split', 'count']
    """
    flow = Flow("wordcount")
    source = flow.source("sentences", SentenceBlocks(sentences(SENTENCES), count), degree=degree)
    split = source.through("split", SplitBlock(), degree=degree)
    split.key_by("word").count("count", degree=degree)
    return flow.build()
