"""Spark's own daemon, which forks Python workers; here it has loaded everything before.

Loading is nearly all that a worker takes to begin.
"""

import pyarrow as pa
from pyspark.daemon import manager

import thalweg.runtimes.spark.batches  # noqa: F401 (for those that are forked)

if __name__ == "__main__":
    pa.array([1])  # loads what pyarrow loads late
    manager()
