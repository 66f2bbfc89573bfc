"""A topic of Kafka as a sink.

Brokers have all messages of a block before it counts as processed, so none is lost: at least once.
With ``transactional=True`` and a checkpoint each snapshot or batch is one transaction of Kafka,
which also holds a mark that says which one it was: exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, TypedDict, Unpack

import pyarrow as pa

from thalweg.clock import seconds
from thalweg.components import BlockBolt, Shared
from thalweg.connectors.kafka_client import Cluster, cluster
from thalweg.connectors.kafka_sending import Sending
from thalweg.connectors.kafka_transactions import Transaction, deliver
from thalweg.connectors.message_values import Key, MessageWriter, RowFormat, checked
from thalweg.connectors.parquet_parts import ParquetParts
from thalweg.contexts import TaskContext
from thalweg.errors import UsageError, explain
from thalweg.events import Noticed
from thalweg.statelog.manifests import StagedRef
from thalweg.statelog.objects import checksum_of
from thalweg.statelog.staged import StagedBatch


class KafkaSink(Shared, BlockBolt):
    """Sends each tuple as a message."""

    reads_first = True

    def __init__(self, cluster_: Cluster, topic: str, writer: MessageWriter) -> None:
        self.cluster, self.topic, self._writer = cluster_, topic, writer
        self._sending: Sending | None = None

    def prepare(self, context: TaskContext) -> None:
        """Connect."""
        self._sending = Sending(self.cluster, self.topic, self._tell)

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Send a block, and wait until brokers have it."""
        if self._sending is None:
            self._not_running("process_block")
        self._sending.send(self._writer.encode(batch, self.context.refuse))
        self._sending.flush()

    def cleanup(self) -> None:
        """Disconnect."""
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.close()

    def _tell(self, text: str) -> None:
        self.context.tell(Noticed(text))


class TransactionalSink(KafkaSink):
    """What a topology has; where there is a checkpoint a :class:`_PlaceSink` works in its stead."""

    at_places: ClassVar[bool] = True
    fixed_degree: ClassVar[bool] = True

    def __init__(
        self, cluster_: Cluster, topic: str, writer: MessageWriter, id_: str | None
    ) -> None:
        super().__init__(cluster_, topic, writer)
        self._id = id_
        #: The last transaction of this object, whose mark need not be looked for.
        self._last: Transaction | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self.cluster, self.topic, self._writer, self._id)

    def __reduce__(self) -> tuple[Any, ...]:
        # Places send nothing, so passwords stay here.
        bare = replace(self.cluster, config={})
        return _PlaceSink, (bare, self.topic, self._writer, self._id)

    def prepare(self, context: TaskContext) -> None:
        """Connect; say that nothing makes a transaction here."""
        super().prepare(context)
        text = f"{context.component!r} sends at least once: transactions need a checkpoint"
        self._tell(text)

    def for_batches(self) -> _PlaceSink:
        """Give a sink that leaves it to others to send what it has taken in."""
        return _PlaceSink(self.cluster, self.topic, self._writer, self._id)

    def hand_over(self) -> _PlaceSink | None:
        """Only a sink for batches is asked."""
        return None

    def finish_batch(self, batch: StagedBatch) -> list[StagedRef]:
        """Only a sink for batches is asked."""
        return []

    def commit_batch(self, session: Any, batch: StagedBatch, refs: list[StagedRef]) -> None:
        """Send what a batch has staged, unless that was done."""
        del session
        staged = sorted((ref for ref in refs if ref.name.startswith(_FOLDER)), key=_by_name)
        if not staged:
            return
        component = staged[0].component
        own = f"thalweg-{checksum_of(str(batch.location).encode())[:12]}"
        id_ = f"{self._id or own}-{component}"
        transaction = Transaction(id_, self.topic, batch.version, tuple(staged))
        again = self._last is None or self._last.version >= batch.version
        deliver(self.cluster, transaction, batch.location, again)
        self._last = transaction
        folder = _folder(component)
        for name in batch.location.names(folder):
            if name < _stem(batch.version + 1):
                batch.location.delete(f"{folder}/{name}")


class _PlaceSink(TransactionalSink):
    """Encodes tuples where they are; they are sent after the commit."""

    def prepare(self, context: TaskContext) -> None:
        """Begin a batch."""
        self._parts = ParquetParts(f"messages for topic {self.topic!r}")

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Take rows."""
        self._parts.add(self._writer.encode(batch, self.context.refuse))
        if self._parts.is_full:
            self._parts.spill()

    def hand_over(self) -> _PlaceSink | None:
        """Give what was taken in so far to a sink of its own, if there is any, and begin anew."""
        if self._parts.is_empty:
            return None
        made = self.for_batches()
        made.context, made._parts = self.context, self._parts
        self.prepare(self.context)
        return made

    def finish_batch(self, batch: StagedBatch) -> list[StagedRef]:
        """Write the messages of a batch beside the state."""
        component = self.context.component
        return batch.stage(component, self._parts.take(), ".parquet", _folder(component))

    def cleanup(self) -> None:
        """Forget what was not written."""
        self._parts.close()


_FOLDER = "messages"


def _folder(component: str) -> str:
    return f"{_FOLDER}/{component}"


def _stem(version: int) -> str:
    return f"{version:012}"


def _by_name(ref: StagedRef) -> str:
    return ref.name


class ToKafkaOptions(TypedDict, total=False):
    """Further options of :func:`to_kafka`."""

    #: How long to wait for brokers before the run ends with an error.
    timeout: float | str
    #: Settings of librdkafka, such as those of security.
    config: Mapping[str, Any]


def to_kafka(
    servers: str | Iterable[str],
    topic: str,
    *,
    key: Key = None,
    format: RowFormat = "json",  # noqa: A002 (as in files)
    transactional: bool | str = False,
    **options: Unpack[ToKafkaOptions],
) -> KafkaSink:
    """Make a sink that sends each tuple as a message.

    ``key`` is a field, or a function of the tuple; tuples with the same key go to the same
    partition, in order. ``transactional`` makes it exactly once with a checkpoint; text instead of
    True is how its ``transactional.id`` begins.

    >>> to_kafka("localhost:9092", "counts", key="word").topic
    'counts'
    """
    for name in options:
        if name not in ToKafkaOptions.__annotations__:
            expected = "timeout or config"
            raise UsageError(explain("option of to_kafka", expected=expected, got=name))
    reached = cluster(
        servers, seconds(options.get("timeout", 30.0), "timeout"), options.get("config")
    )
    writer = MessageWriter(*checked(format, key))
    if not transactional:
        return KafkaSink(reached, topic, writer)
    id_ = transactional if isinstance(transactional, str) else None
    return TransactionalSink(reached, topic, writer, id_)
