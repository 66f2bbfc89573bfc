"""Groupings: every tuple arrives, and at the tasks that the grouping promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from conformance.bodies import Numbers, WhoGotIt, tasks_by_key
from conformance.harness import MEMORY, AnyOrder, Case, Holds, Row, TableIs, nowhere
from thalweg import groupings
from thalweg.builder import TopologyBuilder
from thalweg.components import Bolt, Kind
from thalweg.connectors.memory import items
from thalweg.flow import Flow
from thalweg.topology import Topology

WORDS = [f"w{i * i % 17}" for i in range(120)]
PAIRS = [(f"a{i % 4}", i % 6) for i in range(120)]
SKEWED = ["hot"] * 60 + [f"w{i % 10}" for i in range(60)]


def words(grouping: Any, degree: int) -> Topology:
    flow = Flow("words")
    spread = flow.source("words", items([]), fields={"word": str}).grouped(grouping)
    spread.through("who", WhoGotIt("word"), degree=degree).sink("out", nowhere())
    return flow.build()


def pairs(grouping: Any, degree: int) -> Topology:
    flow = Flow("pairs")
    fields = {"left": str, "right": int}
    spread = flow.source("pairs", items([]), fields=fields).grouped(grouping)
    spread.through("who", WhoGotIt("left", "right"), degree=degree).sink("out", nowhere())
    return flow.build()


def numbers(grouping: Any, degree: int) -> Topology:
    flow = Flow("numbers")
    spread = flow.source("numbers", items([]), fields={"n": int}).grouped(grouping)
    spread.through("who", WhoGotIt("n"), degree=degree).sink("out", nowhere())
    return flow.build()


def only_values(rows: Sequence[Row]) -> list[Any]:
    return sorted(row[:-1] for row in rows)


def each_word_once(rows: Sequence[Row]) -> bool:
    """Every word arrives once."""
    return only_values(rows) == sorted((word,) for word in WORDS)


def each_pair_once(rows: Sequence[Row]) -> bool:
    """Every pair arrives once."""
    return only_values(rows) == sorted(PAIRS)


def even_shares(degree: int):
    def even(rows: Sequence[Row]) -> bool:
        """Shares of the tasks differ by one at most."""
        shares = Counter(row[-1] for row in rows)
        return len(shares) == degree and max(shares.values()) - min(shares.values()) <= 1

    return even


def one_task_per_key(width: int = 1):
    def one(rows: Sequence[Row]) -> bool:
        """All tuples of a key are at one task, and the keys are not all at the same."""
        tasks = tasks_by_key(rows, width)
        return all(len(t) == 1 for t in tasks.values()) and len(set().union(*tasks.values())) > 1

    return one


def at_most_two_tasks_per_key(rows: Sequence[Row]) -> bool:
    """A key is at two tasks at most, and the hot one at two."""
    tasks = tasks_by_key(rows)
    return all(len(t) <= 2 for t in tasks.values()) and len(tasks["hot",]) == 2


class OddToLast:
    """Odd numbers to the last task, others to the first; a custom grouping."""

    def prepare(self, tasks: int) -> None:
        self.last = tasks - 1

    def choose(self, batch: pa.RecordBatch) -> Sequence[int]:
        return [self.last if n % 2 else 0 for n in batch.column("n").to_pylist()]


class PartialCount(Bolt):
    """Counts of words that may be at two tasks; sends what it has at the end."""

    outputs = ("word", "n")

    def prepare(self, context) -> None:
        self.counts: Counter[str] = Counter()

    def process(self, t) -> None:
        self.counts[t.word] += 1

    def process_end(self) -> None:
        for word, n in sorted(self.counts.items()):
            self.emit(word, n)

    @staticmethod
    def merge(a: int, b: int) -> int:
        return a + b


class WhoGotHalf(WhoGotIt):
    @staticmethod
    def merge(a: Any, b: Any) -> Any:
        return a


def partial_who() -> Topology:
    flow = Flow("partial")
    words = flow.source("words", items([]), fields={"word": str})
    spread = words.grouped(groupings.PartialKey(("word",)))
    spread.through("who", WhoGotHalf("word"), degree=5).sink("out", nowhere())
    return flow.build()


def partial_counts_merged() -> Topology:
    flow = Flow("partial")
    words = flow.source("words", items([]), fields={"word": str})
    halves = words.grouped(groupings.PartialKey(("word",)))
    counts = halves.through("halves", PartialCount(), degree=4)
    counts.key_by("word").sum("counts", "n", degree=2)
    return flow.build()


class KeyedPartialCount(Bolt):
    """A table whose keys may be at two tasks; ``merge`` says what a key's two values make."""

    kind = Kind.KEYED
    table = "counts"
    outputs = ("word",)

    def process(self, t) -> None:
        self.state.put(t.word, self.state.get(t.word, 0) + 1)
        self.emit(t.word)

    @staticmethod
    def merge(a: int, b: int) -> int:
        return a + b


def table_by_partial_key() -> Topology:
    flow = Flow("partial")
    words = flow.source("words", items([]), fields={"word": str})
    counted = words.grouped(groupings.PartialKey(("word",)))
    counted.through("count", KeyedPartialCount(), degree=4).sink("out", nowhere())
    return flow.build()


class SenderTask(Bolt):
    outputs = ("n", "sender")

    def process(self, t) -> None:
        self.emit(t.n, self.context.task)


def from_task_to_task(senders: int, receivers: int, order: str = "sender") -> Topology:
    builder = TopologyBuilder("local")
    builder.add_spout("numbers", Numbers(90), degree=2)
    builder.add_bolt("sender", SenderTask(), degree=senders).shuffle("numbers")
    receiver = builder.add_bolt("receiver", WhoGotIt("n", "sender"), degree=receivers)
    receiver.local_or_shuffle("sender")
    builder.add_bolt("out", nowhere(), order=order).global_("receiver")
    return builder.build()


def stays_at_the_sender(rows: Sequence[Row]) -> bool:
    """Each tuple is received by the task at its sender's place."""
    return sorted(row[0] for row in rows) == list(range(90)) and all(s == r for _, s, r in rows)


def all_arrive(rows: Sequence[Row]) -> bool:
    """Every number arrives once, and no task is left out."""
    return sorted(row[0] for row in rows) == list(range(90)) and {r for *_, r in rows} == {0, 1}


class Chooser(Bolt):
    """Names the receiving task: a number's remainder."""

    streams = {"chosen": ["n"]}
    direct_streams = frozenset(["chosen"])

    def process(self, t) -> None:
        self.emit_direct(t.n % 3, t.n, stream="chosen")


def chosen_by_the_sender() -> Topology:
    builder = TopologyBuilder("direct")
    builder.add_spout("numbers", Numbers(50))
    builder.add_bolt("chooser", Chooser(), degree=2).shuffle("numbers")
    builder.add_bolt("who", WhoGotIt("n"), degree=3).direct("chooser", stream="chosen")
    builder.add_bolt("out", nowhere()).shuffle("who")
    return builder.build()


class ChoosingSpout(Numbers):
    direct_streams = frozenset(["default"])

    def next_tuple(self) -> None:
        if not self.left:
            self.finish()
            return
        n = self.left.pop(0)
        self.emit_direct(n // 10, n)


def chosen_by_the_spout() -> Topology:
    builder = TopologyBuilder("direct")
    builder.add_spout("numbers", ChoosingSpout(40))
    builder.add_bolt("who", WhoGotIt("n"), degree=4).direct("numbers")
    builder.add_bolt("out", nowhere()).shuffle("who")
    return builder.build()


def three_groupings_of_one_stream() -> Topology:
    builder = TopologyBuilder("three")
    builder.add_spout("numbers", Numbers(30))
    builder.add_bolt("all", WhoGotIt("n"), degree=2).all("numbers")
    builder.add_bolt("fields", WhoGotIt("n"), degree=3).fields("numbers", "n")
    builder.add_bolt("first", WhoGotIt("n"), degree=2).global_("numbers")
    for name in ("all", "fields", "first"):
        builder.add_bolt(f"out-{name}", nowhere()).shuffle(name)
    return builder.build()


BOUNDS = (10, 20, 30)

CASES = [
    Case(
        "shuffle gives even shares",
        lambda: words(groupings.Shuffle(), 4),
        {"words": WORDS},
        (Holds("out", each_word_once), Holds("out", even_shares(4))),
    ),
    Case(
        "shuffle with more tasks than tuples loses none",
        lambda: words(groupings.Shuffle(), 9),
        {"words": WORDS[:4]},
        (Holds("out", lambda rows: only_values(rows) == sorted((w,) for w in WORDS[:4])),),
    ),
    Case(
        "none is as good as shuffle",
        lambda: words(groupings.NoGrouping(), 3),
        {"words": WORDS},
        (
            Holds("out", each_word_once),
            Holds("out", lambda rows: {r[-1] for r in rows} == {0, 1, 2}),
        ),
    ),
    Case(
        "load_aware uses every task",
        lambda: words(groupings.LoadAware(), 3),
        {"words": WORDS},
        (
            Holds("out", each_word_once),
            Holds("out", lambda rows: {r[-1] for r in rows} == {0, 1, 2}),
        ),
    ),
    Case(
        "fields gives each key one task",
        lambda: words(groupings.Fields(("word",)), 4),
        {"words": WORDS},
        (Holds("out", each_word_once), Holds("out", one_task_per_key())),
    ),
    Case(
        "fields of two names gives each pair one task",
        lambda: pairs(groupings.Fields(("right", "left")), 4),
        {"pairs": PAIRS},
        (Holds("out", each_pair_once), Holds("out", one_task_per_key(2))),
    ),
    Case(
        "fields with bounds splits by range",
        lambda: numbers(groupings.Fields(("n",), BOUNDS), 4),
        {"numbers": range(-5, 40)},
        (AnyOrder("out", [(n, sum(n >= bound for bound in BOUNDS)) for n in range(-5, 40)]),),
    ),
    Case(
        "fields with more bounds than tasks gives the rest to the last",
        lambda: numbers(groupings.Fields(("n",), BOUNDS), 2),
        {"numbers": [5, 10, 25, 99, None]},
        (AnyOrder("out", [(5, 0), (10, 1), (25, 1), (99, 1), (None, 0)]),),
    ),
    Case(
        "partial_key shares a key between two tasks at most",
        partial_who,
        {"words": SKEWED},
        (Holds("out", at_most_two_tasks_per_key),),
    ),
    Case(
        "partial_key with merged counts is an exact count",
        partial_counts_merged,
        {"words": SKEWED},
        (TableIs("counts", Counter(SKEWED)),),
        needs=frozenset([MEMORY]),
    ),
    Case(
        "partial_key on a table merges the halves of a key",
        table_by_partial_key,
        {"words": SKEWED},
        (TableIs("counts", Counter(SKEWED)), AnyOrder("out", SKEWED)),
    ),
    Case(
        "local_or_shuffle stays at the sender's place",
        lambda: from_task_to_task(3, 3),
        {},
        (Holds("out", stays_at_the_sender),),
    ),
    Case(
        "local_or_shuffle stays at the sender's place under total order",
        lambda: from_task_to_task(3, 3, "total"),
        {},
        (Holds("out", stays_at_the_sender),),
    ),
    Case(
        "local_or_shuffle shuffles where the sender has no neighbour",
        lambda: from_task_to_task(4, 2),
        {},
        (Holds("out", all_arrive),),
    ),
    Case(
        "all gives every tuple to every task",
        lambda: words(groupings.All(), 3),
        {"words": WORDS},
        (AnyOrder("out", [(word, task) for word in WORDS for task in range(3)]),),
    ),
    Case(
        "global gives everything to the first task",
        lambda: words(groupings.Global(), 3),
        {"words": WORDS},
        (AnyOrder("out", [(word, 0) for word in WORDS]),),
    ),
    Case(
        "direct goes where a bolt says",
        chosen_by_the_sender,
        {},
        (AnyOrder("out", [(n, n % 3) for n in range(50)]),),
    ),
    Case(
        "direct goes where a spout says",
        chosen_by_the_spout,
        {},
        (AnyOrder("out", [(n, n // 10) for n in range(40)]),),
    ),
    Case(
        "custom goes where an object says",
        lambda: numbers(groupings.Custom(OddToLast()), 4),
        {"numbers": range(40)},
        (AnyOrder("out", [(n, 3 if n % 2 else 0) for n in range(40)]),),
    ),
    Case(
        "one stream read with three groupings",
        three_groupings_of_one_stream,
        {},
        (
            AnyOrder("out-all", [(n, task) for n in range(30) for task in range(2)]),
            Holds("out-fields", lambda rows: only_values(rows) == [(n,) for n in range(30)]),
            Holds("out-fields", one_task_per_key()),
            AnyOrder("out-first", [(n, 0) for n in range(30)]),
        ),
    ),
]
