"""The order of operators: which may change places, and which order costs least."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scaling_views import samples, source, view

import thalweg as tw
from thalweg.control.loop import Plan
from thalweg.control.ordering import (
    Chain,
    Measured,
    Reorder,
    chains_of,
    cheapest,
    cost_of,
    foreseen,
    reorder,
    rewired,
)
from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.ds2 import Ds2
from thalweg.control.scaling.ours import Thalweg
from thalweg.control.scaling.values import Node, Sample, Stream, View
from thalweg.control.steps import Order
from thalweg.flow import Stream as Tuples

NAMES = ("a", "b", "c", "d", "e")


def described(*build: Callable[[Tuples], Tuples]) -> tuple[Chain, ...]:
    """The chains of a flow."""
    flow = tw.Flow("f")
    stream = flow.source("numbers", tw.items([(1, 2, 3)]), fields={"a": int, "b": int, "c": int})
    for each in build:
        stream = each(stream)
    stream.sink("out", tw.collect([]))
    return chains_of(flow.build())


def filtered(field: str, name: str) -> Callable[[Tuples], Tuples]:
    """A filter that says that it may move."""
    return lambda stream: stream.filter(tw.pure(tw.col(field) > 0), name=name)


# --- which may change places -------------------------------------------------------------------


def test_nothing_moves_unless_it_says_that_it_may() -> None:
    assert (
        described(
            lambda s: s.filter(lambda a: a > 0),
            lambda s: s.filter(tw.col("b") > 0),
            lambda s: s.extend(d=lambda c: 1 / c),
            lambda s: s.select("a"),
        )
        == ()
    )


def test_filters_that_are_pure_may_change_places() -> None:
    (chain,) = described(filtered("a", "first"), filtered("b", "second"))
    assert chain == Chain(("first", "second"))


def test_a_filter_may_pass_a_field_that_it_does_not_read() -> None:
    (chain,) = described(lambda s: s.extend(d=tw.pure(lambda c: -c)), filtered("a", "late"))
    assert (chain.names, chain.fixed) == (("extend-1", "late"), frozenset())


@pytest.mark.parametrize("written", ["d", "a"])
def test_a_filter_stays_behind_what_makes_its_field(written: str) -> None:
    chains = described(
        lambda s: s.extend(**{written: tw.pure(lambda c: -c)}), filtered(written, "late")
    )
    assert chains == ()


def test_a_filter_stays_before_what_takes_its_field_away() -> None:
    (chain,) = described(filtered("b", "b"), filtered("a", "a"), lambda s: s.select("a"))
    assert chain.fixed == {("b", "select-1")}


def test_two_that_change_fields_keep_their_order() -> None:
    (chain,) = described(
        lambda s: s.extend(d=tw.pure(lambda c: -c)), lambda s: s.select("a"), filtered("a", "late")
    )
    assert chain.fixed == {("extend-1", "select-1")}


def test_a_function_of_whole_tuples_says_what_it_reads() -> None:
    unknown = tw.pure(lambda t: t.a > 0)
    known = tw.pure(lambda t: t.a > 0, reads=["a"])
    assert described(lambda s: s.filter(unknown), filtered("b", "late")) == ()
    (chain,) = described(lambda s: s.filter(known), filtered("b", "late"))
    assert chain.names == ("filter-1", "late")


def test_what_it_reads_has_to_be_there() -> None:
    with pytest.raises(tw.TopologyError, match=r"'z'.*expected one of"):
        described(lambda s: s.filter(tw.pure(lambda t: t.a > 0, reads="z")))


def test_only_functions_and_expressions_can_be_pure() -> None:
    with pytest.raises(tw.TopologyError, match="pure: expected a function or an expression, got 3"):
        tw.pure(3)


def test_a_chain_ends_where_somebody_else_reads_or_several_are_read() -> None:
    flow = tw.Flow("f")
    first = flow.source("numbers", tw.items([1]), fields={"a": int})
    left = filtered("a", "one")(first)
    both = filtered("a", "two")(left)
    left.sink("also", tw.collect([]))
    merged = filtered("a", "three")(both.merge(first))
    filtered("a", "five")(filtered("a", "four")(merged)).sink("out", tw.collect([]))
    assert [chain.names for chain in chains_of(flow.build())] == [("four", "five")]


def test_a_chain_ends_at_keys_ticks_and_processes() -> None:
    assert (
        described(
            filtered("a", "one"),
            lambda s: filtered("a", "two")(s.grouped(tw.groupings.Fields(("a",)))),
            lambda s: s.filter(tw.pure(tw.col("a") > 0), tick="1 s"),
            lambda s: s.filter(tw.pure(tw.col("a") > 0), isolation="process"),
        )
        == ()
    )


# --- any order that is allowed gives the same ----------------------------------------------------

ROWS = [(i, i * i % 7, -i) for i in range(40)]
MODULI = st.integers(2, 4)


@st.composite
def operators(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Filters and projections, each on fields that are there."""
    fields, made = ["a", "b", "c"], []
    for _ in range(draw(st.integers(2, 6))):
        kind = draw(st.sampled_from(["filter", "filter", "extend", "select"]))
        if kind == "filter":
            made.append((kind, (draw(st.sampled_from(fields)), draw(MODULI))))
        elif kind == "extend":
            name = draw(st.sampled_from(["a", "b", "d", "e"]))
            made.append((kind, (name, draw(st.sampled_from(fields)), draw(MODULI))))
            fields = fields if name in fields else [*fields, name]
        else:
            fields = draw(st.lists(st.sampled_from(fields), min_size=1, unique=True))
            made.append((kind, tuple(fields)))
    return made


def put(stream: Tuples, kind: str, how: Any) -> Tuples:
    """Put one of these on a stream."""
    if kind == "filter":
        field, modulus = how
        return stream.filter(tw.pure(lambda t: getattr(t, field) % modulus != 0, reads=field))
    if kind == "extend":
        name, read, modulus = how
        function = tw.pure(lambda t: getattr(t, read) * 3 % 11 + modulus, reads=read)
        return stream.extend(**{name: function})
    return stream.select(*how)


def output(made: Sequence[tuple[str, Any]]) -> tuple[list[Any], tw.Topology]:
    """What comes of these, in this order."""
    flow, rows = tw.Flow("f"), list[Any]()
    stream = flow.source("numbers", tw.items(ROWS), fields={"a": int, "b": int, "c": int})
    # With one field a function of one parameter takes the value, so there are always two.
    for kind, how in made:
        stream = put(stream, kind, how)
    stream.sink("out", tw.call(lambda t: rows.append(tw.as_dict(t))))
    topology = flow.build()
    topology.run(on="inline")
    return rows, topology


def orders(chain: Chain) -> list[tuple[str, ...]]:
    """All orders that a chain may have."""
    return [
        way
        for way in permutations(chain.names)
        if all(way.index(first) < way.index(second) for first, second in chain.fixed)
    ]


@given(st.data())
def test_every_order_that_is_allowed_gives_the_same(data: st.DataObject) -> None:
    made = data.draw(operators().filter(lambda all_: not _single(all_)))
    rows, topology = output(made)
    names = [component.name for component in topology][1:-1]
    for chain in chains_of(topology):
        way = data.draw(st.sampled_from(orders(chain)))
        at = names.index(chain.names[0])
        names[at : at + len(way)] = way
    began = [component.name for component in topology][1:-1]
    assert output([made[began.index(name)] for name in names])[0] == rows


def _single(made: list[tuple[str, Any]]) -> bool:
    """Say whether a stream comes to have one field, whose value functions then take."""
    return any(kind == "select" and len(how) == 1 for kind, how in made)


# --- which order costs least ---------------------------------------------------------------------

COSTS = st.builds(Measured, st.floats(1e-6, 1.0), st.floats(0.0, 1.0))
PAIRS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda p: p[0] < p[1]))


@given(st.lists(COSTS, min_size=5, max_size=5), PAIRS)
def test_no_order_costs_less_than_the_cheapest(
    costs: list[Measured], fixed: set[tuple[int, int]]
) -> None:
    known = dict(zip(NAMES, costs, strict=True))
    chain = Chain(NAMES, frozenset((NAMES[i], NAMES[j]) for i, j in fixed))
    found = cheapest(chain, known)
    assert found in orders(chain)
    assert cost_of(found, known) == pytest.approx(
        min(cost_of(way, known) for way in orders(chain)), abs=1e-12
    )


@given(st.lists(COSTS, min_size=5, max_size=5))
def test_filters_come_by_what_they_give_up_per_second(costs: list[Measured]) -> None:
    known = dict(zip(NAMES, costs, strict=True))
    ranked = sorted(NAMES, key=lambda n: (known[n].selectivity - 1) / known[n].cost)
    least = cost_of(cheapest(Chain(NAMES), known), known)
    assert least == pytest.approx(cost_of(ranked, known), abs=1e-12)


SLOW_FIRST = {"a": Measured(9e-6, 0.9), "b": Measured(1e-6, 0.1)}
CHAIN = Chain(("a", "b"))


def test_a_decision_says_what_it_gains() -> None:
    made = reorder(CHAIN, ("a", "b"), SLOW_FIRST, {}, 0.1)
    assert (made.after, made.changes) == (("b", "a"), True)
    assert made.cost == pytest.approx(9.9e-6)
    assert made.expected == pytest.approx(1.9e-6)
    assert made.reason == "b -> a in place of a -> b: 1.9 us instead of 9.9 us per tuple, 81 % less"


def test_a_small_gain_is_no_ground_for_a_change() -> None:
    costs = {"a": Measured(1.0, 0.5), "b": Measured(1.0, 0.45)}
    assert not reorder(CHAIN, ("a", "b"), costs, {}, 0.1).changes
    assert reorder(CHAIN, ("a", "b"), costs, {}, 0.01).changes


def test_what_an_order_has_really_cost_counts_for_more_than_what_is_expected() -> None:
    made = reorder(CHAIN, ("a", "b"), SLOW_FIRST, {("b", "a"): 9.5e-6}, 0.1)
    assert not made.changes


# --- the step ------------------------------------------------------------------------------------


def seen(
    costs: Mapping[str, tuple[float, float]], count: int = 100, order: Sequence[str] = ("a", "b")
) -> View:
    """A view of two filters; (seconds per tuple, part that is let through)."""
    nodes, history = [Node("numbers")], {"numbers": source("numbers", [count] * 6)}
    sender, left = "numbers", float(count)
    for name in order:
        cost, part = costs[name]
        nodes.append(Node(name, (Stream(sender, "default"),)))
        made = samples(name, [round(left)] * 6, cost=cost, ratio=part)
        history[name] = tuple(_on_default(each) for each in made)
        sender, left = name, left * part
    nodes.append(Node("out", (Stream(sender, "default"),)))
    history["out"] = samples("out", [round(left)] * 6, cost=1e-3)
    return view(nodes, history)


def _on_default(sample: Sample) -> Sample:
    values = {**vars(sample), "emitted": {"default": sample.emitted["out"]}}
    return Sample(**values)


def decided(step: Order, shown: View) -> list[Reorder]:
    """What the step makes of a view."""
    return [made for made in step.decide(shown, Plan()) if isinstance(made, Reorder)]


def test_a_join_that_sends_more_than_it_takes_comes_behind_a_filter() -> None:
    """The filter keeps most tuples, and would not pay for itself before a join of one row each."""
    step = Order([CHAIN], lambda chain: chain.names)
    assert not decided(step, seen({"a": (0.01, 1.0), "b": (0.01, 0.95)}))[0].changes
    (made,) = decided(step, seen({"a": (0.01, 3.0), "b": (0.01, 0.95)}))
    assert made.after == ("b", "a")
    assert made.cost == pytest.approx(0.01 + 3 * 0.01)


def test_tuples_that_were_counted_a_little_later_are_not_more() -> None:
    step = Order([CHAIN], lambda chain: chain.names)
    (made,) = decided(step, seen({"a": (0.01, 1.05), "b": (0.01, 1.0)}))
    assert made.cost == pytest.approx(0.02)


def test_the_step_turns_round_what_is_dear_and_keeps_much() -> None:
    step = Order([CHAIN], lambda chain: chain.names)
    shown = seen({"a": (0.02, 0.9), "b": (0.001, 0.1)})
    (made,) = decided(step, shown)
    assert made.after == ("b", "a")
    revised = step.revised(shown, [made])
    assert [(n.name, n.parents) for n in revised.nodes] == [
        ("numbers", ()),
        ("b", ("numbers",)),
        ("a", ("b",)),
        ("out", ("a",)),
    ]
    assert revised.windows["b"].received == pytest.approx(600, abs=6)
    assert revised.windows["a"].received == pytest.approx(60, abs=6)
    assert revised.windows["out"].received == shown.windows["out"].received


def test_nothing_is_decided_while_too_little_is_known() -> None:
    step = Order([CHAIN], lambda chain: chain.names)
    assert decided(step, seen({"a": (0.02, 0.9), "b": (0.001, 0.1)}, count=10)) == []


def test_filters_whose_answers_have_to_do_with_each_other_do_not_change_places_for_ever() -> None:
    """Each keeps half of all tuples, and a tenth of what the other keeps."""
    order = [("a", "b")]
    step = Order([CHAIN], lambda _chain: order[-1])
    for _ in range(10):
        first, second = order[-1]
        shown = seen({first: (0.01, 0.5), second: (0.01, 0.1)}, order=order[-1])
        (made,) = decided(step, shown)
        if made.changes:
            order.append(made.after)
    assert order == [("a", "b"), ("b", "a")]


def test_those_behind_a_chain_read_its_last_operator() -> None:
    nodes = [
        Node("numbers"),
        Node("x", (Stream("numbers", "default"),)),
        Node("y", (Stream("x", "default"),)),
        Node("z", (Stream("y", "default"), Stream("numbers", "default"))),
    ]
    made = Reorder(Chain(("x", "y")), ("x", "y"), ("y", "x"), "")
    found = {node.name: node.parents for node in rewired(nodes, made)}
    assert found == {"numbers": (), "y": ("numbers",), "x": ("y",), "z": ("x", "numbers")}


def test_every_policy_decides_for_the_new_order() -> None:
    """Behind a filter that keeps a tenth, what took four tasks needs one."""

    def seen(name: str, rate: int, cost: float, degree: int, ratio: float) -> tuple[Sample, ...]:
        made = samples(name, [rate] * 18, cost=cost, degree=degree)
        return tuple(replace(s, emitted={"default": round(s.processed * ratio)}) for s in made)

    nodes = [
        Node("posts"),
        Node("slow", (Stream("posts", "default"),), most=8),
        Node("few", (Stream("slow", "default"),), most=8),
    ]
    history = {
        "posts": tuple(replace(s, emitted={"default": 380}) for s in source("posts", [380] * 18)),
        "slow": seen("slow", 380, 0.1, 4, 1.0),
        "few": seen("few", 380, 0.001, 1, 0.1),
    }
    costs = {"slow": Measured(0.1, 1.0), "few": Measured(0.001, 0.1)}
    made = reorder(Chain(("slow", "few")), ("slow", "few"), costs, {}, 0.1)
    assert isinstance(made, Reorder)
    revised = foreseen(view(nodes, history, delta=30.0), made, costs)
    for policy in (Ds2(), Autoscale(), Thalweg(), Thalweg("economy")):
        degrees = {d.component: d.degree for d in policy.decide(revised)}
        assert degrees["slow"] == 1, policy
