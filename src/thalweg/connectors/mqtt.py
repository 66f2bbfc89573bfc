"""Topics of MQTT as a source: every message at least once.

A broker keeps the messages of a session until they are acknowledged. That happens when nothing
that came before will be asked for again, so what a run had not finished comes again in the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, TypedDict, Unpack

import pyarrow as pa

from thalweg.clock import seconds
from thalweg.components import BlockSpout, Shared
from thalweg.connectors.messages import (
    Format,
    MessageReader,
    checked_format,
    extra_fields,
    message_fields,
)
from thalweg.connectors.mqtt_session import FOR_EVER, Broker, Message, Session
from thalweg.contexts import TaskContext
from thalweg.errors import UsageError, explain
from thalweg.events import Noticed


class MqttSource(Shared, BlockSpout):
    """Subscribes to topics; of several tasks the first one does."""

    replays = False

    def __init__(self, broker: Broker, format_: Format, extra: Mapping[str, str]) -> None:
        self.broker, self.format, self.extra = broker, format_, extra
        self._session: Session | None = None

    def prepare(self, context: TaskContext) -> None:
        """Connect, and wait until the broker has answered."""
        if context.task:
            return
        (shape,) = context.shapes.values()
        self._reader = MessageReader(shape, self.format, self.extra, self._refuse, Message.where)
        self._session = Session(self.broker, self._tell)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give messages that have arrived; one that cannot be read is refused alone."""
        if self._session is None:
            self.finish()
            return None
        messages = self._session.take(limit)
        batch = self._reader.batch(messages)
        if messages:
            self._session.gave(batch is not None)
        return batch

    def backlog(self) -> int | None:
        """Count messages that have arrived and were not given yet."""
        return None if self._session is None else self._session.waiting

    def position(self) -> list[Any]:
        """Say how many messages of this connection were given."""
        return [] if self._session is None else self._session.position()

    def seek(self, position: Sequence[Any]) -> None:
        """Go on: what was not acknowledged comes again from the broker, not from a position."""

    def processed(self, position: Sequence[Any]) -> None:
        """Hear what will not be asked for again, and acknowledge it."""
        if self._session is not None:
            self._session.processed(position)

    def cleanup(self) -> None:
        """Disconnect; the broker keeps the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _tell(self, text: str) -> None:
        self.context.tell(Noticed(text))

    def _refuse(self, where: str, raw: str, why: str) -> None:
        self.context.refuse_record(raw, f"{where}: {why}")


class MqttOptions(TypedDict, total=False):
    """Further options of :func:`mqtt`."""

    #: Fields of the payloads, for JSON, msgpack and functions.
    fields: Any
    #: What else is wanted of a message, as fields: only its topic; a mapping renames it.
    extra: Mapping[str, str] | Sequence[str]
    #: How long to wait for a first answer.
    timeout: float | str
    #: How long the broker keeps the session when nobody is there; for ever if nothing is said.
    keep: float | str
    #: Whether to speak TLS, with the certificates that this machine trusts.
    tls: bool
    #: Who one is.
    user: str
    password: str


def mqtt(
    host: str,
    topics: str | Iterable[str],
    *,
    session: str,
    port: int = 1883,
    format: Format = "json",  # noqa: A002 (as in files)
    **options: Unpack[MqttOptions],
) -> MqttSource:
    """Make a source of the messages of topics, without end: each of them at least once.

    The broker keeps under the name ``session`` what was not processed, and what is sent while
    nobody is there. Topics may have wildcards: ``"house/+/door"``, ``"house/#"``.

    >>> mqtt("localhost", "doors/#", session="doors", fields={"open": bool}).outputs
    Fields(open: bool)
    """
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    if not names or not session:
        raise UsageError(explain("topics and session", expected="at least one topic and a name"))
    unknown = sorted(options.keys() - MqttOptions.__annotations__)
    if unknown:
        known = sorted(MqttOptions.__annotations__)
        raise UsageError(explain("option of mqtt", expected=f"one of {known}", got=unknown[0]))
    extra = extra_fields(options.get("extra", ()))
    if set(extra) - {"topic"}:
        raise UsageError(explain("extra field", expected="topic", got=str(sorted(extra))))
    broker = Broker(
        host,
        port,
        names,
        session,
        seconds(options.get("timeout", 10.0), "timeout"),
        min(ceil(seconds(options.get("keep", FOR_EVER), "keep")), FOR_EVER),
        options.get("tls", False),
        options.get("user"),
        options.get("password"),
    )
    made = MqttSource(broker, checked_format(format), extra)
    found = message_fields(made.format, options.get("fields"), extra, False)
    made.outputs = found if found is not None else ()
    return made
