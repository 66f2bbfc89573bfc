"""The two libraries that the cases are for: the real one from PyPI, and ours in its place."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import msgpack
import pytest

from thalweg import storm

NAMES = ("ours", "real")


def library(name: str) -> ModuleType:
    """Give the module with the classes; a test is skipped where the real one is not installed."""
    if name == "ours":
        return storm
    return pytest.importorskip("streamparse", reason="the real streamparse is not installed")


def component(name: str) -> ModuleType:
    """Give the module with ``Tuple`` and exceptions."""
    return library(name) if name == "ours" else importlib.import_module("pystorm")


class Parent:
    """Stands for Storm: says what it was told to, and hears what a component says."""

    def __init__(self, folder: Path, serializer: str = "json") -> None:
        self.folder = folder
        self.serializer = serializer
        self.said: list[Any] = []
        #: What a component has logged, its library for itself included.
        self.logged: list[dict[str, Any]] = []

    def handshake(self, conf: dict[str, Any] | None = None) -> None:
        """Tell a component who it is."""
        context = {
            "taskid": 3,
            "componentid": "count",
            "task->component": {"1": "words", "3": "count"},
            "source->stream->fields": {"words": {"default": ["word"]}},
        }
        told = {"topology.name": "test", **(conf or {})}
        self.said.append({"conf": told, "pidDir": str(self.folder), "context": context})

    def give(self, *words: Any, first: int = 1) -> None:
        """Give tuples, numbered from ``first``."""
        for number, word in enumerate(words, first):
            about = {"id": str(number), "comp": "words", "stream": "default", "task": 1}
            self.said.append(about | {"tuple": [word]})

    def tick(self, id_: str = "tick") -> None:
        """Give a tick."""
        about = {"id": id_, "comp": "__system", "stream": "__tick", "task": -1}
        self.said.append(about | {"tuple": [1]})

    def heartbeat(self) -> None:
        """Ask whether the component is alive."""
        about = {"id": "beat", "comp": None, "stream": "__heartbeat", "task": -1}
        self.said.append(about | {"tuple": []})

    def command(self, command: str, id_: Any = "") -> None:
        """Give a spout a command."""
        self.said.append({"command": command, "id": id_})

    def run(self, cls: type) -> tuple[list[dict[str, Any]], int]:
        """Let a component run until there is nothing more; gives what it said, and its status."""
        written = io.BytesIO()
        with _as_it_was():
            streams = {"input_stream": io.BytesIO(self._bytes()), "output_stream": written}
            made = cls(**streams, rdb_signal=None, serializer=self.serializer)
            with pytest.raises(SystemExit) as ended:
                made.run()
        messages = self._messages(written.getvalue())
        self.logged = [m for m in messages if m.get("command") == "log"]
        heard = [m for m in messages if m.get("command") != "log"]
        assert heard.pop(0) == {"pid": made.pid}
        assert (self.folder / str(made.pid)).exists()
        assert isinstance(ended.value.code, int)
        return heard, ended.value.code

    def _bytes(self) -> bytes:
        if self.serializer == "msgpack":
            return b"".join(map(msgpack.packb, self.said))
        return b"".join(json.dumps(message).encode() + b"\nend\n" for message in self.said)

    def _messages(self, data: bytes) -> list[Any]:
        if self.serializer == "msgpack":
            return list(msgpack.Unpacker(io.BytesIO(data)))
        return [json.loads(text) for text in data.decode().split("\nend\n") if text]


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """Undo what components change for their whole process: handlers of logs, standard output."""
    root, out = logging.getLogger(), sys.stdout
    handlers, level = list(root.handlers), root.level
    try:
        # With other threads about, as those of Spark, components end the process at once.
        with mock.patch.object(threading, "active_count", return_value=1):
            yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        sys.stdout = out
