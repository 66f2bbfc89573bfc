"""The join with a table: fields, names, types, and what is refused."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.drawing.tree import tree
from thalweg.events import TupleRefused
from thalweg.flow import Stream
from thalweg.schemas import fields as fields_of

PRICES = [{"item": "pen", "price": 2}, {"item": "cup", "price": 7}]


@dataclass
class Price:
    item: str
    price: int


def sales(given: Any = (("pen", 1), ("cup", 2), ("egg", 3)), fields: Any = None) -> Stream:
    flow = tw.Flow("sales", "total")
    return flow.source("sales", tw.items(list(given)), fields=fields or {"item": str, "n": int})


def rows(stream: Stream, **settings: Any) -> list[tuple[Any, ...]]:
    out: list[Any] = []
    stream.sink("out", tw.collect(out))
    stream.flow.run(on=tw.Inline(**settings))
    return [tuple(t) for t in out]


@pytest.mark.parametrize(
    "table",
    [
        PRICES,
        tuple(PRICES),
        [Price("pen", 2), Price("cup", 7)],
        pa.Table.from_pylist(PRICES),
        pa.concat_tables([pa.Table.from_pylist(PRICES[:1]), pa.Table.from_pylist(PRICES[1:])]),
        pa.RecordBatch.from_pylist(PRICES),
    ],
    ids=["dictionaries", "a tuple", "records", "Arrow", "Arrow in pieces", "a record batch"],
)
def test_a_table_may_be_given_in_many_ways(table: Any) -> None:
    stream = sales().join(table, on="item")
    assert stream.fields == fields_of({"item": str, "n": int, "price": int})
    assert rows(stream) == [("pen", 1, 2), ("cup", 2, 7)]


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_keys_of_a_table_that_equal_nothing_are_no_whole_numbers(nothing: float | None) -> None:
    table = pa.table({"k": [0.0, nothing, 1.0], "v": [1, 2, 3]})
    stream = sales([0, 1, None], {"k": int}).join(table, on="k", how="left")
    assert rows(stream) == [(0, 1), (1, 3), (None, None)]


def test_an_arrow_table_may_be_empty() -> None:
    empty = pa.table({"item": pa.array([], pa.string()), "price": pa.array([], pa.int64())})
    assert rows(sales().join(empty, on="item")) == []
    left = sales().join(empty, on="item", how="left")
    assert rows(left) == [("pen", 1, None), ("cup", 2, None), ("egg", 3, None)]


def test_the_key_of_the_table_is_added_only_where_it_is_asked_for() -> None:
    table = [{"id": "pen", "price": 2}]
    assert rows(sales().join(table, on={"item": "id"})) == [("pen", 1, 2)]
    assert rows(sales().join(table, on={"item": "id"}, fields=["id"])) == [("pen", 1, "pen")]


def test_no_field_at_all_may_be_added() -> None:
    assert rows(sales().join(PRICES, on="item", fields=[])) == [("pen", 1), ("cup", 2)]


def test_names_that_the_stream_has_get_a_prefix() -> None:
    table = [{"item": "pen", "n": 5, "price": 2}]
    stream = sales().join(table, on="item", prefix="stock_")
    assert stream.fields.names == ("item", "n", "stock_n", "price")
    assert rows(stream) == [("pen", 1, 5, 2)]


def test_types_of_numbers_may_differ() -> None:
    table = pa.table({"n": pa.array([1, 2], pa.int16()), "x": ["a", "b"]})
    assert rows(sales().join(table, on="n")) == [("pen", 1, "a"), ("cup", 2, "b")]
    floats = pa.table({"n": [1.0, 2.0], "x": ["a", "b"]})
    assert rows(sales().join(floats, on="n")) == [("pen", 1, "a"), ("cup", 2, "b")]


def test_types_that_are_learnt_are_compared_when_they_are() -> None:
    stream = sales(fields=["item", "n"]).join(PRICES, on="item")
    assert rows(stream, block_rows=1) == [("pen", 1, 2), ("cup", 2, 7)]


def test_nothing_is_found_while_a_field_has_shown_only_nulls() -> None:
    given = [(None, 1), ("pen", 2)]
    stream = sales(given, fields=["item", "n"]).join(PRICES, on="item", how="left")
    assert rows(stream, block_rows=1) == [(None, 1, None), ("pen", 2, 2)]


def test_a_function_that_raises_refuses_its_tuple() -> None:
    told: list[Any] = []
    stream = sales([("pen", 1), ("cup", None)])
    joined = stream.join(PRICES, on=lambda t, row: t.n < row.price, how="left", prefix="t_")
    with pytest.raises(tw.ComponentError, match=r"join-1.*lambda.*TypeError(.|\n)*item='cup'"):
        rows(joined)
    stream = sales([("pen", 1), ("cup", None)])
    joined = stream.join(
        PRICES, on=lambda t, row: t.n < row.price, how="left", prefix="t_", on_error="skip"
    )
    out: list[Any] = []
    joined.sink("out", tw.collect(out))
    joined.flow.run(on="inline", listen=told.append)
    assert [tuple(t) for t in out] == [("pen", 1, "pen", 2), ("pen", 1, "cup", 7)]
    assert [event.component for event in told if isinstance(event, TupleRefused)] == ["join-1"]


def test_a_function_that_exits_refuses_its_tuple() -> None:
    stream = sales([("pen", 1), ("cup", 3)])
    joined = stream.join(PRICES, on=lambda t, _row: sys.exit(t.n), prefix="t_")
    with pytest.raises(tw.ComponentError, match=r"join-1.*it called sys\.exit\(1\)"):
        rows(joined)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"on": "colour"}, "field 'colour'"),
    ({"on": {"n": "colour"}}, "field 'colour'"),
    ({"on": []}, "on of join: expected a field"),
    ({"on": 5}, "on of join: expected a field"),
    ({"on": {"n": "item"}}, r"keys that can be compared with 'n', int64, got string"),
    ({"on": "item", "how": "outer"}, "expected how as one of"),
    ({"on": "item", "fields": ["colour"]}, "field 'colour'"),
    ({"on": "item", "fields": ["item"]}, r"fields \['item'\] of the table.*prefix"),
    ({"on": tw.col("n") > tw.row("colour")}, "field 'colour'"),
    ({"on": tw.col("colour") > tw.row("price")}, "field 'colour'"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_what_cannot_be_joined_is_refused_before_the_run(
    arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(tw.TopologyError, match=text):
        sales().join(PRICES, **arguments)


@pytest.mark.parametrize("table", [[], "items.csv", 5, [("pen", 2)], None])
def test_a_table_has_rows_with_names(table: Any) -> None:
    with pytest.raises(tw.TopologyError, match="expected"):
        sales().join(table, on="item")


def test_keys_of_lists_are_refused() -> None:
    flow = tw.Flow("lists")
    source = flow.source("lists", tw.items([]), fields={"tags": list[str]})
    with pytest.raises(tw.TopologyError, match="keys that can be compared"):
        source.join(pa.table({"tags": [["a"]], "n": [1]}), on="tags")


def test_a_condition_is_true_or_false() -> None:
    numbers = tw.col("n") + tw.row("price")
    with pytest.raises(tw.TopologyError, match="expected true or false, got int64"):
        sales().join(PRICES, on=numbers, prefix="t_")
    with pytest.raises(tw.ComponentError, match="expected true or false, got int64"):
        rows(sales(fields=["item", "n"]).join(PRICES, on=numbers, prefix="t_"))


def test_a_condition_on_types_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(tw.TopologyError, match=r"less\(n, row.item\).*no kernel"):
        sales().join(PRICES, on=tw.col("n") < tw.row("item"), prefix="t_")


def test_a_condition_with_equal_fields_is_looked_up() -> None:
    on = (tw.col("item") == tw.row("item")) & (tw.col("n") < tw.row("price"))
    made = tw.TableJoin({"item": str, "n": int}, PRICES, on, prefix="t_")
    assert made.chooser.ways == ("hash", "loop")
    assert rows(sales().join(PRICES, on=on, fields=["price"])) == [("pen", 1, 2), ("cup", 2, 7)]


def test_many_rows_for_each_tuple_are_found_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.operators.matching._AT_ONCE", 10)
    table = [{"low": low, "high": low + 30} for low in range(20)]
    given = [("x", n) for n in range(0, 60, 7)]
    on = (tw.row("low") <= tw.col("n")) & (tw.col("n") < tw.row("high"))
    expected = [
        (*sale, row["low"], row["high"])
        for sale in given
        for row in table
        if row["low"] <= sale[1] < row["high"]
    ]
    assert rows(sales(given).join(table, on=on)) == expected
    assert rows(sales(given).join(table, on=on & (tw.col("n") + 0 == tw.col("n")))) == expected


def test_the_table_of_a_join_is_none_of_the_topology() -> None:
    stream = sales().join(PRICES, on="item")
    stream.sink("out", tw.collect([]))
    topology = stream.flow.build()
    assert list(topology.tables) == []
    assert tree(topology).startswith("sales · 3 components\n")
