"""Operators change places while a topology runs, and nothing else changes with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from delaying import delayed
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.control.loop import Made, Plan
from thalweg.control.ordering import Chain, Reorder
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Decision, Timing, View
from thalweg.events import Decided, Event
from thalweg.flow import Stream
from thalweg.runtimes.local import scaling as local_scaling
from thalweg.runtimes.local.runtime import Local

TIMING = Timing(0.04, 0.02, 0.0)
SMALL: Mapping[str, Any] = {"block_rows": 20, "most_block_rows": 20, "workers": 3, "window": 8}
UNKNOWN = "has fields of a type that is not known yet"
ASSIGNING = ("workers", "executors")
WAYS = pytest.mark.parametrize("assigning", ASSIGNING)


class Told:
    """Hears a run, and gives numbers until so many orders were changed, or refused, and more."""

    def __init__(self, changes: int, more: int = 400, refused: int = 0) -> None:
        self.events: list[Event] = []
        self.given: list[tuple[int, int]] = []
        self._changes, self._more, self._refused = changes, more, refused

    def orders(self) -> list[str]:
        """What was said of orders."""
        texts = [event.text for event in self.events if isinstance(event, Decided)]
        return [text for text in texts if "in place of" in text and UNKNOWN not in text]

    def refusals(self) -> list[str]:
        """What was not done."""
        texts = [event.text for event in self.events if isinstance(event, Decided)]
        return [text for text in texts if UNKNOWN in text]

    def _enough(self) -> bool:
        changed, refused = len(self.orders()), len(self.refusals())
        return changed >= self._changes and refused >= self._refused

    def numbers(self) -> Iterator[tuple[int, int]]:
        """Give numbers."""
        more = self._more
        while not self._enough() or (more := more - 1) > 0:
            number = len(self.given)
            self.given.append((number % 41, number**2 % 23))
            yield self.given[-1]

    def source(self, flow: tw.Flow) -> Stream:
        """Begin a stream of these numbers."""
        return flow.source("numbers", tw.items(self.numbers), fields={"a": int, "b": int})

    def run(self, flow: tw.Flow, scaling: Any, **more: Any) -> tw.Result:
        """Run a flow."""
        local = Local(**(SMALL | {"scaling": scaling} | more))
        return flow.run(on=local, listen=self.events.append)


@dataclass
class Scripted:
    """In place of the step that measures: one order after the other, as soon as it can be had."""

    chains: Sequence[Chain]
    in_force: Callable[[Chain], tuple[str, ...]]
    orders: Sequence[tuple[str, ...]] = ()
    done: int = 0

    def decide(self, _view: View, _above: Plan) -> Sequence[Made]:
        """Want the next one."""
        (chain,), before = self.chains, self.in_force(self.chains[0])
        while self.done < len(self.orders) and self.orders[self.done] == before:
            self.done += 1
        if self.done == len(self.orders):
            return ()
        after = self.orders[self.done]
        return [Reorder(chain, before, after, f"{after} in place of {before}")]

    def revised(self, view: View, _made: Sequence[Made]) -> View:
        """Show the same."""
        return view


def scripted(monkeypatch: pytest.MonkeyPatch, orders: Sequence[tuple[str, ...]]) -> None:
    """Let every run have these orders."""

    def made(chains: Sequence[Chain], in_force: Callable[[Chain], tuple[str, ...]]) -> Scripted:
        return Scripted(chains, in_force, orders)

    monkeypatch.setattr(local_scaling, "Order", made)


# --- by what is measured -------------------------------------------------------------------------


class Calls:
    """A dear filter that keeps most tuples, and a cheap one that keeps few."""

    def __init__(self) -> None:
        self.dear = self.cheap = self.kept = 0

    def is_dear(self, a: int) -> bool:
        """Work."""
        self.dear += 1
        return sum(range(2000)) > 0 and a != 0

    def is_cheap(self, b: int) -> bool:
        """Keep few."""
        self.cheap += 1
        self.kept += b == 1
        return b == 1

    def flow(self, told: Told, declared: Callable[[Any], Any] = tw.pure) -> tuple[tw.Flow, Any]:
        """Put the dear one first."""
        flow, rows = tw.Flow("filters"), list[Any]()
        stream = told.source(flow).filter(declared(self.is_dear), name="dear")
        stream.filter(declared(self.is_cheap), name="cheap").sink("out", tw.collect(rows))
        return flow, rows


def expected(told: Told) -> list[tuple[int, int]]:
    """What both filters keep."""
    return [(a, b) for a, b in told.given if a != 0 and b == 1]


@WAYS
def test_a_dear_filter_that_keeps_most_comes_behind_a_cheap_one_that_keeps_few(
    assigning: str,
) -> None:
    told, calls = Told(1, more=2000), Calls()
    flow, rows = calls.flow(told)
    at_change: list[tuple[int, int, int]] = []

    def listen(event: Event) -> None:
        told.events.append(event)
        if isinstance(event, Decided) and "in place of" in event.text:
            at_change.append((calls.dear, calls.cheap, calls.kept))

    scaling = Scaling(Static(TIMING))
    local = Local(**SMALL, assigning=assigning, scaling=scaling, isolate=False)
    result = flow.run(on=local, listen=listen)
    assert "static: cheap -> dear in place of dear -> cheap" in told.orders()[0]
    assert len(told.orders()) == 1
    ((dear, cheap, kept),) = at_change
    # From the change on, the dear one is called for what the cheap one keeps, and for no more.
    assert calls.dear - dear == calls.kept - kept < (calls.cheap - cheap) / 5
    assert calls.cheap - cheap >= 1500
    assert [tuple(row) for row in rows] == expected(told)
    assert result.metrics.component("dear").received == calls.dear
    assert result.metrics.component("cheap").received == calls.cheap


@pytest.mark.parametrize(
    "scaling", [Scaling(Static(TIMING), order=False), Scaling(Static(TIMING), dry_run=True)]
)
def test_nothing_changes_places_where_that_is_switched_off(scaling: Scaling) -> None:
    told, calls = Told(1 if scaling.dry_run else 0, more=3000), Calls()
    flow, rows = calls.flow(told)
    told.run(flow, scaling)
    assert bool(told.orders()) == scaling.dry_run
    assert calls.dear == len(told.given)
    assert [tuple(row) for row in rows] == expected(told)


def test_nothing_changes_places_that_did_not_say_so() -> None:
    told, calls = Told(0, more=3000), Calls()
    flow, _ = calls.flow(told, lambda function: function)
    told.run(flow, Scaling(Static(TIMING)))
    assert told.orders() == []
    assert calls.dear == len(told.given)


# --- whatever the order --------------------------------------------------------------------------

OPERATORS = ("odd", "extend-1", "small", "some")


def chain(stream: Stream) -> Stream:
    """Three filters around a field that is made; the last one reads it."""
    stream = stream.filter(tw.pure(lambda a: a % 2 == 1), name="odd")
    stream = stream.extend(c=tw.pure(lambda b: b * 10))
    stream = stream.filter(tw.pure(tw.col("b") < 12), name="small")
    return stream.filter(tw.pure(lambda t: t.c % 3 != 1, reads="c"), name="some")


def of_chain(given: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """What comes out of it."""
    made = [(a, b, b * 10) for a, b in given if a % 2 == 1 and b < 12]
    return [row for row in made if row[2] % 3 != 1]


ORDERS = st.permutations(OPERATORS).filter(lambda o: o.index("extend-1") < o.index("some"))


@settings(max_examples=25, deadline=None)
@given(st.lists(ORDERS.map(tuple), min_size=1, max_size=4), st.sampled_from(ASSIGNING))
def test_every_order_gives_the_same_in_the_same_order(
    orders: list[tuple[str, ...]], assigning: str
) -> None:
    changes = sum(a != b for a, b in zip([OPERATORS, *orders], orders, strict=False))
    told, rows = Told(changes, more=100), list[Any]()
    flow = tw.Flow("orders")
    chain(told.source(flow)).sink("out", tw.collect(rows))
    with pytest.MonkeyPatch.context() as monkeypatch:
        scripted(monkeypatch, orders)
        told.run(flow, Scaling(Static(TIMING)), assigning=assigning)
    assert [tuple(row) for row in rows] == of_chain(told.given)


@dataclass(frozen=True)
class Wants:
    """A policy that wants another degree of one component, once."""

    component: str
    timing: Timing = field(default_factory=lambda: TIMING)
    name: str = "wants"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Want three."""
        return tuple(
            Decision(n.name, 3 if n.name == self.component else now, now, "as written")
            for n in view.scalable
            for now in [view.degrees[n.name]]
        )


@pytest.mark.parametrize("component", ["odd", "some", "by_a"])
def test_orders_and_degrees_change_together(
    monkeypatch: pytest.MonkeyPatch, component: str
) -> None:
    scripted(monkeypatch, [("small", "odd", "extend-1", "some"), OPERATORS])
    told, flow = Told(2), tw.Flow("both")
    chain(told.source(flow)).tally("by_a", key="a", degree=2).sink("out", tw.collect(rows := []))
    result = told.run(flow, Scaling(Wants(component), most=4), assigning="executors")
    counts: dict[int, int] = {}
    for a, _, _ in of_chain(told.given):
        counts[a] = counts.get(a, 0) + 1
    assert result.table("by_a") == counts
    assert [tuple(row) for row in rows] == of_chain(told.given)
    assert result.metrics.component(component).degree == 3


@WAYS
def test_units_end_at_the_operator_that_is_last_now(
    monkeypatch: pytest.MonkeyPatch, assigning: str
) -> None:
    """Behind the chain order does not matter; before it there is another operator."""
    scripted(monkeypatch, [("odd", "extend-1", "some", "small"), OPERATORS] * 2)
    told, flow = Told(4), tw.Flow("gates")
    made = told.source(flow).map(lambda a, b: (a, b), fields={"a": int, "b": int})
    chain(made).key_by("a").count("by_a")
    result = told.run(flow, Scaling(Static(TIMING)), assigning=assigning)
    assert sum(result.table("by_a").values()) == len(of_chain(told.given))


@pytest.mark.parametrize("seed", range(8))
@WAYS
def test_threads_may_pause_anywhere(
    monkeypatch: pytest.MonkeyPatch, assigning: str, seed: int
) -> None:
    scripted(monkeypatch, [("odd", "extend-1", "some", "small"), OPERATORS] * 3)
    told, flow = Told(6, more=50), tw.Flow("delays")
    stream = chain(told.source(flow))
    stream.key_by("a").count("by_a", degree=2)
    stream.sink("out", tw.collect(rows := []))
    scaling = Scaling(Static(TIMING))
    result = told.run(flow, scaling, assigning=assigning, **delayed(seed))
    assert [tuple(row) for row in rows] == of_chain(told.given)
    assert sum(result.table("by_a").values()) == len(rows)


def test_orders_change_between_snapshots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scripted(monkeypatch, [("small", "odd", "extend-1", "some"), OPERATORS])
    told, flow = Told(2), tw.Flow("kept")
    chain(told.source(flow)).tally("by_a", key="a").sink("out", tw.collect(rows := []))
    told.run(flow, Scaling(Static(TIMING)), checkpoint=tmp_path, snapshot_every=0.01)
    assert [tuple(row) for row in rows] == of_chain(told.given)


class Senders(tw.Bolt):
    """Notes whom its tuples come from."""

    seen: set[str]

    def __init__(self) -> None:
        self.seen = set()

    def __deepcopy__(self, _memo: Any) -> Senders:
        return self

    def process(self, t: Any) -> None:
        """Look."""
        self.seen.add(self.origin.component)


def test_those_behind_see_the_sender_that_the_topology_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripted(monkeypatch, [("odd", "extend-1", "some", "small"), ("small", *OPERATORS[:2], "some")])
    told, flow, sink = Told(2), tw.Flow("senders"), Senders()
    chain(told.source(flow)).sink("out", sink)
    told.run(flow, Scaling(Static(TIMING)))
    assert sink.seen == {"some"}


class Reliable(tw.Spout):
    """Gives numbers with ids, until all were acknowledged."""

    outputs = {"a": int, "b": int}

    def __init__(self, told: Told) -> None:
        self.told, self.acked = told, set[int]()
        self._numbers = told.numbers()

    def __deepcopy__(self, _memo: Any) -> Reliable:
        return self

    def next_tuple(self) -> None:
        """Give the next one."""
        number = next(self._numbers, None)
        if number is not None:
            self.emit(*number, id=len(self.told.given) - 1)
        elif len(self.acked) == len(self.told.given):
            self.finish()

    def ack(self, id: Any) -> None:
        """Count."""
        self.acked.add(id)


def test_every_tuple_is_acknowledged_whichever_filter_gives_it_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripted(monkeypatch, [("small", "odd", "extend-1", "some")])
    told, flow = Told(1), tw.Flow("acked")
    spout = Reliable(told)
    chain(flow.source("numbers", spout)).sink("out", tw.collect(rows := []))
    result = told.run(flow, Scaling(Static(TIMING)))
    assert (result.metrics.acked, result.metrics.failed) == (len(told.given), 0)
    assert [tuple(row) for row in rows] == of_chain(told.given)


def test_a_field_of_which_no_value_was_seen_keeps_operators_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first value decides its type; that must not depend on which tuples come so far."""
    scripted(monkeypatch, [("odd", "extend-1")])
    told, flow = Told(0, refused=1), tw.Flow("unknown")
    stream = told.source(flow).extend(c=tw.pure(lambda _t: None, reads="a"))
    stream.filter(tw.pure(lambda a: a % 2 == 1), name="odd").sink("out", tw.collect(rows := []))
    told.run(flow, Scaling(Static(TIMING)))
    assert f"'extend-1' {UNKNOWN}" in told.refusals()[0]
    assert told.orders() == []
    assert len(rows) == sum(a % 2 for a, _ in told.given)


def test_a_filter_that_becomes_the_first_reader_of_a_branch_leaves_the_other_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripted(monkeypatch, [("second", "first"), ("first", "second")])
    told, flow = Told(2), tw.Flow("branches")
    stream, rows, others = told.source(flow), list[Any](), list[Any]()
    stream.sink("all", tw.collect(others))
    left = stream.filter(tw.pure(lambda a: a > 3), name="first")
    left = left.filter(tw.pure(lambda b: b > 3), name="second")
    left.merge(stream).map(lambda a, b: (a, b)).sink("out", tw.collect(rows))
    told.run(flow, Scaling(Static(TIMING)))
    assert [tuple(row) for row in others] == told.given
    twice = [(a, b) for a, b in told.given for _ in range(1 + (a > 3 and b > 3))]
    assert [tuple(row) for row in rows] == twice


def test_a_decision_that_is_refused_says_so() -> None:
    made = Reorder(Chain(("x", "y")), ("x", "y"), ("y", "x"), "cheaper")
    refused = replace(made, after=made.before, refused="no")
    assert (made.changes, refused.changes) == (True, False)
