"""Ordered processing with made-up operators: queues, reorder buffers, schedulers, cost of order.

An operator has a cost per tuple, which it waits rather than works (two cores cannot show what eight
workers gain in any other way), and a selectivity. Keys come from N(0, sigma) and are partitioned by
range. Every result is checked to be complete and in order. *Processing latency* is that of the
document: from the moment at which the first operator takes a tuple until its output leaves the last
one in order. It, and throughput, are those of the tuples between the first and the last fifth of a
run, as there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import thalweg as tw
from thalweg.bench.inline_wordcount import Arrivals
from thalweg.errors import ThalwegError

BUCKETS = 100
#: Share of the tuples at either end that does not count for latencies.
_EDGE = 0.2


class Waits(tw.Bolt):
    """Waits for each tuple, and sends some, with the time at which it began."""

    outputs = {"bucket": int, "n": int, "begun": float}  # noqa: RUF012 (as users write it)

    def __init__(self, seconds: float, selectivity: int = 1) -> None:
        self.seconds, self.selectivity = seconds, selectivity

    def process(self, t: Any) -> None:
        """Wait, and send."""
        begun = t.begun or time.perf_counter()
        time.sleep(self.seconds)
        for _ in range(self.selectivity):
            self.emit(t.bucket, t.n, begun)


class KeyedWaits(Waits):
    """The same with a state per key."""

    kind = tw.Kind.KEYED

    def process(self, t: Any) -> None:
        """Count, wait, and send."""
        self.state.put(t.bucket, self.state.get(t.bucket, 0) + 1)
        super().process(t)


class End(tw.BlockBolt):
    """Notes what came, and how long after its beginning."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        #: When each came, and how long after its beginning.
        self.times: list[float] = []
        self.seconds: list[float] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> End:
        return self

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Compare the clock with the time at which they began."""
        now = time.perf_counter()
        late = now - batch.column("begun").to_numpy()
        self.numbers += batch.column("n").to_pylist()
        self.times += [now] * batch.num_rows
        self.seconds += late.tolist()


@dataclass(frozen=True)
class Found:
    """What one run gave."""

    per_second: float
    #: Mean processing latency.
    latency_ms: float
    #: Seconds per tuple that workers spent in the first operator, with sending.
    cost: float


Rows = Sequence[tuple[int, int, float]]


def skewed(count: int, sigma: float) -> Rows:
    """Make tuples: a bucket by range of a number from N(0, sigma), and a serial number."""
    drawn = np.random.default_rng(1).normal(0.0, sigma, count).clip(-1.0, 0.999)
    buckets = ((drawn + 1) / 2 * BUCKETS).astype(int)
    return [(bucket, n, 0.0) for n, bucket in enumerate(buckets.tolist())]


def even(count: int) -> Rows:
    """Make tuples whose keys take turns."""
    return [(n % BUCKETS, n, 0.0) for n in range(count)]


class Chain:
    """A source, operators one behind the other, and an end that wants everything in order."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self._last, self._end, self._selectivity = rows, "rows", End(), 1
        self._first = ""
        self._builder = tw.TopologyBuilder("chain")
        fields = {"bucket": int, "n": int, "begun": float}
        self._builder.add_spout("rows", tw.items(rows), fields=fields)

    def keyed(self, seconds: float) -> Chain:
        """Add a keyed operator, with a task for each bucket."""
        bolt = self._builder.add_bolt(self._name(), KeyedWaits(seconds), degree=BUCKETS)
        bolt.fields(self._before, "bucket", bounds=tuple(range(1, BUCKETS)))
        return self

    def stateless(self, seconds: float, degree: int, selectivity: int = 1) -> Chain:
        """Add an operator without state."""
        bolt = self._builder.add_bolt(self._name(), Waits(seconds, selectivity), degree=degree)
        bolt.shuffle(self._before)
        self._selectivity *= selectivity
        return self

    def _name(self) -> str:
        self._before, number = self._last, int(self._last.removeprefix("rows") or 0) + 1
        self._last = f"rows{number}"
        self._first = self._first or self._last
        return self._last

    def run(self, local: tw.Local) -> Found:
        """Run it, and check what came."""
        self._builder.add_bolt("end", self._end, order="total").global_(self._last)
        metrics = self._builder.build().run(on=local).metrics
        expected = [n for _, n, _ in self._rows for _ in range(self._selectivity)]
        if self._end.numbers != expected:
            came = len(self._end.numbers)
            text = f"{came} tuples came, not in order or not all of {len(expected)}"
            raise ThalwegError(text)
        first = metrics.component(self._first)
        return self._found(first.busy / max(1, first.received))

    def _found(self, cost: float) -> Found:
        """Look at the tuples between the first and the last fifth."""
        end, count = self._end, len(self._end.numbers)
        edge = round(_EDGE * count)
        took = max(end.times[count - edge - 1] - end.times[edge], 1e-9)
        latency = float(np.mean(end.seconds[edge : count - edge])) * 1000
        return Found((count - 2 * edge) / self._selectivity / took, latency, cost)


class Counts(tw.Bolt):
    """Counts words, whatever their order, and passes them on."""

    kind = tw.Kind.KEYED
    commutative = True
    outputs = {"word": str}  # noqa: RUF012 (as users write it)

    def process(self, t: Any) -> None:
        """Count and emit."""
        self.state.put(t.word, self.state.get(t.word, 0) + 1)
        self.emit(t.word)


def words(lines: list[str], bolts: bool, order: str) -> int:
    """Count words at four tasks, and give them to a sink that asks for an order."""
    arrivals = Arrivals()
    flow = tw.Flow("order")
    source = flow.source("sentences", tw.items(lines), fields={"sentence": str})
    split = source.flat_map(str.split, fields={"word": str})
    if bolts:
        counted = split.key_by("word").through("counts", Counts(), degree=4)
    else:
        counted = split.tally("counts", key="word", degree=4)
    counted.sink("end", arrivals, order=order)
    flow.run(on=tw.Local(workers=2, order="sender"))
    return arrivals.rows[0]
