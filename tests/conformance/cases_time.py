"""Ticks and ends, with pauses in the input and a clock that moves only there."""

from __future__ import annotations

from conformance.bodies import Numbers
from conformance.harness import CLOCK, MEMORY, AnyOrder, Case, Exactly, TableIs, nowhere
from thalweg.builder import TopologyBuilder
from thalweg.components import Bolt, Kind
from thalweg.connectors.memory import items
from thalweg.flow import Flow
from thalweg.testing import EOF, PAUSE
from thalweg.topology import Topology


class Window(Bolt):
    """How many tuples came since the last tick, and when."""

    kind = Kind.GLOBAL
    outputs = {"task": int, "at": int, "n": int}

    def process(self, t) -> None:
        self.state.put("n", self.state.get("n", 0) + 1)

    def process_tick(self) -> None:
        self.send(round(self.context.clock.now()))

    def process_end(self) -> None:
        self.send(-1)

    def send(self, at: int) -> None:
        self.emit(self.context.task, at, self.state.get("n", 0))
        self.state.delete("n")


class WindowOfATask(Bolt):
    """The same, with its count in an attribute, so that there may be several tasks."""

    outputs = {"task": int, "at": int, "n": int}

    def prepare(self, context) -> None:
        self.n = 0

    def process(self, t) -> None:
        self.n += 1

    def process_tick(self) -> None:
        self.emit(self.context.task, round(self.context.clock.now()), self.n)
        self.n = 0

    def process_end(self) -> None:
        self.emit(self.context.task, -1, self.n)


def window(tick: object, bolt: Bolt | None = None, degree: int = 1) -> Topology:
    flow = Flow("window", "total")
    source = flow.source("words", items([]), fields={"word": str})
    source.through("window", bolt or Window(), tick=tick, degree=degree).sink("out", nowhere())
    return flow.build()


class Flush(Bolt):
    """Keeps counts per word in its state, and sends and forgets them at each tick."""

    kind = Kind.KEYED
    outputs = {"word": str, "n": int}

    def process(self, t) -> None:
        self.state.put(t.word, self.state.get(t.word, 0) + 1)

    def process_tick(self) -> None:
        for word, n in sorted(self.state.items()):
            self.emit(word, n)
            self.state.delete(word)


def flushed_into_a_table() -> Topology:
    flow = Flow("flush")
    source = flow.source("words", items([]), fields={"word": str})
    flushed = source.key_by("word").stream.through("flush", Flush(), tick="5 s", degree=2)
    flushed.key_by("word").sum("sent", "n", degree=2)
    return flow.build()


def two_tickers() -> Topology:
    builder = TopologyBuilder("tickers")
    source = items([])
    source.outputs = {"word": str}
    builder.add_spout("words", source)
    builder.add_bolt("fast", Window(), tick=2).shuffle("words")
    builder.add_bolt("slow", Window(), tick="5 s").shuffle("words")
    builder.add_bolt("out-fast", nowhere()).global_("fast")
    builder.add_bolt("out-slow", nowhere()).global_("slow")
    return builder.build()


def ends_without_ticks() -> Topology:
    builder = TopologyBuilder("short")
    builder.add_spout("numbers", Numbers(10))
    builder.add_bolt("window", Window(), tick="1 h").shuffle("numbers")
    builder.add_bolt("out", nowhere()).global_("window")
    return builder.build()


CLOCKED = frozenset([CLOCK])

CASES = [
    Case(
        "a tick closes a window, the end closes the last",
        lambda: window("10 s"),
        {"words": ["a", "b", PAUSE("11 s"), "c", PAUSE("20 s"), "d", "e", "f"]},
        (Exactly("out", [(0, 10, 2), (0, 20, 1), (0, 30, 0), (0, -1, 3)]),),
        needs=CLOCKED,
    ),
    Case(
        "every task gets its ticks",
        lambda: window(10, WindowOfATask(), degree=3),
        {"words": ["a", PAUSE("11 s"), "b"]},
        # Shuffle goes in turn: the first word to task 0, the second to task 1.
        (
            AnyOrder(
                "out",
                [(0, 10, 1), (1, 10, 0), (2, 10, 0), (0, -1, 0), (1, -1, 1), (2, -1, 0)],
            ),
        ),
        needs=CLOCKED | {MEMORY},
    ),
    Case(
        "a pause without tuples before the first and after the last",
        lambda: window(4),
        {"words": [PAUSE(9), "a", PAUSE(4)]},
        (Exactly("out", [(0, 4, 0), (0, 8, 0), (0, 12, 1), (0, -1, 0)]),),
        needs=CLOCKED,
    ),
    Case(
        "what a keyed bolt sends at a tick goes on",
        flushed_into_a_table,
        {"words": [*"abca", PAUSE(6), *"aab", PAUSE(6), "c"]},
        # The last c is still in the state when the input ends.
        (TableIs("sent", {"a": 4, "b": 2, "c": 1}),),
        needs=CLOCKED,
    ),
    Case(
        "components have ticks of their own",
        two_tickers,
        {"words": ["a", PAUSE(3), "b", PAUSE(4)]},
        (
            Exactly("out-fast", [(0, 2, 1), (0, 4, 1), (0, 6, 0), (0, -1, 0)]),
            Exactly("out-slow", [(0, 5, 2), (0, -1, 0)]),
        ),
        needs=CLOCKED,
    ),
    Case(
        "a tick that never comes due",
        ends_without_ticks,
        {},
        (Exactly("out", [(0, -1, 10)]),),
        needs=CLOCKED,
    ),
    Case(
        "EOF ends the input where it stands",
        lambda: window("10 s"),
        {"words": ["a", "b", EOF, "c"]},
        (Exactly("out", [(0, -1, 2)]),),
        needs=CLOCKED,
    ),
]
