"""Operators without state: what each of them does to the tuples of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from conformance.harness import SAME_PROCESS, AnyOrder, Case, Exactly, Holds, nowhere, to_sink
from thalweg.components import BlockBolt, Bolt
from thalweg.connectors.memory import items
from thalweg.expressions import col, lit
from thalweg.flow import Flow, Stream
from thalweg.operators.purity import pure
from thalweg.topology import Topology

PEOPLE = [("ann", 31), ("bob", 17), ("cy", 64), ("dee", 18), ("ed", 5), ("fay", 18)]
SENTENCES = ["to be or not", "", "to be", "x", "to"]


def people(order: str = "total") -> Stream:
    return Flow("people", order).source("people", items([]), fields={"name": str, "age": int})


def sentences(order: str = "total") -> Stream:
    return Flow("text", order).source("text", items([]), fields={"text": str})


class Greeting(NamedTuple):
    text: str
    length: int


@dataclass
class Decade:
    name: str
    decade: int


def map_with_a_named_tuple() -> Topology:
    def greet(name: str) -> Greeting:
        return Greeting(f"hi {name}", len(name))

    return to_sink(people().map(greet).filter(lambda length: length > 2))


def map_with_a_dataclass() -> Topology:
    def decade(name: str, age: int) -> Decade:
        return Decade(name, age // 10 * 10)

    return to_sink(people().map(decade))


def map_with_dictionaries() -> Topology:
    def swap(name: str, age: int) -> dict[str, object]:
        return {"years": age, "who": name}

    return to_sink(people().map(swap, fields=["who", "years"]))


def filter_by_expression() -> Topology:
    adult, known = col("age") >= 18, ~col("name").isin(["cy", "nobody"])
    return to_sink(people().filter((adult & known) | (col("age") == 5)))


def filter_with_nulls_in_the_condition() -> Topology:
    numbers = Flow("n", "total").source("n", items([]), fields={"n": int})
    return to_sink(numbers.filter(col("n") > 2))


def words_with_positions() -> Topology:
    def positions(text: str) -> list[tuple[str, int]]:
        return [(word, i) for i, word in enumerate(text.split())]

    return to_sink(sentences().flat_map(positions, fields={"word": str, "at": int}))


def flat_map_with_a_generator() -> Topology:
    def letters(text: str):
        yield from text.replace(" ", "")

    return to_sink(sentences().flat_map(letters, fields=["letter"]))


def extended_by_functions_and_expressions() -> Topology:
    return to_sink(
        people().extend(
            initial=lambda name: name[0], double=col("age") * 2, both=lambda name, age: name * age
        )
    )


def map_block_in_upper_case() -> Topology:
    def upper(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.set_column(0, "name", pc.utf8_upper(batch.column("name")))

    return to_sink(people().map_block(upper))


def map_block_that_drops_rows() -> Topology:
    def adults(batch: pa.RecordBatch) -> pa.RecordBatch | None:
        kept = batch.filter(pc.greater_equal(batch.column("age"), 18))
        return kept if kept.num_rows else None

    return to_sink(people().map_block(adults))


class Effects:
    """Calls of a tapped function, which leave no other trace."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def build(self) -> Topology:
        self.seen.clear()
        seen = self.seen
        return to_sink(people().tap(lambda name: seen.append(str(name))))

    def each_tuple_once(self, _rows: object) -> bool:
        """The tapped function saw each tuple once."""
        return sorted(self.seen) == sorted(name for name, _ in PEOPLE)


def branched() -> Topology:
    stream = people("sender")
    adults, minors = stream.branch(lambda age: age >= 18)
    adults.sink("adults", nowhere())
    minors.select("name").sink("minors", nowhere())
    return stream.flow.build()


def branched_and_merged() -> Topology:
    adults, minors = people("sender").branch(lambda age: age >= 18)
    return to_sink(adults.map(lambda name, age: (name, -age)).merge(minors))


def pure_operators() -> Topology:
    stream = people().extend(double=pure(lambda age: 2 * age)).filter(pure(col("age") >= 18))
    return to_sink(stream.select("name", "double").filter(pure(lambda t: t.double, reads="double")))


def merged_sources() -> Topology:
    flow = Flow("both")
    left = flow.source("left", items([]), fields={"n": int})
    right = flow.source("right", items([]), fields={"n": int})
    return to_sink(left.merge(right))


class Initials(Bolt):
    outputs = ("initial",)

    def process(self, t) -> None:
        self.emit(t.name[0])


class Older(BlockBolt):
    outputs = {"name": str, "age": int}

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self.make_batch([batch.column("name"), pc.add(batch.column("age"), 1)])


_effects = Effects()

CASES = [
    Case(
        "map takes field values by name",
        lambda: to_sink(people().map(lambda age, name: (name, age + 1))),
        {"people": PEOPLE},
        (Exactly("out", [(name, age + 1) for name, age in PEOPLE]),),
    ),
    Case(
        "map takes the whole tuple",
        lambda: to_sink(people().map(lambda person: (person.name.upper(), person["age"]))),
        {"people": PEOPLE},
        (Exactly("out", [(name.upper(), age) for name, age in PEOPLE]),),
    ),
    Case(
        "map with a NamedTuple annotation names the fields",
        map_with_a_named_tuple,
        {"people": PEOPLE},
        (Exactly("out", [("hi ann", 3), ("hi bob", 3), ("hi dee", 3), ("hi fay", 3)]),),
    ),
    Case(
        "map with a dataclass annotation names the fields",
        map_with_a_dataclass,
        {"people": PEOPLE},
        (Exactly("out", [(name, age // 10 * 10) for name, age in PEOPLE]),),
    ),
    Case(
        "map with dictionaries puts values by name",
        map_with_dictionaries,
        {"people": PEOPLE},
        (Exactly("out", PEOPLE),),
    ),
    Case(
        "map of a stream of one field takes its value",
        lambda: to_sink(sentences().map(str.upper)),
        {"text": SENTENCES},
        (Exactly("out", [text.upper() for text in SENTENCES]),),
    ),
    Case(
        "filter by function keeps tuples unchanged",
        lambda: to_sink(people().filter(lambda age: age % 2 == 0)),
        {"people": PEOPLE},
        (Exactly("out", [("cy", 64), ("dee", 18), ("fay", 18)]),),
    ),
    Case(
        "filter by expression",
        filter_by_expression,
        {"people": PEOPLE},
        (Exactly("out", [("ann", 31), ("dee", 18), ("ed", 5), ("fay", 18)]),),
    ),
    Case(
        "filter by expression drops what compares with null",
        filter_with_nulls_in_the_condition,
        {"n": [1, None, 3, None, 5]},
        (Exactly("out", [3, 5]),),
    ),
    Case(
        "filter that keeps nothing",
        lambda: to_sink(people().filter(lambda age: age > 100).map(lambda name: name, fields="n")),
        {"people": PEOPLE},
        (Exactly("out", []),),
    ),
    Case(
        "flat_map gives none, one or many",
        lambda: to_sink(sentences().flat_map(str.split, fields=["word"])),
        {"text": SENTENCES},
        (Exactly("out", ["to", "be", "or", "not", "to", "be", "x", "to"]),),
    ),
    Case(
        "flat_map with several fields",
        words_with_positions,
        {"text": SENTENCES},
        (Exactly("out", [(word, i) for text in SENTENCES for i, word in enumerate(text.split())]),),
    ),
    Case(
        "flat_map with a generator",
        flat_map_with_a_generator,
        {"text": SENTENCES},
        (Exactly("out", list("tobeornottobexto")),),
    ),
    Case(
        "extend adds fields by functions and expressions",
        extended_by_functions_and_expressions,
        {"people": PEOPLE},
        (Exactly("out", [(name, age, name[0], age * 2, name * age) for name, age in PEOPLE]),),
    ),
    Case(
        "extend replaces a field in its place",
        lambda: to_sink(people().extend(name=lambda name: name[::-1], flag=lit(True))),
        {"people": PEOPLE},
        (Exactly("out", [(name[::-1], age, True) for name, age in PEOPLE]),),
    ),
    Case(
        "extend divides as Python does",
        lambda: to_sink(people().extend(half=col("age") / 2).select("half")),
        {"people": PEOPLE},
        (Exactly("out", [age / 2 for _, age in PEOPLE]),),
    ),
    Case(
        "select keeps fields in the given order",
        lambda: to_sink(people().select("age", "name")),
        {"people": PEOPLE},
        (Exactly("out", [(age, name) for name, age in PEOPLE]),),
    ),
    Case(
        "what is pure gives the same as what is not",
        pure_operators,
        {"people": PEOPLE},
        (Exactly("out", [(name, 2 * age) for name, age in PEOPLE if age >= 18]),),
    ),
    Case(
        "map_block works on columns",
        map_block_in_upper_case,
        {"people": PEOPLE},
        (Exactly("out", [(name.upper(), age) for name, age in PEOPLE]),),
    ),
    Case(
        "map_block may drop rows and whole blocks",
        map_block_that_drops_rows,
        {"people": PEOPLE},
        (AnyOrder("out", [(name, age) for name, age in PEOPLE if age >= 18]),),
    ),
    Case(
        "tap sees each tuple and changes none",
        _effects.build,
        {"people": PEOPLE},
        (Exactly("out", PEOPLE), Holds("out", _effects.each_tuple_once)),
        needs=frozenset([SAME_PROCESS]),
    ),
    Case(
        "branch gives each tuple to one of two streams",
        branched,
        {"people": PEOPLE},
        (
            AnyOrder("adults", [(name, age) for name, age in PEOPLE if age >= 18]),
            AnyOrder("minors", ["bob", "ed"]),
        ),
    ),
    Case(
        "branches merge again without loss",
        branched_and_merged,
        {"people": PEOPLE},
        (AnyOrder("out", [(name, -age if age >= 18 else age) for name, age in PEOPLE]),),
    ),
    Case(
        "merge puts two sources together",
        merged_sources,
        {"left": range(20), "right": range(100, 150)},
        (AnyOrder("out", [*range(20), *range(100, 150)]),),
    ),
    Case(
        "through puts a bolt into the chain",
        lambda: to_sink(people().through("initials", Initials()).map(str.upper)),
        {"people": PEOPLE},
        (Exactly("out", ["A", "B", "C", "D", "E", "F"]),),
    ),
    Case(
        "through puts a block bolt into the chain",
        lambda: to_sink(people().through("older", Older()).filter(col("age") > 18)),
        {"people": PEOPLE},
        (Exactly("out", [("ann", 32), ("cy", 65), ("dee", 19), ("fay", 19)]),),
    ),
    Case(
        "null values pass through functions",
        lambda: to_sink(people().map(lambda name, age: (name, None if age == 18 else age))),
        {"people": [*PEOPLE, (None, 18), ("gus", None)]},
        (
            Exactly(
                "out",
                [
                    *((name, None if age == 18 else age) for name, age in PEOPLE),
                    (None, None),
                    ("gus", None),
                ],
            ),
        ),
    ),
    Case(
        "a task that sees only nulls, of a type that was not declared",
        lambda: to_sink(
            people()
            .map(lambda age: None if age < 32 else age, fields="age", degree=6)
            .map(lambda age: age, degree=2)
        ),
        {"people": PEOPLE},
        (Exactly("out", [None, None, 64, None, None, None]),),
    ),
    Case(
        "no input gives no output",
        lambda: to_sink(people().map(lambda name, age: (name, age)).filter(col("age") > 1)),
        {"people": []},
        (Exactly("out", []),),
    ),
    Case(
        "one tuple goes all the way",
        lambda: to_sink(people().map(lambda name, age: (name, age)).filter(col("age") > 1)),
        {"people": [("ann", 31)]},
        (Exactly("out", [("ann", 31)]),),
    ),
    Case(
        "a chain of twelve operators",
        lambda: to_sink(_twelve(sentences())),
        {"text": ["a", "bb", "ccc"] * 5},
        (Exactly("out", ["a" + "." * 12, "bb" + "." * 12, "ccc" + "." * 12] * 5),),
    ),
]


def _twelve(stream: Stream) -> Stream:
    for _ in range(12):
        stream = stream.map(lambda text: text + ".", degree=2)
    return stream
