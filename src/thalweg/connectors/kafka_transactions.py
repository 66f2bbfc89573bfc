"""A batch of messages as one transaction of Kafka, sent once however often it is asked for.

The transaction commits, beside the messages, an offset of a consumer group of its own, whose
metadata name the batch. Whoever comes again finds it there. The ``transactional.id`` shuts out a
process that was thought dead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.connectors.kafka_client import Cluster, Trouble, client, make
from thalweg.connectors.kafka_sending import Sending
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import StagedRef
from thalweg.statelog.objects import checksum_of
from thalweg.statelog.staged import read_staged

# Brokers end a transaction that takes longer, in milliseconds.
_LONGEST = 600_000


@dataclass(frozen=True)
class Transaction:
    """A batch that is to be sent."""

    id: str
    topic: str
    version: int
    refs: tuple[StagedRef, ...]

    @property
    def mark(self) -> str:
        """What is kept with it; no other attempt, and no other state, has the same."""
        return checksum_of(" ".join(ref.name + ref.checksum for ref in self.refs).encode())


def deliver(cluster: Cluster, transaction: Transaction, location: Location, again: bool) -> None:
    """Send a batch; ``again`` says that it may have been sent before."""
    own = {"transactional_id": transaction.id, "transaction_timeout_ms": _LONGEST}
    with _group(cluster, transaction) as group:
        sending = Sending(cluster, transaction.topic, _ignore, **own)
        try:
            # Ends what a process that was killed has left; only then marks are settled.
            sending.producer.init_transactions(cluster.timeout)
            if not again or _mark(transaction, group, cluster.timeout) != transaction.mark:
                _send(sending, transaction, location, group, cluster.timeout)
        except client().KafkaException as error:
            sending.check()
            expected, where = "to take a transaction", f"topic {transaction.topic!r}"
            raise cluster.failed(expected, error.args[0].str(), where) from error
        finally:
            sending.close()


def _send(
    sending: Sending, transaction: Transaction, location: Location, group: Any, timeout: float
) -> None:
    producer = sending.producer
    producer.begin_transaction()
    for ref in transaction.refs:
        for messages in _read(location, ref):
            sending.send(messages)
    sending.flush()
    mark = client().TopicPartition(
        transaction.topic, 0, transaction.version, metadata=transaction.mark
    )
    producer.send_offsets_to_transaction([mark], group.consumer_group_metadata(), timeout)
    producer.commit_transaction(timeout)


@contextlib.contextmanager
def _group(cluster: Cluster, transaction: Transaction) -> Iterator[Any]:
    """Open the group that has the marks."""
    settings = cluster.settings(Trouble(_ignore), group_id=f"{transaction.id}-marks")
    group = make(client().Consumer, settings)
    try:
        yield group
    finally:
        group.close()


def _mark(transaction: Transaction, group: Any, timeout: float) -> str | None:
    (found,) = group.committed([client().TopicPartition(transaction.topic, 0)], timeout)
    mark: str | None = found.metadata
    return mark


def _read(location: Location, ref: StagedRef) -> Iterator[pa.RecordBatch]:
    yield from pq.read_table(pa.BufferReader(read_staged(location, ref))).to_batches()


def _ignore(_text: str) -> None:
    """Say nothing: what matters is raised."""
