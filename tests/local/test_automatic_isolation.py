"""Components that are busy in Python get processes where it is safe, and measured to pay."""

from __future__ import annotations

import functools
import math
import os
import threading
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.components import Bolt, Kind
from thalweg.events import Event, Noticed
from thalweg.execution import Run
from thalweg.runtimes.local import resettling
from thalweg.runtimes.local.building import build
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.isolating import Look, Verdict, Votes, candidate, crossing_time, judge
from thalweg.runtimes.local.links import Wiring
from thalweg.runtimes.local.resettling import Isolating
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.local.separable import why_not, why_not_function

# --- does it pay? ------------------------------------------------------------------------------

#: A component that takes a whole core, a millisecond for each tuple, while another core is idle.
PAYS = Look(0.5, rows=500, busy=0.5, block_rows=100, crossing=0.001, cores=2, idle=1.0)


def test_a_busy_component_is_moved_when_a_core_is_idle() -> None:
    assert judge(PAYS).pays
    assert "busy 100 % of the time, 1.0 cores idle" in judge(PAYS).reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cores": 1}, "one core"),
        ({"busy": 0.2}, "busy 40 %"),
        ({"rows": 0, "busy": 0.0}, "busy 0 %"),
        ({"idle": 0.3}, "0.3 cores idle"),
        ({"crossing": 0.04}, "a block takes 100.0 ms, with processes about 130.3 ms"),
        ({"crossing": 0.004, "selectivity": 9.0}, "with processes about 90.3 ms"),
    ],
)
def test_otherwise_it_stays_with_a_reason(change: dict[str, Any], reason: str) -> None:
    verdict = judge(replace(PAYS, **change))
    assert not verdict.pays
    assert reason in verdict.reason


positive = st.floats(min_value=1e-4, max_value=10)


@given(positive, positive, st.integers(1, 10_000), positive)
def test_what_is_moved_gains_at_least_a_share(
    busy: float, crossing: float, rows: int, idle: float
) -> None:
    look = replace(PAYS, busy=busy, rows=rows, crossing=crossing, idle=idle, cores=8, seconds=1.0)
    block = busy / rows * look.block_rows
    if judge(look).pays:
        assert block > 1.3 * 2 * crossing  # there and back
        assert idle >= 0.6


@given(st.lists(st.booleans(), max_size=30))
def test_it_takes_three_looks_in_a_row(said: list[bool]) -> None:
    votes = Votes()
    for number in range(len(said)):
        acts = votes.count(Verdict(said[number], ""))
        assert acts == (number >= 2 and all(said[number - 2 : number + 1]))


# --- is it safe? -------------------------------------------------------------------------------

SEEN: list[int] = []
LOCK = threading.Lock()
LIMIT = 3


def helper(n: int) -> float:
    return math.sqrt(n) * LIMIT


def appends(n: int) -> None:
    SEEN.append(n)


def calls_one_that_appends(n: int) -> None:
    appends(n)


def counts(n: int) -> int:
    global LIMIT  # noqa: PLW0603 (this is what is to be found)
    LIMIT += n
    return LIMIT


def with_a_list(n: int, into: list[int] = []) -> list[int]:  # noqa: B006 (as above)
    into.append(n)
    return into


def counter() -> Any:
    count = 0

    def next_(n: int) -> int:
        nonlocal count
        count += n
        return count

    return next_


@pytest.mark.parametrize(
    "function",
    [
        lambda n: n * n,
        helper,
        lambda n: [helper(i) for i in range(n)],
        functools.partial(pow, 2),
        math.sqrt,
        str.upper,
        timedelta,
    ],
)
def test_functions_that_touch_nothing_here_may_leave(function: Any) -> None:
    assert why_not_function(function) is None


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (appends, "'SEEN', a list"),
        (calls_one_that_appends, "'SEEN', a list"),
        (lambda n: [appends(i) for i in range(n)], "'SEEN', a list"),
        (SEEN.append, "a list"),
        (functools.partial(map, SEEN), "a list"),
        (counts, "changes the global variable 'LIMIT'"),
        (counter(), "changes the variable 'count'"),
        (with_a_list, "a default of with_a_list"),
        (lambda n, lock=LOCK: lock.locked() and n, "a lock"),
        (lambda n: threading.get_ident() + n, "'threading', which is about this process"),
        (lambda n: print(n, "!"), "it calls print"),
        (print, "it calls print"),
    ],
)
def test_others_stay(function: Any, reason: str) -> None:
    assert reason in (why_not_function(function) or "")


class Squares(Bolt):
    outputs = {"n": int}

    def __init__(self, add: int = 1) -> None:
        self.add = add
        self.gap = timedelta(seconds=1)

    def process(self, t: Any) -> None:
        self.emit(t.n * t.n + self.add)


class Numbered(Squares):
    def prepare(self, context: Any) -> None:
        self.number = 0

    def process(self, t: Any) -> None:
        self.number += 1
        self.emit(self.number)


class Collects(Squares):
    def process(self, t: Any) -> None:
        appends(t.n)


class Keeps(Squares):
    auto_ack = False


def bolt(body: Bolt, **options: Any) -> Any:
    builder = tw.TopologyBuilder("t")
    builder.add_spout("s", tw.items([1]), fields={"n": int})
    builder.add_bolt("b", body, **options).shuffle("s")
    builder.add_bolt("out", tw.collect([])).global_("b")
    return builder.build().component("b")


@pytest.mark.parametrize(
    ("body", "options", "reason"),
    [
        (Squares(), {}, None),
        (Squares(), {"isolation": "thread"}, "isolation='thread'"),
        (Collects(), {}, "'SEEN', a list"),
        (Keeps(), {}, "not acknowledged"),
    ],
)
def test_bolts_may_leave_that_have_nothing_but_their_state(
    body: Bolt, options: dict[str, Any], reason: str | None
) -> None:
    found = why_not(bolt(body, **options), [body])
    assert found is None if reason is None else reason in (found or "")


def test_a_bolt_that_remembers_something_beside_its_state_stays() -> None:
    body, own = Numbered(), Numbered()
    own.prepare(None)
    assert "keeps 'number' outside of its state" in (why_not(bolt(body), [own]) or "")


class SpeaksLast(Squares):
    def process_end(self) -> None:
        self.emit(0)


def test_without_a_degree_only_bolts_that_say_nothing_at_the_end_may_be_split() -> None:
    assert candidate(bolt(Squares()))
    assert not candidate(bolt(SpeaksLast()))
    assert candidate(bolt(SpeaksLast(), degree=2))
    assert not candidate(bolt(Squares(), tick=1))
    assert not candidate(bolt(Squares(), isolation="thread"))


# --- a run in which it happens -----------------------------------------------------------------


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every look say that processes would pay."""
    monkeypatch.setattr(resettling, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(resettling, "judge", lambda look: Verdict(True, "it is a test"))


class Source:
    """Numbers, at least so many, and some more behind the first notice."""

    def __init__(self, least: int) -> None:
        self.least, self.over, self.given = least, threading.Event(), 0

    def __call__(self) -> Any:
        while self.given < self.least or not self.over.is_set():
            yield from self._next(1)
        yield from self._next(200)

    def _next(self, count: int) -> Any:
        for _ in range(count):
            yield self.given
            self.given += 1

    def listen(self, event: Event) -> None:
        if isinstance(event, Noticed):
            TOLD.append(event.text)
            self.over.set()


TOLD: list[str] = []


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    TOLD.clear()


LOCAL = Local(workers=2, block_rows=20, most_block_rows=20)


@pytest.mark.usefixtures("eager")
def test_a_function_goes_on_in_processes_and_the_output_is_the_same() -> None:
    source, seen = Source(500), list[Any]()
    flow = tw.Flow("moved")
    numbers = flow.source("numbers", tw.items(source), fields={"n": int})
    pids = numbers.map(lambda n: (n, os.getpid()), fields={"n": int, "pid": int}, name="pid")
    pids.sink("out", tw.collect(seen), order="total")
    flow.run(on=LOCAL, listen=source.listen)
    assert [t.n for t in seen] == list(range(source.given))
    here, elsewhere = seen[0].pid, {t.pid for t in seen} - {os.getpid()}
    assert here == os.getpid()
    assert TOLD[0].startswith("'pid' goes on in 2 processes (it is a test)")
    assert 1 <= len(elsewhere) <= 2


class CountEach(Bolt):
    """Counts in its state, one by one."""

    kind = Kind.KEYED
    outputs = {"k": int, "count": int}
    table = "counts"

    def process(self, t: Any) -> None:
        count = self.state.get(t.k, 0) + 1
        self.state.put(t.k, count)
        self.emit(t.k, count)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("degree", [None, 3])
def test_keyed_state_moves_along(degree: int | None) -> None:
    source, seen = Source(3000), list[Any]()
    builder = tw.TopologyBuilder("moved")
    keys = tw.items(lambda: (n * n % 13 for n in source()))
    builder.add_spout("keys", keys, fields={"k": int})
    builder.add_bolt("count", CountEach(), degree=degree).fields("keys", "k")
    builder.add_bolt("out", tw.collect(seen)).global_("count")
    result = builder.build().run(on=LOCAL, listen=source.listen)
    expected = Counter(n * n % 13 for n in range(source.given))
    assert result.table("counts") == expected
    by_key: dict[int, list[int]] = {}
    for key, count in seen:
        by_key.setdefault(key, []).append(count)
    assert by_key == {key: list(range(1, n + 1)) for key, n in expected.items()}
    assert f"'count' goes on in {degree or 2} processes" in TOLD[0]
    assert result.metrics.component("count").received == source.given


@pytest.mark.usefixtures("eager")
def test_one_that_has_to_stay_is_told_once_with_the_reason() -> None:
    source, seen = Source(500), list[int]()
    flow = tw.Flow("stays")
    numbers = flow.source("numbers", tw.items(source), fields={"n": int})
    numbers.map(lambda n: seen.append(n) or n, fields={"n": int}, name="notes").sink(
        "out", tw.call(lambda t: None)
    )
    flow.run(on=LOCAL, listen=source.listen)
    assert TOLD == [
        "'notes' stays in this process, since it refers to 'seen', a list, which others may see"
    ]
    assert seen == list(range(source.given))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("settings", [{"isolate": False}, {"workers": 1}, {"queue": "shared"}])
def test_it_can_be_turned_off(settings: dict[str, Any]) -> None:
    flow = tw.Flow("off")
    numbers = flow.source("numbers", tw.items(range(2000)), fields={"n": int})
    numbers.map(lambda n: n, fields={"n": int}).sink("out", tw.call(lambda t: None))
    flow.run(on=replace(LOCAL, **settings), listen=Source(0).listen)
    assert TOLD == []


@pytest.mark.usefixtures("eager")
def test_processes_that_are_not_ready_at_the_end_are_let_go() -> None:
    """The check that nothing is left behind is the one after every test."""
    flow = tw.Flow("short")
    numbers = flow.source("numbers", tw.items(range(2000)), fields={"n": int})
    numbers.map(lambda n: n, fields={"n": int}).sink("out", tw.call(lambda t: None))
    flow.run(on=LOCAL)


def burn(n: int) -> int:
    return sum(i * i for i in range(20_000)) + n


@pytest.mark.quiet
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is never idle")
def test_a_look_at_a_real_run_measures_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Look] = []

    def noting(look: Look) -> Verdict:
        looks.append(look)
        return Verdict(not look.crossing, "so that crossing is measured, and no more")

    monkeypatch.setattr(resettling, "judge", noting)
    monkeypatch.setattr(resettling, "LOOK_EVERY", 0.1)
    flow = tw.Flow("busy")
    numbers = flow.source("numbers", tw.items(range(400)), fields={"n": int})
    numbers.map(burn, fields={"n": int}).sink("out", tw.call(lambda t: None))
    flow.run(on=LOCAL)
    last = looks[-1]
    assert 0 < last.busy <= last.seconds * 1.1
    assert (last.block_rows, last.cores) == (20, 2)
    assert 0 < last.crossing < last.busy / last.rows * last.block_rows


def test_the_bytes_of_a_block_are_what_crosses() -> None:
    ticks = iter([1.0, 1.5])
    assert crossing_time(pa.record_batch({"n": [1]}), lambda: next(ticks)) == 0.5


def test_a_block_that_takes_longer_than_a_look_says_nothing_before_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[Look] = []

    def noting(look: Look) -> Verdict:
        looks.append(look)
        return Verdict(False, "it is a test")

    monkeypatch.setattr(resettling, "judge", noting)
    flow = tw.Flow("long")
    numbers = flow.source("numbers", tw.items([1]), fields={"n": int})
    numbers.map(burn, fields={"n": int}, name="burn").sink("out", tw.call(lambda t: None))
    wiring = Wiring(Flights(8, lambda *_: None), {}, *[lambda *_: None] * 3, now=lambda: 0.0)
    built = build(LOCAL, flow.build(), Run(), wiring)
    operator, isolating = built.operator("burn"), Isolating(LOCAL, built, Run())
    operator.last = pa.record_batch({"n": [1, 2]})
    operator.workers, counter = 1, operator.counters[0]
    assert not isolating.ready(10.0)
    assert not isolating.ready(11.0)
    counter.per_task[0], counter.busy = 100, 1.9
    assert not isolating.ready(12.0)
    assert [(look.seconds, look.rows, look.busy) for look in looks] == [(2.0, 100, 1.9)]
