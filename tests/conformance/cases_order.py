"""Order: what arrives at a reader when streams split, meet again and pass keyed operators.

Under ``total`` the order is by source tuple, then branch in the order of declaration, then
position; under ``key`` each key sees its tuples in that order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from conformance.harness import AnyOrder, Case, Exactly, InKeyOrder, TableIs, nowhere
from thalweg import groupings
from thalweg.builder import TopologyBuilder
from thalweg.components import BlockBolt, Bolt
from thalweg.connectors.memory import items
from thalweg.flow import Flow, Stream
from thalweg.topology import Topology

NUMBERS = [i * 7 % 23 for i in range(40)]


def numbers(order: str = "total") -> Stream:
    return Flow("numbers", order).source("numbers", items([]), fields={"n": int})


def to_sink(*streams: Stream) -> Topology:
    first, *others = streams
    first.merge(*others).sink("out", nowhere())
    return first.flow.build()


def by_remainder(tasks: int) -> Any:
    return groupings.Custom(Remainder(tasks))


class Remainder:
    """Spreads numbers so that neighbours go to different tasks."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks

    def prepare(self, tasks: int) -> None:
        assert tasks == self.tasks

    def choose(self, batch: pa.RecordBatch) -> Sequence[int]:
        return [-n % self.tasks for n in batch.column("n").to_pylist()]


def diamond(degree: int = 1) -> Topology:
    source = numbers()
    doubled = source.map(lambda n: n * 2, degree=degree)
    repeated = source.flat_map(lambda n: [-n] * (n % 3), degree=degree)
    return to_sink(doubled, repeated)


def diamond_rows() -> list[int]:
    return [out for n in NUMBERS for out in [n * 2, *[-n] * (n % 3)]]


def diamond_merged_in_the_other_order() -> Topology:
    source = numbers()
    doubled = source.map(lambda n: n * 2, degree=2)
    repeated = source.flat_map(lambda n: [-n] * (n % 3), degree=3)
    return to_sink(repeated, doubled)


def uneven_branches() -> Topology:
    source = numbers()
    long = source
    for _ in range(3):
        long = long.map(lambda n: n + 1000, degree=2)
    short = source.filter(lambda n: n % 2 == 0)
    return to_sink(long, source, short)


def expanded_before_the_diamond() -> Topology:
    source = numbers().flat_map(lambda n: [n, n + 100, n + 200], degree=2)
    return to_sink(source.map(lambda n: n, degree=3), source.map(lambda n: -n, degree=2))


def expanded_rows() -> list[int]:
    rows = []
    for n in NUMBERS:
        rows += [n, n + 100, n + 200]
        rows += [-n, -n - 100, -n - 200]
    return rows


def diamond_in_a_diamond() -> Topology:
    source = numbers()
    left = source.map(lambda n: n + 1000, degree=2)
    inner = left.map(lambda n: n * 10, degree=3).merge(left.map(lambda n: n * 100, degree=2))
    right = source.map(lambda n: -n)
    return to_sink(inner.map(lambda n: n, degree=2), right)


def branch_and_back(order: str) -> Topology:
    odd, even = numbers(order).branch(lambda n: n % 2, degree=3)
    return to_sink(odd.map(lambda n: -n, degree=2), even)


def scattered_and_keyed() -> Topology:
    stream = numbers().grouped(by_remainder(4)).map(lambda n: n, degree=4)
    stream = stream.tally("first", key="n", degree=3).extend(m=lambda n: n % 5)
    stream = stream.tally("second", key="m", degree=2)
    return to_sink(stream.grouped(groupings.Fields(("m",))).map(lambda n, m: (n, m), degree=3))


def several_from_one_in_key_order() -> Topology:
    """Tuples of one source tuple take different ways and meet again at one key."""
    several = numbers("sender").flat_map(lambda n: [n * 10 + i for i in range(6)], degree=2)
    scattered = several.tally("first", key="n", degree=4)
    scattered = scattered.extend(m=lambda n: -n % 7).tally("second", key="m", degree=3)
    return to_sink(
        scattered.extend(all=lambda n: "all")
        .key_by("all")
        .running_count(degree=2)
        .select("all", "n", "count")
    )


def several_rows() -> list[tuple[Any, ...]]:
    rows = [n * 10 + i for n in NUMBERS for i in range(6)]
    return [("all", n, count) for count, n in enumerate(rows, 1)]


def several_after_a_scattering_stateless_bolt() -> Topology:
    several = numbers("sender").flat_map(lambda n: [n * 10 + i for i in range(6)])
    scattered = several.grouped(by_remainder(3)).map(lambda n: n, degree=3)
    passed = scattered.map(lambda n: n, degree=2).extend(all=lambda n: "all")
    return to_sink(passed.key_by("all").running_count(degree=2).select("all", "n", "count"))


class Even(Bolt):
    outputs = {"n": int}

    def process(self, t) -> None:
        if t.n % 2 == 0:
            self.emit(t.n)


def joined_before_a_running_count() -> Topology:
    """Branches meet, without a promise of their own, upstream of an operator that needs order."""
    source = numbers("sender")
    counted = source.map(lambda n: n + 100).tally("seen", key="n")
    joined = source.merge(counted, source.through("even", Even()))
    named = joined.map(lambda n: n).extend(all=lambda n: "all").select("all", "n")
    return to_sink(named.key_by("all").running_count())


def joined_rows() -> list[tuple[Any, ...]]:
    rows = [out for n in NUMBERS for out in [n, n + 100, *[n] * (n % 2 == 0)]]
    return [("all", n, count) for count, n in enumerate(rows, 1)]


class EvensThenOdds(BlockBolt):
    """Sends a block in two batches and out of order, but says where each row stems from."""

    outputs = {"n": int}

    def process_block(self, batch: pa.RecordBatch) -> None:
        values = batch.column("n").to_numpy()
        for remainder in (0, 1):
            rows = np.flatnonzero(values % 2 == remainder)
            self.emit(batch.take(pa.array(rows)), parents=rows)


class Backwards(BlockBolt):
    """Sends a block backwards, but says where each row stems from."""

    outputs = {"n": int}

    def process_block(self, batch: pa.RecordBatch) -> None:
        rows = np.arange(batch.num_rows)[::-1].copy()
        self.emit(batch.take(pa.array(rows)), parents=rows)


class NumberAndSquare(Bolt):
    """Two streams from each tuple."""

    outputs = ("n",)
    streams = {"square": ["n"]}

    def process(self, t) -> None:
        self.emit(t.n * t.n, stream="square")
        self.emit(t.n)


def two_streams_of_one_bolt() -> Topology:
    builder = TopologyBuilder("streams")
    builder.add_spout("numbers", _source())
    builder.add_bolt("both", NumberAndSquare(), degree=3).shuffle("numbers")
    out = builder.add_bolt("out", nowhere(), order="total").shuffle("both")
    out.shuffle("both", stream="square")
    return builder.build()


def _source() -> Any:
    source = items([])
    source.outputs = {"n": int}
    return source


def one_sink_total_another_not() -> Topology:
    flow = Flow("mixed")
    source = flow.source("numbers", items([]), fields={"n": int})
    mapped = source.map(lambda n: n + 1, degree=3)
    mapped.map(lambda n: -n, degree=2).sink("ordered", nowhere(), order="total")
    mapped.sink("any", nowhere())
    return flow.build()


def inner_rows() -> list[int]:
    return [
        out for n in NUMBERS for out in [(n + 1000) * 10, (n + 1000) * 100, -n]
    ]  # fmt: skip


EXACT = {"numbers": NUMBERS}

CASES = [
    Case("diamond under total order", diamond, EXACT, (Exactly("out", diamond_rows()),)),
    Case(
        "diamond under total order with three tasks each",
        lambda: diamond(3),
        EXACT,
        (Exactly("out", diamond_rows()),),
    ),
    Case(
        "merge names the branches in their order",
        diamond_merged_in_the_other_order,
        EXACT,
        (Exactly("out", [out for n in NUMBERS for out in [*[-n] * (n % 3), n * 2]]),),
    ),
    Case(
        "branches of different length under total order",
        uneven_branches,
        EXACT,
        (Exactly("out", [o for n in NUMBERS for o in [n + 3000, n, *[n] * (n % 2 == 0)]]),),
    ),
    Case(
        "all that stems from one source tuple is one unit",
        expanded_before_the_diamond,
        EXACT,
        (Exactly("out", expanded_rows()),),
    ),
    Case(
        "diamond in a diamond",
        diamond_in_a_diamond,
        EXACT,
        (Exactly("out", inner_rows()),),
    ),
    Case(
        "branches come back into source order",
        lambda: branch_and_back("total"),
        EXACT,
        (Exactly("out", [-n if n % 2 else n for n in NUMBERS]),),
    ),
    Case(
        "branches merge in any order without total",
        lambda: branch_and_back("sender"),
        EXACT,
        (AnyOrder("out", [-n if n % 2 else n for n in NUMBERS]),),
    ),
    Case(
        "total order survives scattering and keyed operators",
        scattered_and_keyed,
        EXACT,
        (
            Exactly("out", [(n, n % 5) for n in NUMBERS]),
            TableIs("first", Counter(NUMBERS)),
            TableIs("second", Counter(n % 5 for n in NUMBERS)),
        ),
    ),
    Case(
        "key order survives keyed operators in between",
        several_from_one_in_key_order,
        EXACT,
        (InKeyOrder("out", 0, several_rows()),),
    ),
    Case(
        "key order survives a scattering stateless bolt",
        several_after_a_scattering_stateless_bolt,
        EXACT,
        (InKeyOrder("out", 0, several_rows()),),
    ),
    Case(
        "key order survives a join upstream",
        joined_before_a_running_count,
        EXACT,
        (InKeyOrder("out", 0, joined_rows()),),
    ),
    Case(
        "rows of a block bolt go back to the order of their parents",
        lambda: to_sink(numbers().through("two", EvensThenOdds())),
        EXACT,
        (Exactly("out", NUMBERS),),
    ),
    Case(
        "rows that a block bolt sends backwards too",
        lambda: to_sink(numbers().through("back", Backwards())),
        EXACT,
        (Exactly("out", NUMBERS),),
    ),
    Case(
        "rows that two tasks of a block bolt send backwards too",
        lambda: to_sink(numbers().through("back", Backwards(), degree=2).map(lambda n: n)),
        EXACT,
        (Exactly("out", NUMBERS),),
    ),
    Case(
        "two streams of one bolt under total order",
        two_streams_of_one_bolt,
        EXACT,
        (Exactly("out", [out for n in NUMBERS for out in [n, n * n]]),),
    ),
    Case(
        "a total sink beside one that is not",
        one_sink_total_another_not,
        EXACT,
        (
            Exactly("ordered", [-n - 1 for n in NUMBERS]),
            AnyOrder("any", [n + 1 for n in NUMBERS]),
        ),
    ),
]
