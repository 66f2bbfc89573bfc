"""One Kafka for all tests of a module, which are skipped with the reason where there is none."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaserver import NoKafka, Server, jars

_NUMBERS = itertools.count()


class Broker:
    """A server, and what tests do with it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = pytest.importorskip("confluent_kafka")
        self.admin_module = pytest.importorskip("confluent_kafka.admin")

    @property
    def address(self) -> str:
        return self.server.address

    def topic(self, partitions: int = 3) -> str:
        """Make a topic that nobody else uses."""
        name = f"topic-{next(_NUMBERS)}"
        admin = self.admin_module.AdminClient({"bootstrap.servers": self.address})
        (made,) = admin.create_topics([self.admin_module.NewTopic(name, partitions, 1)]).values()
        made.result()
        self._until_known(admin, name, partitions)
        return name

    def _until_known(self, admin: Any, topic: str, partitions: int) -> None:
        """Wait until clients hear of all partitions, which is after they were made."""
        while not self._has_leaders(admin, topic, partitions):
            time.sleep(0.01)

    def _has_leaders(self, admin: Any, topic: str, partitions: int) -> bool:
        known = admin.list_topics(topic).topics[topic]
        leaders = [partition.leader for partition in known.partitions.values()]
        return known.error is None and len(leaders) == partitions and min(leaders) >= 0

    def add_partitions(self, topic: str, partitions: int) -> None:
        admin = self.admin_module.AdminClient({"bootstrap.servers": self.address})
        asked = self.admin_module.NewPartitions(topic, partitions)
        (made,) = admin.create_partitions([asked]).values()
        made.result()
        self._until_known(admin, topic, partitions)

    def send(self, topic: str, messages: Iterable[tuple[Any, Any]], **where: Any) -> None:
        """Send keys and values; what is neither bytes nor text nor nothing becomes JSON."""
        producer = self.client.Producer({"bootstrap.servers": self.address})
        failed: list[Any] = []
        for key, value in messages:
            raw = value if isinstance(value, bytes | str | None) else json.dumps(value)
            producer.produce(
                topic, raw, key, on_delivery=lambda e, _: failed.append(e) if e else None, **where
            )
            producer.poll(0)
        producer.flush()
        assert not failed, failed

    def settled(self, topic: str) -> str:
        """Wait until transactions can be seen; their commit is answered before. Gives the topic."""
        admin = self.admin_module.AdminClient({"bootstrap.servers": self.address})
        levels = self.client.IsolationLevel
        while True:
            seen = self._ends(admin, topic, levels.READ_COMMITTED)
            if seen is not None and seen == self._ends(admin, topic, levels.READ_UNCOMMITTED):
                return topic
            time.sleep(0.01)

    def _ends(self, admin: Any, topic: str, level: Any) -> dict[int, int] | None:
        """Give the offsets behind the last messages; None while a partition has no leader."""
        latest, place = self.admin_module.OffsetSpec.latest(), self.client.TopicPartition
        partitions = admin.list_topics(topic).topics[topic].partitions
        asked = {place(topic, partition): latest for partition in partitions}
        try:
            found = admin.list_offsets(asked, isolation_level=level)
            return {p.partition: future.result().offset for p, future in found.items()}
        except self.client.KafkaException as error:
            if not error.args[0].retriable():
                raise
            return None

    def read(self, topic: str, group: str = "reader") -> list[Any]:
        """Give all messages that are committed, partition by partition."""
        self.settled(topic)
        consumer = self.client.Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": group,
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        partitions = consumer.list_topics(topic).topics[topic].partitions
        place = self.client.TopicPartition
        consumer.assign([place(topic, p, self.client.OFFSET_BEGINNING) for p in partitions])
        found, ended = [], set()
        while len(ended) < len(partitions):
            for message in consumer.consume(1000, 1.0):
                if message.error() is None:
                    found.append(message)
                elif message.error().code() == self.client.KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
        consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        """Give the offsets that a group has committed."""
        consumer = self.client.Consumer({"bootstrap.servers": self.address, "group.id": group})
        partitions = consumer.list_topics(topic).topics[topic].partitions
        asked = [self.client.TopicPartition(topic, partition) for partition in partitions]
        found = {p.partition: p.offset for p in consumer.committed(asked, 120) if p.offset >= 0}
        consumer.close()
        return found


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Give a server that this module has alone."""
    pytest.importorskip("confluent_kafka", reason="the extra 'kafka' is not installed")
    try:
        jars()
    except NoKafka as reason:
        pytest.skip(str(reason))
    server = Server(Path(tmp_path_factory.mktemp("kafka")))
    server.start()
    yield Broker(server)
    server.kill()
