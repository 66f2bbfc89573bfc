"""Components that the tests of Storm's vocabulary share."""

from __future__ import annotations

from typing import Any

import thalweg as tw

RUNTIMES = {
    "inline": tw.Inline,
    "local": lambda: tw.Local(workers=2),
    "executors": lambda: tw.Local(assigning="executors"),
}


class Numbers(tw.Spout):
    """Gives numbers with ids, and ends when all of them have ended."""

    outputs = {"n": int}

    def __init__(self, count: int, at_once: int = 1) -> None:
        self.count, self.at_once = count, at_once
        self.given = self.open = 0

    def next_tuple(self) -> None:
        for _ in range(self.at_once):
            if self.given < self.count:
                self.emit(self.given, id=self.given)
                self.given += 1
                self.open += 1
        if self.given == self.count and not self.open:
            self.finish()

    def ack(self, id: Any) -> None:
        self.open -= 1

    def fail(self, id: Any) -> None:
        self.open -= 1


class Pass(tw.Bolt):
    """Sends what it gets; odd numbers fail, if it is told so."""

    outputs = {"n": int}

    def __init__(self, odd_fail: bool = False) -> None:
        self.odd_fail = odd_fail

    def process(self, t: Any) -> None:
        self.emit(t.n)
        if self.odd_fail and t.n % 2:
            self.fail(t)


class Later(tw.Bolt):
    """Acknowledges tuples at a tick: the next one, or one after it."""

    auto_ack = False
    outputs = {"n": int}

    def __init__(self, ticks: int = 1) -> None:
        self.ticks = ticks

    def prepare(self, context: tw.TaskContext) -> None:
        self.held: list[Any] = []
        self.waited = 0

    def process(self, t: Any) -> None:
        self.emit(t.n)
        self.held.append(t)

    def process_tick(self) -> None:
        self.waited += bool(self.held)
        if self.waited == self.ticks:
            for t in self.held:
                self.ack(t)
            self.held.clear()
            self.waited = 0


def chain(bolt: Any, spout: Any = None, spout_options: Any = None, **options: Any) -> tw.Topology:
    """Make a topology of a spout and one bolt."""
    builder = tw.TopologyBuilder("chain")
    builder.add_spout("numbers", spout or Numbers(10), **(spout_options or {}))
    builder.add_bolt("bolt", bolt, **options).shuffle("numbers")
    return builder.build()
