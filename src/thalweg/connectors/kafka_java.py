"""Settings of librdkafka for Kafka's own client in Java, which Spark's connector uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from thalweg.errors import UsageError, explain

# Settings with one name and one meaning in both.
_SAME = frozenset(
    {
        "client.id",
        "client.rack",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "max.partition.fetch.bytes",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.ms",
        "sasl.kerberos.service.name",
    }
)
_LOGINS = {"PLAIN": "plain.PlainLoginModule"} | dict.fromkeys(
    ("SCRAM-SHA-256", "SCRAM-SHA-512"), "scram.ScramLoginModule"
)
_MODULES = "org.apache.kafka.common.security"
_LOGIN = frozenset({"sasl.username", "sasl.password"})
_CERTIFICATES = "ssl.ca.location"


def java_settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Say the same to the client in Java; raises where that cannot be said.

    >>> java_settings({"security.protocol": "ssl", "client.id": "clicks"})
    {'security.protocol': 'SSL', 'client.id': 'clicks'}
    """
    found: dict[str, str] = {}
    for name, value in config.items():
        if name == "security.protocol":
            found[name] = str(value).upper()
        elif name in ("sasl.mechanism", "sasl.mechanisms"):
            found["sasl.mechanism"] = str(value)
        elif name == _CERTIFICATES:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(value)}
        elif name in _SAME:
            found[name] = str(value)
        elif name not in _LOGIN:
            hint = "tw.Spark(kafka='driver') reads with librdkafka"
            expected = "a setting that Spark's connector can be told"
            raise UsageError(explain("config", "", expected, name, hint))
    if _LOGIN & set(config):
        found["sasl.jaas.config"] = _login(config, found.get("sasl.mechanism", ""))
    return found


def _login(config: Mapping[str, Any], mechanism: str) -> str:
    if mechanism not in _LOGINS or not set(config) >= _LOGIN:
        expected = f"user, password and a sasl.mechanism of {', '.join(_LOGINS)}"
        raise UsageError(explain("config", "", expected, mechanism or "no mechanism"))
    user, password = (_quoted(str(config[name])) for name in ("sasl.username", "sasl.password"))
    return f"{_MODULES}.{_LOGINS[mechanism]} required username={user} password={password};"


def _quoted(text: str) -> str:
    r"""Write text as such settings have it.

    >>> print(_quoted('a"b'))
    "a\"b"
    """
    escaped = re.sub(r'(["\\])', r"\\\1", text)
    return f'"{escaped}"'
