"""The keys of Storm's configuration: those that mean something here, and why others do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from thalweg.runtimes.local.waiting import STRATEGIES

Check = Callable[[Any], Any]

#: How keys of ours begin, beside Storm's: for components of its topologies, and for children.
OWN = "thalweg."
#: "process": it wants one of its own; and true: it keeps nothing between tuples.
ISOLATION, STATELESS = "thalweg.isolation", "thalweg.stateless"
#: How often, in a row, what fails is started anew.
RESTARTS = "thalweg.restarts"
#: How long is waited at the end of a run.
LINGER = "thalweg.linger"


class Key(NamedTuple):
    """A key that means something here."""

    #: The field of :class:`.config.StormConfig` that has its value.
    field: str
    #: What a value has to be, in words; and what makes a value of the field of it, or raises.
    expected: str
    check: Check


def _number(least: float, whole: bool = True) -> Check:
    def check(value: Any) -> Any:
        kinds = int if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not value >= least:
            raise ValueError
        return value

    return check


def _of(*kinds: type) -> Check:
    def check(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError
        return value

    return check


def _share(value: Any) -> float:
    share = _number(0, whole=False)(value)
    if share > 1:
        raise ValueError
    return float(share)


def _millis(value: Any) -> float:
    return float(_number(0, whole=False)(value)) / 1000


def _paths(value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise TypeError
    return tuple(values)


#: Storm's classes for waiting, without their packages, and what they are called here.
_WAITS = {
    "BlockingWaitStrategy": "blocking",
    "SleepingWaitStrategy": "sleeping",
    "YieldingWaitStrategy": "yielding",
    "BusySpinWaitStrategy": "busy-spin",
    "WaitStrategyPark": "sleeping",
    "WaitStrategyProgressive": "sleeping",
}


def _wait(value: Any) -> str:
    name = _of(str)(value).rpartition(".")[2]
    found = _WAITS.get(name, name)
    if found not in STRATEGIES:
        raise ValueError
    return found


def _serializer(value: Any) -> str:
    name = _of(str)(value).lower()
    for found in ("json", "msgpack", "messagepack"):
        if found in name:
            return "json" if found == "json" else "msgpack"
    raise ValueError


def _isolation(value: Any) -> str:
    if value not in ("auto", "process"):
        raise ValueError
    return str(value)


_COUNT = "a whole number, 1 or more"
_FROM_0 = "a whole number, 0 or more"
_SECONDS, _SECONDS_FROM_0 = "seconds, more than 0", "seconds, 0 or more"
_BOOL = "true or false"
_PATH = "a name of Python, 'package.module:Name'"
_WAIT_WORDS = f"one of {', '.join([*_WAITS, *STRATEGIES])}"
_positive = _number(1e-9, whole=False)

#: Keys that mean the same here.
KEYS: Mapping[str, Key] = {
    "topology.name": Key("name", "a name", _of(str)),
    "topology.workers": Key("workers", _COUNT, _number(1)),
    "topology.max.task.parallelism": Key("max_task_parallelism", _COUNT, _number(1)),
    "topology.tick.tuple.freq.secs": Key("tick", _SECONDS, _positive),
    "topology.message.timeout.secs": Key("message_timeout", _SECONDS, _positive),
    "topology.enable.message.timeouts": Key("message_timeouts", _BOOL, _of(bool)),
    "topology.max.spout.pending": Key("max_spout_pending", _COUNT, _number(1)),
    "topology.executor.receive.buffer.size": Key("queue_rows", _COUNT, _number(1)),
    "topology.disruptor.wait.strategy": Key("wait", _WAIT_WORDS, _wait),
    "topology.bolt.wait.strategy": Key("wait", _WAIT_WORDS, _wait),
    "topology.sleep.spout.wait.strategy.time.ms": Key("idle", "milliseconds", _millis),
    "topology.debug": Key("debug", _BOOL, _of(bool)),
    "topology.stats.sample.rate": Key("sample_rate", "a share, 0 to 1", _share),
    "topology.metrics.consumer.register": Key("consumers", "a list of consumers", _of(list)),
    "topology.builtin.metrics.bucket.size.secs": Key("metrics_every", _SECONDS, _positive),
    "topology.auto.task.hooks": Key("hooks", f"a list, each {_PATH}", _paths),
    "topology.acker.executors": Key("ackers", _FROM_0, _number(0)),
    "topology.worker.shared.thread.pool.size": Key("background_threads", _COUNT, _number(1)),
    "topology.state.checkpoint.interval.ms": Key("snapshot_every", "milliseconds", _millis),
    "topology.validator": Key("validator", _PATH, _of(str)),
    "nimbus.topology.validator": Key("validator", _PATH, _of(str)),
    "topology.multilang.serializer": Key(
        "serializer", "json or msgpack, or a class of such a name", _serializer
    ),
    "topology.shellbolt.max.pending": Key("shellbolt_max_pending", _COUNT, _number(1)),
    "topology.subprocess.timeout.secs": Key("subprocess_timeout", _SECONDS, _positive),
    "topology.environment": Key("environment", "names with values", _of(dict)),
    ISOLATION: Key("isolation", "'auto' or 'process'", _isolation),
    STATELESS: Key("stateless", _BOOL, _of(bool)),
    RESTARTS: Key("restarts", _FROM_0, _number(0)),
    LINGER: Key("linger", _SECONDS_FROM_0, _number(0, whole=False)),
    "thalweg.most_held": Key("most_held", _COUNT, _number(1)),
    "thalweg.most_bytes": Key("most_bytes", _COUNT, _number(1)),
}

_JVM = "there is no JVM"
_KRYO = "tuples travel as Arrow blocks, which need no serializers"
_SCHEDULE = "there are no worker processes to be placed on machines"
_BATCH = "what waits is sent in blocks; see block_rows of tw.Local"
_PUSH = "readers that are full hold up those that send to them, always"
_SPOUT_WAIT = "a source says itself when it is worth asking again"
_PAUSES = "the lengths of pauses are fixed"
_RIGHTS = "who may do what is up to the operating system"
_STATE = "state is kept by tw.Local(checkpoint=...)"
_TRIDENT = "the fluent API takes Trident's place"
_WINDOWS = "windows are operators of the fluent API"
_BLOBS = "there is no store for files: components open them where they are"
_ERRORS = "errors end a run, or follow the option on_error"
_EVENTS = "what is emitted is told to hooks"
_MEASURES = "all is measured, and told to the consumers of metrics"
_LOCALITY = "where tuples go is up to groupings, and to how busy tasks are"
_WORKERS = "there are no worker processes"
_CLUSTER = "there is no Storm cluster"
_TRAVEL = "tuples travel as Arrow blocks, as they are"

#: Keys of Storm that mean nothing here, and why.
MEANINGLESS: Mapping[str, str] = {
    "topology.tasks": "a component has as many tasks as its degree",
    "topology.executor.send.buffer.size": "there is no queue for sending",
    "topology.transfer.buffer.size": "nothing is transferred between worker processes",
    "topology.receiver.buffer.size": "nothing is received from other worker processes",
    "topology.spout.wait.strategy": _SPOUT_WAIT,
    "topology.spout.wait.park.microsec": _SPOUT_WAIT,
    "topology.spout.wait.progressive.level1.count": _SPOUT_WAIT,
    "topology.spout.wait.progressive.level2.count": _SPOUT_WAIT,
    "topology.spout.wait.progressive.level3.sleep.millis": _SPOUT_WAIT,
    "topology.spout.recvq.skips": _SPOUT_WAIT,
    "topology.bolt.wait.park.microsec": _PAUSES,
    "topology.bolt.wait.progressive.level1.count": _PAUSES,
    "topology.bolt.wait.progressive.level2.count": _PAUSES,
    "topology.bolt.wait.progressive.level3.sleep.millis": _PAUSES,
    "topology.disruptor.wait.timeout.millis": _PAUSES,
    "topology.disruptor.batch.size": _BATCH,
    "topology.disruptor.batch.timeout.millis": _BATCH,
    "topology.transfer.batch.size": _BATCH,
    "topology.producer.batch.size": _BATCH,
    "topology.flush.tuple.freq.millis": _BATCH,
    "topology.batch.flush.interval.millis": _BATCH,
    "topology.executor.overflow.limit": _PUSH,
    "topology.backpressure.enable": _PUSH,
    "topology.backpressure.check.millis": _PUSH,
    "topology.backpressure.wait.strategy": _PUSH,
    "topology.bolts.outgoing.overflow.buffer.enable": _PUSH,
    "topology.worker.childopts": _JVM,
    "topology.worker.gc.childopts": _JVM,
    "topology.worker.logwriter.childopts": _JVM,
    "topology.worker.max.heap.size.mb": _JVM,
    "topology.classpath": _JVM,
    "topology.classpath.beginning": _JVM,
    "topology.kryo.register": _KRYO,
    "topology.kryo.decorators": _KRYO,
    "topology.kryo.factory": _KRYO,
    "topology.skip.missing.kryo.registrations": _KRYO,
    "topology.fall.back.on.java.serialization": _KRYO,
    "topology.tuple.serializer": _KRYO,
    "topology.testing.always.try.serialize": _KRYO,
    "topology.scheduler.strategy": _SCHEDULE,
    "topology.scheduler.favored.nodes": _SCHEDULE,
    "topology.scheduler.unfavored.nodes": _SCHEDULE,
    "topology.isolate.machines": _SCHEDULE,
    "topology.priority": _SCHEDULE,
    "topology.component.cpu.pcore.percent": _SCHEDULE,
    "topology.component.resources.map": _SCHEDULE,
    "topology.component.resources.onheap.memory.mb": _SCHEDULE,
    "topology.component.resources.offheap.memory.mb": _SCHEDULE,
    "topology.eventlogger.executors": _EVENTS,
    "topology.max.error.report.per.interval": _ERRORS,
    "topology.error.throttle.interval.secs": _ERRORS,
    "topology.users": _RIGHTS,
    "topology.groups": _RIGHTS,
    "topology.submitter.user": _RIGHTS,
    "topology.auto-credentials": _RIGHTS,
    "topology.state.provider": _STATE,
    "topology.state.provider.config": _STATE,
    "topology.trident.batch.emit.interval.millis": _TRIDENT,
    "topology.trident.parallelism.hint": _TRIDENT,
    "topology.optimize": "Storm has no use for it either",
    "topology.worker.timeout.secs": _WORKERS,
    "topology.worker.receiver.thread.count": _WORKERS,
    "topology.worker.nimbus.thrift.client.use.tls": _WORKERS,
    "topology.max.replication.wait.time.sec": _CLUSTER,
    "topology.min.replication.count": _CLUSTER,
    "num.stat.buckets": _CLUSTER,
    "topology.blobstore.map": _BLOBS,
    "topology.tuple.compression.enable": _TRAVEL,
    "topology.tuple.compression.threshold": _TRAVEL,
    "topology.tuple.compression.max.decompressed.bytes": _TRAVEL,
    "topology.disable.loadaware.messaging": _LOCALITY,
    "topology.localityaware.higher.bound": _LOCALITY,
    "topology.localityaware.lower.bound": _LOCALITY,
    "topology.upstream.feedback.enable": _LOCALITY,
    "topology.upstream.feedback.freq.secs": _LOCALITY,
    "topology.producer.batch.dynamic": _BATCH,
    "topology.backpressure.wait.park.microsec": _PUSH,
    "topology.backpressure.wait.progressive.level1.count": _PUSH,
    "topology.backpressure.wait.progressive.level2.count": _PUSH,
    "topology.backpressure.wait.progressive.level3.sleep.millis": _PUSH,
    "topology.state.kryo.register": _KRYO,
    "topology.tuple.serializer.blowfish.key": _KRYO,
    "topology.acker.cpu.pcore.percent": _SCHEDULE,
    "topology.acker.resources.onheap.memory.mb": _SCHEDULE,
    "topology.acker.resources.offheap.memory.mb": _SCHEDULE,
    "topology.metrics.consumer.cpu.pcore.percent": _SCHEDULE,
    "topology.metrics.consumer.resources.onheap.memory.mb": _SCHEDULE,
    "topology.metrics.consumer.resources.offheap.memory.mb": _SCHEDULE,
    "topology.spread.components": _SCHEDULE,
    "topology.ras.acker.executors.per.worker": _SCHEDULE,
    "topology.ras.constraints": _SCHEDULE,
    "topology.ras.constraint.max.state.search": _SCHEDULE,
    "topology.ras.constraint.max.time.secs": _SCHEDULE,
    "topology.ras.one.component.per.worker": _SCHEDULE,
    "topology.ras.one.executor.per.worker": _SCHEDULE,
    "topology.ras.order.executors.by.proximity.needs": _SCHEDULE,
    "topology.oci.image": _SCHEDULE,
    "topology.event.logger.register": _EVENTS,
    "topology.eventlogger.max.retained.files": _EVENTS,
    "topology.eventlogger.rotation.size.mb": _EVENTS,
    "topology.metrics.reporters": _MEASURES,
    "topology.enable.send.iconnection.metrics": _MEASURES,
    "topology.enable.v2.metrics.tick": _MEASURES,
    "topology.v2.metrics.tick.interval.seconds": _MEASURES,
    "topology.serialized.message.size.metrics": _MEASURES,
    "topology.stats.ewma.enable": _MEASURES,
    "topology.stats.ewma.smoothing.factor": _MEASURES,
    "topology.worker.metrics": _MEASURES,
    "topology.multilang.log.handler": "what children log is told by the run",
    "topology.logging.config": "how much is logged is up to pystorm.log.level",
    "topology.logging.sensitivity": _RIGHTS,
    "topology.readonly.users": _RIGHTS,
    "topology.readonly.groups": _RIGHTS,
    "topology.submitter.principal": _RIGHTS,
    "logs.users": _RIGHTS,
    "logs.groups": _RIGHTS,
    "topology.state.synchronization.timeout.secs": _STATE,
    "topology.transactional.id": _TRIDENT,
    "topology.trident.windowing.cache.tuple.limit": _TRIDENT,
    "topology.spout.max.batch.size": _TRIDENT,
    "topology.bolts.window.length.count": _WINDOWS,
    "topology.bolts.window.length.duration.ms": _WINDOWS,
    "topology.bolts.window.sliding.interval.count": _WINDOWS,
    "topology.bolts.window.sliding.interval.duration.ms": _WINDOWS,
    "topology.bolts.late.tuple.stream": _WINDOWS,
    "topology.bolts.tuple.timestamp.field.name": _WINDOWS,
    "topology.bolts.tuple.timestamp.max.lag.ms": _WINDOWS,
    "topology.bolts.watermark.event.interval.ms": _WINDOWS,
    "topology.bolts.message.id.field.name": _WINDOWS,
    "topology.version": "it is a name for people only",
}

#: Beginnings of keys that are about machines of a cluster.
OF_CLUSTERS: Mapping[str, str] = {
    "nimbus.": "there is no Nimbus",
    "supervisor.": "there is no supervisor",
    "storm.": _CLUSTER,
    "ui.": "there is no UI of Storm",
    "logviewer.": "there is no log viewer",
    "drpc.": "there is no DRPC server",
    "worker.": _WORKERS,
    "zmq.": "nothing crosses a network",
    "java.": _JVM,
    "pacemaker.": "there is no Pacemaker",
    "transactional.": _TRIDENT,
    "resource.aware.": _SCHEDULE,
    "scheduler.": _SCHEDULE,
    "scheduling.timeout.": _SCHEDULE,
    "blacklist.scheduler.": _SCHEDULE,
    "isolation.scheduler.": _SCHEDULE,
    "multitenant.scheduler.": _SCHEDULE,
    "numa.": _SCHEDULE,
    "task.": _CLUSTER,
    "client.": _CLUSTER,
    "dev.zookeeper.": _CLUSTER,
    "executor.metrics.": _MEASURES,
    "backpressure.": _PUSH,
    "blobstore.": _BLOBS,
}
