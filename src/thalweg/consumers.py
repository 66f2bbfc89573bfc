"""Consumers of metrics: objects that are told, at intervals, what tasks have done.

A consumer is called in a thread of its own, so a slow one holds nobody up; what is due meanwhile
is told with the next points.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from thalweg.errors import UsageError, explain, shorten
from thalweg.registered import DataPoint, TaskInfo


class MetricsConsumer:
    """Is told the metrics of a run; ``prepare`` and ``cleanup`` may be left out."""

    def prepare(self, topology: str) -> None:
        """Get ready, before the run begins."""

    def handle(self, task_info: TaskInfo, points: Sequence[DataPoint]) -> None:
        """Take the points of one task."""
        raise NotImplementedError

    def cleanup(self) -> None:
        """Let go, after the last points."""


class LoggingConsumer(MetricsConsumer):
    """Writes points as JSON lines: to a file, or to standard error.

    >>> info = TaskInfo("words", "split", 0, time=60.0, interval=60.0)
    >>> print(json_line(info, [DataPoint("hits", 3)]).decode(), end="")
    {"topology":"words","component":"split","task":0,"time":60.0,"interval":60.0,"points":{"hits":3}}
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._file: IO[bytes] | None = None

    def prepare(self, topology: str) -> None:
        """Open the file; what is in it stays."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 (closed in cleanup)

    def handle(self, task_info: TaskInfo, points: Sequence[DataPoint]) -> None:
        """Write a line."""
        line = json_line(task_info, points)
        if self._file is not None:
            self._file.write(line)
        else:
            sys.stderr.write(line.decode())

    def cleanup(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def json_line(task_info: TaskInfo, points: Sequence[DataPoint]) -> bytes:
    """Write points as a line of JSON."""
    about = msgspec.to_builtins(task_info)
    named = {point.name: point.value for point in points}
    return msgspec.json.encode(about | {"points": named}, enc_hook=repr) + b"\n"


def checked_consumers(consumers: object) -> tuple[Any, ...]:
    """Check what somebody gave as consumers."""
    given = tuple(consumers) if isinstance(consumers, Iterable) else (consumers,)
    for consumer in given:
        if isinstance(consumer, type) or not callable(getattr(consumer, "handle", None)):
            hint = "pass an object, not its class" if isinstance(consumer, type) else ""
            expected = "an object with a method handle(task_info, points)"
            raise UsageError(explain("metrics consumer", "", expected, shorten(consumer), hint))
    return given
