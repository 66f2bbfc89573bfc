"""Thalweg: stateful stream topologies in Python.

>>> import thalweg as tw
>>> flow = tw.Flow("hello")
>>> words = flow.source("words", tw.items(["to", "be", "or", "not", "to", "be"]), fields=["word"])
>>> counts = words.tally("counts", key="word")
>>> flow.run().table("counts")
{'to': 2, 'be': 2, 'or': 1, 'not': 1}
"""

from thalweg import execution, groupings
from thalweg.builder import TopologyBuilder
from thalweg.components import BlockBolt, BlockSpout, Bolt, Kind, Spout, TaskContext
from thalweg.config import Quality, dead_letter
from thalweg.connectors import (
    call,
    collect,
    constant,
    files,
    items,
    ramp,
    rate,
    read_table,
    socket_lines,
    spark_source,
    stdout,
    steps,
    to_files,
    to_table,
    trace,
)
from thalweg.control.learning import Locality
from thalweg.control.scaling.settings import Scaling
from thalweg.errors import (
    Aborted,
    ComponentError,
    RecordError,
    SchemaError,
    StateError,
    ThalwegError,
    TopologyError,
    UsageError,
)
from thalweg.execution import Result, Steering
from thalweg.expressions import col, lit
from thalweg.flow import Flow
from thalweg.operators.purity import pure
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.foreach import foreach_batch
from thalweg.runtimes.spark.runtime import Spark
from thalweg.topology import Topology
from thalweg.tuples import as_dict
from thalweg.version import __version__ as __version__

__all__ = [
    "Aborted",
    "BlockBolt",
    "BlockSpout",
    "Bolt",
    "ComponentError",
    "Flow",
    "Inline",
    "Kind",
    "Local",
    "Locality",
    "Quality",
    "RecordError",
    "Result",
    "Scaling",
    "SchemaError",
    "Spark",
    "Spout",
    "StateError",
    "Steering",
    "TaskContext",
    "ThalwegError",
    "Topology",
    "TopologyBuilder",
    "TopologyError",
    "UsageError",
    "as_dict",
    "call",
    "col",
    "collect",
    "constant",
    "dead_letter",
    "files",
    "foreach_batch",
    "groupings",
    "items",
    "lit",
    "pure",
    "ramp",
    "rate",
    "read_table",
    "socket_lines",
    "spark_source",
    "stdout",
    "steps",
    "to_files",
    "to_table",
    "trace",
]

execution.register("inline", Inline)
execution.register("local", Local)
execution.register("spark", Spark)
