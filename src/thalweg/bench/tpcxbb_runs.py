"""One run of a TPCx-BB query, in a process of its own: on local, on Spark, or by DuckDB.

Rows are made before the clock starts. *End-to-end* latency is that of a tuple: from the moment at
which it was due until all that it causes has been done, in order; a sink that reads the answers and
the source in total order gets it then. *Processing* latency is that of a block, from the moment at
which it enters.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import thalweg as tw
from thalweg.bench.spark_session import PLACES, bench_session
from thalweg.components import BlockBolt, BlockSpout, Shared
from thalweg.runtimes.local.scheduling import Scheduling
from thalweg.workloads import tpcxbb
from thalweg.workloads.tpcxbb import answers
from thalweg.workloads.tpcxbb.queries import Q1, Q15
from thalweg.workloads.tpcxbb.sources import TIME, with_time
from thalweg.workloads.tpcxbb.topologies import QUERIES, Tables, topology

#: Share of the tuples at either end that does not count for latencies.
_EDGE = 0.2
#: Rows per second of event time: an hour has 720,000. Those of Q15 fill its year.
_PACE = {"q1": 200.0, "q2": 200.0, "q3": 200.0, "q4": 200.0, "q15": None}
#: Rows for which a JVM gets ready.
_FIRST = 10_000
#: All stores, where the public query has few of them: nearly all rows would be left out.
ASKED = {"q1": Q1(stores=None), "q15": Q15(store=None)}

BATCH: dict[str, Callable[[pa.Table, Tables, Any], pa.Table]] = {
    "q1": lambda rows, tables, query: answers.q1(rows, tables.item, query),
    "q2": lambda rows, _tables, query: answers.q2(rows, query),
    "q3": lambda rows, tables, query: answers.q3(rows, tables.item, query),
    "q4": lambda rows, tables, query: answers.q4(rows, tables.web_page, query),
    "q15": lambda rows, tables, query: answers.q15(rows, tables.item, query),
}


@dataclass(frozen=True)
class Case:
    """What is run, and how."""

    query: str
    rows: int
    #: local, paced (local at a rate), spark or duckdb.
    on: str = "local"
    workers: int = 2
    policy: str = "ct"
    queue: str = "hybrid"
    locked: bool = False
    #: Rows per second of a paced source.
    rate: float = 0.0

    def local(self) -> tw.Local:
        """Give the runtime."""
        return tw.Local(
            workers=self.workers,
            most_workers=self.workers,
            queue=self.queue,  # type: ignore[arg-type]  # checked there
            locked_reordering=self.locked,
            scheduling=Scheduling(policy=self.policy),
        )


class InMemory(Shared, BlockSpout):
    """Gives the rows of a record batch, as quickly as they are taken or at a rate."""

    def __init__(self, rows: pa.RecordBatch, rate: float = 0.0) -> None:
        self.outputs, self._rows, self._rate = rows.schema, rows, rate
        #: When it was asked first.
        self.begun: list[float] = []

    def prepare(self, context: tw.TaskContext) -> None:
        """Begin."""
        self._given = 0

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give what is due."""
        if not self.begun:
            self.begun.append(time.perf_counter())
        total = due = self._rows.num_rows
        if self._rate:
            due = int((time.perf_counter() - self.begun[0]) * self._rate)
        first, self._given = self._given, min(total, due, self._given + limit)
        if first == total:
            self.finish()
        return self._rows.slice(first, self._given - first) if self._given > first else None

    def wait_hint(self) -> float:
        """Give the time until the next row is due."""
        if not self._rate or not self.begun:
            return 0.0
        due = self.begun[0] + (self._given + 1) / self._rate
        return max(due - time.perf_counter(), 1e-6)


class Passed(Shared, BlockBolt):
    """Notes when rows of the source come, which is when all that stems from them has come."""

    def __init__(self) -> None:
        self.came: list[tuple[float, int]] = []

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Look at the clock."""
        if self.origin.component == "rows":
            self.came.append((time.perf_counter(), batch.num_rows))


def given(case: Case) -> tuple[pa.RecordBatch, Tables]:
    """Make the rows of a query, and its side tables."""
    make = tpcxbb.store_sales if case.query in ("q1", "q15") else tpcxbb.web_clickstreams
    rows = tpcxbb.table(make(rows=case.rows, rate=_PACE[case.query])).combine_chunks()
    [batch] = rows.to_batches(max_chunksize=case.rows)
    return batch, Tables(tpcxbb.item(), tpcxbb.web_page())


def digest(answer: pa.Table) -> str:
    """Make one text of an answer, the same for equal ones; fractions to six places.

    >>> digest(pa.table({"n": [1]})) == digest(pa.table({"n": pa.array([1], pa.int32())}))
    True
    """
    found = hashlib.sha256()
    for column in answer.columns:
        if pa.types.is_floating(column.type):
            found.update(
                repr([v if v is None else f"{v:.6e}" for v in column.to_pylist()]).encode()
            )
        else:
            found.update(column.cast(pa.int64()).to_numpy().tobytes())
    return found.hexdigest()


def batch(case: Case) -> dict[str, Any]:
    """Let DuckDB answer, with all rows at hand."""
    rows, tables = given(case)
    whole = pa.Table.from_batches([rows])
    BATCH[case.query](whole.slice(0, 1000), tables, ASKED.get(case.query))  # it begins with that
    begin = time.perf_counter()
    answer = BATCH[case.query](whole, tables, ASKED.get(case.query))
    return _speed(case, time.perf_counter() - begin) | {"digest": digest(answer)}


def local(case: Case) -> dict[str, Any]:
    """Run it as fast as it goes."""
    rows, tables = given(case)
    flow, kept = topology(case.query, InMemory(with_time(rows)), tables, ASKED.get(case.query))
    built = flow.build()
    begin = time.perf_counter()
    metrics = built.run(on=case.local()).metrics
    found = _speed(case, time.perf_counter() - begin)
    return found | _processing(metrics) | {"digest": digest(kept.table())}


def paced(case: Case) -> dict[str, Any]:
    """Run it at a rate, and measure how late rows are."""
    rows, tables = given(case)
    source, passed = InMemory(with_time(rows), case.rate), Passed()
    flow = tw.Flow(case.query, order="total")
    stream = flow.source("rows", source, time=TIME)
    answer = QUERIES[case.query][0](stream, tables, ASKED.get(case.query))
    # Of what one row of the source leads to, the answers come first.
    replace(answer, origins=(*answer.origins, *stream.origins)).sink("passed", passed)
    metrics = flow.run(on=case.local()).metrics
    return latencies(passed.came, source.begun[0], case.rate) | _processing(metrics)


def latencies(came: list[tuple[float, int]], begin: float, rate: float) -> dict[str, float]:
    """Give percentiles of how late rows were, in milliseconds, without those at either end.

    >>> latencies([(0.5 + n, 1) for n in range(10)], begin=-1.0, rate=1.0)["p50_ms"]
    500.0
    """
    counts = [rows for _, rows in came]
    times = np.repeat([at for at, _ in came], counts)
    late = times - (begin + np.arange(1, len(times) + 1) / rate)
    edge = round(_EDGE * len(late))
    p50, p99 = np.percentile(late[edge : len(late) - edge] * 1000, [50, 99]).tolist()
    return {"p50_ms": p50, "p99_ms": p99}


def spark(case: Case) -> dict[str, Any]:
    """Run it on Spark, once with few rows before, and compare the answer with DuckDB's."""
    rows, tables = given(case)
    with bench_session(case.query) as session:
        for part in (rows.slice(0, _FIRST), rows):
            source, query = InMemory(with_time(part)), ASKED.get(case.query)
            flow, kept = topology(case.query, source, tables, query)
            begin = time.perf_counter()
            flow.run(on=tw.Spark(session, places=PLACES))
            found = _speed(case, time.perf_counter() - begin)
    expected = BATCH[case.query](pa.Table.from_batches([rows]), tables, ASKED.get(case.query))
    return found | {"digest": digest(kept.table()), "expected": digest(expected)}


def _speed(case: Case, seconds: float) -> dict[str, Any]:
    return {"events_per_s": case.rows / seconds, "seconds": seconds}


def _processing(metrics: Any) -> dict[str, float]:
    found = metrics.latency
    return {"processing_p50_ms": found.p50 * 1000, "processing_p99_ms": found.p99 * 1000}


KINDS: dict[str, Callable[[Case], dict[str, Any]]] = {
    "local": local,
    "paced": paced,
    "spark": spark,
    "duckdb": batch,
}


if __name__ == "__main__":
    chosen = Case(**json.loads(sys.argv[2]))
    sys.stdout.write(json.dumps(KINDS[chosen.on](chosen)) + "\n")
