"""A Spark DataFrame as a source; it runs on Spark only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from thalweg.components import BlockSpout, Shared
from thalweg.connectors.messages import Refuse
from thalweg.errors import UsageError, explain
from thalweg.schemas import Shape


class Decoder(Protocol):
    """Makes the fields of a source of the columns of its DataFrame, where rows are read."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it needs."""

    def reading(
        self, shape: Shape, refuse: Refuse
    ) -> Callable[[pa.RecordBatch], pa.RecordBatch | None]:
        """Give a function that makes record batches of fields of those of the DataFrame."""


class SparkSource(Shared, BlockSpout):
    """Rows of a DataFrame, streaming or static."""

    #: What makes fields of its columns; without it the columns are the fields.
    decoder: Decoder | None = None
    #: Whether a stream ends behind what is there when the run begins.
    bounded = False

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
