"""The degree does not change the result: programs with 1, 2 and 5 tasks per component."""

from __future__ import annotations

from collections import Counter

from conformance.bodies import CountByKey, Split
from conformance.harness import (
    AnyOrder,
    EndsWith,
    Exactly,
    InKeyOrder,
    TableIs,
    at_degrees,
    nowhere,
    running,
    to_sink,
)
from thalweg.builder import TopologyBuilder
from thalweg.connectors.memory import items
from thalweg.expressions import col
from thalweg.flow import Flow, Stream
from thalweg.groupings import Fields
from thalweg.topology import Topology

# (user, item, amount)
ORDERS = [(f"u{i * 5 % 7}", f"i{i * i % 11}", i % 9 - 2) for i in range(80)]
PAID = [(user, item, amount) for user, item, amount in ORDERS if amount > 0]
TEXT = ["the quick brown fox", "jumps over the lazy dog", "the end"] * 4


def orders(order: str = "sender") -> Stream:
    fields = {"user": str, "item": str, "amount": int}
    return Flow("orders", order).source("orders", items([]), fields=fields)


def letters(degree: int) -> Topology:
    stream = orders().filter(lambda amount: amount > 0, degree=degree)
    stream = stream.flat_map(
        lambda user, item, amount: [(user, item)] * amount, fields=["user", "item"], degree=degree
    )
    return to_sink(stream.map(lambda user, item: (user, item), degree=degree))


def tables(degree: int) -> Topology:
    paid = orders().filter(col("amount") > 0, degree=degree)
    paid.tally("users", key="user", degree=degree).tally("items", key="item", degree=degree)
    paid.key_by("user").sum("spent", "amount", degree=degree)
    paid.key_by("item").reduce("largest", "amount", max, degree=degree)
    paid.key_by("user", "item").fold("pairs", 0, lambda n, amount: n + 1, degree=degree)
    return paid.flow.build()


def spent() -> dict[str, int]:
    return {u: sum(a for v, _, a in PAID if v == u) for u in {u for u, _, _ in PAID}}


def largest() -> dict[str, int]:
    return {i: max(a for _, j, a in PAID if j == i) for i in {i for _, i, _ in PAID}}


def numbered(degree: int) -> Topology:
    stream = orders().grouped(Fields(("item",))).filter(lambda t: len(t) == 3, degree=degree)
    return to_sink(stream.key_by("user").running_count(degree=degree))


def numbered_twice(degree: int) -> Topology:
    stream = orders("total").filter(lambda t: len(t) == 3, degree=degree)
    stream = stream.key_by("user").running_count(into="by_user", degree=degree)
    return to_sink(stream.key_by("item").running_count(into="by_item", degree=degree))


def changes(degree: int) -> Topology:
    def step(last: int | None, user: str, amount: int) -> tuple[int, tuple[str, int]]:
        return amount, (user, amount - (last or 0))

    stream = orders("total").key_by("user")
    return to_sink(stream.stateful(step, fields=["user", "change"], degree=degree))


def expected_changes() -> list[tuple[str, int]]:
    last: dict[str, int] = {}
    made = []
    for user, _, amount in ORDERS:
        made.append((user, amount - last.get(user, 0)))
        last[user] = amount
    return made


def ranked(degree: int) -> Topology:
    stream = orders()
    stream.tally("users", key="user", degree=degree)
    return to_sink(stream.flow.table("users").filter(col("count") > 0, degree=degree).top(3))


def ranking() -> list[tuple[int, str, int]]:
    counts = Counter(user for user, _, _ in ORDERS)
    best = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    return [(rank, user, count) for rank, (user, count) in enumerate(best, 1)]


def diamond(degree: int) -> Topology:
    stream = orders("total").select("amount")
    low, high = stream.branch(lambda amount: amount < 3, degree=degree)
    again = stream.map(lambda amount: amount * 100, degree=degree)
    squared = high.flat_map(lambda amount: [amount, amount * amount], degree=degree)
    return to_sink(low.map(lambda amount: -amount, degree=degree).merge(squared, again))


def diamond_rows() -> list[int]:
    made = []
    for _, _, amount in ORDERS:
        made += [-amount] if amount < 3 else [amount, amount * amount]
        made.append(amount * 100)
    return made


def word_count(degree: int) -> Topology:
    source = items([])
    source.outputs = {"text": str}
    builder = TopologyBuilder("wordcount")
    builder.add_spout("text", source)
    builder.add_bolt("split", Split(), degree=degree).shuffle("text")
    builder.add_bolt("count", CountByKey(), degree=degree).fields("split", "word")
    builder.add_bolt("out", nowhere()).global_("count")
    return builder.build()


def counted() -> list[tuple[str, int]]:
    return running([(word,) for text in TEXT for word in text.split()], 0)


INPUT = {"orders": ORDERS}

CASES = [
    *at_degrees(
        "stateless chain",
        letters,
        INPUT,
        AnyOrder("out", [(user, item) for user, item, n in PAID for _ in range(n)]),
    ),
    *at_degrees(
        "five tables",
        tables,
        INPUT,
        TableIs("users", Counter(user for user, _, _ in PAID)),
        TableIs("items", Counter(item for _, item, _ in PAID)),
        TableIs("spent", spent()),
        TableIs("largest", largest()),
        TableIs("pairs", Counter((user, item) for user, item, _ in PAID)),
    ),
    *at_degrees(
        "running count in key order", numbered, INPUT, InKeyOrder("out", 0, running(ORDERS, 0))
    ),
    *at_degrees(
        "two running counts under total order",
        numbered_twice,
        INPUT,
        Exactly("out", running(running(ORDERS, 0), 1)),
    ),
    *at_degrees("stateful under total order", changes, INPUT, Exactly("out", expected_changes())),
    *at_degrees("top of a tally", ranked, INPUT, EndsWith("out", ranking())),
    *at_degrees("diamond of three branches", diamond, INPUT, Exactly("out", diamond_rows())),
    *at_degrees("word count of bolts", word_count, {"text": TEXT}, InKeyOrder("out", 0, counted())),
]
