"""Joins with tables: the pairs are the same wherever they are found."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from conformance.harness import AnyOrder, Case, Exactly, at_degrees, nowhere, to_sink
from thalweg.builder import TopologyBuilder
from thalweg.connectors.memory import items
from thalweg.connectors.table_files import table_file
from thalweg.expressions import col, row
from thalweg.flow import Flow, Stream
from thalweg.operators.joining import TableJoin
from thalweg.operators.purity import pure
from thalweg.topology import Topology

# (item, amount); nobody sells None, and nothing is known about "egg"
SALES = [
    (["pen", "cup", None, "egg", "ink"][i % 5], i * 7 % 23 if i % 11 else None) for i in range(60)
]
FIELDS = {"item": str, "amount": int}
#: "cup" is there twice, and a row without a name that nobody finds.
PRICES = [
    {"item": "pen", "price": 2.5},
    {"item": "cup", "price": 7.0},
    {"item": None, "price": 0.0},
    {"item": "ink", "price": None},
    {"item": "cup", "price": 6.5},
]
#: Ranges overlap between 10 and 12; the last one has no end.
SIZES = pa.table(
    {"low": [0, 10, 15, 18], "high": [12, 15, 18, None], "size": ["s", "m", "l", "xl"]}
)
CATALOGUE = [{"id": f"i{i}", "at": i % 3, "weight": i} for i in range(200)]


def sales() -> Stream:
    return Flow("sales", "total").source("sales", items([]), fields=FIELDS)


def priced(how: str = "inner") -> list[tuple[Any, ...]]:
    made = []
    for item, amount in SALES:
        prices = [r["price"] for r in PRICES if item is not None and r["item"] == item]
        made += [(item, amount, price) for price in prices or [None] * (how == "left")]
    return made


def inner(degree: int) -> Topology:
    return to_sink(sales().join(PRICES, on="item", degree=degree))


def left(degree: int) -> Topology:
    return to_sink(sales().join(PRICES, on="item", how="left", degree=degree))


def between(degree: int) -> Topology:
    on = (row("low") <= col("amount")) & (col("amount") < row("high"))
    return to_sink(sales().join(SIZES, on=on, fields=["size"], degree=degree))


def sized() -> list[tuple[Any, ...]]:
    ranges = [(0, 12, "s"), (10, 15, "m"), (15, 18, "l")]
    return [
        (item, amount, size)
        for item, amount in SALES
        for low, high, size in ranges
        if amount is not None and low <= amount < high
    ]


def by_function(degree: int) -> Topology:
    def is_larger(t: Any, row: Any) -> bool:
        return t.amount is not None and row.price is not None and t.amount > row.price

    stream = sales().filter(lambda amount: amount is not None)
    joined = stream.join(PRICES, on=is_larger, prefix="table_", degree=degree)
    return to_sink(joined)


def larger() -> list[tuple[Any, ...]]:
    return [
        (item, amount, r["item"], r["price"])
        for item, amount in SALES
        for r in PRICES
        if amount is not None and r["price"] is not None and amount > r["price"]
    ]


def two_fields_in_processes() -> Topology:
    stream = sales().extend(id=lambda amount: f"i{amount}", at=lambda amount: (amount or 0) % 3)
    on = {"id": "id", "at": "at"}
    return to_sink(stream.join(CATALOGUE, on=on, isolation="process", degree=2).select("weight"))


def from_a_file() -> Topology:
    path = Path(tempfile.mkdtemp()) / "prices.csv"
    path.write_text("item,price,note\npen,2.5,\ncup,7.0,x\n,0.0,\nink,,\ncup,6.5,\n")
    table = table_file(path, fields={"item": str, "price": float})
    return to_sink(sales().join(table, on="item", how="left"))


def two_joins_and_a_filter() -> Topology:
    first = sales().join(PRICES, on="item").filter(pure(col("amount") > 5))
    second = first.join(SIZES, on={"amount": "low"}, how="left", fields=["size"])
    return to_sink(second)


def filtered() -> list[tuple[Any, ...]]:
    sizes = dict(zip([0, 10, 15, 18], ["s", "m", "l", "xl"], strict=True))
    rows = [r for r in priced() if r[1] is not None and r[1] > 5]
    return [(*r, sizes.get(r[1])) for r in rows]


def a_body_in_a_builder() -> Topology:
    source = items([])
    source.outputs = FIELDS
    builder = TopologyBuilder("sales")
    builder.add_spout("sales", source)
    builder.add_bolt("prices", TableJoin(FIELDS, PRICES, "item"), degree=3).shuffle("sales")
    builder.add_bolt("out", nowhere()).global_("prices")
    return builder.build()


INPUT = {"sales": SALES}

CASES = [
    *at_degrees("inner join", inner, INPUT, Exactly("out", priced())),
    *at_degrees("left join", left, INPUT, Exactly("out", priced("left"))),
    *at_degrees("join by range", between, INPUT, Exactly("out", sized())),
    *at_degrees("join by a function", by_function, INPUT, Exactly("out", larger()), degrees=(1, 3)),
    Case(
        "join on two fields in processes",
        two_fields_in_processes,
        INPUT,
        (Exactly("out", [amount for _, amount in SALES if amount is not None]),),
    ),
    Case("join with a file", from_a_file, INPUT, (Exactly("out", priced("left")),)),
    Case("two joins and a filter", two_joins_and_a_filter, INPUT, (Exactly("out", filtered()),)),
    Case("join in a builder", a_body_in_a_builder, INPUT, (AnyOrder("out", priced()),)),
]
