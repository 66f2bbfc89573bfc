"""Drawn programs: a random topology of operators, built for Thalweg and interpreted serially.

Every stream has the fields k (text) and n (number). A program is a list of steps; each reads one
to three of the streams made so far and makes one, or two if it is a branch. The interpreter takes
one source tuple at a time and goes through the steps in order: what it gives is, by definition,
the serial execution.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from thalweg.connectors.memory import call, items
from thalweg.flow import Flow, Stream
from thalweg.groupings import Fields, Grouping, LocalOrShuffle, Shuffle
from thalweg.topology import Topology

Row = tuple[str, int]
FIELDS = {"k": str, "n": int}
#: Operators whose output of each key is in the order of the key.
IN_KEY_ORDER = ("running_count", "scan")
KEYED = ("tally k", "tally n", *IN_KEY_ORDER)
STATELESS = ("map", "rekey", "filter", "flat_map", "branch", "branch rest")


@dataclass(frozen=True)
class Step:
    """One operator: what it reads (numbers of earlier streams), a parameter, its degree."""

    operator: str
    reads: tuple[int, ...]
    parameter: int
    degree: int
    #: How tuples reach the tasks of a stateless operator.
    grouping: Grouping


@dataclass(frozen=True)
class Program:
    """Steps in order; stream 0 is the source, stream i the output of step i."""

    steps: tuple[Step, ...]

    @property
    def ends(self) -> list[int]:
        """The streams that no step reads; each goes to a sink."""
        read = {number for step in self.steps for number in step.reads}
        return [i for i in range(len(self.steps) + 1) if i not in read]


# --- drawing -----------------------------------------------------------------------------------

GROUPINGS = st.sampled_from(
    [Shuffle(), Shuffle(), Fields(("n",)), Fields(("k", "n")), LocalOrShuffle()]
)


@st.composite
def programs(draw: st.DrawFn, most: int = 6) -> Program:
    steps = []
    for number in range(1, draw(st.integers(1, most)) + 1):
        reads = draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=3, unique=True))
        steps.append(
            Step(
                draw(st.sampled_from([*STATELESS, *KEYED])),
                # Mostly the stream that was made last, so that chains get long.
                draw(st.just((number - 1,)) | st.just(tuple(reads))),
                draw(st.integers(2, 4)),
                draw(st.integers(1, 4)),
                draw(GROUPINGS),
            )
        )
    return Program(tuple(steps))


SOURCES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=20)


# --- for Thalweg -------------------------------------------------------------------------------


def build(program: Program, order: Any) -> Topology:
    """Make the topology; the sink of stream i is called end-i, the table of step i table-i."""
    flow = Flow("drawn", order)
    streams = [flow.source("source", items([]), fields=FIELDS)]
    for number, step in enumerate(program.steps, 1):
        first, *others = (streams[i] for i in step.reads)
        streams.append(_put(first.merge(*others), step, f"table-{number}"))
    for number in program.ends:
        streams[number].sink(f"end-{number}", call(lambda _t: None))
    return flow.build()


def _put(stream: Stream, step: Step, table: str) -> Stream:
    p, degree = step.parameter, step.degree
    if step.operator in ("tally k", "tally n"):
        return stream.tally(table, key=step.operator[-1], degree=degree)
    if step.operator == "running_count":
        return stream.key_by("k").running_count(into="n", degree=degree)
    if step.operator == "scan":
        return stream.key_by("k").scan(0, lambda s, n: (s * 31 + n) % 1009, into="n", degree=degree)
    spread = stream.grouped(step.grouping)
    if step.operator == "map":
        return spread.map(lambda k, n: (k, (n * p + 1) % 1000), fields=FIELDS, degree=degree)
    if step.operator == "rekey":
        return spread.map(lambda k, n: (f"k{n % p}", n), fields=FIELDS, degree=degree)
    if step.operator == "filter":
        return spread.filter(lambda n: n % p != 0, degree=degree)
    if step.operator == "flat_map":
        return spread.flat_map(
            lambda k, n: [(k, n + i) for i in range(n % p)], fields=FIELDS, degree=degree
        )
    chosen, rest = spread.branch(lambda n: n % p == 0, degree=degree)
    return chosen if step.operator == "branch" else rest


# --- serially ----------------------------------------------------------------------------------


@dataclass
class Serial:
    """The state of a serial execution, and what it has sent to the ends."""

    program: Program
    ends: dict[int, list[Row]] = field(default_factory=dict)
    tables: dict[str, Counter[Any]] = field(default_factory=dict)
    states: dict[tuple[int, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ends = {number: [] for number in self.program.ends}
        for number, step in enumerate(self.program.steps, 1):
            if step.operator.startswith("tally"):
                self.tables[f"table-{number}"] = Counter()

    def take(self, row: Row) -> None:
        """Follow one source tuple through all steps."""
        streams: list[list[Row]] = [[row]]
        for number, step in enumerate(self.program.steps, 1):
            arrived = [row for i in step.reads for row in streams[i]]
            streams.append([out for row in arrived for out in self.step(number, step, *row)])
        for number in self.ends:
            self.ends[number] += streams[number]

    def step(self, number: int, step: Step, k: str, n: int) -> list[Row]:
        p = step.parameter
        match step.operator:
            case "map":
                return [(k, (n * p + 1) % 1000)]
            case "rekey":
                return [(f"k{n % p}", n)]
            case "filter" | "branch rest":
                return [(k, n)] if n % p else []
            case "branch":
                return [] if n % p else [(k, n)]
            case "flat_map":
                return [(k, n + i) for i in range(n % p)]
            case "tally k" | "tally n":
                self.tables[f"table-{number}"][k if step.operator[-1] == "k" else n] += 1
                return [(k, n)]
        before = self.states.get((number, k), 0)
        after = before + 1 if step.operator == "running_count" else (before * 31 + n) % 1009
        self.states[number, k] = after
        return [(k, after)]


def run_serially(program: Program, rows: list[Row]) -> Serial:
    serial = Serial(program)
    for row in rows:
        serial.take(row)
    return serial
