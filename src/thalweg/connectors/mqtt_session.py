"""A session with a broker of MQTT: what has arrived, what was given, what is acknowledged.

The client is Eclipse Paho (package ``paho-mqtt``), which is loaded when a run begins and has a
thread of its own. The broker is told how many messages may be without an answer, so it holds the
others back; those that want no answer make the client's thread wait.
"""

from __future__ import annotations

import importlib
import threading
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from thalweg.connectors.extras import loaded
from thalweg.errors import RecordError, explain

#: Messages that may wait to be taken, and those that may be without an answer.
MOST_WAITING = 10_000
#: Seconds that mean for ever in MQTT.
FOR_EVER = 0xFFFFFFFF
#: Nobody subscribes to it; a broker that says so has heard all that was said before.
_NO_TOPIC = "thalweg/no-topic"


@dataclass(frozen=True)
class Broker:
    """Where a broker is, and what is wanted of it; the password is never shown."""

    host: str
    port: int
    topics: tuple[str, ...]
    #: The name under which the broker keeps what was not acknowledged.
    session: str
    #: Seconds to wait for a first answer.
    timeout: float = 10.0
    #: Seconds for which the broker keeps the session when nobody is there.
    keep: int = FOR_EVER
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def failed(self, got: object) -> RecordError:
        """Make an error about this broker."""
        hint = "is it running, and reachable from here with these settings?"
        subject = f"MQTT at {self.host}:{self.port}"
        return RecordError(explain(subject, "", "an answer", f"{got}", hint))


@dataclass(frozen=True)
class Message:
    """A message as readers of messages want it."""

    about: str
    payload: bytes
    mid: int
    qos: int
    #: The connection it came through: an id means nothing in another one.
    connection: int

    def value(self) -> bytes:
        """Give the payload."""
        return self.payload

    def topic(self) -> str:
        """Give the topic."""
        return self.about

    def where(self) -> str:
        """Say where it stands."""
        return f"topic {self.about}"


class Session:
    """Connects, and hands out messages; raises soon where nobody answers."""

    def __init__(self, broker: Broker, tell: Callable[[str], None]) -> None:
        self._broker, self._tell = broker, tell
        self._changed = threading.Condition()
        self._arrived: deque[Message] = deque()
        self._open: deque[tuple[int, Message]] = deque()
        # Messages that were taken, those that became rows or were refused, and the last rows.
        self._taken = self._given = self._rows = 0
        self._connection = self._done = 0
        self._refused = ""
        self._subscribed = self._closed = self._gone = self._heard = False
        # Positions of an earlier run mean nothing here.
        self._run = uuid.uuid4().hex
        self._client = self._connect()

    def _connect(self) -> Any:
        broker, mqtt = self._broker, client()
        made = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=broker.session,
            protocol=mqtt.MQTTv5,
            manual_ack=True,
        )
        made.on_connect, made.on_disconnect = self._connected, self._disconnected
        made.on_subscribe, made.on_unsubscribe = self._answered, self._heard_all
        made.on_message = self._take_in
        if broker.user is not None:
            made.username_pw_set(broker.user, broker.password)
        if broker.tls:
            made.tls_set()
        try:
            wanted = _properties(broker.keep)
            made.connect(broker.host, broker.port, clean_start=False, properties=wanted)
        except OSError as error:
            raise broker.failed(error) from error
        made.loop_start()
        with self._changed:
            self._changed.wait_for(lambda: self._subscribed or self._refused, broker.timeout)
        if not self._subscribed:
            self._let_go()
            made.disconnect()
            made.loop_stop()
            del made  # as at the end: who keeps the error would keep its sockets
            raise broker.failed(self._refused or "none")
        return made

    # --- in the client's thread --------------------------------------------------------------

    def _connected(self, client_: Any, _data: Any, flags: Any, reason: Any, _more: Any) -> None:
        if reason.is_failure:
            self._refuse(str(reason))
            return
        with self._changed:
            if flags.session_present:  # those without an answer come again
                kept = [message for message in self._arrived if not message.qos]
                self._arrived = deque(kept)
        once = _options()
        client_.subscribe([(topic, once) for topic in self._broker.topics])

    def _answered(self, _client: Any, _data: Any, _mid: Any, reasons: Any, _more: Any) -> None:
        bad = [str(reason) for reason in reasons if reason.is_failure]
        if bad:
            self._refuse(f"subscription refused: {bad[0]}")
            return
        with self._changed:
            again, self._subscribed = self._subscribed, True
            self._changed.notify_all()
        if again:
            self._tell("MQTT: connected again")

    def _heard_all(self, *_about: Any) -> None:
        with self._changed:
            self._heard = True
            self._changed.notify_all()

    def _refuse(self, text: str) -> None:
        with self._changed:
            self._refused = text
            self._changed.notify_all()

    def _disconnected(self, _client: Any, _data: Any, _flags: Any, reason: Any, _more: Any) -> None:
        with self._changed:
            self._gone = True
            self._connection += 1  # from now on: an answer would come before the next greeting
            self._changed.notify_all()
        if not self._closed and reason.is_failure:
            self._tell(f"MQTT: {reason}; waiting until it is back")

    def _take_in(self, _client: Any, _data: Any, message: Any) -> None:
        with self._changed:
            self._changed.wait_for(self._has_room)
            taken = Message(
                message.topic, message.payload, message.mid, message.qos, self._connection
            )
            self._arrived.append(taken)

    def _has_room(self) -> bool:
        # Nobody takes anything before the answer, and that may come behind messages.
        return self._closed or not self._subscribed or len(self._arrived) < MOST_WAITING

    # --- in the run's threads ----------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Messages that have arrived and were not given."""
        return len(self._arrived)

    def take(self, limit: int) -> list[Any]:
        """Give messages that have arrived; :meth:`gave` says what became of them."""
        if self._refused:
            raise self._broker.failed(self._refused)
        with self._changed:
            taken = [self._arrived.popleft() for _ in range(min(limit, len(self._arrived)))]
            for message in taken:
                self._taken += 1
                self._open.append((self._taken, message))
            self._changed.notify_all()
        return taken

    def gave(self, rows: bool) -> None:
        """Hear that all that was taken became rows, or was refused without leaving any."""
        self._given = self._taken
        if rows:
            self._rows = self._given
        elif self._done >= self._rows:  # nobody else would say so
            self.processed(self.position())

    def position(self) -> list[Any]:
        """Say how many messages were given in this run: a block that failed is not among them."""
        return [self._run, self._given]

    def processed(self, position: Sequence[Any]) -> None:
        """Acknowledge what was given before a position; what an earlier run says is past."""
        run, given = position or ("", 0)
        if run != self._run:
            return
        with self._changed:
            # What was refused behind the last rows is done with them.
            given = self._done = self._given if given >= self._rows else given
            done = []
            while self._open and self._open[0][0] <= given:
                done.append(self._open.popleft()[1])
            for message in done:
                # After a new connection it comes again: that one is acknowledged.
                if message.qos and message.connection == self._connection:
                    self._client.ack(message.mid, message.qos)

    def close(self) -> None:
        """Wait until the broker knows what is acknowledged, and disconnect."""
        with self._changed:
            self._gone = not self._client.is_connected()
        self._let_go()
        # It answers in order. Without this 496 of 500 acknowledgements were once lost on the way.
        self._client.unsubscribe(_NO_TOPIC)
        with self._changed:
            self._changed.wait_for(lambda: self._gone or self._heard, self._broker.timeout)
        self._client.disconnect()
        with self._changed:
            self._changed.wait_for(lambda: self._gone, self._broker.timeout)
        self._client.loop_stop()
        # With the last one who knows it, it closes the sockets that its thread was woken by.
        del self._client

    def _let_go(self) -> None:
        """Let the client's thread wait for room no longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _properties(keep: int) -> Any:
    known = importlib.import_module("paho.mqtt.properties")
    made = known.Properties(importlib.import_module("paho.mqtt.packettypes").PacketTypes.CONNECT)
    made.SessionExpiryInterval, made.ReceiveMaximum = keep, MOST_WAITING
    return made


def _options() -> Any:
    """Ask for messages that need an answer; for those that the broker retains only once."""
    known = importlib.import_module("paho.mqtt.subscribeoptions").SubscribeOptions
    return known(qos=1, retainHandling=known.RETAIN_SEND_IF_NEW_SUB)


def client() -> Any:
    """Load the client."""
    return loaded("MQTT", "mqtt", "paho-mqtt", "paho.mqtt.client")
