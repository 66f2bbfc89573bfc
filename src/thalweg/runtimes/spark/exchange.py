"""Spark's private entry points, all of them: record batches out of a DataFrame, raw exchanges.

Nothing else in Thalweg calls Spark below its public surface; ``tests/spark/test_contract*.py`` say
what is relied upon. Payloads cross as bytes: Spark never pickles them. Stages are made of the
JVM's objects directly: PySpark's own RDDs ask the JVM three times as often, and each question
takes a part of a millisecond from every batch.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer, NoOpSerializer
from pyspark.sql import DataFrame
from pyspark.util import _load_from_socket

from thalweg.runtimes.spark.placement import Executor, typical

#: What a stage is: (partition, payloads) -> payloads.
StageFunction = Callable[[int, Iterable[Any]], Iterable[bytes]]


def address(place: int) -> bytes:
    """Write the place that the next payload goes to."""
    return struct.pack("!q", place)


def place_itself(place: int) -> int:
    """Find the partition of a place; one function for all, because Spark compares identities."""
    return place


@dataclass(frozen=True)
class Lane:
    """Payloads on their way: an RDD of the JVM."""

    context: SparkContext
    rdd: Any

    @property
    def partitions(self) -> int:
        """How many partitions it has."""
        return int(self.rdd.getNumPartitions())


class _Handles:
    """What a context keeps for all of its jobs, looked up in the JVM once."""

    def __init__(self, context: SparkContext) -> None:
        jvm = context._jvm
        assert jvm is not None  # noqa: S101 (a running context has one)
        self._jvm = jvm
        self._partitioners: dict[int, Any] = {}
        self._around: tuple[list[Any], tuple[Any, Any]] = [], (None, None)
        self.function, self.python_rdd = jvm.SimplePythonFunction, jvm.PythonRDD
        self.pairs = jvm.PairwiseRDD
        self.values, self.collect = jvm.PythonRDD.valueOfPair, jvm.PythonRDD.collectAndServe
        self.utils, self.spark = jvm.PythonUtils, context._jsc.sc()
        self.profile = self.spark.resourceProfileManager().defaultResourceProfile()

    def partitioner(self, places: int) -> Any:
        """Give the partitioner that sends each payload to the place it is addressed to."""
        if places not in self._partitioners:
            made = self._jvm.PythonPartitioner(places, id(place_itself))
            self._partitioners[places] = made
        return self._partitioners[places]

    def around(self, context: SparkContext) -> tuple[Any, Any]:
        """Give the workers' environment and the files they can import, as the JVM's objects."""
        found = [*context.environment.items(), *(context._python_includes or ())]
        if self._around[0] != found or None in self._around[1]:
            util = self._jvm.java.util
            environment, includes = util.HashMap(), util.ArrayList()
            for name, value in context.environment.items():
                environment.put(name, value)
            for name in context._python_includes or ():
                includes.add(name)
            self._around = found, (environment, includes)
        return self._around[1]


_pickler: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]  # untyped there
_handles: WeakKeyDictionary[SparkContext, _Handles] = WeakKeyDictionary()


def _of(context: SparkContext) -> _Handles:
    found = _handles.get(context)
    if found is None:
        found = _handles[context] = _Handles(context)
    return found


def arrow_batches(frame: DataFrame) -> Lane:
    """Give a DataFrame as Arrow record batches (IPC messages without schema), in one hop."""
    return Lane(frame.sparkSession.sparkContext, frame._jdf.toArrowBatchRdd())


def descriptors(context: SparkContext, payloads: list[bytes], slices: int) -> Lane:
    """Spread a few small payloads over partitions, as they are; without any all are empty."""
    jvm, parts = context._jvm, min(slices, len(payloads)) or slices
    assert jvm is not None  # noqa: S101 (a running context has one)
    array = jvm.java.util.ArrayList()
    for payload in payloads:
        array.add(payload)
    return Lane(context, context._jsc.parallelize(array, parts).rdd())


def side_by_side(lanes: list[Lane]) -> Lane:
    """Put lanes beside each other: all their partitions, in this order."""
    first, *others = lanes
    rdd = first.rdd
    for other in others:
        rdd = rdd.union(other.rdd)
    return Lane(first.context, rdd)


def run_at(lane: Lane, function: StageFunction) -> Lane:
    """Apply a stage to every partition; bytes in, bytes out."""
    context, handles = lane.context, _of(lane.context)
    raw = NoOpSerializer()
    command = _pickler.dumps((function, None, raw, raw))
    # Pickling has noted the broadcasts that the function refers to.
    broadcasts = [found._jbroadcast for found in context._pickled_broadcast_vars]
    context._pickled_broadcast_vars.clear()
    wrapped = handles.function(
        bytearray(command),
        *handles.around(context),
        context.pythonExec,
        context.pythonVer,
        broadcasts,
        context._javaAccumulator,
    )
    return Lane(context, handles.python_rdd(lane.rdd, wrapped, False, False))


def exhaust(payloads: Iterable[bytes]) -> None:
    """Read to the end: Spark throws away a Python worker that has left something unread."""
    for _ in payloads:
        pass


def exchange(lane: Lane, places: int, anchor: Anchor | None = None) -> Lane:
    """Send payloads to places; the stage before has yielded ``address(place), payload`` in turn.

    With an anchor each place is wanted where the anchor's is: Spark goes by the majority of the
    partitions that a task reads, so the anchor has two votes against one of the data.
    """
    pairs = _partitioned(lane, places)
    if anchor is not None:
        pairs = _union(lane.context, [anchor.pairs, anchor.pairs, pairs])
    return Lane(lane.context, _of(lane.context).values(pairs).rdd())


def _partitioned(lane: Lane, places: int) -> Any:
    handles = _of(lane.context)
    return handles.pairs(lane.rdd).asJavaPairRDD().partitionBy(handles.partitioner(places))


def _union(context: SparkContext, pairs: list[Any]) -> Any:
    """Put RDDs of one partitioner side by side, all at once: a union of unions has one vote."""
    gateway = context._gateway
    assert gateway is not None  # noqa: S101 (a running context has one)
    array = gateway.new_array(gateway.jvm.org.apache.spark.api.java.JavaPairRDD, len(pairs))
    for number, rdd in enumerate(pairs):
        array[number] = rdd
    return context._jsc.union(array)


# --- hosts -------------------------------------------------------------------------------------

#: What an anchor sends to each place; stages leave it out.
ANCHOR = b"A"


@dataclass(frozen=True)
class Anchor:
    """A tiny cached RDD whose partitions lie on the hosts where places are wanted."""

    hosts: tuple[str, ...]
    pairs: Any

    def drop(self, wait: bool = False) -> None:
        """Let go of it; executors answer when they have."""
        self.pairs.unpersist(wait)


def make_anchor(context: SparkContext, hosts: tuple[str, ...]) -> Anchor:
    """Make an anchor with one place on each of these hosts, in this order."""
    pairs = _partitioned(run_at(_located(context, hosts), _anchored), len(hosts)).cache()
    pairs.count()
    return Anchor(hosts, pairs)


def at_executor(context: SparkContext, executor: Executor) -> Lane:
    """Give a partition for each slot of an executor, wanted there."""
    return _located(context, [f"executor_{executor.host}_{executor.id}"] * executor.slots)


def _located(context: SparkContext, wanted: Sequence[str]) -> Lane:
    """Make a partition at each of these locations, with the payload of an anchor."""
    jvm = context._jvm
    assert jvm is not None  # noqa: S101 (a running context has one)
    items = jvm.java.util.ArrayList()
    for location in wanted:
        items.add(jvm.scala.Tuple2(ANCHOR, jvm.PythonUtils.toSeq([location])))
    tag = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("java.lang.Object"))
    return Lane(context, context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(items), tag))


def _anchored(place: int, payloads: Iterable[bytes]) -> Iterable[bytes]:
    for payload in payloads:
        yield from (address(place), payload)


# --- executors ---------------------------------------------------------------------------------

#: What the driver is called among executors.
_DRIVER = "driver"
#: Milliseconds to wait until what has happened is told of; it takes less than one.
_TOLD = 1000


def processes(context: SparkContext) -> frozenset[str]:
    """Name the processes of an application, the driver and its executors, as host:port."""
    listed = _of(context).spark.getExecutorMemoryStatus().keySet().mkString(",")
    return frozenset(listed.split(","))


def presence(context: SparkContext) -> tuple[frozenset[str], int]:
    """Give what changes whenever executors come or go, in as few questions as can be.

    An executor that is being given back or decommissioned is still a process, but takes no task.
    """
    handles = _of(context)
    return processes(context), int(handles.spark.maxNumConcurrentTasks(handles.profile))


def executors(context: SparkContext) -> tuple[Executor, ...]:
    """List the executors that take tasks; one of which nothing is told yet is like the others."""
    spark, there = _of(context).spark, processes(context)
    with contextlib.suppress(Py4JError):  # a busy bus: what is known then has to do
        spark.listenerBus().waitUntilEmpty(_TOLD)
    # Also those that have gone: their last word may bring them back among the processes.
    listed, backend = spark.statusStore().executorList(False), spark.schedulerBackend()
    known, found = set(), []
    for told in map(listed.apply, range(listed.size())):
        name, number = str(told.hostPort()), str(told.id())
        known.add(name)
        takes_tasks = told.isActive() and number != _DRIVER and backend.isExecutorActive(number)
        if name in there and takes_tasks:
            found.append(Executor(number, name.rpartition(":")[0], int(told.maxTasks())))
    slots = typical(executor.slots for executor in found)
    new = [Executor(name, name.rpartition(":")[0], slots) for name in sorted(there - known)]
    return (*found, *new)


def ask_for(context: SparkContext, total: int) -> bool:
    """Tell the cluster manager how many executors to keep; False when it was not reached.

    Those that run stay, also where there are more.
    """
    handles = _of(context)
    return bool(handles.spark.requestTotalExecutors(total, 0, handles.utils.toScalaMap({})))


def release(context: SparkContext, ids: Sequence[str]) -> frozenset[str]:
    """Give executors back that run no task just now; gives the ids of those that go.

    Tell the cluster manager before how many to keep: it replaces them otherwise.
    """
    handles = _of(context)
    backend = handles.spark.schedulerBackend()
    gone = backend.killExecutors(handles.utils.toSeq(list(ids)), False, False, False)
    return frozenset(map(gone.apply, range(gone.size())))


# --- results -----------------------------------------------------------------------------------


def collect(lane: Lane) -> list[bytes]:
    """Run the job, and give the payloads of its last stage."""
    served = _of(lane.context).collect(lane.rdd)
    with _load_from_socket(served, NoOpSerializer()) as payloads:
        return list(payloads)


def remove_shuffles(last: Lane) -> None:
    """Let go of the files of all exchanges before this one, without waiting for it."""
    last.rdd.cleanShuffleDependencies(False)


# --- what went before --------------------------------------------------------------------------

#: Tasks of a job that are looked at to find one that failed.
_ENOUGH = 1000


def host_of_failure(context: SparkContext) -> str | None:
    """Name the host of a failed task of the last job: errors of Python do not say where."""
    tracker, spark = context.statusTracker(), context._jsc.sc()
    with contextlib.suppress(Py4JError):
        spark.listenerBus().waitUntilEmpty()  # before that the last job may be an earlier one
        job = tracker.getJobInfo(max(tracker.getJobIdsForGroup(None), default=-1))
        for stage in job.stageIds if job else ():
            tasks = spark.statusStore().taskList(stage, 0, _ENOUGH)
            for task in map(tasks.apply, range(tasks.size())):
                if task.status() == "FAILED":
                    return str(task.host())
    return None


def shuffled_bytes(context: SparkContext) -> tuple[int, int]:
    """Give the bytes that all stages so far have read from other hosts, and from their own.

    Spark forgets old stages: to be asked every few jobs, for differences.
    """
    spark = context._jsc.sc()
    spark.listenerBus().waitUntilEmpty()
    gateway = context._gateway
    assert gateway is not None  # noqa: S101 (a running context has one)
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    tasks = gateway.jvm.java.util.ArrayList()
    stages = spark.statusStore().stageList(None, False, False, quantiles, tasks)
    known = _shuffled.setdefault(context, {})
    for stage in map(stages.apply, range(stages.size())):
        read = int(stage.shuffleRemoteBytesRead()), int(stage.shuffleLocalBytesRead())
        known[int(stage.stageId()), int(stage.attemptId())] = read
    remote, local = (sum(side) for side in zip((0, 0), *known.values(), strict=True))
    return remote, local


_shuffled: WeakKeyDictionary[SparkContext, dict[tuple[int, int], tuple[int, int]]] = (
    WeakKeyDictionary()
)


def newest_number(session: Any, folder: str) -> int:
    """Give the highest number that is the name of a file in a folder that Hadoop knows, or -1."""
    path = session._jvm.org.apache.hadoop.fs.Path(folder)
    files = path.getFileSystem(session._jsc.hadoopConfiguration())
    if not files.exists(path):
        return -1
    names = [status.getPath().getName() for status in files.listStatus(path)]
    return max((int(name) for name in names if name.isdigit()), default=-1)
