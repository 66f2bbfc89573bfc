"""How a component's child is run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from thalweg.clock import seconds
from thalweg.errors import TopologyError, UsageError, explain
from thalweg.multilang.wire import MOST_BYTES, make_wire
from thalweg.registered import MetricKind, make_metric


@dataclass(frozen=True)
class Shell:
    """Settings of a child; times in seconds."""

    command: tuple[str, ...]
    serializer: str = "json"
    #: Folder in which it runs; None for the one of the run.
    cwd: str | None = None
    #: Variables beside those of the run; PATH is put in front of what there is.
    env: Mapping[str, str] = field(default_factory=dict)
    #: What it finds as its configuration, beside ``topology.name``.
    config: Mapping[str, Any] = field(default_factory=dict)
    #: Kinds of metrics that it reports, by name (:mod:`thalweg.registered`); others are guessed.
    metrics: Mapping[str, MetricKind] = field(default_factory=dict)
    #: It is taken for hung, and killed, when it does nothing but log for so long while one waits.
    timeout: float = 30.0
    #: How often a child that died, or was killed, is replaced before the run fails.
    restarts: int = 3
    #: Tuples on their way to it, at most.
    max_pending: int = 1000
    #: Tuples that it may hold without finishing them, or that end during one ``next``, at most.
    most_held: int = 100_000
    #: Bytes of a message, at most.
    most_bytes: int = MOST_BYTES
    #: Seconds between two ticks; None for none.
    tick: float | None = None
    #: How long it is waited for, at the end of all input, for tuples that it still holds; and how
    #: long a spout may go on emitting when it is to pause.
    linger: float = 3.0
    #: How long it is kept, on Spark, while no batch needs it.
    idle: float = 10.0
    #: Names of the settings that the component says itself, also where they are the usual ones.
    said: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @classmethod
    def of(cls, command: str | Sequence[str], values: Mapping[str, Any]) -> Shell:
        """Check settings given by name."""
        words = tuple(shlex.split(command) if isinstance(command, str) else map(str, command))
        if not words:
            raise TopologyError(explain("command", expected="a program and its arguments"))
        known = [f.name for f in fields(cls) if f.name not in ("command", "said")]
        for name in values:
            if name not in known:
                raise TopologyError(explain(f"setting {name!r}", words[0], f"one of {known}"))
        read = dict(values)
        for name in ("timeout", "tick", "linger", "idle"):
            if read.get(name) is not None:
                read[name] = seconds(read[name], f"{name} in {words[0]}")
        if read.get("cwd") is not None:
            read["cwd"] = str(Path(read["cwd"]))
        made = replace(cls(words), **read, said=frozenset(values))
        made.check()
        return made

    def check(self) -> None:
        """Refuse what cannot work."""
        try:
            make_wire(self.serializer)
        except UsageError as error:
            raise TopologyError(str(error)) from error
        self._check_config()
        for name, kind in self.metrics.items():
            make_metric(name, kind)
        for name in ("timeout", "max_pending", "most_held", "most_bytes"):
            if getattr(self, name) <= 0:
                raise TopologyError(
                    explain(name, self.command[0], "more than 0", str(getattr(self, name)))
                )

    def _check_config(self) -> None:
        try:
            make_wire(self.serializer).encode(self.config)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            got = f"what {self.serializer} cannot hold: {error}"
            text = explain("config", self.command[0], "plain values", got)
            raise TopologyError(text) from error
