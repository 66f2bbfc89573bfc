"""Acknowledgements: a tuple with an id ends once, well or badly, and its spout hears how.

What a spout hears it says on a stream of its own, so that a sink can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.harness import (
    ACKS,
    CLOCK,
    MEMORY,
    AnyOrder,
    Case,
    Counts,
    Exactly,
    InKeyOrder,
    Settings,
    TableIs,
    nowhere,
)
from thalweg.builder import Reads, TopologyBuilder
from thalweg.components import Bolt, Kind, Spout
from thalweg.topology import Topology

COUNT = 12


class Reliable(Spout):
    """Numbers with ids; says what it hears, and replays what failed."""

    outputs = {"n": int}
    streams = {"log": {"id": int, "how": str}}

    def __init__(self, count: int = COUNT, replay: bool = False, every: int = 1) -> None:
        self.count = count
        self.replay = replay
        self.every = every
        self.next = 0

    def next_tuple(self) -> None:
        if self.next == self.count:
            self.finish()
            return
        has_id = self.next % self.every == 0
        self.emit(self.next, id=self.next if has_id else None)
        self.next += 1

    def ack(self, id) -> None:
        self.emit(id, "ack", stream="log")

    def fail(self, id) -> None:
        self.emit(id, "fail", stream="log")
        if self.replay:
            self.emit(id, id=id)


class Builder:
    """A reliable spout whose log goes to the sink ``log``, and what a case adds."""

    def __init__(self, spout: Spout | None = None) -> None:
        self.builder = TopologyBuilder("reliable")
        self.builder.add_spout("numbers", spout or Reliable())
        self.builder.add_bolt("log", nowhere()).global_("numbers", stream="log")

    def bolt(self, name: str, body: Any, **options: Any) -> Reads:
        return self.builder.add_bolt(name, body, **options)

    def build(self, *ends: str) -> Topology:
        for name in ends:
            self.builder.add_bolt(f"out-{name}", nowhere()).shuffle(name)
        return self.builder.build()


class Pass(Bolt):
    outputs = ("n",)

    def process(self, t) -> None:
        self.emit(t.n)


class Several(Bolt):
    """None, one or two outputs per tuple."""

    outputs = ("n",)

    def process(self, t) -> None:
        for _ in range(t.n % 3):
            self.emit(t.n)


class RaisesAtFirst(Bolt):
    """Raises on some numbers as often as told, then lets them pass."""

    outputs = ("n",)

    def __init__(self, bad: Sequence[int], times: int = 1) -> None:
        self.left = dict.fromkeys(bad, times)

    def process(self, t) -> None:
        if self.left.get(t.n, 0):
            self.left[t.n] -= 1
            raise ValueError(t.n)
        self.emit(t.n)


class RemembersWhatItRaised(Bolt):
    """As RaisesAtFirst, with what it remembers in its state."""

    kind = Kind.GLOBAL
    outputs = ("n",)

    def __init__(self, bad: Sequence[int], times: int = 1) -> None:
        self.bad = dict.fromkeys(bad, times)

    def process(self, t) -> None:
        left = self.state.get(t.n, self.bad.get(t.n, 0))
        if left:
            self.state.put(t.n, left - 1)
            raise ValueError(t.n)
        self.emit(t.n)


class FailsSome(Bolt):
    """Lets some tuples fail without raising."""

    outputs = ("n",)

    def process(self, t) -> None:
        if t.n % 4 == 1:
            self.fail(t)
        self.emit(t.n)


class LastTaskFails(Bolt):
    """Lets tuples fail at the last task only, and sends nothing that could hold them open."""

    outputs = ("n",)

    def process(self, t) -> None:
        if self.context.task == self.context.degree - 1 and t.n % 4 == 1:
            self.fail(t)


class KeepsUntilTick(Bolt):
    """Acknowledges odd numbers at the next tick, and lets the others fail there."""

    auto_ack = False
    outputs = ("n",)

    def prepare(self, context) -> None:
        self.kept: list[Any] = []

    def process(self, t) -> None:
        self.kept.append(t)
        self.emit(t.n)

    def process_tick(self) -> None:
        for t in self.kept:
            self.ack(t) if t.n % 2 else self.fail(t)
        self.kept.clear()


class HoldsUntilTick(Bolt):
    """Acknowledges what it has at a tick, and says that it does."""

    auto_ack = False
    outputs = ("n",)

    def prepare(self, context) -> None:
        self.kept: list[Any] = []

    def process(self, t) -> None:
        self.kept.append(t)
        self.emit(t.n)

    def process_tick(self) -> None:
        if self.kept:
            self.emit(-1)
        for t in self.kept:
            self.ack(t)
        self.kept.clear()


class AcksAtOnce(Bolt):
    auto_ack = False
    outputs = ("n",)

    def process(self, t) -> None:
        self.ack(t) if t.n % 2 else self.fail(t)
        self.ack(t)  # a second word on the same tuple changes nothing


class Forgets(Bolt):
    """Never acknowledges."""

    auto_ack = False
    outputs = ("n",)

    def process(self, t) -> None:
        self.emit(t.n)


class CountNumbers(Bolt):
    kind = Kind.KEYED
    table = "counts"
    outputs = ("n",)

    def process(self, t) -> None:
        self.state.put(t.n, self.state.get(t.n, 0) + 1)


def chain() -> Topology:
    made = Builder()
    made.bolt("first", Pass(), degree=2).shuffle("numbers")
    made.bolt("second", Pass(), degree=3).fields("first", "n")
    return made.build("second")


def fan_out() -> Topology:
    made = Builder()
    made.bolt("a", Pass(), degree=2).shuffle("numbers")
    made.bolt("b", Pass(), degree=3).fields("numbers", "n")
    made.bolt("c", Pass(), degree=3).all("numbers")
    made.bolt("d", Several()).shuffle("a").shuffle("b")
    return made.build("c", "d")


def uneven_outputs() -> Topology:
    made = Builder()
    made.bolt("several", Several(), degree=2).shuffle("numbers")
    made.bolt("again", Several(), degree=2).shuffle("several")
    return made.build("again")


def replayed(times: int, count: int = COUNT, bad: Sequence[int] = (2, 5)) -> Topology:
    made = Builder(Reliable(count, replay=True))
    made.bolt("picky", RemembersWhatItRaised(bad, times), on_error="skip").shuffle("numbers")
    return made.build("picky")


def fails_in_one_branch() -> Topology:
    """One reader is content, the other is not: the tuple fails as a whole."""
    made = Builder()
    made.bolt("good", Pass()).shuffle("numbers")
    made.bolt("bad", RaisesAtFirst([4, 7]), on_error="skip", degree=2).shuffle("numbers")
    return made.build("good", "bad")


def fails_in_one_branch_while_another_holds() -> Topology:
    made = Builder(Reliable(1, replay=True))
    made.bolt("bad", RemembersWhatItRaised([0]), on_error="skip").shuffle("numbers")
    made.bolt("holds", HoldsUntilTick(), tick="20 s").shuffle("numbers")
    return made.build("bad", "holds")


def fails_at_one_of_all_tasks() -> Topology:
    made = Builder()
    made.bolt("it", LastTaskFails(), degree=3).all("numbers")
    return made.build("it")


def with_bolt(bolt: Bolt, **options: Any) -> Topology:
    made = Builder()
    made.bolt("it", bolt, **options).shuffle("numbers")
    return made.build("it")


def counted() -> Topology:
    made = Builder(Reliable(replay=True))
    made.bolt("picky", RemembersWhatItRaised([3, 9], 2), on_error="skip").shuffle("numbers")
    made.bolt("count", CountNumbers(), degree=3).fields("picky", "n")
    return made.build()


def only_some_have_ids() -> Topology:
    made = Builder(Reliable(every=3))
    made.bolt("pass", Pass(), degree=2).shuffle("numbers")
    return made.build("pass")


def each(how: str, ids: Sequence[int] = range(COUNT)) -> list[tuple[int, str]]:
    return [(id_, how) for id_ in ids]


NEEDS = frozenset([ACKS])
CLOCKED = frozenset([ACKS, CLOCK])
ODD, EVEN = range(1, COUNT, 2), range(0, COUNT, 2)

CASES = [
    Case(
        "every tuple is acknowledged once",
        chain,
        {},
        (
            AnyOrder("log", each("ack")),
            AnyOrder("out-second", range(COUNT)),
            Counts({"acked": COUNT, "failed": 0}),
        ),
        needs=NEEDS,
    ),
    Case(
        "a tuple with many readers is acknowledged once",
        fan_out,
        {},
        (AnyOrder("log", each("ack")), Counts({"acked": COUNT, "failed": 0})),
        needs=NEEDS,
    ),
    Case(
        "a tuple without outputs is acknowledged too",
        uneven_outputs,
        {},
        (AnyOrder("log", each("ack")),),
        needs=NEEDS,
    ),
    Case(
        "only tuples with ids are told of",
        only_some_have_ids,
        {},
        (AnyOrder("log", each("ack", range(0, COUNT, 3))), AnyOrder("out-pass", range(COUNT))),
        needs=NEEDS,
    ),
    Case(
        "a tuple that fails is replayed by its spout",
        lambda: replayed(times=1),
        {},
        (
            InKeyOrder("log", 0, [*each("fail", [2, 5]), *each("ack")]),
            AnyOrder("out-picky", range(COUNT)),
            Counts({"acked": COUNT, "failed": 2}),
        ),
        needs=NEEDS,
    ),
    Case(
        "a tuple is replayed as often as it fails",
        lambda: replayed(times=600, count=2, bad=[1]),
        {},
        (
            InKeyOrder("log", 0, [*each("fail", [1] * 600), *each("ack", [0, 1])]),
            AnyOrder("out-picky", [0, 1]),
        ),
        needs=NEEDS | {MEMORY},  # 600 batches would take long
    ),
    Case(
        "a tuple fails when one of its branches fails",
        fails_in_one_branch,
        {},
        (
            AnyOrder(
                "log",
                [(n, "fail" if n in (4, 7) else "ack") for n in range(COUNT)],
            ),
            AnyOrder("out-good", range(COUNT)),
        ),
        needs=NEEDS,
    ),
    Case(
        "a tuple that fails is told of at once, whatever other branches hold",
        fails_in_one_branch_while_another_holds,
        {},
        (
            # The tuple is there again before the tick at which the other branch lets go of it.
            Exactly("out-holds", [0, 0, -1]),
            Exactly("log", [(0, "fail"), (0, "ack")]),
            Counts({"acked": 1, "failed": 1}),
        ),
        settings=Settings(ack_timeout=50),
        needs=CLOCKED | {MEMORY},
    ),
    Case(
        "a tuple for all tasks fails when one of them lets it fail",
        fails_at_one_of_all_tasks,
        {},
        (AnyOrder("log", [(n, "fail" if n % 4 == 1 else "ack") for n in range(COUNT)]),),
        needs=NEEDS,
    ),
    Case(
        "a bolt may let a tuple fail without raising",
        lambda: with_bolt(FailsSome(), degree=2),
        {},
        (
            AnyOrder("log", [(n, "fail" if n % 4 == 1 else "ack") for n in range(COUNT)]),
            AnyOrder("out-it", range(COUNT)),
        ),
        needs=NEEDS,
    ),
    Case(
        "a bolt may acknowledge later, at a tick",
        lambda: with_bolt(KeepsUntilTick(), tick="2 s", degree=2),
        {},
        (
            AnyOrder("log", [*each("ack", ODD), *each("fail", EVEN)]),
            AnyOrder("out-it", range(COUNT)),
        ),
        needs=CLOCKED | {MEMORY},
    ),
    Case(
        "a bolt that acknowledges itself may do so at once",
        lambda: with_bolt(AcksAtOnce(), degree=2),
        {},
        (AnyOrder("log", [*each("ack", ODD), *each("fail", EVEN)]),),
        needs=NEEDS,
    ),
    Case(
        "a tuple that nobody acknowledges fails after the timeout",
        lambda: with_bolt(Forgets()),
        {},
        (
            AnyOrder("log", each("fail")),
            AnyOrder("out-it", range(COUNT)),
            Counts({"acked": 0, "failed": COUNT}),
        ),
        settings=Settings(ack_timeout=5),
        needs=CLOCKED,
    ),
    Case(
        "an acknowledgement after the timeout comes too late",
        lambda: with_bolt(KeepsUntilTick(), tick="20 s"),
        {},
        (AnyOrder("log", each("fail")), Counts({"acked": 0, "failed": COUNT})),
        settings=Settings(ack_timeout=5),
        needs=CLOCKED,
    ),
    Case(
        "what was replayed is counted once where it did not arrive before",
        counted,
        {},
        (
            TableIs("counts", dict.fromkeys(range(COUNT), 1)),
            InKeyOrder("log", 0, [*each("fail", [3, 3, 9, 9]), *each("ack")]),
        ),
        needs=NEEDS,
    ),
    Case(
        "a spout hears of its tuples in the order they ended",
        lambda: with_bolt(Pass()),
        {},
        (Exactly("log", each("ack")),),
        needs=NEEDS,
    ),
]
