"""The Spark runtime as people use it."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.errors import UsageError, explain
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

        checked = (run or Run()).checked(topology)
        refuse_vocabulary(topology, checked)
        return run_on_spark(self, topology, checked)


def refuse_vocabulary(topology: Topology, run: Run) -> None:
    """Refuse what needs tasks beside the one who asks for it.

    Metrics that components register are made, and told to nobody.
    """
    for component in topology:
        for name in ("hooks", "max_pending"):
            if getattr(component.options, name):
                where = f"component {component.name!r} on Spark"
                raise UsageError(explain(f"option {name!r}", where, "a run on local or inline"))
    for name in ("hooks", "consumers"):
        if getattr(run, name):
            raise UsageError(explain(name, "a run on Spark", "a run on local or inline"))
