"""One task's consumer: which partitions it reads, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.connectors.kafka_client import Cluster, Trouble, client, make, reach
from thalweg.connectors.kafka_offsets import (
    Bounds,
    Position,
    Start,
    first_offsets,
    name_of,
    owned,
    settled,
    split,
)

# Kilobytes that the client fetches ahead.
_AHEAD = 16 * 1024
# The client wants to be asked now and then; a run that waits for somebody else is no failure.
_PATIENCE = 86_400_000
_MESSAGES = "messages"
# Messages that the client gives at once.
_MOST = 1_000_000
# Seconds between two questions of which the first had no answer.
_PAUSE = 0.1
#: The client wants a name even where no offsets are kept under it.
_NO_GROUP = "thalweg"


@dataclass(frozen=True)
class Wanted:
    """What to read."""

    topics: tuple[str, ...]
    group: str | None = None
    start: Start = "earliest"
    #: Whether to end behind the messages that are there when the run begins.
    bounded: bool = False
    #: Whether to go on where messages were deleted before they were read.
    skip_lost: bool = False
    #: Seconds between two looks for new partitions, and between two commits of a group's offsets.
    refresh: float = 30.0
    commit_every: float = 5.0


class Reading:
    """Reads the partitions of one task of a source."""

    def __init__(
        self,
        cluster: Cluster,
        wanted: Wanted,
        share: tuple[int, int],
        now: Callable[[], float],
        tell: Callable[[str], None],
    ) -> None:
        self._cluster, self._wanted, self._share = cluster, wanted, share
        self._now, self._tell = now, tell
        self._kafka, self._trouble = client(), Trouble(tell)
        self._consumer = self._make_consumer()
        #: Where each partition goes on behind what was given.
        self.at: Position = {}
        self._from: Mapping[str, int] | None = None
        self._ends: Position = {}
        #: Ends that partitions have had; marks of transactions before them are no messages.
        self._seen_ends: Position = {}
        self._assigned = False
        self._asked: Mapping[str, Any] = {}
        self._next_look, self._next_commit = now() + wanted.refresh, now() + wanted.commit_every
        #: What is processed, and what the group knows of it.
        self._processed: Mapping[str, int] = {}
        self._committed: Mapping[str, int] = {}
        try:
            self._open()
        except BaseException:
            self._consumer.close()
            raise

    def _make_consumer(self) -> Any:
        settings = self._cluster.settings(
            self._trouble,
            group_id=self._wanted.group or _NO_GROUP,
            queued_max_messages_kbytes=_AHEAD,
            max_poll_interval_ms=_PATIENCE,
            auto_offset_reset="earliest" if self._wanted.skip_lost else "error",
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            enable_partition_eof=True,
        )
        return make(self._kafka.Consumer, settings)

    def _open(self) -> None:
        partitions = reach(self._consumer, self._cluster, self._trouble, self._wanted.topics)
        self._admin = self._kafka.admin.AdminClient(self._cluster.settings(self._trouble))
        self._bounds = self._ask_bounds(owned(partitions, *self._share))
        kept = self._group_offsets() if self._wanted.group else {}
        self._from = first_offsets(self._bounds, self._wanted.start, kept)
        if self._wanted.bounded:
            self._ends = {name: each.high for name, each in self._bounds.items()}

    def seek(self, position: Mapping[str, int]) -> None:
        """Go on from somewhere else."""
        self._from = position

    def begin(self) -> None:
        """Go to where reading begins, unless that is done; no sooner, for ``seek`` may follow."""
        if self._from is None:
            return
        self.at, lost = settled(self._from, self._bounds, self._wanted.skip_lost)
        self._from = None
        for text in lost:
            self._tell(f"Kafka: {text}")

    def _ask_bounds(self, names: Sequence[str]) -> dict[str, Bounds]:
        """Ask for the first and the last offset of partitions."""
        spec = self._kafka.admin.OffsetSpec
        low, high = (self._offsets(names, each()) for each in (spec.earliest, spec.latest))
        return {name: Bounds(low[name], high[name]) for name in names}

    def _offsets(self, names: Sequence[str], spec: Any) -> Position:
        if not names:
            return {}
        partitions = {self._kafka.TopicPartition(*split(name)): spec for name in names}
        level = self._kafka.IsolationLevel.READ_COMMITTED
        until = time.monotonic() + self._cluster.timeout
        while True:
            asked = self._admin.list_offsets(
                partitions, isolation_level=level, request_timeout=self._cluster.timeout
            )
            try:
                return {name_of(p.topic, p.partition): f.result().offset for p, f in asked.items()}
            except self._kafka.KafkaException as error:
                # A partition that is new, or moves, has no leader for a moment.
                if not error.args[0].retriable() or time.monotonic() > until:
                    expected = "the offsets of partitions"
                    raise self._cluster.failed(expected, error.args[0].str()) from error
                time.sleep(_PAUSE)

    def _group_offsets(self) -> Position:
        partitions = [self._kafka.TopicPartition(*split(name)) for name in self._bounds]
        try:
            found = self._consumer.committed(partitions, self._cluster.timeout)
        except self._kafka.KafkaException as error:
            expected = f"the offsets of group {self._wanted.group!r}"
            raise self._cluster.failed(expected, error.args[0].str()) from error
        return {name_of(p.topic, p.partition): p.offset for p in found if p.offset >= 0}

    # --- while it reads ----------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether all that was wanted has been read."""
        ends = self._ends
        return self._wanted.bounded and all(self.at[name] >= end for name, end in ends.items())

    def take(self, limit: int) -> tuple[list[Any], Position]:
        """Give messages that have arrived, and where to go on behind them; never waits."""
        self.begin()
        self._look_for_partitions()
        self._commit_if_due()
        if not self._assigned:
            self._assign()
        taken = self._consumer.consume(min(limit, _MOST), 0) if self.at else []
        if self._trouble.fatal is not None:
            expected = "a client that goes on"
            raise self._cluster.failed(expected, self._trouble.fatal.str())
        messages = [message for message in taken if message.error() is None]
        at = dict(self.at)
        if len(messages) < len(taken):
            self._hear([message for message in taken if message.error() is not None], at)
        if messages:
            self._trouble.over()
        for name, behind in _behind(messages).items():
            at[name] = max(at[name], behind)
        if any(at[name] > end for name, end in self._ends.items()):
            messages = [m for m in messages if m.offset() < self._ends[partition_of(m)]]
            at = {name: min(each, self._ends[name]) for name, each in at.items()}
        return messages, at

    def _hear(self, said: Sequence[Any], at: Position) -> None:
        """Take in what is no message: the end of a partition, or an error."""
        errors = self._kafka.KafkaError
        for each in said:
            code, error = each.error().code(), each.error()
            if code == errors._PARTITION_EOF:
                self._hear_end(partition_of(each), each.offset(), at)
            elif not error.retriable() and code not in (errors._TRANSPORT, errors._RESOLVE):
                hint = "messages may have been deleted before they were read; see lost="
                hint = hint if code == errors._AUTO_OFFSET_RESET else ""
                where = f"partition {partition_of(each)}" if each.topic() else ""
                raise self._cluster.failed(_MESSAGES, error.str(), where, hint)

    def _hear_end(self, name: str, offset: int, at: Position) -> None:
        """Take in where a partition ends at present."""
        self._seen_ends[name] = offset
        if self._wanted.bounded:
            at[name] = max(at[name], min(offset, self._ends[name]))

    def _assign(self) -> None:
        partition = self._kafka.TopicPartition
        self._consumer.assign([partition(*split(name), at) for name, at in self.at.items()])
        self._assigned = True

    def _look_for_partitions(self) -> None:
        """Ask now and then for partitions that were added; the answer is taken when it is there."""
        if self._asked and all(future.done() for future in self._asked.values()):
            asked, self._asked = self._asked, {}
            self._add({t: f.result() for t, f in asked.items() if f.exception() is None})
        if self._wanted.bounded or self._asked or self._now() < self._next_look:
            return
        self._next_look = self._now() + self._wanted.refresh
        topics = self._kafka.TopicCollection(list(self._wanted.topics))
        self._asked = self._admin.describe_topics(topics, request_timeout=self._cluster.timeout)

    def _add(self, described: Mapping[str, Any]) -> None:
        counts = {topic: len(each.partitions) for topic, each in described.items()}
        new = [name for name in owned(counts, *self._share) if name not in self.at]
        if new:
            self._tell(f"Kafka: new partitions {', '.join(new)}")
            self.at |= dict.fromkeys(new, 0)
            self._assigned = False  # what was fetched ahead comes again

    def backlog(self) -> int | None:
        """Count messages that were not given yet; None while the client does not know."""
        rows = None
        for name, at in self.at.items():
            high = self._high(name)
            if high >= 0:
                rows = (rows or 0) + max(0, min(high, self._ends.get(name, high)) - at)
        return rows

    def waiting(self) -> dict[str, bool]:
        """Say of each partition whether it has messages that were not given yet.

        One that was just found has, until the client knows better.
        """
        found = {}
        for name, at in self.at.items():
            end = self._high(name)
            known = self._bounds[name].high if name in self._bounds else at + (end < 0)
            high = max(end, known)
            read = max(at, self._seen_ends.get(name, 0))
            found[name] = read < min(high, self._ends.get(name, high))
        return found

    def _high(self, name: str) -> int:
        """Give the end of a partition, as the client knows it; below 0 while it does not."""
        partition = self._kafka.TopicPartition(*split(name))
        return int(self._consumer.get_watermark_offsets(partition, cached=True)[1])

    # --- what a group knows ------------------------------------------------------------------

    def processed(self, position: Mapping[str, int]) -> None:
        """Hear, in any thread, what need not be read again."""
        self._processed = position

    @property
    def due(self) -> bool:
        """Whether it is time to keep the offsets of the group."""
        return self._wanted.group is not None and self._now() >= self._next_commit

    def keep(self) -> None:
        """Keep the offsets of the group, and hear what the client has to say."""
        self._commit_if_due()
        self._consumer.poll(0)

    def _commit_if_due(self) -> None:
        if self.due:
            self._next_commit = self._now() + self._wanted.commit_every
            self._commit(wait=False)

    def _commit(self, wait: bool) -> None:
        processed = self._processed
        if processed == self._committed or not self._wanted.group:
            return
        partition = self._kafka.TopicPartition
        offsets = [partition(*split(name), at) for name, at in processed.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=not wait)
            self._committed = processed
        except self._kafka.KafkaException as error:
            text = error.args[0].str()
            self._tell(f"Kafka: offsets of group {self._wanted.group!r} not kept: {text}")

    def close(self) -> None:
        """Keep the group's offsets, and disconnect."""
        self._commit(wait=True)
        self._consumer.close()


def _behind(messages: Sequence[Any]) -> Position:
    """Give the offsets behind messages: of each partition the last one counts."""
    found = {(m.topic(), m.partition()): m.offset() for m in messages}
    return {name_of(*partition): offset + 1 for partition, offset in found.items()}


def partition_of(message: Any) -> str:
    """Name the partition of a message."""
    return name_of(message.topic(), message.partition())
