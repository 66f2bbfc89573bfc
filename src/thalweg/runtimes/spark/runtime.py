"""The Spark runtime as people use it."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.execution import Result, Run
from thalweg.runtimes.spark.reaching import check_installed
from thalweg.runtimes.spark.settings import SparkSettings
from thalweg.topology import Topology


@dataclass(frozen=True)
class Spark(SparkSettings):
    """Runs topologies on Spark: ``Spark(master="local[2]")``, or ``Spark(session)`` with yours."""

    def run(self, topology: Topology, run: Run | None = None) -> Result:
        """Run a topology until its sources end or it is told to stop."""
        check_installed()
        from thalweg.runtimes.spark.running import run_on_spark  # noqa: PLC0415 (needs pyspark)

        return run_on_spark(self, topology, run or Run())
