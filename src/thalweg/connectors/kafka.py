"""Topics of Kafka as a source.

The partitions of the topics are spread over the tasks. Rows of several partitions come in another
order every time, so a snapshot holds offsets: the source says its ``position()``, goes on after
``seek(position)``, and hears in ``processed(position)`` what will not be asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

import pyarrow as pa

from thalweg.clock import seconds
from thalweg.components import BlockSpout, Shared
from thalweg.connectors.kafka_client import Cluster, cluster
from thalweg.connectors.kafka_offsets import checked_start
from thalweg.connectors.kafka_reading import Reading, Wanted, partition_of
from thalweg.connectors.messages import (
    Format,
    MessageReader,
    checked_format,
    extra_fields,
    message_fields,
)
from thalweg.contexts import TaskContext
from thalweg.errors import UsageError, explain
from thalweg.events import Noticed
from thalweg.eventtime import EventTime
from thalweg.strands import Strands, newest_by, time_wanted


class KafkaSource(Shared, BlockSpout):
    """Reads topics; each partition is read by one task, and a strand of its own."""

    replays = False

    def __init__(
        self, cluster_: Cluster, wanted: Wanted, format_: Format, extra: Mapping[str, str]
    ) -> None:
        self.cluster, self.wanted = cluster_, wanted
        self.format, self.extra = format_, extra
        self.ends = wanted.bounded
        self._reading: Reading | None = None
        self._time: EventTime | None = None

    def prepare(self, context: TaskContext) -> None:
        """Connect, and find the partitions of this task."""
        (shape,) = context.shapes.values()
        self._reader = MessageReader(shape, self.format, self.extra, self._refuse)
        self._time, self._strands = time_wanted(context), Strands[str]()
        share = context.task, context.degree
        self._reading = Reading(self.cluster, self.wanted, share, context.clock.now, self._tell)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give messages that have arrived; one that cannot be read is refused alone."""
        reading = self._running()
        messages, at = reading.take(limit)
        batch = self._reader.batch(messages)
        reading.at = at  # not before: a message that ends the run comes again in the next one
        self.awaited = bool(at)
        self._note_time(reading, batch)
        if reading.ended:
            self.finish()
        return batch

    def _note_time(self, reading: Reading, batch: pa.RecordBatch | None) -> None:
        """Note how far event time has come; it waits for partitions with messages to read."""
        if self._time is None:
            return
        if batch is not None:
            names = [partition_of(message) for message in self._reader.kept]
            for name, newest in newest_by(names, batch, self._time).items():
                self._strands.gave(name, newest)
        for name, waits in reading.waiting().items():
            (self._strands.opens if waits else self._strands.ends)(name)
        self.reached = self._strands.reached

    def backlog(self) -> int | None:
        """Count messages that are there and were not given yet."""
        return self._running().backlog()

    def position(self) -> dict[str, int]:
        """Say where it goes on behind the rows that it has given."""
        reading = self._running()
        reading.begin()
        return dict(reading.at)

    def seek(self, position: Mapping[str, int]) -> None:
        """Go on from a position."""
        self._running().seek(position)

    def processed(self, position: Mapping[str, int]) -> None:
        """Hear what will not be asked for again; the group's offsets follow."""
        self._running().processed(position)

    def cleanup(self) -> None:
        """Disconnect."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.close()

    def _running(self) -> Reading:
        if self._reading is None:
            self._not_running("next_block")
        return self._reading

    def _tell(self, text: str) -> None:
        self.context.tell(Noticed(text))

    def _refuse(self, where: str, raw: str, why: str) -> None:
        self.context.refuse_record(raw, f"{where}: {why}")


class KafkaOptions(TypedDict, total=False):
    """Further options of :func:`kafka`."""

    #: Fields of the values, for JSON, msgpack and functions.
    fields: Any
    #: What else is wanted of a message, as fields: key, topic, partition, offset, timestamp,
    #: headers; a mapping gives them other names.
    extra: Mapping[str, str] | Sequence[str]
    #: What keys are as an extra field.
    keys: Literal["text", "bytes"]
    #: "now": end behind the messages that are there when the run begins.
    until: Literal["now"] | None
    #: What to do where messages were deleted before they were read.
    lost: Literal["fail", "skip"]
    #: How long to wait for an answer.
    timeout: float | str
    #: How often to look for new partitions, and to keep the offsets of the group.
    refresh: float | str
    commit_every: float | str
    #: Settings of librdkafka, such as those of security.
    config: Mapping[str, Any]


def kafka(
    servers: str | Iterable[str],
    topics: str | Iterable[str],
    *,
    group: str | None = None,
    start: Any = "earliest",
    format: Format = "json",  # noqa: A002 (as in files)
    **options: Unpack[KafkaOptions],
) -> KafkaSource:
    """Make a source of the messages of topics, without end unless ``until="now"``.

    It begins where ``group`` was, or else at ``start``: ``"earliest"``, ``"latest"`` or offsets,
    ``{(topic, partition): offset}``. With a checkpoint it goes on where the last snapshot was.

    >>> clicks = kafka("localhost:9092", "clicks", fields={"user": str}, extra=["offset"])
    >>> clicks.outputs
    Fields(user: string, offset: int64)
    """
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    if not names:
        raise UsageError(explain("topics", expected="at least one", got="none"))
    _check(options)
    extra = extra_fields(options.get("extra", ()))
    wanted = Wanted(
        names,
        group,
        checked_start(start, names),
        options.get("until") == "now",
        options.get("lost") == "skip",
        seconds(options.get("refresh", 30.0), "refresh"),
        seconds(options.get("commit_every", 5.0), "commit_every"),
    )
    reached = cluster(
        servers, seconds(options.get("timeout", 10.0), "timeout"), options.get("config")
    )
    made = KafkaSource(reached, wanted, checked_format(format), extra)
    binary = options.get("keys") == "bytes"
    found = message_fields(made.format, options.get("fields"), extra, binary)
    made.outputs = found if found is not None else ()
    return made


_WORDS: dict[str, tuple[Any, ...]] = {
    "keys": ("text", "bytes"),
    "until": ("now", None),
    "lost": ("fail", "skip"),
}


def _check(options: KafkaOptions) -> None:
    known = KafkaOptions.__annotations__
    for name, value in options.items():
        if name not in known:
            raise UsageError(
                explain("option of kafka", expected=f"one of {sorted(known)}", got=name)
            )
        if name in _WORDS and value not in _WORDS[name]:
            expected = " or ".join(map(repr, _WORDS[name]))
            raise UsageError(explain(name, expected=expected, got=repr(value)))
