"""Spark's private entry points, all of them: record batches out of a DataFrame, raw exchanges.

Nothing else in Thalweg calls Spark below its public surface; ``tests/spark/test_contract.py`` says
what is relied upon. Payloads cross as bytes: Spark never pickles them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from pyspark import RDD, SparkContext
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame

#: What a stage is: (partition, payloads) -> payloads.
StageFunction = Callable[[int, Iterable[Any]], Iterable[bytes]]


def address(place: int) -> bytes:
    """Write the place that the next payload goes to."""
    return struct.pack("!q", place)


def place_itself(place: int) -> int:
    """Find the partition of a place; one function for all, because Spark compares identities."""
    return place


def arrow_batches(frame: DataFrame) -> RDD[Any]:
    """Give a DataFrame as Arrow record batches (IPC messages without schema), in one hop."""
    jrdd = frame._jdf.toArrowBatchRdd().toJavaRDD()
    return RDD(jrdd, frame.sparkSession.sparkContext, NoOpSerializer())


def descriptors(context: SparkContext, payloads: list[bytes], slices: int) -> RDD[Any]:
    """Spread a few small payloads over partitions, as they are; without any all are empty."""
    jvm, parts = context._jvm, min(slices, len(payloads)) or slices
    assert jvm is not None  # noqa: S101 (a running context has one)
    array = jvm.java.util.ArrayList()
    for payload in payloads:
        array.add(payload)
    return RDD(context._jsc.parallelize(array, parts), context, NoOpSerializer())


def run_at(rdd: RDD[Any], function: StageFunction) -> RDD[Any]:
    """Apply a stage to every partition; bytes in, bytes out."""
    mapped = rdd.mapPartitionsWithIndex(function)
    mapped._bypass_serializer = True  # type: ignore[attr-defined]  # of PipelinedRDD
    return mapped


def exhaust(payloads: Iterable[bytes]) -> None:
    """Read to the end: Spark throws away a Python worker that has left something unread."""
    for _ in payloads:
        pass


def exchange(rdd: RDD[Any], places: int) -> RDD[Any]:
    """Send payloads to places; the stage before has yielded ``address(place), payload`` in turn."""
    context = rdd.context
    jvm = context._jvm
    assert jvm is not None  # noqa: S101 (a running context has one)
    partitioner = jvm.PythonPartitioner(places, id(place_itself))
    pairs = jvm.PairwiseRDD(rdd._jrdd.rdd()).asJavaPairRDD().partitionBy(partitioner)
    return RDD(jvm.PythonRDD.valueOfPair(pairs), context, NoOpSerializer())


def collect(rdd: RDD[Any]) -> list[bytes]:
    """Run the job, and give the payloads of its last stage."""
    return list(RDD(rdd._jrdd, rdd.context, NoOpSerializer()).collect())


def remove_shuffles(last: RDD[Any]) -> None:
    """Let go of the files of all exchanges before this RDD, without waiting for it."""
    last._jrdd.rdd().cleanShuffleDependencies(False)
