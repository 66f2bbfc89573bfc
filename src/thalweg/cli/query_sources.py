"""Streams of a query by what people write: files, or an address.

>>> stream_source("socket://localhost:9999", {"user": str}).port
9999
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from thalweg.cli.query_fields import FORMAT
from thalweg.clock import seconds
from thalweg.connectors import http_source, kafka, socket_lines
from thalweg.connectors.files import Files
from thalweg.connectors.kafka import KafkaSource
from thalweg.connectors.patterns import patterns_of
from thalweg.errors import UsageError, explain

#: What may stand behind the topic of an address: ?group=clicks&until=now
_OF_KAFKA = ("group", "start", "until", "lost", "extra")


def stream_source(text: str, fields: Mapping[str, Any], tail: str = "") -> Any:
    """Make the source; one by address has just these fields, in JSON."""
    kind = text.partition("://")[0] if "://" in text else ""
    if not kind:
        return Files(patterns_of(text), FORMAT, seconds(tail, "--tail") if tail else None)
    if kind not in _ADDRESSES:
        expected = f"files, or an address that begins with one of {list(_ADDRESSES)}"
        raise UsageError(explain("--source", expected=expected, got=text))
    if "@" in text:
        # Never shown again: what stands before it may be a password.
        expected, hint = "no user or password in an address", "a program can give them in config="
        raise UsageError(explain("--source", "", expected, f"{kind}://***", hint))
    if not fields:
        hint = "messages do not say their fields before they come"
        raise UsageError(explain(f"source {text}", "", "--types FIELD:TYPE,...", "none", hint))
    return _ADDRESSES[kind](_read(text), fields)


def is_endless(source: Any) -> bool:
    """Say whether a source may go on for ever.

    >>> [is_endless(stream_source("posts.csv", {}, tail)) for tail in ("", "1 s")]
    [False, True]
    """
    if isinstance(source, Files):
        return source.tail is not None
    return not (isinstance(source, KafkaSource) and source.wanted.bounded)


def _read(text: str) -> SplitResult:
    found = urlsplit(text)
    if found.scheme != "kafka" and found.query:
        raise UsageError(explain(f"source {text}", "", "nothing behind ?", found.query))
    try:
        port = found.port if found.scheme != "kafka" else 0
    except ValueError:
        port = None
    if not found.netloc or port is None:
        expected = "kafka://HOST:PORT/TOPIC, socket://HOST:PORT or http://HOST:PORT/PATH"
        raise UsageError(explain("--source", expected=expected, got=text))
    return found


def _kafka(address: SplitResult, fields: Mapping[str, Any]) -> Any:
    options: dict[str, Any] = dict(parse_qsl(address.query))
    for name in options:
        if name not in _OF_KAFKA:
            expected = f"one of {list(_OF_KAFKA)} behind ?"
            raise UsageError(explain(f"source {address.geturl()}", "", expected, name))
    extra = [name for name in options.pop("extra", "").split(",") if name]
    topic = address.path.strip("/")
    return kafka(address.netloc, topic, fields=dict(fields), extra=extra, **options)


def _socket(address: SplitResult, fields: Mapping[str, Any]) -> Any:
    del fields  # said where the stream begins
    return socket_lines(str(address.hostname), int(address.port or 0), format="json")


def _http(address: SplitResult, fields: Mapping[str, Any]) -> Any:
    del fields
    path = address.path or "/"
    return http_source(int(address.port or 0), host=str(address.hostname), path=path)


_ADDRESSES: dict[str, Callable[[SplitResult, Mapping[str, Any]], Any]] = {
    "kafka": _kafka,
    "socket": _socket,
    "http": _http,
}
