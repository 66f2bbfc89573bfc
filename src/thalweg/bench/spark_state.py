"""Keyed state on Spark: Thalweg's against what Spark offers itself.

Thalweg counts by ``k1`` and then by ``k2``, with its built-in tally and with a fold in plain
Python. Each of Spark's own ways counts by ``k1`` only. All have the same input, cores, partitions,
durable state and number of dropped first micro-batches, and each has a JVM of its own.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.bench import spark_peers
from thalweg.bench.measuring import environment
from thalweg.bench.spark_session import HDFS, PLACES, ROCKSDB, bench_session, watched
from thalweg.components import BlockBolt
from thalweg.connectors.frames import spark_source
from thalweg.errors import ThalwegError, explain
from thalweg.flow import Flow
from thalweg.runtimes.spark.runtime import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Span:
    """How many micro-batches a contender runs, and which of them count."""

    batches: int
    #: The first micro-batches, in which everything starts, do not count.
    dropped: int = 5
    #: Micro-batches from here on do not count either.
    until: int = 15


#: A JVM compiles what runs often, so the native count goes on getting faster long after the
#: micro-batches that count. Who is quick enough runs on, and the last ten are reported as well.
FAST, QUICK_FAST = Span(45), Span(25)
SLOW, QUICK_SLOW = Span(15), Span(4, dropped=2)
WARM = 10


@dataclass(frozen=True)
class Contender:
    """One way to count: what runs it, and whether a micro-batch takes it seconds."""

    run: Callable[[SparkSession, Path], list[float]]
    slow: bool = False

    def span(self, quick: bool) -> Span:
        """Choose how long to run."""
        if self.slow:
            return QUICK_SLOW if quick else SLOW
        return QUICK_FAST if quick else FAST


def ours(spark: SparkSession, folder: Path, fold: bool) -> list[float]:
    """Count twice with Thalweg, by tallies or by folds; give the seconds of each micro-batch."""
    flow = two_counts(folder, fold)
    with tempfile.TemporaryDirectory(prefix="thalweg-") as kept, watched(spark) as seen:
        runtime = Spark(
            spark,
            places=PLACES,
            trigger="available-now",
            checkpoint=f"{kept}/offsets",
            state=f"{kept}/state",
        )
        result = flow.run(on=runtime)
        counted = {name: sum(table.values()) for name, table in result.tables.items()}
    rows = spark_peers.rows_in(folder)
    if set(counted.values()) != {rows}:
        raise ThalwegError(explain("counts", "", f"{rows} in all tables", f"{counted}"))
    return spark_peers.batch_seconds(seen, rows)


def two_counts(folder: Path, fold: bool) -> Flow:
    """Describe two keyed counts in a row, whose changed values go to a sink that drops them."""
    flow = Flow("two-counts")
    rows = flow.source("rows", spark_source(partial(_read, str(folder))), {"k1": int, "k2": int})
    if fold:
        counted = rows.key_by("k1").scan(0, _one_more, into="n").select("k1", "k2")
        counted.key_by("k2").fold("by_k2", 0, _one_more)
    else:
        rows.tally("by_k1", key="k1").tally("by_k2", key="k2")
        flow.table("by_k1").sink("drop_k1", Drop(), degree=PLACES)
    flow.table("by_k2").sink("drop_k2", Drop(), degree=PLACES)
    return flow


def _read(folder: str, spark: Any) -> Any:
    return spark_peers.source(spark, Path(folder))


def _one_more(count: int) -> int:
    return count + 1


class Drop(BlockBolt):
    """Takes record batches and does nothing with them."""

    def process_block(self, batch: Any) -> None:
        """Drop it."""


CONTENDERS: Mapping[str, Contender] = {
    "ours": Contender(partial(ours, fold=False)),
    "ours_python_fold": Contender(partial(ours, fold=True)),
    "native_rocksdb": Contender(partial(spark_peers.native, store=ROCKSDB)),
    "native_hdfs": Contender(partial(spark_peers.native, store=HDFS)),
    "apply": Contender(spark_peers.apply_in_pandas, slow=True),
    "tws_one_call": Contender(partial(spark_peers.tws, one_call=True), slow=True),
    "tws": Contender(spark_peers.tws, slow=True),
}


def spark_state(quick: bool, report: Callable[[str], None]) -> dict[str, Any]:
    """Two keyed counts on Spark, against one with each of Spark's own state APIs."""
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="thalweg-") as folder:
        for name, contender in CONTENDERS.items():
            span = contender.span(quick)
            given = Path(folder) / f"{span.batches}"
            if not given.exists():
                spark_peers.write_input(given, span.batches)
            with bench_session(name) as spark:
                results[name] = figures(contender.run(spark, given), span)
            report(f"{name}: {results[name]['rows_per_second']:,.0f} rows/s")
    return {
        "name": "spark-state",
        "environment": environment() | _settings(quick),
        "results": results,
        "summary": summary(results),
    }


def figures(seconds: Sequence[float], span: Span, rows: int = spark_peers.ROWS) -> dict[str, Any]:
    """Put the seconds of micro-batches into figures; warm ones where more ran than count.

    >>> figures([9, 2, 4, 3], Span(4, dropped=1), rows=600)["rows_per_second"]
    200.0
    """
    counted = seconds[span.dropped : span.until]
    found = {
        "batch_seconds": list(seconds),
        "dropped": span.dropped,
        "counted": len(counted),
        "best": min(counted),
        "median": statistics.median(counted),
        "rows_per_second": rows / statistics.median(counted),
    }
    if len(seconds) > span.until:
        found["warm_median"] = statistics.median(seconds[-WARM:])
    return found


def summary(results: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Say how many times as fast as its peers Thalweg is: by medians, by bests, and warm."""
    made: dict[str, float] = {}
    for kind, suffix in (("median", ""), ("best", "_best"), ("warm_median", "_warm")):
        times = {name: found[kind] for name, found in results.items() if kind in found}
        times["native"] = min(times["native_rocksdb"], times["native_hdfs"])
        for peer in ("tws", "tws_one_call", "apply", "native"):
            if peer in times:
                made[f"ours_vs_{peer}{suffix}"] = times[peer] / times["ours"]
        if "tws" in times:
            made[f"ours_python_fold_vs_tws{suffix}"] = times["tws"] / times["ours_python_fold"]
    return made


def _settings(quick: bool) -> dict[str, Any]:
    return {
        "pyspark": version("pyspark"),
        "quick": quick,
        "places": PLACES,
        "rows_per_batch": spark_peers.ROWS,
        "keys": spark_peers.KEYS,
        "zipf": spark_peers.ZIPF,
    }
