"""A Spark DataFrame as a source; it runs on Spark only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from thalweg.components import BlockSpout, Shared
from thalweg.errors import UsageError, explain


class SparkSource(Shared, BlockSpout):
    """Rows of a DataFrame, streaming or static."""

    def __init__(self, frame: Callable[[Any], Any]) -> None:
        self.frame = frame

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Say that there is no Spark here."""
        hint = "thalweg run FILE --on spark, or .run(on=tw.Spark())"
        raise UsageError(explain("spark_source", expected="the Spark runtime", hint=hint))


def spark_source(frame: Callable[[Any], Any]) -> SparkSource:
    """Make a source of a function that takes a SparkSession and gives a DataFrame.

    >>> posts = spark_source(lambda spark: spark.readStream.schema("region string").json("posts"))
    """
    return SparkSource(frame)
