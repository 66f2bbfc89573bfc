"""Components that call ``sys.exit``: an error like any other, never the end of the program.

Every operator here takes the numbers from 0 to 19 and leaves at 3, 8, 13 and 18.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from conformance.cases_errors import BAD, GOOD, numbered, with_bolt, with_spout
from conformance.harness import AnyOrder, Case, Counts, FailingCase, TableIs, nowhere
from thalweg.components import BlockBolt, Bolt, Spout
from thalweg.connectors.memory import items
from thalweg.errors import ComponentError, ThalwegError
from thalweg.flow import Flow
from thalweg.groupings import Custom
from thalweg.topology import Topology


def leaving(n: int) -> int:
    if n % 5 == 3:
        sys.exit(n)
    return n + 100


def leaving_list(n: int) -> Iterator[int]:
    yield leaving(n)


def closing(n: int) -> int:
    if n % 5 == 3:
        raise GeneratorExit
    return n + 100


def leaving_sum(sum_: int, n: int) -> int:
    return sum_ + leaving(n)


class LeavingBolt(Bolt):
    outputs = ("n",)

    def process(self, t) -> None:
        self.emit(leaving(t.n))


class LeavingBlocks(BlockBolt):
    outputs = {"n": int}

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        sys.exit()


class LeavesIn(Bolt):
    """Leaves in one method of its life."""

    outputs = ("n",)

    def __init__(self, method: str) -> None:
        self.method = method

    def prepare(self, context) -> None:
        self.reach("prepare")

    def process(self, t) -> None:
        self.emit(t.n)

    def process_end(self) -> None:
        self.reach("process_end")

    def cleanup(self) -> None:
        self.reach("cleanup")

    def reach(self, method: str) -> None:
        if method == self.method:
            sys.exit(0)


class LeavingSpout(Spout):
    outputs = ("n",)

    def next_tuple(self) -> None:
        sys.exit()


class LeavingGrouping:
    def prepare(self, tasks: int) -> None:
        pass

    def choose(self, batch: pa.RecordBatch) -> Sequence[int]:
        sys.exit(0)


def given() -> Iterator[int]:
    yield 0
    sys.exit(0)


def from_items() -> Topology:
    flow = Flow("leaving")
    flow.source("it", items(given), fields={"n": int}).sink("out", nowhere())
    return flow.build()


def grouped() -> Topology:
    stream = numbered().grouped(Custom(LeavingGrouping())).map(lambda n: n, degree=2)
    stream.sink("out", nowhere())
    return stream.flow.build()


def mapped(on_error: str, function: Callable[[int], int] = leaving) -> Topology:
    stream = numbered().map(function, name="it", on_error=on_error, degree=1)
    stream.sink("out", nowhere())
    return stream.flow.build()


def flat_mapped(on_error: str) -> Topology:
    stream = numbered().flat_map(leaving_list, name="it", on_error=on_error, degree=1)
    stream.sink("out", nowhere())
    return stream.flow.build()


def folded(on_error: str) -> Topology:
    keyed = numbered().extend(k=lambda n: n % 2).key_by("k")
    return keyed.fold("it", 0, leaving_sum, on_error=on_error, degree=1, order="key").flow.build()


NUMBERS = {"numbers": range(20)}
EXIT_3 = ("component 'it', task 0", "it called sys.exit(3)", "n=3")
EXIT_0 = ("component 'it', task 0", "it called sys.exit(0)")


def failing(name: str, build: Callable[[], Topology], tells: Sequence[str], **given: Any) -> Any:
    """Make a case of a component that leaves."""
    attributes = {"component": "it", "task": 0}
    return FailingCase(name, build, given, ComponentError, tuple(tells), attributes)


FAILING = [
    failing("map that exits under fail", lambda: mapped("fail"), EXIT_3, **NUMBERS),
    failing("flat_map that exits under fail", lambda: flat_mapped("fail"), EXIT_3, **NUMBERS),
    failing("fold that exits under fail", lambda: folded("fail"), EXIT_3, **NUMBERS),
    failing("a bolt that exits under fail", lambda: with_bolt(LeavingBolt(), degree=1), EXIT_3),
    failing(
        "a block bolt that exits",
        lambda: with_bolt(LeavingBlocks()),
        ("LeavingBlocks.process_block (tests", "it called sys.exit()"),
    ),
    failing(
        "map that raises GeneratorExit",
        lambda: mapped("fail", closing),
        ("closing (tests", "it raised GeneratorExit", "n=3"),
        **NUMBERS,
    ),
    *(
        failing(
            f"{method} that exits",
            lambda method=method: with_bolt(LeavesIn(method), degree=1),
            (*EXIT_0, f"LeavesIn.{method} (tests"),
        )
        for method in ("prepare", "process_end", "cleanup")
    ),
    failing(
        "a spout that exits",
        lambda: with_spout(LeavingSpout()),
        ("LeavingSpout.next_tuple (tests", "it called sys.exit()"),
    ),
    failing("items that exit", from_items, EXIT_0),
    FailingCase(
        "a custom grouping that exits",
        grouped,
        NUMBERS,
        ThalwegError,
        ("LeavingGrouping", "it called sys.exit(0)"),
    ),
]

SENT = AnyOrder("out", [n + 100 for n in GOOD])
COUNTED = Counts({"errors": len(BAD), "received": 20}, "it")
SUMS = {k: sum(n + 100 for n in GOOD if n % 2 == k) for k in (0, 1)}

CASES = [
    Case("map that exits under skip", lambda: mapped("skip"), NUMBERS, (SENT, COUNTED)),
    Case("flat_map that exits under skip", lambda: flat_mapped("skip"), NUMBERS, (SENT, COUNTED)),
    Case(
        "fold that exits under skip",
        lambda: folded("skip"),
        NUMBERS,
        (TableIs("it", SUMS), COUNTED),
    ),
    Case(
        "a bolt that exits under skip",
        lambda: with_bolt(LeavingBolt(), on_error="skip", degree=1),
        {},
        (SENT, COUNTED),
    ),
    Case(
        "a block bolt that exits loses its blocks under skip",
        lambda: with_bolt(LeavingBlocks(), on_error="skip", degree=2),
        {},
        (AnyOrder("out", []), Counts({"errors": 20, "received": 20, "emitted": 0}, "it")),
    ),
]
