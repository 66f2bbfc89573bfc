"""A topic counted on Spark: read by the driver's client, by Spark's connector, and by Spark alone.

All ways have the same topic, session and cores, batches of as many messages, and keep their state
and offsets. They take turns, and the first turn, in which everything starts, does not count.
``spark_count`` is Structured Streaming without Thalweg; ``spark_read`` does not even count, so it
is the limit for whoever reads through the connector.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import thalweg as tw
from thalweg.bench.measuring import environment, of_checkout, side_by_side
from thalweg.bench.spark_session import PLACES, bench_session, need
from thalweg.bench.usage import usage
from thalweg.connectors.kafka_client import client
from thalweg.errors import ThalwegError, UsageError, explain
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.runtimes.spark.settings import Kafka

_NAME = "kafka"
_SCRIPT = "scripts/kafka"
#: Words that messages are about.
_WORDS = 10_007
#: Messages between two looks at what brokers have answered.
_LOOK_EVERY = 1000
_FIELDS = {"n": int, "word": str}


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    messages: int = 1_000_000
    partitions: int = 4
    #: Messages of a batch.
    batch: int = 200_000
    repeat: int = 3
    #: A server; without it one is started as scripts/kafka does.
    bootstrap: str = ""
    #: Jars of Spark's connector; without them they are fetched as scripts/kafka does.
    jars: str = ""


@dataclass
class Ways:
    """The ways to count the messages of a topic; each gives how many there were."""

    session: Any
    servers: str
    topic: str
    options: Options
    #: Seconds of the processor that each turn took, by way.
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def thalweg(self, kafka: Kafka) -> int:
        """Count with Thalweg."""
        flow = tw.Flow("counted")
        source = tw.kafka(self.servers, self.topic, fields=_FIELDS, until="now")
        flow.source("messages", source).tally("counts", key="word")
        with tempfile.TemporaryDirectory(prefix="thalweg-") as kept:
            on = tw.Spark(
                session=self.session,
                places=PLACES,
                kafka=kafka,
                checkpoint=f"{kept}/offsets",
                state=f"{kept}/state",
                pump=PumpSettings(rows=self.options.batch),
            )
            return sum(flow.run(on=on).table("counts").values())

    def spark(self, count: bool) -> int:
        """Read, and count, with Structured Streaming alone."""
        from pyspark.sql import functions as f  # noqa: PLC0415 (an optional dependency)

        read = self.session.readStream.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self.servers,
                "kafka.isolation.level": "read_committed",
                "subscribe": self.topic,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(self.options.batch),
            }
        )
        value = f.from_json(f.col("value").cast("string"), "n bigint, word string").alias("value")
        rows = read.load().select(value).select("value.*")
        counted = rows.groupBy("word").count() if count else rows
        with tempfile.TemporaryDirectory(prefix="thalweg-") as kept:
            writer = counted.writeStream.outputMode("update" if count else "append").format("noop")
            query = writer.option("checkpointLocation", kept).trigger(availableNow=True).start()
            query.awaitTermination()
            return sum(progress.numInputRows for progress in query.recentProgress)

    def all(self) -> dict[str, Callable[[], int]]:
        """Give them by name."""
        found: dict[str, Callable[[], int]] = {
            "driver": lambda: self.thalweg("driver"),
            "connector": lambda: self.thalweg("connector"),
            "spark_count": lambda: self.spark(count=True),
            "spark_read": lambda: self.spark(count=False),
        }
        return {name: self._checked(name, way) for name, way in found.items()}

    def _checked(self, name: str, way: Callable[[], int]) -> Callable[[], int]:
        def run() -> int:
            before = usage().cpu
            counted = way()
            self.cpu.setdefault(name, []).append(usage().cpu - before)
            if counted != self.options.messages:
                expected, got = f"{self.options.messages} messages", str(counted)
                raise ThalwegError(explain(f"way {name!r}", "", expected, got))
            return counted

        return run


def run(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Count a topic of Kafka on Spark: the driver's client, Spark's connector, Spark alone."""
    need("pyspark", "pip install 'thalweg[spark]'")
    if quick:
        options = replace(options, messages=20_000, batch=10_000, repeat=1)
    jars = options.jars or _connector()
    with ExitStack() as stack:
        servers = options.bootstrap or stack.enter_context(_server())
        topic = stack.enter_context(_topic(servers, options, report))
        session = stack.enter_context(bench_session(_NAME, **{"spark.jars": jars}))
        ways = Ways(session, servers, topic, options)
        side_by_side(ways.all(), 1, lambda text: report(f"does not count: {text}"))
        ways.cpu.clear()
        results = side_by_side(ways.all(), options.repeat, report)
    for name, seconds in ways.cpu.items():
        results[name]["cpu_us"] = min(seconds) / options.messages * 1e6
    known = {"pyspark": version("pyspark"), "confluent-kafka": version("confluent-kafka")}
    known["jars"] = ", ".join(sorted(Path(jar).name for jar in jars.split(",")))
    return {
        "name": _NAME,
        "environment": environment() | known | asdict(replace(options, jars="")),
        "results": results,
        "summary": summary(results),
    }


def summary(results: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Compare the ways: best with best, median with median."""
    found: dict[str, float] = {}
    for name, each in results.items():
        found[f"{name}_per_s"], found[f"{name}_per_s_median"] = each["best"], each["median"]
        found[f"{name}_cpu_us"] = each["cpu_us"]
    for other in ("driver", "spark_count", "spark_read"):
        for suffix, which in (("", "best"), ("_median", "median")):
            share = results["connector"][which] / results[other][which]
            found[f"connector_vs_{other}{suffix}"] = share
    return found


def _connector() -> str:
    """Fetch the jars of the connector for the installed Spark."""
    package, spark = of_checkout(_NAME, "kafkaserver", _SCRIPT), version("pyspark")
    connector = of_checkout(_NAME, "kafkaserver.connector", _SCRIPT)
    try:
        return ",".join(map(str, connector.connector_jars(spark)))
    except package.NoKafka as error:
        hint = "run it with a Spark that has one: .venv-oldest of scripts/test-oldest-spark"
        raise UsageError(
            explain(f"connector of Spark {spark}", "", "jars", str(error), hint)
        ) from error


@contextmanager
def _server() -> Iterator[str]:
    """Start a server on this machine."""
    package = of_checkout(_NAME, "kafkaserver", _SCRIPT)
    with tempfile.TemporaryDirectory(prefix="thalweg-") as folder:
        server = package.Server(Path(folder))
        try:
            server.start()
        except package.NoKafka as error:
            hint = "--bootstrap names one that runs"
            raise UsageError(explain("Kafka", "", "a server", str(error), hint)) from error
        try:
            yield server.address
        finally:
            server.kill()


@contextmanager
def _topic(servers: str, options: Options, report: Callable[[str], None]) -> Iterator[str]:
    """Make a topic with the messages, and delete it in the end."""
    kafka, reached = client(), {"bootstrap.servers": servers}
    topic, admin = f"thalweg-bench-{os.getpid()}", kafka.admin.AdminClient(reached)
    for made in admin.create_topics([kafka.admin.NewTopic(topic, options.partitions, 1)]).values():
        made.result()
    try:
        producer = kafka.Producer({**reached, "linger.ms": 20})
        for n in range(options.messages):
            word = f"w{n * 7919 % _WORDS}"
            value = json.dumps({"n": n, "word": word})
            _produce(producer, topic, value, word)
            if n % _LOOK_EVERY == 0:
                producer.poll(0)
        if left := producer.flush(60):
            expected = f"{options.messages} messages"
            raise ThalwegError(explain("topic", "", expected, f"{left} not sent"))
        report(f"{options.messages:,} messages in {options.partitions} partitions")
        yield topic
    finally:
        for gone in admin.delete_topics([topic]).values():
            gone.result()


def _produce(producer: Any, topic: str, value: str, key: str) -> None:
    while True:
        try:
            return producer.produce(topic, value, key)
        except BufferError:  # there is no room before brokers have answered
            producer.poll(0.1)
