"""What sources and sinks of Kafka share: how a cluster is reached, and what can be wrong with it.

The client is librdkafka (package ``confluent-kafka``), which is loaded when a run begins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from thalweg.connectors.extras import loaded
from thalweg.errors import RecordError, UsageError, explain

# Whoever wants to see what the client logs gives this logger a handler.
_LOGGER = logging.getLogger("thalweg.kafka")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False
#: Settings of the client that are ours, since what is promised depends on them.
_OURS = {
    "bootstrap.servers": "say servers=",
    "group.id": "say group=",
    "auto.offset.reset": "say start= for where to begin, and lost= for messages that are gone",
    "isolation.level": "messages of transactions that were given up are never read",
    "enable.auto.commit": "",
    "enable.auto.offset.store": "",
    "enable.partition.eof": "say until=",
    "enable.idempotence": "",
    "transactional.id": "",
    "error_cb": "",
    "logger": "see the logger thalweg.kafka",
}


@dataclass(frozen=True)
class Cluster:
    """Where brokers are, and how to talk to them; its settings, with passwords, are never shown."""

    servers: str
    #: Seconds to wait for an answer.
    timeout: float = 10.0
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def settings(self, trouble: Trouble, **own: Any) -> dict[str, Any]:
        """Give the settings of a client; names are written with _ for . here."""
        named = {name.replace("_", "."): value for name, value in own.items()}
        return {
            **named,
            **self.config,
            "bootstrap.servers": self.servers,
            "error_cb": trouble,
            "logger": _LOGGER,
        }

    def failed(self, expected: str, got: object, subject: str = "", hint: str = "") -> RecordError:
        """Make an error about something in this cluster."""
        text = explain(f"Kafka at {self.servers}", subject, expected, str(got), hint)
        return RecordError(text)


def cluster(
    servers: str | Iterable[str], timeout: float, config: Mapping[str, Any] | None
) -> Cluster:
    """Check how a cluster is to be reached.

    >>> cluster(["a:9092", "b:9092"], 10.0, {"sasl.password": "secret"})
    Cluster(servers='a:9092,b:9092', timeout=10.0)
    """
    text = servers if isinstance(servers, str) else ",".join(servers)
    if not text:
        raise UsageError(explain("servers", expected="such as 'localhost:9092'", got=repr(servers)))
    if "@" in text:
        # Never shown: what stands before it may be a password.
        hint = "user and password belong into config=, as sasl.username and sasl.password"
        raise UsageError(explain("servers", "", "such as 'localhost:9092'", "'***@...'", hint))
    ours = sorted(set(_OURS) & set(config or ()))
    if ours:
        expected = "settings of the client that Thalweg does not make itself"
        hint = "; ".join(_OURS[name] for name in ours if _OURS[name])
        raise UsageError(explain("config", "", expected, ", ".join(ours), hint))
    return Cluster(text, timeout, dict(config or {}))


def client() -> Any:
    """Load the client."""
    modules = "confluent_kafka.admin", "confluent_kafka"
    return loaded("Kafka", "kafka", "confluent-kafka", *modules)


def make(kind: Any, settings: Mapping[str, Any]) -> Any:
    """Make a client; a setting that it does not know is the user's."""
    try:
        return kind(settings)
    except client().KafkaException as error:
        known = "settings that librdkafka knows"
        raise UsageError(explain("config", "", known, error.args[0].str())) from error


class Trouble:
    """Hears what a client says of its connections; tells once when nobody can be reached."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._down = False
        #: Whether brokers were reached; before that whoever wants to reach them says what is wrong.
        self.reached = False
        #: What was heard last.
        self.last = ""
        #: What the client cannot recover from.
        self.fatal: Any = None

    def __call__(self, error: Any) -> None:
        """Hear of an error."""
        if error.fatal():
            self.fatal = error
        if error.code() != client().KafkaError._ALL_BROKERS_DOWN:
            self.last = error.str().partition(" (after ")[0]
        elif self.reached:
            if not self._down:
                self._tell(f"Kafka: {error.str()}; waiting until one is back ({self.last})")
            self._down = True

    def over(self) -> None:
        """Note that all is well again."""
        if self._down:
            self._down = False
            self._tell("Kafka: connected again")


def reach(of: Any, cluster_: Cluster, trouble: Trouble, topics: Iterable[str]) -> dict[str, int]:
    """Ask a client for topics; gives how many partitions each has, or raises soon."""
    try:
        known = of.list_topics(timeout=cluster_.timeout).topics
    except client().KafkaException as error:
        of.poll(0)  # hears why
        got = trouble.last or error.args[0].str()
        hint = "is it running, and reachable from here with these settings?"
        expected = "an answer"
        raise cluster_.failed(expected, got, hint=hint) from error
    trouble.reached = True
    found = {}
    for topic in topics:
        if topic not in known or known[topic].error is not None:
            some = ", ".join(sorted(name for name in known if not name.startswith("__"))[:10])
            expected = f"topic {topic!r}"
            raise cluster_.failed(expected, f"only {some or 'none'}")
        found[topic] = len(known[topic].partitions)
    return found
