"""Topologies with components in child processes, and what came out of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import thalweg as tw
from thalweg.events import ChildSaid, Event, Noticed
from thalweg.metrics import Snapshot
from thalweg.topology import Topology

PROGRAMS = Path(__file__).parent / "programs"
#: Runtimes on which children are tried; each in its own way of working.
RUNTIMES = ("inline", "local")


def python(program: str, *arguments: str) -> list[str]:
    """Give the command for one of the programs in Python."""
    return [sys.executable, str(PROGRAMS / program), *arguments]


def node(program: str) -> list[str]:
    """Give the command for one of the programs in JavaScript."""
    return ["node", str(PROGRAMS / program)]


@dataclass
class Seen:
    """What a run gave and said."""

    rows: list[Any] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    metrics: Snapshot | None = None
    tables: dict[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> Counter[Any]:
        return Counter(self.rows)

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Noticed)]

    def said(self, component: str) -> list[str]:
        return [
            e.text for e in self.events if isinstance(e, ChildSaid) and e.component == component
        ]


def run(topology: Topology, on: Any, rows: list[Any] | None = None) -> Seen:
    """Run a topology whose last sink appends to ``rows``."""
    seen = Seen(rows=[] if rows is None else rows)
    seen.metrics = topology.run(on=on, listen=seen.events.append).metrics
    return seen


class Given(tw.Spout):
    """Values with ids that are given again when they fail; notes how they ended."""

    outputs = {"value": tw.anything}

    def __init__(
        self,
        values: Iterable[Any],
        ended: list[tuple[int, str]] | None = None,
        tries: int = 1000,
    ) -> None:
        self.values = list(values)
        self.ended = [] if ended is None else ended
        self.tries = tries

    def __deepcopy__(self, memo: dict[int, Any]) -> Given:
        return Given(self.values, self.ended, self.tries)

    def prepare(self, context: Any) -> None:
        self.next, self.open = 0, set[int]()

    def next_tuple(self) -> None:
        if self.next < len(self.values):
            self.open.add(self.next)
            self.emit(self.values[self.next], id=self.next)
            self.next += 1
        elif not self.open:
            self.finish()

    def ack(self, id: int) -> None:
        self.open.discard(id)
        self.ended.append((id, "ack"))

    def fail(self, id: int) -> None:
        self.ended.append((id, "fail"))
        if self.ended.count((id, "fail")) < self.tries:
            self.emit(self.values[id], id=id)
        else:
            self.open.discard(id)


def through(body: Any, values: Iterable[Any], on: Any, **options: Any) -> Seen:
    """Send values through one bolt; the rows are what it sends."""
    rows: list[Any] = []
    builder = tw.TopologyBuilder("through")
    builder.add_spout("values", Given(values))
    builder.add_bolt("it", body, **options).shuffle("values")
    builder.add_bolt("out", collecting(rows)).shuffle("it")
    return run(builder.build(), on, rows)


def collecting(rows: list[Any]) -> Any:
    """Make a sink that appends tuples, or the only value of each, to a list."""
    return tw.call(lambda t: rows.append(t[0] if len(t) == 1 else tuple(t)))
