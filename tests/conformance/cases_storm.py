"""Spouts and bolts in Storm's manner: life cycle, streams, fan-out, fan-in."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from conformance.bodies import CountByKey, Numbers, Split, WhoGotIt
from conformance.harness import (
    MEMORY,
    AnyOrder,
    Case,
    Counts,
    Exactly,
    Holds,
    InKeyOrder,
    Settings,
    nowhere,
)
from thalweg.builder import TopologyBuilder
from thalweg.components import BlockBolt, BlockSpout, Bolt, Kind, Spout
from thalweg.connectors.memory import items
from thalweg.flow import Flow
from thalweg.topology import Topology

SENTENCES = ["to be or not to be", "that is the question", "", "to be"] * 3
WORDS = [word for sentence in SENTENCES for word in sentence.split()]


def sentences() -> Any:
    source = items([])
    source.outputs = {"text": str}
    return source


def word_count() -> Topology:
    builder = TopologyBuilder("wordcount")
    builder.add_spout("sentences", sentences())
    builder.add_bolt("split", Split(), degree=3).shuffle("sentences")
    builder.add_bolt("count", CountByKey(), degree=4).fields("split", "word")
    builder.add_bolt("out", nowhere()).global_("count")
    return builder.build()


def counted_words() -> list[tuple[str, int]]:
    seen: Counter[str] = Counter()
    made = []
    for word in WORDS:
        seen[word] += 1
        made.append((word, seen[word]))
    return made


class EvenAndOdd(Spout):
    """Two streams beside the default one, which gets every number."""

    outputs = {"n": int}
    streams = {"even": {"n": int}, "odd": {"n": int, "half": float}}

    def prepare(self, context) -> None:
        self.next = 0

    def next_tuple(self) -> None:
        n, self.next = self.next, self.next + 1
        self.emit(n)
        if n % 2:
            self.emit(n, n / 2, stream="odd")
        else:
            self.emit(n, stream="even")
        if self.next == 25:
            self.finish()


def spout_with_three_streams() -> Topology:
    builder = TopologyBuilder("streams")
    builder.add_spout("numbers", EvenAndOdd())
    builder.add_bolt("all", nowhere()).shuffle("numbers")
    builder.add_bolt("even", nowhere()).shuffle("numbers", stream="even")
    builder.add_bolt("odd", nowhere()).shuffle("numbers", stream="odd")
    return builder.build()


class SizeStreams(Bolt):
    streams = {"small": ["n"], "big": ["n"]}

    def process(self, t) -> None:
        self.emit(t.n, stream="small" if t.n < 10 else "big")


def bolt_with_two_streams() -> Topology:
    builder = TopologyBuilder("streams")
    builder.add_spout("numbers", Numbers(30), degree=2)
    builder.add_bolt("size", SizeStreams(), degree=3).shuffle("numbers")
    builder.add_bolt("small", nowhere()).shuffle("size", stream="small")
    builder.add_bolt("big", nowhere()).shuffle("size", stream="big")
    return builder.build()


class Countdown(BlockSpout):
    """A vectorised source that gives more rows than it was asked for."""

    outputs = {"n": int}

    def prepare(self, context) -> None:
        self.batches = [list(range(20, 10, -1)), [], list(range(10, 0, -1))]

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        if not self.batches:
            self.finish()
            return None
        return self.make_batch([self.batches.pop(0)])


def vectorised_source() -> Topology:
    flow = Flow("countdown", "total")
    flow.source("n", Countdown()).sink("out", nowhere())
    return flow.build()


class Repeat(BlockBolt):
    """Each row as often as it says, with its parent named."""

    outputs = {"n": int}

    def process_block(self, batch: pa.RecordBatch) -> None:
        times = batch.column("n").to_numpy() % 4
        parents = np.repeat(np.arange(batch.num_rows), times)
        self.emit(batch.take(pa.array(parents)), parents=parents)


def repeated_rows() -> Topology:
    flow = Flow("repeat", "total")
    source = flow.source("n", items([]), fields={"n": int})
    source.through("repeat", Repeat(), degree=3).sink("out", nowhere())
    return flow.build()


class Balance(BlockBolt):
    """A keyed block bolt that reads and writes its state once per block."""

    kind = Kind.KEYED
    outputs = {"who": str, "balance": int}

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names, amounts = self.values("who"), self.values("amount")
        balances = self.state.get_many(set(names))
        after = []
        for name, amount in zip(names, amounts, strict=True):
            balances[name] = balances.get(name, 0) + amount
            after.append(balances[name])
        self.state.put_many(balances)
        return self.make_batch([names, after])


PAYMENTS = [(f"p{i % 5}", i * 13 % 29 - 14) for i in range(60)]


def balances() -> list[tuple[str, int]]:
    sums: dict[str, int] = {}
    made = []
    for who, amount in PAYMENTS:
        sums[who] = sums.get(who, 0) + amount
        made.append((who, sums[who]))
    return made


def keyed_block_bolt() -> Topology:
    flow = Flow("payments")
    source = flow.source("payments", items([]), fields={"who": str, "amount": int})
    source.key_by("who").stream.through("balance", Balance(), degree=3).sink("out", nowhere())
    return flow.build()


class Median(Bolt):
    """One state for everything: the median so far."""

    kind = Kind.GLOBAL
    outputs = ("median",)

    def process(self, t) -> None:
        seen = sorted([*self.state.get("seen", []), t.n])
        self.state.put("seen", seen)
        self.emit(seen[len(seen) // 2])


def medians(values: list[int]) -> list[int]:
    return [sorted(values[: i + 1])[(i + 1) // 2] for i in range(len(values))]


def global_bolt() -> Topology:
    flow = Flow("median", "total")
    source = flow.source("n", items([]), fields={"n": int})
    source.map(lambda n: n, degree=3).through("median", Median()).sink("out", nowhere())
    return flow.build()


def fan_out() -> Topology:
    builder = TopologyBuilder("fan-out")
    builder.add_spout("numbers", Numbers(40), degree=2)
    for name in ("a", "b", "c"):
        builder.add_bolt(name, WhoGotIt("n"), degree=2).shuffle("numbers")
        builder.add_bolt(f"out-{name}", nowhere()).shuffle(name)
    return builder.build()


def each_number_once(rows: list[tuple[Any, ...]]) -> bool:
    """Each number came once."""
    return sorted(row[0] for row in rows) == list(range(40))


class WhereFrom(Bolt):
    outputs = ("n", "component", "stream")

    def process(self, t) -> None:
        self.emit(t.n, self.origin.component, self.origin.stream)


def fan_in() -> Topology:
    builder = TopologyBuilder("fan-in")
    builder.add_spout("left", Numbers(10))
    builder.add_spout("right", Numbers(15), degree=2)
    builder.add_spout("three", EvenAndOdd())
    reads = builder.add_bolt("in", WhereFrom(), degree=3).shuffle("left").shuffle("right")
    reads.shuffle("three", stream="even")
    builder.add_bolt("unused", nowhere()).shuffle("three").shuffle("three", stream="odd")
    builder.add_bolt("out", nowhere()).shuffle("in")
    return builder.build()


class SumAtTheEnd(Bolt):
    outputs = ("total",)

    def prepare(self, context) -> None:
        self.total = 0

    def process(self, t) -> None:
        self.total += t[0]

    def process_end(self) -> None:
        self.emit(self.total)


def sums_at_the_end() -> Topology:
    """What a component sends at its end reaches the next one before that one's end."""
    builder = TopologyBuilder("ends")
    builder.add_spout("numbers", Numbers(100), degree=2)
    builder.add_bolt("parts", SumAtTheEnd(), degree=4).shuffle("numbers")
    builder.add_bolt("whole", SumAtTheEnd()).global_("parts")
    builder.add_bolt("out", nowhere()).global_("whole")
    return builder.build()


class OwnList(Bolt):
    """Keeps what it saw in an attribute that was set before the tasks were made."""

    outputs = ("task", "seen")

    def __init__(self) -> None:
        self.seen: list[int] = []

    def process(self, t) -> None:
        self.seen.append(t.n)

    def process_end(self) -> None:
        self.emit(self.context.task, len(self.seen))


def private_attributes() -> Topology:
    builder = TopologyBuilder("private")
    builder.add_spout("numbers", Numbers(60))
    builder.add_bolt("own", OwnList(), degree=3).shuffle("numbers")
    builder.add_bolt("out", nowhere()).shuffle("own")
    return builder.build()


class AboutItself(Bolt):
    outputs = ("topology", "component", "task", "degree", "colour", "prepared")

    def prepare(self, context) -> None:
        self.prepared = (context.topology, context.component, context.task, context.degree)

    def process_end(self) -> None:
        c = self.context
        same = self.prepared == (c.topology, c.component, c.task, c.degree)
        self.emit(*self.prepared, c.settings.get("colour"), same)

    def process(self, t) -> None:
        pass


def what_a_task_knows() -> Topology:
    builder = TopologyBuilder("knows")
    builder.add_spout("numbers", Numbers(1))
    builder.add_bolt("self", AboutItself(), degree=3).shuffle("numbers")
    builder.add_bolt("out", nowhere()).shuffle("self")
    return builder.build()


class Picky(Bolt):
    """Emits before it raises; what it has sent for that tuple must not be seen."""

    outputs = ("n",)

    def process(self, t) -> None:
        self.emit(t.n)
        self.emit(-t.n)
        if t.n % 3 == 0:
            raise ValueError(t.n)


def raising_after_emit() -> Topology:
    builder = TopologyBuilder("picky")
    builder.add_spout("numbers", Numbers(20))
    builder.add_bolt("picky", Picky(), degree=2, on_error="skip").shuffle("numbers")
    builder.add_bolt("out", nowhere()).shuffle("picky")
    return builder.build()


NS = [i * 11 % 17 for i in range(30)]

CASES = [
    Case(
        "word count in Storm's manner",
        word_count,
        {"sentences": SENTENCES},
        (InKeyOrder("out", 0, counted_words()),),
    ),
    Case(
        "a spout with several streams",
        spout_with_three_streams,
        {},
        (
            AnyOrder("all", range(25)),
            AnyOrder("even", range(0, 25, 2)),
            AnyOrder("odd", [(n, n / 2) for n in range(1, 25, 2)]),
        ),
    ),
    Case(
        "a bolt with several streams and no default one",
        bolt_with_two_streams,
        {},
        (AnyOrder("small", range(10)), AnyOrder("big", range(10, 30))),
    ),
    Case(
        "a vectorised source keeps its order",
        vectorised_source,
        {},
        (Exactly("out", range(20, 0, -1)),),
    ),
    Case(
        "a block bolt names the parents of its rows",
        repeated_rows,
        {"n": NS},
        (Exactly("out", [n for n in NS for _ in range(n % 4)]),),
    ),
    Case(
        "a keyed block bolt",
        keyed_block_bolt,
        {"payments": PAYMENTS},
        (InKeyOrder("out", 0, balances()),),
    ),
    Case(
        "a global bolt sees everything in order",
        global_bolt,
        {"n": NS},
        (Exactly("out", medians(NS)),),
    ),
    Case(
        "fan-out gives every reader everything",
        fan_out,
        {},
        tuple(Holds(f"out-{name}", each_number_once) for name in "abc"),
    ),
    Case(
        "fan-in tells where a tuple comes from",
        fan_in,
        {},
        (
            AnyOrder(
                "out",
                [
                    *((n, "left", "default") for n in range(10)),
                    *((n, "right", "default") for n in range(15)),
                    *((n, "three", "even") for n in range(0, 25, 2)),
                ],
            ),
        ),
    ),
    Case(
        "what is left comes at the end, component by component",
        sums_at_the_end,
        {},
        (AnyOrder("out", [sum(range(100))]), Counts({"received": 4}, "whole")),
        needs=frozenset([MEMORY]),
    ),
    Case(
        "attributes are private to a task",
        private_attributes,
        {},
        (AnyOrder("out", [(0, 20), (1, 20), (2, 20)]),),
        needs=frozenset([MEMORY]),
    ),
    Case(
        "a task knows its place and the settings",
        what_a_task_knows,
        {},
        (AnyOrder("out", [("knows", "self", task, 3, "blue", True) for task in range(3)]),),
        settings=Settings({"colour": "blue"}),
    ),
    Case(
        "what a bolt sent for a tuple on which it raised is not seen",
        raising_after_emit,
        {},
        (
            AnyOrder("out", [m for n in range(20) if n % 3 for m in (n, -n)]),
            Counts({"errors": 7}, "picky"),
        ),
    ),
    Case(
        "metrics count tuples",
        word_count,
        {"sentences": SENTENCES},
        (
            Counts({"tuples_in": 12, "tuples_out": len(WORDS), "errors": 0}),
            Counts({"received": 12, "emitted": len(WORDS)}, "split"),
            Counts({"received": len(WORDS), "degree": 4}, "count"),
        ),
    ),
]
