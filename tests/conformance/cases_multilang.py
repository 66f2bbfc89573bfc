"""Components in child processes, and bolts that acknowledge by number, as Storm's do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from conformance.cases_acks import COUNT, Builder, Reliable
from conformance.harness import (
    ACKS,
    MEMORY,
    AnyOrder,
    Case,
    Counts,
    InKeyOrder,
    nowhere,
)
from thalweg.anchored import AnchoredBolt
from thalweg.anyvalues import anything
from thalweg.builder import TopologyBuilder
from thalweg.components import Spout
from thalweg.multilang import KeyedShellBolt, ShellBolt
from thalweg.topology import Topology

PROGRAMS = Path(__file__).parent.parent / "multilang" / "programs"
SENTENCES = ["to be or not to be", "that is the question", "to be"]
WORDS = [word for sentence in SENTENCES for word in sentence.split()]


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / program), *arguments]


class Sentences(Spout):
    outputs = {"sentence": anything}

    def prepare(self, context: Any) -> None:
        self.left = list(SENTENCES)

    def next_tuple(self) -> None:
        if not self.left:
            self.finish()
            return
        self.emit(self.left.pop(0))


def split() -> Topology:
    builder = TopologyBuilder("split")
    builder.add_spout("sentences", Sentences())
    bolt = ShellBolt(python("split_storm.py"), ["word"])
    builder.add_bolt("split", bolt, degree=2).shuffle("sentences")
    builder.add_bolt("out", nowhere()).shuffle("split")
    return builder.build()


def counted() -> Topology:
    builder = TopologyBuilder("counted")
    builder.add_spout("sentences", Sentences())
    builder.add_bolt("split", ShellBolt(python("split_storm.py"), ["word"])).shuffle("sentences")
    count = KeyedShellBolt(python("keyed_count.py"), ["word", "n"])
    builder.add_bolt("count", count, degree=2).fields("split", "word")
    builder.add_bolt("out", nowhere()).shuffle("count")
    return builder.build()


def counted_at_ticks() -> Topology:
    builder = TopologyBuilder("counted-at-ticks")
    builder.add_spout("sentences", Sentences())
    builder.add_bolt("split", ShellBolt(python("split_storm.py"), ["word"])).shuffle("sentences")
    count = KeyedShellBolt(python("holding_count.py", "once"), ["word", "n"], tick=0.1)
    builder.add_bolt("count", count, degree=2).fields("split", "word")
    builder.add_bolt("out", nowhere()).shuffle("count")
    return builder.build()


def acknowledged() -> Topology:
    made = Builder(Reliable(replay=False))
    bolt = ShellBolt(python("fails_some.py"), ["n"], stateless=True)
    made.bolt("child", bolt, degree=2).fields("numbers", "n")
    return made.build("child")


class Pairs(AnchoredBolt):
    """Sends two neighbours as one tuple, which stems from both; the second of some pairs fails."""

    outputs = {"first": int, "second": int}

    def prepare(self, context: Any) -> None:
        self.held: tuple[int, int] | None = None

    def process_tuples(self, first: int, block: Any) -> None:
        for number, value in enumerate(block.values("n"), first):
            if self.held is None:
                self.held = number, value
                continue
            (before, earlier), self.held = self.held, None
            self.emit([earlier, value], anchors=[before, number])
            self.ack(before)
            (self.fail if value % 4 == 1 else self.ack)(number)


def pairs() -> Topology:
    made = Builder(Reliable(COUNT))
    made.bolt("pairs", Pairs(), order="total").shuffle("numbers")
    made.bolt("after", nowhere()).shuffle("pairs")
    return made.build()


RUNNING = [(w, WORDS[: at + 1].count(w)) for at, w in enumerate(WORDS)]

CASES = [
    Case("words split by a child", split, {}, (AnyOrder("out", WORDS),)),
    Case(
        "counts of a keyed child are where their keys are",
        counted,
        {},
        (InKeyOrder("out", 0, RUNNING),),
    ),
    Case(
        "counts of a keyed child that holds words until a tick go on",
        counted_at_ticks,
        {},
        (InKeyOrder("out", 0, RUNNING),),
    ),
    Case(
        "what a child lets fail is told to the spout",
        acknowledged,
        {},
        (
            AnyOrder("log", [(n, "fail" if n % 4 == 1 else "ack") for n in range(COUNT)]),
            AnyOrder("out-child", [n for n in range(COUNT) if n % 4 != 1]),
        ),
        needs=frozenset([ACKS]),
    ),
    Case(
        "a tuple that stems from two ends with both",
        pairs,
        {},
        (
            AnyOrder("after", [(n, n + 1) for n in range(0, COUNT, 2)]),
            AnyOrder("log", [(n, "fail" if n % 4 == 1 else "ack") for n in range(COUNT)]),
            Counts({"acked": COUNT - 3, "failed": 3}),
        ),
        needs=frozenset([ACKS, MEMORY]),
    ),
]
