"""Topics that Spark's own connector reads, partition by partition, where batches are processed.

Structured Streaming keeps the offsets. The client beside the driver says where to begin, and keeps
the offsets of the group for others to see; no message comes through it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from thalweg.connectors.frames import SparkSource
from thalweg.connectors.kafka import KafkaSource
from thalweg.connectors.kafka_columns import MessageColumns
from thalweg.connectors.kafka_java import java_settings
from thalweg.connectors.kafka_offsets import Position, name_of, split
from thalweg.connectors.kafka_reading import Reading
from thalweg.errors import StateError, UsageError, explain
from thalweg.runtimes.spark.settings import CONNECTOR, SparkSettings
from thalweg.topology import Component, Topology

_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
# What Spark says of messages that are gone, when it plans a batch and when it reads one.
_LOST = ("KAFKA_DATA_LOSS", "Some data may have been lost")


class Connected(SparkSource):
    """A source of Kafka for one run in which Spark's connector reads it."""

    decoder: MessageColumns

    def __init__(self, source: KafkaSource, rows: int) -> None:
        super().__init__(self._load)
        self._cluster, self._wanted, self._rows = source.cluster, source.wanted, rows
        self.decoder = MessageColumns(source.format, source.extra)
        self.bounded = source.wanted.bounded
        self._reading: Reading | None = None

    def open(
        self, now: Callable[[], float], tell: Callable[[str], None], position: Position | None
    ) -> None:
        """Find out where to begin; a run that goes on has a position."""
        self._reading = Reading(self._cluster, self._wanted, (0, 1), now, tell)
        if position is not None:
            self._reading.seek(position)
        self._reading.begin()

    def _load(self, session: Any) -> Any:
        assert self._reading is not None  # noqa: S101 (opened before)
        options = self._options() | {"startingOffsets": json.dumps(nested(self._reading.at))}
        return session.readStream.format("kafka").options(**options).load()

    def _options(self) -> dict[str, str]:
        settings = {
            **java_settings(self._cluster.config),
            "bootstrap.servers": self._cluster.servers,
            "isolation.level": "read_committed",
        }
        return {
            **{f"kafka.{name}": value for name, value in settings.items()},
            "subscribe": ",".join(self._wanted.topics),
            "maxOffsetsPerTrigger": str(self._rows),
            "failOnDataLoss": str(not self._wanted.skip_lost).lower(),
            "includeHeaders": str("headers" in self.decoder.names).lower(),
        }

    def check(self, session: Any) -> None:
        """Refuse to begin without the connector; nothing is read."""
        try:
            session.readStream.format("kafka").options(**self._options()).load()
        except (PySparkException, Py4JError) as error:
            raise no_connector(session.version, error) from error

    def keep(self, query: Any) -> None:
        """Let the group know now and then what is committed."""
        if self._reading is not None and self._reading.due:
            self._hear(query)
            self._reading.keep()

    def _hear(self, query: Any) -> None:
        progress = query.lastProgress
        if self._reading is not None and progress is not None:
            self._reading.processed(flat(json.loads(progress.sources[0].endOffset)))

    def close(self, query: Any) -> None:
        """Keep the offsets of the group, and disconnect."""
        if self._reading is not None:
            try:
                if query is not None and self._wanted.group:
                    self._hear(query)
            finally:  # Spark may be gone
                self._reading.close()
                self._reading = None


def connected(topology: Topology, settings: SparkSettings, session: Any) -> Topology:
    """Let Spark's connector read the topics of a topology, if that is wanted."""
    if settings.kafka != CONNECTOR:
        return topology

    def fit(component: Component) -> Component:
        if not isinstance(component.body, KafkaSource):
            return component
        body = Connected(component.body, settings.pump.rows)
        body.check(session)
        return replace(component, body=body)

    return replace(topology, components=tuple(map(fit, topology)))


def no_connector(version: str, error: Exception) -> UsageError:
    """Say what has to be added."""
    package = f"{_PACKAGE}:{version}"
    missing = "Failed to find data source: kafka" in str(error) or "_NOT_FOUND" in str(error)
    got = "none" if missing else str(error).strip().splitlines()[0]
    hint = f"tw.Spark(config={{'spark.jars.packages': '{package}'}}), or --packages {package}"
    expected = f"{package} among the jars of Spark"
    return UsageError(explain("Spark's connector for Kafka", "", expected, got, hint))


def check_way(topology: Topology, committed: Mapping[str, int], positions: Collection[str]) -> None:
    """Refuse to go on another way than a state was begun: offsets are kept elsewhere then."""
    logged = {name.rpartition("/")[0] for name in positions}
    for component in topology.spouts:
        if isinstance(component.body, Connected) and component.name in logged:
            raise _other_way(component.name, "driver")
        if isinstance(component.body, KafkaSource) and component.name in committed:
            raise _other_way(component.name, CONNECTOR)


def _other_way(component: str, before: str) -> StateError:
    hint = "offsets are kept elsewhere with the other; or begin with another state"
    expected = f"tw.Spark(kafka={before!r}), with which the state was made"
    return StateError(explain(f"source {component!r}", "", expected, "the other way", hint))


def position_of(session: Any, folder: str, number: int) -> Position:
    """Read where a batch of Structured Streaming ended, from the folder of its offsets."""
    # Not with session.read, to which some characters of a path are patterns.
    path = session._jvm.org.apache.hadoop.fs.Path(f"{folder}/offsets/{number}")
    file = path.getFileSystem(session._jsc.hadoopConfiguration()).open(path)
    try:
        lines = bytes(file.readAllBytes()).decode().splitlines()
    finally:
        file.close()
    return flat(json.loads(lines[-1]))


def lost(problem: BaseException) -> StateError | None:
    """Tell of messages that were deleted before they were read, if that is the problem."""
    if not any(said in str(problem) for said in _LOST):
        return None
    hint = "they were deleted before they were read; lost='skip' goes on behind them"
    return StateError(explain("Kafka", "", "all messages", "some that are gone", hint))


def nested(position: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Write offsets as Spark has them.

    >>> nested({"clicks/0": 7, "clicks/1": 9})
    {'clicks': {'0': 7, '1': 9}}
    """
    found: dict[str, dict[str, int]] = {}
    for name, offset in position.items():
        topic, partition = split(name)
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def flat(offsets: Mapping[str, Mapping[str, int]]) -> Position:
    """Read offsets as Spark writes them.

    >>> flat({"clicks": {"0": 7, "1": 9}})
    {'clicks/0': 7, 'clicks/1': 9}
    """
    return {
        name_of(topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
