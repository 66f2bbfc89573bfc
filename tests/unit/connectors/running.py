"""Small topologies around one connector, run inline on a manual clock."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import thalweg as tw
from thalweg.execution import Result
from thalweg.testing import ManualClock


@dataclass
class Outcome:
    """The rows that came out of a source, and when."""

    rows: list[tuple[Any, ...]]
    times: list[float] = field(default_factory=list)
    result: Result | None = None

    @property
    def values(self) -> list[Any]:
        return [row[0] for row in self.rows]

    @property
    def errors(self) -> int:
        assert self.result is not None
        return self.result.metrics.errors


def read(
    source: Any,
    fields: Any = None,
    *,
    clock: ManualClock | None = None,
    block_rows: int = 1024,
    stop: threading.Event | None = None,
    **options: Any,
) -> Outcome:
    """Run a source to its end and collect what it gives."""
    clock = clock or ManualClock()
    outcome = Outcome([])

    def note(t: Any) -> None:
        outcome.rows.append(tuple(t))
        outcome.times.append(clock.now())

    flow = tw.Flow("reading")
    flow.source("source", source, fields=fields, **options).sink("out", tw.call(note))
    runtime = tw.Inline(clock=clock, block_rows=block_rows)
    outcome.result = flow.run(runtime, stop=stop or threading.Event())
    return outcome


def write(
    sink: Any, rows: Iterable[Any], fields: Any, *, block_rows: int = 1024, **options: Any
) -> None:
    """Run rows into a sink."""
    flow = tw.Flow("writing")
    flow.source("source", tw.items(list(rows)), fields=fields).sink("out", sink, **options)
    flow.run(tw.Inline(clock=ManualClock(), block_rows=block_rows))


class ScriptedClock(ManualClock):
    """A manual clock on which things happen at given times; the last one stops the run."""

    def __init__(self, script: Mapping[float, Callable[[], object]], until: float) -> None:
        super().__init__()
        self.stop = threading.Event()
        self._script = sorted([*script.items(), (until, self.stop.set)], key=lambda pair: pair[0])

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        while self._script and self._script[0][0] <= self.now():
            self._script.pop(0)[1]()


def dead_letters(path: Path) -> list[dict[str, Any]]:
    """Read what a run kept aside."""
    return [json.loads(line) for line in path.read_text().splitlines()]
