"""Spark's own ways to count by key in a stream: what Thalweg is measured against on Spark.

Each reads the same Parquet files, one per micro-batch, counts the rows of each ``k1``, and passes
the changed counts to a sink that drops them. Times are those of Structured Streaming itself: the
whole of a micro-batch, with planning, state and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.bench.spark_session import ROCKSDB, STORE, need, watched
from thalweg.errors import ThalwegError, explain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

ROWS, KEYS, ZIPF = 200_000, 20_000, 1.3
SCHEMA = "k1 long, k2 long"


def write_input(folder: Path, batches: int, rows: int = ROWS, seed: int = 0) -> None:
    """Write one file per micro-batch: Zipf keys ``k1`` and uniform keys ``k2``.

    The first files are the same, however many there are.
    """
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for number in range(batches):
        columns = {"k1": random.zipf(ZIPF, rows) % KEYS, "k2": random.integers(0, KEYS, rows)}
        pq.write_table(pa.table(columns), folder / f"{number:03}.parquet")


def native(spark: SparkSession, folder: Path, store: str = ROCKSDB) -> list[float]:
    """Count in the JVM, with ``groupBy().count()``; give the seconds of each micro-batch."""
    return _timed(source(spark, folder).groupBy("k1").count(), folder, store)


def tws(spark: SparkSession, folder: Path, one_call: bool = False) -> list[float]:
    """Count with ``transformWithStateInPandas``, one value state per key.

    As Spark's guide writes it: ``exists()``, then ``get()``. With ``one_call`` only the latter.
    """
    need("google.protobuf", "transformWithState needs it: pip install 'protobuf>=6.33.5'")
    keyed = source(spark, folder).groupBy("k1")
    counts = keyed.transformWithStateInPandas(
        _processor(one_call), "k1 long, n long", "Update", "None"
    )
    return _timed(counts, folder)


def apply_in_pandas(spark: SparkSession, folder: Path) -> list[float]:
    """Count with ``applyInPandasWithState``."""
    from pyspark.sql.streaming.state import GroupStateTimeout  # noqa: PLC0415 (optional)

    keyed = source(spark, folder).groupBy("k1")
    timeout = GroupStateTimeout.NoTimeout
    counts = keyed.applyInPandasWithState(
        _function(), "k1 long, n long", "n long", "update", timeout
    )
    return _timed(counts, folder)


def batch_seconds(progress: Sequence[Mapping[str, Any]], rows: int) -> list[float]:
    """Read the seconds of each micro-batch from a query's progress; ``rows`` is what it must see.

    >>> report = {"batchId": 0, "numInputRows": 5, "durationMs": {"triggerExecution": 1500}}
    >>> batch_seconds([report], rows=5)
    [1.5]
    """
    batches = {report["batchId"]: report for report in progress if report["numInputRows"]}
    seen = sum(report["numInputRows"] for report in batches.values())
    _expect("rows", rows, seen)
    return [batches[b]["durationMs"]["triggerExecution"] / 1000 for b in sorted(batches)]


def rows_in(folder: Path) -> int:
    """Add up the rows of all files in a folder."""
    return sum(pq.read_metadata(path).num_rows for path in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    return folder.glob("*.parquet")


def _keys(path: Path) -> int:
    return len(pq.read_table(path, columns=["k1"])["k1"].unique())


def _expect(what: str, expected: int, got: int) -> None:
    """Refuse a figure unless all of the work was done."""
    if got != expected:
        text = explain(f"{what} of a measured query", expected=str(expected), got=str(got))
        raise ThalwegError(text)


def source(spark: SparkSession, folder: Path) -> DataFrame:
    """Read the folder as a stream, one file per micro-batch."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def _timed(counts: DataFrame, folder: Path, store: str = ROCKSDB) -> list[float]:
    counts.sparkSession.conf.set(STORE, store)
    writer = counts.writeStream.outputMode("update").format("noop").trigger(availableNow=True)
    with watched(counts.sparkSession) as progress:
        writer.start().awaitTermination()
    changed = sum(report["stateOperators"][0]["numRowsUpdated"] for report in progress)
    _expect("changed counts", sum(_keys(path) for path in _files(folder)), changed)
    return batch_seconds(progress, rows_in(folder))


def _processor(one_call: bool) -> StatefulProcessor:
    """Make the state's owner; here, so that workers get its code and need not import Thalweg."""
    import pandas as pd  # type: ignore[import-untyped] # noqa: PLC0415 (pandas has no types)
    from pyspark.sql.streaming.stateful_processor import (  # noqa: PLC0415 (optional)
        StatefulProcessor,
    )

    class Count(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.count = handle.getValueState("count", "n long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            there = one_call or self.count.exists()
            before = self.count.get() if there else None
            n = sum(len(frame) for frame in rows) + (before[0] if before else 0)
            self.count.update((n,))
            yield pd.DataFrame({"k1": [key[0]], "n": [n]})

        def close(self) -> None:
            pass

    return Count()


def _function() -> Callable[[Any, Iterator[Any], Any], Iterator[Any]]:
    import pandas as pd  # noqa: PLC0415 (optional)

    def count(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        n = sum(len(frame) for frame in frames) + (state.get[0] if state.exists else 0)
        state.update((n,))
        yield pd.DataFrame({"k1": [key[0]], "n": [n]})

    return count
