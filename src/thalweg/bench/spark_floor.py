"""What a batch costs that has next to nothing to do, against the least that Spark takes for it.

The least is a bare job of as many stages, which only passes a few bytes on, and a micro-batch of
Structured Streaming whose ``foreachBatch`` does nothing; all with the same session.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.bench import spark_peers
from thalweg.bench.measuring import environment
from thalweg.bench.spark_session import PLACES, bench_session, watched
from thalweg.bench.spark_state import two_counts
from thalweg.runtimes.spark.runtime import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 10


def spark_floor(quick: bool, report: Callable[[str], None]) -> dict[str, Any]:
    """Measure a nearly empty batch of two keyed counts against the least that Spark takes."""
    warm, counted = (5, 10) if quick else (20, 30)
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="thalweg-") as folder, bench_session("floor") as spark:
        given = Path(folder) / "in"
        spark_peers.write_input(given, warm + counted, rows=_ROWS)
        seconds["bare_job"] = _bare(spark, warm + counted)
        seconds["empty_batch"] = _empty(spark, given)
        seconds["ours"] = _ours(spark, given, Path(folder))
    results: dict[str, dict[str, Any]] = {
        name: {
            "seconds": found,
            "best": min(found[warm:]),
            "median": statistics.median(found[warm:]),
        }
        for name, found in seconds.items()
    }
    for name, found in results.items():
        report(f"{name}: {found['median'] * 1000:.0f} ms")
    least = results["bare_job"]["median"] + results["empty_batch"]["median"]
    best = results["bare_job"]["best"] + results["empty_batch"]["best"]
    settings = {"pyspark": version("pyspark"), "warm_up": warm, "counted": counted}
    return {
        "name": "spark-floor",
        "environment": environment() | settings,
        "results": results,
        "summary": {
            "floor_ratio": results["ours"]["median"] / least,
            "floor_ratio_best": results["ours"]["best"] / best,
        },
    }


def _bare(spark: SparkSession, batches: int) -> list[float]:
    """Run a job of three stages that passes a payload from place to place."""
    from thalweg.runtimes.spark import exchange  # noqa: PLC0415 (needs pyspark)

    found = []
    for _ in range(batches):
        begin = time.perf_counter()
        rdd = exchange.descriptors(spark.sparkContext, [b"x"] * PLACES, PLACES)
        for _stage in range(2):
            rdd = exchange.exchange(exchange.run_at(rdd, _pass_on), PLACES)
        last = exchange.run_at(rdd, _arrive)
        exchange.collect(last)
        exchange.remove_shuffles(last)
        found.append(time.perf_counter() - begin)
    return found


def _pass_on(place: int, payloads: Any) -> Iterator[bytes]:
    from thalweg.runtimes.spark.exchange import address  # noqa: PLC0415 (needs pyspark)

    for payload in payloads:
        yield from (address((place + 1) % PLACES), payload)


def _arrive(_place: int, payloads: Any) -> Iterator[bytes]:
    yield from payloads


def _empty(spark: SparkSession, folder: Path) -> list[float]:
    """Run micro-batches that do nothing."""
    stream = spark_peers.source(spark, folder).writeStream.trigger(availableNow=True)
    with watched(spark) as seen:
        stream.foreachBatch(lambda _frame, _number: None).start().awaitTermination()
    return _durations(seen)


def _ours(spark: SparkSession, folder: Path, kept: Path) -> list[float]:
    """Run the two counts."""
    runtime = Spark(
        spark,
        places=PLACES,
        trigger="available-now",
        checkpoint=f"{kept}/offsets",
        state=f"{kept}/state",
    )
    with watched(spark) as seen:
        two_counts(folder, fold=False).run(on=runtime)
    return _durations(seen)


def _durations(progress: list[dict[str, Any]]) -> list[float]:
    by_batch = {p["batchId"]: p["durationMs"] for p in progress if "addBatch" in p["durationMs"]}
    return [by_batch[batch]["triggerExecution"] / 1000 for batch in sorted(by_batch)]
