"""Joins on the local runtime: the way changes while tuples flow, and filters go before joins."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import thalweg as tw
from thalweg.control.ordering import chains_of
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Timing
from thalweg.events import Decided, Event, Noticed
from thalweg.operators.joining import TableJoin
from thalweg.operators.matching import Matcher
from thalweg.runtimes.local.runtime import Local

TIMING = Timing(0.04, 0.02, 0.0)
TABLE = [{"a": a, "name": f"n{a}"} for a in (*range(10), 3)]


class Costs:
    """Time as it would pass if ways took so many nanoseconds per tuple."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **costs: float) -> None:
        self.now, self.ways = 0.0, list[str]()
        match = Matcher.match

        def timed(matcher: Matcher, batch: Any, way: str, refuse: Any) -> Any:
            self.now += costs[way] * 1e-9 * batch.num_rows
            self.ways.append(way)
            return match(matcher, batch, way, refuse)

        monkeypatch.setattr(Matcher, "match", timed)
        monkeypatch.setattr(TableJoin, "timer", lambda _join: self.now)


class Until:
    """Gives numbers until a text was told, and some more."""

    def __init__(self, text: str, more: int = 200) -> None:
        self.events, self.given, self._text, self._more = list[Event](), list[int](), text, more

    def told(self, kind: type = object) -> list[str]:
        events = (e for e in self.events if isinstance(e, kind))
        return [t for e in events if self._text in (t := getattr(e, "text", ""))]

    def numbers(self) -> Iterator[int]:
        for number in itertools.count():
            if self.told():
                self._more -= 1
            if self._more <= 0:
                return
            self.given.append(number % 13)
            yield self.given[-1]

    def run(self, flow: tw.Flow, **settings: Any) -> tw.Result:
        small = {"block_rows": 20, "most_block_rows": 20, "workers": 1, "window": 8}
        return flow.run(on=Local(**(small | settings)), listen=self.events.append)


def joined(until: Until, out: list[Any], **options: Any) -> tw.Flow:
    flow = tw.Flow("names", "total")
    stream = flow.source("numbers", tw.items(until.numbers), fields={"a": int})
    stream.join(TABLE, on="a", **options).sink("out", tw.collect(out))
    return flow


def names(given: list[int]) -> list[tuple[int, str]]:
    return [(a, row["name"]) for a in given for row in TABLE if row["a"] == a]  # type: ignore[misc]


def test_a_join_takes_the_cheaper_way_by_itself_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs, out = Costs(monkeypatch, hash=50, loop=20), list[Any]()
    until = Until("loop instead of hash", more=2000)
    until.run(joined(until, out))
    assert [tuple(t) for t in out] == names(until.given)
    [text] = until.told(Noticed)
    assert text.startswith("join-1: loop instead of hash: 20 ns instead of 50 ns per tuple")
    assert set(costs.ways[20:]) == {"loop"}


def test_with_a_policy_it_is_the_loop_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    costs, out = Costs(monkeypatch, hash=50, loop=20), list[Any]()
    until = Until("loop instead of hash", more=2000)
    flow = joined(until, out)
    until.run(flow, scaling=Scaling(Static(TIMING)))
    assert [tuple(t) for t in out] == names(until.given)
    assert until.told(Noticed) == []
    assert until.told(Decided)[0].startswith("static: join-1: loop instead of hash")
    assert costs.ways[-1] == "loop"
    bodies = [c.body for c in flow.build() if isinstance(c.body, TableJoin)]
    assert [body.chooser.steered for body in bodies] == [False]


def test_a_policy_that_only_tells_leaves_the_choice_to_the_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Costs(monkeypatch, hash=50, loop=20)
    until, out = Until("loop instead of hash"), list[Any]()
    until.run(joined(until, out), scaling=Scaling(Static(TIMING), dry_run=True))
    assert until.told(Noticed) != []


@pytest.mark.parametrize("assigning", ["workers", "executors"])
def test_degrees_may_change_meanwhile(monkeypatch: pytest.MonkeyPatch, assigning: str) -> None:
    Costs(monkeypatch, hash=50, loop=20)
    until, out = Until("loop instead of hash", more=2000), list[Any]()
    flow, steering = joined(until, out, degree=2), tw.Steering()

    def listen(event: Event) -> None:
        until.events.append(event)
        if "loop instead of hash" in getattr(event, "text", ""):
            steering.rebalance("join-1", 4)

    small = {"block_rows": 20, "most_block_rows": 20, "window": 8, "assigning": assigning}
    flow.run(on=Local(**small), listen=listen, steering=steering)
    assert [tuple(t) for t in out] == names(until.given)


def test_a_table_that_is_replaced_is_told_also_from_processes(tmp_path: Any) -> None:
    path, until, out = tmp_path / "names.csv", Until("is used from now on"), list[Any]()
    path.write_text("a,name\n1,one\n")

    def numbers() -> Iterator[int]:
        for at, number in enumerate(until.numbers()):
            if at == 50:
                (tmp_path / "part").write_text("a,name\n1,uno\n")
                (tmp_path / "part").replace(path)
            yield number

    flow = tw.Flow("names", "total")
    stream = flow.source("numbers", tw.items(numbers), fields={"a": int})
    table = tw.table_file(path, fields={"a": int, "name": str}, reload="10 ms")
    stream.join(table, on="a", isolation="process").sink("out", tw.collect(out))
    until.run(flow)
    found = [t.name for t in out]
    assert found == sorted(found)  # each block has one version, and no block an older one
    assert set(found) == {"one", "uno"}


# --- the Order step ------------------------------------------------------------------------------


def chained(stream: Any) -> Any:
    return stream.join(TABLE, on="a").filter(tw.pure(tw.col("b") < 2), name="few")


def test_a_filter_on_fields_of_the_stream_may_go_before_the_join() -> None:
    flow = tw.Flow("f")
    stream = flow.source("s", tw.items([]), fields={"a": int, "b": int})
    chained(stream).sink("out", tw.collect([]))
    [chain] = chains_of(flow.build())
    assert (chain.names, chain.fixed) == (("join-1", "few"), frozenset())


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.join(TABLE, on="a").filter(tw.pure(tw.col("name") == "n1")),
        lambda s: s.join(TABLE, on="a").filter(tw.col("b") < 2),
        lambda s: s.join(TABLE, on=lambda t, row: t.a == row.a, prefix="t_").filter(
            tw.pure(tw.col("b") < 2)
        ),
        lambda s: s.join(TABLE, on=tw.col("a") > tw.row("a"), prefix="t_").filter(
            tw.pure(tw.col("b") < 2)
        ),
    ],
    ids=["reads the table", "is not pure", "a function may raise", "an expression may raise"],
)
def test_other_filters_stay(build: Any) -> None:
    flow = tw.Flow("f")
    stream = flow.source("s", tw.items([]), fields={"a": int, "b": int})
    build(stream).sink("out", tw.collect([]))
    assert chains_of(flow.build()) == ()


def test_a_selective_filter_goes_before_a_dear_join(monkeypatch: pytest.MonkeyPatch) -> None:
    until, out = Until("few -> join-1 in place of join-1 -> few", more=400), list[Any]()
    match = Matcher.match

    def dear(matcher: Matcher, batch: Any, way: str, refuse: Any) -> Any:
        for _ in range(20):
            match(matcher, batch, way, refuse)
        return match(matcher, batch, way, refuse)

    monkeypatch.setattr(Matcher, "match", dear)
    flow = tw.Flow("f", "total")

    def pairs() -> Iterator[tuple[int, int]]:
        return ((a, at % 40) for at, a in enumerate(until.numbers()))

    chained(flow.source("s", tw.items(pairs), fields={"a": int, "b": int})).sink(
        "out", tw.collect(out)
    )
    until.run(flow, scaling=Scaling(Static(TIMING)))
    expected = [
        (a, at % 40, row["name"])
        for at, a in enumerate(until.given)
        for row in TABLE
        if row["a"] == a and at % 40 < 2
    ]
    assert [tuple(t) for t in out] == expected
