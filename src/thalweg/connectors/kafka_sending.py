"""A producer: sends encoded messages, and knows when brokers have all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from thalweg.connectors.kafka_client import Cluster, Trouble, client, make, reach

# Messages that wait in the client; more are let in as brokers take them.
_WAITING = 100_000
# Seconds to wait for room among them.
_PAUSE = 0.1


class Sending:
    """Sends messages to one topic."""

    def __init__(
        self, cluster: Cluster, topic: str, tell: Callable[[str], None], **own: Any
    ) -> None:
        self._cluster, self._topic = cluster, topic
        self._trouble = Trouble(tell)
        self._failed: Any = None
        settings = cluster.settings(
            self._trouble,
            linger_ms=5,
            partitioner="murmur2_random",  # as the clients of other languages do it
            message_timeout_ms=max(1000, int(cluster.timeout * 1000)),
            queue_buffering_max_messages=_WAITING,
            enable_idempotence=True,
            **own,
        )
        # No report of success: those would be as many as messages.
        settings |= {"delivery.report.only.error": True, "on_delivery": self._delivered}
        #: The client's producer.
        self.producer: Any = make(client().Producer, settings)
        try:
            reach(self.producer, cluster, self._trouble, [topic])
        except BaseException:
            self.close()
            raise

    def send(self, messages: pa.RecordBatch) -> None:
        """Hand messages to the client, in their order."""
        produce, topic = self.producer.produce, self._topic
        columns = [column.to_pylist() for column in messages.columns]
        for key, value in zip(*columns, strict=True):
            while True:
                try:
                    produce(topic, value, key)
                    break
                except BufferError:
                    self.producer.poll(_PAUSE)
                    self.check()
                except client().KafkaException as error:
                    raise self._error(error.args[0]) from error

    def flush(self) -> None:
        """Wait until brokers have all of them; raises where they do not."""
        while self.producer.flush(_PAUSE) and self._failed is None:
            self.check()
        self.check()

    def check(self) -> None:
        """Raise what went wrong with a message."""
        error = self._failed or self._trouble.fatal
        if error is not None:
            raise self._error(error)

    def close(self) -> None:
        """Forget what was not sent, and disconnect."""
        self.producer.purge()
        self.producer.flush(0)
        self.producer = None  # disconnects when nobody has it

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failed = self._failed or error

    def _error(self, error: Any) -> Exception:
        hint = "the run can go on from its checkpoint when the topic takes messages again"
        got = f"{error.str()}{f' ({self._trouble.last})' if self._trouble.last else ''}"
        where = f"topic {self._topic!r}"
        return self._cluster.failed("to take all messages", got, where, hint)
