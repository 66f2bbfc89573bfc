"""Thalweg: stateful stream topologies in Python.

>>> import thalweg as tw
>>> flow = tw.Flow("hello")
>>> words = flow.source("words", tw.items(["to", "be", "or", "not", "to", "be"]), fields=["word"])
>>> counts = words.tally("counts", key="word")
>>> flow.run().table("counts")
{'to': 2, 'be': 2, 'or': 1, 'not': 1}
"""

from thalweg import execution, groupings
from thalweg.anchored import AnchoredBolt
from thalweg.anyvalues import anything
from thalweg.builder import TopologyBuilder
from thalweg.components import BlockBolt, BlockSpout, Bolt, Kind, Spout
from thalweg.config import Quality, dead_letter
from thalweg.connectors import (
    call,
    collect,
    constant,
    files,
    http_source,
    items,
    kafka,
    mqtt,
    ramp,
    rate,
    read_table,
    socket_lines,
    spark_source,
    stdout,
    steps,
    table_file,
    to_files,
    to_kafka,
    to_postgres,
    to_table,
    trace,
)
from thalweg.consumers import LoggingConsumer, MetricsConsumer
from thalweg.contexts import TaskContext
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
from thalweg.eventtime import event_time
from thalweg.execution import Result, Steering
from thalweg.expressions import col, lit, row
from thalweg.flow import Flow
from thalweg.hooks import TaskHook
from thalweg.multilang import KeyedShellBolt, ShellBolt, ShellSpout
from thalweg.operators.joining import TableJoin
from thalweg.operators.purity import pure
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.foreach import foreach_batch
from thalweg.runtimes.spark.runtime import Spark
from thalweg.topology import Topology
from thalweg.tuples import as_dict
from thalweg.version import __version__ as __version__
from thalweg.windows import agg
from thalweg.windows.specs import landmark, last_rows, rows, session, sliding, tumbling

__all__ = [
    "Aborted",
    "AnchoredBolt",
    "BlockBolt",
    "BlockSpout",
    "Bolt",
    "ComponentError",
    "Flow",
    "Inline",
    "KeyedShellBolt",
    "Kind",
    "Local",
    "Locality",
    "LoggingConsumer",
    "MetricsConsumer",
    "Quality",
    "RecordError",
    "Result",
    "Scaling",
    "SchemaError",
    "ShellBolt",
    "ShellSpout",
    "Spark",
    "Spout",
    "StateError",
    "Steering",
    "TableJoin",
    "TaskContext",
    "TaskHook",
    "ThalwegError",
    "Topology",
    "TopologyBuilder",
    "TopologyError",
    "UsageError",
    "agg",
    "anything",
    "as_dict",
    "call",
    "col",
    "collect",
    "constant",
    "dead_letter",
    "event_time",
    "files",
    "foreach_batch",
    "groupings",
    "http_source",
    "items",
    "kafka",
    "landmark",
    "last_rows",
    "lit",
    "mqtt",
    "pure",
    "ramp",
    "rate",
    "read_table",
    "row",
    "rows",
    "session",
    "sliding",
    "socket_lines",
    "spark_source",
    "stdout",
    "steps",
    "table_file",
    "to_files",
    "to_kafka",
    "to_postgres",
    "to_table",
    "trace",
    "tumbling",
]

execution.register("inline", Inline)
execution.register("local", Local)
execution.register("spark", Spark)
