"""What the demo runs: a wave of records, counted by two keys one behind the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.components import BlockBolt, BlockSpout, Kind, Shared
from thalweg.contexts import TaskContext
from thalweg.demo.data import Data
from thalweg.flow import Flow
from thalweg.topology import Topology

#: Name of the source; the steps are called after their keys.
SOURCE = "records"
#: Seconds that are waited at once, at least.
_SHORTEST = 2e-3
#: Records that are given before the first comes again, at least.
_LEAST_ROWS = 8192


@dataclass(frozen=True)
class Stretch:
    """Some records in a row, that come at one rate."""

    rows: int
    #: None for as fast as they are taken.
    per_second: float | None = None


@dataclass(frozen=True)
class Wave:
    """Calm, a rush, and calm again: the rush is what throughput is measured on."""

    calm: Stretch
    rush: Stretch

    @classmethod
    def of(cls, seconds: float, per_second: float, rush: int) -> Wave:
        """Give a wave with so many seconds of calm on both sides of a rush.

        >>> Wave.of(2.0, 100.0, 5000).rows
        5400
        """
        return cls(Stretch(round(seconds * per_second), per_second), Stretch(rush))

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All of it, in order."""
        return self.calm, self.rush, self.calm

    @property
    def rows(self) -> int:
        """Records in all."""
        return sum(stretch.rows for stretch in self.stretches)


def topology(
    data: Data, wave: Wave, wait: float, degree: int | None = None, name: str = "trending"
) -> Topology:
    """Describe the stream; ``wait`` is what each step waits for a record, in seconds."""
    flow = Flow(name)
    stream = flow.source(SOURCE, Replayed(data.batch, wave.stretches))
    for key in data.keys:
        step = Counted(f"by_{key}", data.batch.schema, wait)
        stream = stream.key_by(key).through(step.table, step, degree=degree)
    return flow.build()


class Replayed(Shared, BlockSpout):
    """Gives records from memory, stretch by stretch, and begins anew where they end.

    A stretch begins when the one before has been taken, so that calm comes after any rush.
    """

    def __init__(self, batch: pa.RecordBatch, stretches: Sequence[Stretch]) -> None:
        # Few records are put behind each other, or blocks would be as small.
        copies = -(-_LEAST_ROWS // batch.num_rows)
        self.batch, self.stretches = pa.concat_batches([batch] * copies), stretches
        self.outputs = batch.schema

    def prepare(self, context: TaskContext) -> None:
        """Begin with the first stretch."""
        del context
        self._left = list(self.stretches)
        self._given = self._at = 0
        self._began: float | None = None

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give what is due."""
        rows = min(limit, self.backlog(), self.batch.num_rows - self._at)
        given = self.batch.slice(self._at, rows)
        self._at = (self._at + rows) % self.batch.num_rows
        self._given += rows
        if self._left and self._given >= self._left[0].rows:
            self._left.pop(0)
            self._given, self._began = 0, None
        if not self._left:
            self.finish()
        return given if rows else None

    def backlog(self) -> int:
        """Count what is due and was not given."""
        if not self._left:
            return 0
        stretch, now = self._left[0], self.context.clock.now()
        if self._began is None:
            self._began = now
        if stretch.per_second is None:
            return stretch.rows - self._given
        due = int((now - self._began) * stretch.per_second) + 1
        return min(due, stretch.rows) - self._given

    def wait_hint(self) -> float:
        """Give the time until the next one is due."""
        rate = self._left[0].per_second if self._left else None
        if rate is None or self._began is None:
            return 0.0
        due = self._began + self._given / rate
        return max(due - self.context.clock.now(), 1e-3)


class Counted(Shared, BlockBolt):
    """Counts a key, waits as for a service that is asked about each record, and passes it on."""

    kind = Kind.KEYED
    commutative = True

    def __init__(self, table: str, schema: pa.Schema, wait: float) -> None:
        self.table, self.outputs, self.wait = table, schema, wait

    def prepare(self, context: TaskContext) -> None:
        """Begin without a debt."""
        del context
        self._owed = 0.0

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Add a block to the table."""
        counted = pc.value_counts(batch.column(self.key[0]))
        keys, numbers = (counted.field(name).to_pylist() for name in ("values", "counts"))

        def add(before: list[int | None]) -> list[int]:
            return [(old or 0) + new for old, new in zip(before, numbers, strict=True)]

        self.state.update(keys, add)
        self._wait_for(batch.num_rows)
        return batch if self.context.read_streams else None

    def _wait_for(self, rows: int) -> None:
        """Wait, but not for less than a clock can tell; what was too long counts for the next."""
        self._owed += self.wait * rows
        if self._owed >= _SHORTEST:
            begin = time.perf_counter()
            time.sleep(self._owed)
            self._owed -= time.perf_counter() - begin
