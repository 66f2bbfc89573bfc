"""Keys that are too heavy for one task: spread aggregates, and partial keys with more choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from conformance.bodies import tasks_by_key
from conformance.cases_groupings import SKEWED, KeyedPartialCount, WhoGotHalf
from conformance.harness import (
    AnyOrder,
    Case,
    Counts,
    Holds,
    LastOfEachKey,
    Row,
    TableIs,
    at_degrees,
    nowhere,
    to_sink,
)
from thalweg import groupings
from thalweg.components import AnyBolt
from thalweg.connectors.memory import items
from thalweg.flow import Flow, Stream
from thalweg.topology import Topology

# (word, number): one word has half of the tuples.
PAIRS = [(word, n * 7 % 11) for n, word in enumerate(SKEWED)]
NUMBERS = {word: [n for w, n in PAIRS if w == word] for word in SKEWED}


def pairs(order: str = "sender") -> Stream:
    return Flow("pairs", order).source("pairs", items([]), fields={"word": str, "number": int})


def counted(degree: int) -> Topology:
    return to_sink(pairs().key_by("word").count("counts", spread=True, degree=degree))


def counted_in_order() -> Topology:
    return to_sink(pairs("total").key_by("word").count("counts", spread=True, degree=2))


def added(degree: int) -> Topology:
    return to_sink(pairs().key_by("word").sum("sums", "number", spread=True, degree=degree))


def highest(degree: int) -> Topology:
    keyed = pairs().key_by("word")
    return to_sink(keyed.reduce("highest", "number", max, spread=True, degree=degree))


def united(a: list[int], b: list[int]) -> list[int]:
    return sorted({*a, *b})


def folded(degree: int) -> Topology:
    def noted(value: list[int], number: int) -> list[int]:
        return united(value, [number])

    keyed = pairs().key_by("word")
    stream = keyed.fold("seen", list, noted, merge=united, spread=True, degree=degree)
    return stream.flow.build()


def without_threes(total: int, number: int) -> int:
    if number == 3:
        raise ValueError(number)
    return total + number


def folded_in_part() -> Topology:
    fold = pairs().key_by("word").fold
    made = fold("sums", 0, without_threes, merge=int.__add__, spread=True, on_error="skip")
    return made.flow.build()


def behind_a_tally() -> Topology:
    stream = pairs().tally("numbers", key="number", degree=2)
    stream.key_by("word").count("counts", spread=True, degree=2)
    return stream.flow.build()


def heavy(bolt: AnyBolt, name: str) -> Topology:
    flow = Flow("heavy")
    words = flow.source("words", items([]), fields={"word": str})
    spread = words.grouped(groupings.PartialKey(("word",), "heavy"))
    spread.through(name, bolt, degree=6).sink("out", nowhere())
    return flow.build()


def only_the_heavy_key_has_many_tasks(rows: Sequence[Row]) -> bool:
    """The hot key has more than two tasks; all tuples arrive."""
    tasks = tasks_by_key(rows)
    return len(tasks["hot",]) > 2 and Counter(row[0] for row in rows) == Counter(SKEWED)


SUMS = {word: sum(numbers) for word, numbers in NUMBERS.items()}

CASES = [
    *at_degrees(
        "spread counts are counts",
        counted,
        {"pairs": PAIRS},
        TableIs("counts", Counter(SKEWED)),
        LastOfEachKey("out", 0, list(Counter(SKEWED).items())),
    ),
    Case(
        "spread counts under total order",
        counted_in_order,
        {"pairs": PAIRS},
        (
            TableIs("counts", Counter(SKEWED)),
            LastOfEachKey("out", 0, list(Counter(SKEWED).items())),
        ),
    ),
    *at_degrees(
        "spread sums are sums",
        added,
        {"pairs": PAIRS},
        TableIs("sums", SUMS),
        LastOfEachKey("out", 0, list(SUMS.items())),
    ),
    *at_degrees(
        "a spread reduce combines what was combined",
        highest,
        {"pairs": PAIRS},
        TableIs("highest", {word: max(numbers) for word, numbers in NUMBERS.items()}),
        degrees=(2,),
    ),
    *at_degrees(
        "a spread fold merges what was folded",
        folded,
        {"pairs": PAIRS},
        TableIs("seen", {word: sorted(set(numbers)) for word, numbers in NUMBERS.items()}),
        degrees=(2,),
    ),
    Case(
        "a spread fold refuses single tuples",
        folded_in_part,
        {"pairs": PAIRS},
        (
            TableIs("sums", {w: sum(n for n in ns if n != 3) for w, ns in NUMBERS.items()}),
            Counts({"errors": sum(n == 3 for _, n in PAIRS)}, "sums.parts"),
        ),
    ),
    Case(
        "spread counts behind a tally",
        behind_a_tally,
        {"pairs": PAIRS},
        (
            TableIs("counts", Counter(SKEWED)),
            TableIs("numbers", Counter(n for _, n in PAIRS)),
        ),
    ),
    Case(
        "partial_key gives heavy keys more than two tasks",
        lambda: heavy(WhoGotHalf("word"), "who"),
        {"words": SKEWED},
        (Holds("out", only_the_heavy_key_has_many_tasks),),
    ),
    Case(
        "partial_key with heavy keys on a table merges all parts of a key",
        lambda: heavy(KeyedPartialCount(), "count"),
        {"words": SKEWED},
        (TableIs("counts", Counter(SKEWED)), AnyOrder("out", SKEWED)),
    ),
]
