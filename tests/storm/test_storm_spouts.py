"""Spouts of either library inside a run: slow ones, and those that are made anew."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

import pytest
from storm_libraries import NAMES, library

import thalweg as tw
from thalweg.clock import ManualClock
from thalweg.events import Noticed
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.storm import hosted_spouts
from thalweg.storm.hosted_bolts import HostedBolt
from thalweg.storm.hosted_spouts import HostedSpout
from thalweg.topology import Topology

#: Seconds after which something that has to come by itself is taken for lost.
LOST = 60.0


@pytest.fixture(params=NAMES)
def lib(request: pytest.FixtureRequest) -> ModuleType:
    return library(request.param)


def read_by(bolt: Any, spout: type) -> Topology:
    """Make a topology of a spout of Storm's and a bolt that gets its tuples."""
    builder = tw.TopologyBuilder("spouting")
    builder.add_spout("numbers", HostedSpout(spout, {"n": int}))
    builder.add_bolt("out", bolt).shuffle("numbers")
    return builder.build()


@pytest.mark.parametrize("kind", [Inline, Local])
def test_what_a_slow_spout_gives_goes_on_before_it_gives_more(
    lib: ModuleType, kind: type[Inline | Local]
) -> None:
    clock, seen, came = ManualClock(), threading.Semaphore(0), list[bool]()

    class Slow(lib.Spout):
        n = 0

        def next_tuple(self) -> None:
            if self.n:
                came.append(seen.acquire(timeout=LOST))
            if self.n == 5:
                raise SystemExit
            clock.sleep(1.0)
            self.emit([self.n])
            self.n += 1

    read_by(tw.call(lambda _t: seen.release()), Slow).run(on=kind(clock=clock))
    assert came == [True] * 5


def test_a_slow_spout_can_be_stopped_between_its_tuples(lib: ModuleType) -> None:
    clock, stop, given = ManualClock(), threading.Event(), list[int]()

    class Endless(lib.Spout):
        def next_tuple(self) -> None:
            clock.sleep(1.0)
            if len(given) == 3:
                stop.set()
            if len(given) == 500:  # nobody has heard of it
                raise SystemExit
            given.append(len(given))
            self.emit(given[-1:])

    got: list[int] = []
    read_by(tw.call(lambda t: got.append(t.n)), Endless).run(on=Inline(clock=clock), stop=stop)
    assert got == given == [0, 1, 2, 3]


def test_a_spout_that_waits_when_the_run_is_to_end_is_named(
    lib: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted_spouts, "_LINGER", 1e-6)
    stop, told, came = threading.Event(), threading.Event(), list[bool]()

    class Waiting(lib.Spout):
        def next_tuple(self) -> None:
            stop.set()
            came.append(told.wait(timeout=LOST))

    texts: list[str] = []

    def hear(event: Any) -> None:
        if isinstance(event, Noticed):
            texts.append(event.text)
            told.set()

    made = read_by(tw.call(lambda _t: None), Waiting)
    made.run(on=Inline(clock=ManualClock()), stop=stop, listen=hear)
    assert came == [True]
    (text,) = texts
    assert "next_tuple of component 'numbers', task 0" in text
    assert "test_storm_spouts.py:" in text
    assert "1e-06 s after the run was to end" in text
    assert "thalweg.isolation: process" in text


def failing(lib: ModuleType, got: list[int], times: int) -> HostedBolt:
    """Make a bolt that lets each tuple fail so often; notes all that it gets."""

    class Fails(lib.Bolt):
        auto_ack = False

        def process(self, tup: Any) -> None:
            got.append(tup.values[0])
            (self.fail if got.count(got[-1]) <= times else self.ack)(tup)

    return HostedBolt(Fails)


def test_open_tuples_are_known_to_the_spout_that_is_made_anew(lib: ModuleType) -> None:
    raised, got = list[bool](), list[int]()

    class Raising(lib.ReliableSpout):
        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.left = [] if raised else [0, 1, 2]

        def next_tuple(self) -> None:
            if self.left:
                self.emit([self.left[0]], tup_id=self.left.pop(0))
            elif not raised:
                raised.append(True)
                raise ValueError
            elif not self.unacked_tuples:
                raise SystemExit

    read_by(failing(lib, got, 1), Raising).run(on=Inline(clock=ManualClock()))
    assert sorted(got) == [0, 0, 1, 1, 2, 2]


def test_how_often_tuples_have_failed_is_known_to_it_too(lib: ModuleType) -> None:
    raised, got = list[bool](), list[int]()

    class Raising(lib.ReliableSpout):
        max_fails = 1

        def next_tuple(self) -> None:
            if not raised and not self.unacked_tuples:
                self.emit([7], tup_id="seven")
            elif not self.unacked_tuples:
                raise SystemExit

        def fail(self, tup_id: Any) -> None:
            super().fail(tup_id)
            if not raised:
                raised.append(True)
                raise ValueError

    read_by(failing(lib, got, 100), Raising).run(on=Inline(clock=ManualClock()))
    assert got == [7, 7]


def forgetful(lib: ModuleType, told: list[tuple[str, Any]], kind: str = "Spout") -> type:
    """Make a spout that raises once, with three tuples open, and knows only its own tuples."""
    made = list[bool]()

    class Forgetful(getattr(lib, kind)):  # type: ignore[misc]
        def initialize(self, storm_conf: Any, context: Any) -> None:
            made.append(True)
            self.left = [0, 1, 2] if len(made) == 1 else [3, 4]
            self.open = set[int]()

        def next_tuple(self) -> None:
            if self.left:
                self.open.add(self.left[0])
                self.emit([self.left[0]], tup_id=self.left.pop(0))
            elif len(made) == 1:
                raise ValueError
            elif not (self.open or getattr(self, "unacked_tuples", ())):
                raise SystemExit

        def ack(self, tup_id: Any) -> None:
            told.append(("ack", tup_id))
            self.open.remove(tup_id)
            if kind == "ReliableSpout":
                super().ack(tup_id)

        def fail(self, tup_id: Any) -> None:
            told.append(("fail", tup_id))
            self.open.remove(tup_id)

    return Forgetful


def ends_late(lib: ModuleType, got: list[int], how: str) -> HostedBolt:
    """Make a bolt that holds the first three tuples until others come, and lets them end so."""

    class Late(lib.Bolt):
        auto_ack = False

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.held: list[Any] = []

        def process(self, tup: Any) -> None:
            got.append(tup.values[0])
            if len(got) <= 3:
                self.held.append(tup)
                return
            while self.held:
                getattr(self, how)(self.held.pop())
            self.ack(tup)

    return HostedBolt(Late)


ONCE = [("ack", 3), ("ack", 4)]
TOLD_OF_OTHERS = {
    ("Spout", "ack"): ONCE,
    ("Spout", "fail"): [*ONCE, ("fail", 0), ("fail", 1), ("fail", 2)],
    ("ReliableSpout", "ack"): [("ack", 0), ("ack", 1), ("ack", 2), *ONCE],
}


@pytest.mark.parametrize(("kind", "how"), TOLD_OF_OTHERS)
def test_a_spout_made_anew_does_not_fail_at_tuples_that_it_has_not_sent(
    lib: ModuleType, kind: str, how: str
) -> None:
    told, got, events = list[tuple[str, Any]](), list[int](), list[Any]()
    made = read_by(ends_late(lib, got, how), forgetful(lib, told, kind))
    made.run(on=Inline(clock=ManualClock()), listen=events.append)
    assert got == [0, 1, 2, 3, 4]
    assert sorted(told) == TOLD_OF_OTHERS[kind, how]
    assert sum("started anew" in str(event) for event in events) == 1


def test_a_tuple_that_cannot_be_sent_is_not_waited_for(lib: ModuleType) -> None:
    tried, got = list[bool](), list[int]()

    class Odd(lib.ReliableSpout):
        def next_tuple(self) -> None:
            if not tried:
                tried.append(True)
                self.emit("no list of values", tup_id="odd")
            elif not self.unacked_tuples:
                raise SystemExit
            elif len(tried) == 100:  # it would wait for ever
                got.extend(map(len, self.unacked_tuples))
                raise SystemExit
            else:
                tried.append(True)

    read_by(failing(lib, got, 0), Odd).run(on=Inline(clock=ManualClock()))
    assert got == []


@pytest.mark.parametrize("kind", [Inline, Local])
def test_an_error_before_a_spout_has_begun_is_the_only_one(
    lib: ModuleType, kind: type[Inline | Local]
) -> None:
    class Unready(lib.Spout):
        def initialize(self, conf: Any, context: Any) -> None:
            raise OSError("no broker")

    with pytest.raises(tw.ThalwegError, match="OSError: no broker") as caught:
        read_by(tw.stdout(), Unready).run(on=kind())
    assert not getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize("kind", [Inline, Local])
def test_a_spout_that_fails_in_each_next_tuple_ends_the_run_whatever_it_sends_before(
    lib: ModuleType, kind: type[Inline | Local]
) -> None:
    seen: list[int] = []

    class Bad(lib.Spout):
        def next_tuple(self) -> None:
            self.emit([1])
            raise ValueError("bad record")

    with pytest.raises(tw.ThalwegError, match="ValueError: bad record"):
        read_by(tw.call(lambda t: seen.append(t.n)), Bad).run(on=kind())
    assert len(seen) <= 4


@pytest.mark.parametrize("kind", [Inline, Local])
def test_a_spout_that_comes_to_the_end_of_others_may_fail_as_often_as_it_likes(
    lib: ModuleType, kind: type[Inline | Local]
) -> None:
    left = [*[0, 1] * 20, 2]
    seen: list[int] = []

    class Now(lib.Spout):
        def next_tuple(self) -> None:
            n = left.pop(0)
            if n == 2:
                raise SystemExit
            self.emit([n])
            if n == 1:
                raise ValueError("bad record")

    read_by(tw.call(lambda t: seen.append(t.n)), Now).run(on=kind())
    assert seen.count(0) == 20
