"""Components that raise: what each policy does, and what the message tells.

Every operator here takes the numbers from 0 to 19 and raises ValueError on 3, 8, 13 and 18.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from conformance.bodies import Numbers
from conformance.harness import AnyOrder, Case, Counts, FailingCase, TableIs, built, nowhere
from thalweg.builder import TopologyBuilder
from thalweg.components import BlockBolt, Bolt, Spout
from thalweg.connectors.memory import items
from thalweg.errors import Aborted, ComponentError, RecordError, ThalwegError, TopologyError
from thalweg.flow import Flow, Stream
from thalweg.groupings import Custom
from thalweg.testing import ABORT
from thalweg.topology import Topology

GOOD = [n for n in range(20) if n % 5 != 3]
BAD = [3, 8, 13, 18]


def picky(n: int) -> int:
    if n % 5 == 3:
        raise ValueError(f"no {n}")
    return n + 100


def picky_list(n: int) -> list[int]:
    return [picky(n)] * (n % 3)


def picky_sum(sum_: int, n: int) -> int:
    return sum_ + picky(n)


def picky_state(state: int, n: int) -> tuple[int, tuple[int, int]]:
    picky(n)
    return state + 1, (n, state)


def picky_max(a: int, b: int) -> int:
    picky(b)
    return max(a, b)


@dataclass
class PickyLogic:
    def process(self, n: int) -> int:
        return picky(n)


class PickyBolt(Bolt):
    outputs = ("n",)

    def process(self, t) -> None:
        self.emit(picky(t.n))


@dataclass(frozen=True)
class Operator:
    """An operator around a picky function, and what it sends for the good numbers."""

    name: str
    put: Callable[[Stream, Any], Stream]
    #: What the message must name.
    function: Any
    sends: Sequence[Any]

    def build(self, on_error: Any) -> Topology:
        numbers = numbered()
        self.put(numbers, on_error).sink("out", nowhere())
        return numbers.flow.build()

    @property
    def place(self) -> str:
        """Name, file and line as the message gives them."""
        code = self.function.__code__
        file = os.path.relpath(code.co_filename)
        return f"{self.function.__qualname__} ({file}:{code.co_firstlineno})"


def running_state() -> list[tuple[int, int]]:
    return [(n, i) for i, n in enumerate(GOOD)]


def running_sum() -> list[tuple[int, str, int]]:
    return [(n, "all", sum(m + 100 for m in GOOD[: i + 1])) for i, n in enumerate(GOOD)]


def keyed(stream: Stream) -> Any:
    return stream.extend(k=lambda n: "all").key_by("k")


OPERATORS = [
    Operator(
        "map",
        lambda s, policy: s.map(picky, name="it", on_error=policy, degree=1),
        picky,
        [n + 100 for n in GOOD],
    ),
    Operator(
        "filter",
        lambda s, policy: s.filter(picky, name="it", on_error=policy, degree=1),
        picky,
        GOOD,
    ),
    Operator(
        "tap", lambda s, policy: s.tap(picky, name="it", on_error=policy, degree=1), picky, GOOD
    ),
    Operator(
        "branch",
        lambda s, policy: s.branch(picky, name="it", on_error=policy, degree=1)[0],
        picky,
        GOOD,
    ),
    Operator(
        "flat_map",
        lambda s, policy: s.flat_map(picky_list, name="it", on_error=policy, degree=1),
        picky_list,
        [n + 100 for n in GOOD for _ in range(n % 3)],
    ),
    Operator(
        "a bolt",
        lambda s, policy: s.through("it", PickyBolt(), on_error=policy, degree=1),
        PickyBolt.process,
        [n + 100 for n in GOOD],
    ),
    Operator(
        "scan",
        lambda s, policy: keyed(s).scan(0, picky_sum, name="it", on_error=policy, degree=1),
        picky_sum,
        running_sum(),
    ),
    Operator(
        "stateful",
        lambda s, policy: keyed(s).stateful(
            picky_state, start=0, fields=["n", "i"], name="it", on_error=policy, degree=1
        ),
        picky_state,
        running_state(),
    ),
    Operator(
        "stateful with a class",
        lambda s, policy: keyed(s).stateful(
            PickyLogic, fields=["m"], name="it", on_error=policy, degree=1
        ),
        PickyLogic.process,
        [n + 100 for n in GOOD],
    ),
]


def numbered(field: str = "n") -> Stream:
    return Flow("picky").source("numbers", items([]), fields={field: int})


def extended() -> Topology:
    numbers = numbered().extend(m=picky)
    numbers.sink("out", nowhere())
    return numbers.flow.build()


EXTEND = Operator("extend", lambda s, _policy: s.extend(m=picky), picky, [])


def folded(on_error: str) -> Topology:
    keyed = numbered().extend(k=lambda n: n % 2).key_by("k")
    return keyed.fold("it", 0, picky_sum, on_error=on_error, degree=1, order="key").flow.build()


def reduced(on_error: str) -> Topology:
    keyed = numbered().extend(k=lambda n: n % 2).key_by("k")
    return keyed.reduce("it", "n", picky_max, on_error=on_error).flow.build()


# --- things that raise without a policy --------------------------------------------------------


class FailsIn(Bolt):
    """Raises in one method of its life."""

    outputs = ("n",)

    def __init__(self, method: str) -> None:
        self.method = method

    def prepare(self, context) -> None:
        self.reach("prepare")

    def process(self, t) -> None:
        self.emit(t.n)

    def process_end(self) -> None:
        self.reach("process_end")

    def reach(self, method: str) -> None:
        if method == self.method:
            raise RuntimeError(f"broke in {method}")


class BrokenSpout(Spout):
    outputs = ("n",)

    def next_tuple(self) -> None:
        raise OSError("no connection")


class Exhausted(Spout):
    outputs = ("n",)

    def next_tuple(self) -> None:
        self.emit(next(iter([])))


class HalfABlock(BlockBolt):
    outputs = {"n": int}

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("whole block")


class Nonsense:
    def prepare(self, tasks: int) -> None:
        pass

    def choose(self, batch: pa.RecordBatch) -> Sequence[int]:
        return [99] * batch.num_rows


class ToNobody(Bolt):
    outputs = ("n",)
    direct_streams = frozenset(["default"])

    def process(self, t) -> None:
        self.emit_direct(7, t.n)


def with_bolt(bolt: Any, **options: Any) -> Topology:
    builder = TopologyBuilder("broken")
    builder.add_spout("numbers", Numbers(20))
    builder.add_bolt("it", bolt, **options).shuffle("numbers")
    builder.add_bolt("out", nowhere()).shuffle("it")
    return builder.build()


def with_spout(spout: Any) -> Topology:
    builder = TopologyBuilder("broken")
    builder.add_spout("it", spout)
    builder.add_bolt("out", nowhere()).shuffle("it")
    return builder.build()


def with_mapping(function: Callable[..., Any], fields: Any) -> Topology:
    flow = Flow("misfit")
    numbers = flow.source("numbers", items([]), fields={"n": int})
    numbers.map(function, fields=fields, name="it").sink("out", nowhere())
    return flow.build()


def badly_grouped() -> Topology:
    flow = Flow("nonsense")
    numbers = flow.source("numbers", items([]), fields={"n": int})
    numbers.grouped(Custom(Nonsense())).map(lambda n: n, degree=2).sink("out", nowhere())
    return flow.build()


def sent_to_nobody() -> Topology:
    builder = TopologyBuilder("direct")
    builder.add_spout("numbers", Numbers(5))
    builder.add_bolt("it", ToNobody()).shuffle("numbers")
    builder.add_bolt("out", nowhere(), degree=3).direct("it")
    return builder.build()


def unreadable_record(on_error: str) -> Topology:
    flow = Flow("records")
    numbers = flow.source("it", items([1, "two", 3]), fields={"n": int}, on_error=on_error)
    numbers.sink("out", nowhere())
    return flow.build()


NUMBERS = {"numbers": range(20)}

FAILING = [
    FailingCase(
        "a result under the name of the key",
        lambda: built(numbered().key_by("n").reduce("largest", "n", max)),
        NUMBERS,
        TopologyError,
        ("field 'n'", "no key field has", "into="),
    ),
    FailingCase(
        "a tally whose key is called as its count",
        lambda: built(numbered("count").tally("counts", key="count")),
        NUMBERS,
        TopologyError,
        ("field 'count'", "no key field has"),
    ),
    FailingCase(
        "a grouping that is none",
        lambda: built(numbered().grouped("shuffle").map(lambda n: n)),
        NUMBERS,
        TopologyError,
        ("thalweg.groupings", "'shuffle'"),
    ),
    *(
        FailingCase(
            f"{operator.name} that raises under fail",
            lambda operator=operator: operator.build("fail"),
            NUMBERS,
            ComponentError,
            ("component 'it', task 0", operator.place, "ValueError: no 3", "n=3"),
            {"component": "it", "task": 0},
        )
        for operator in OPERATORS
    ),
    FailingCase(
        "extend that raises names the function of the field",
        extended,
        NUMBERS,
        ComponentError,
        ("component 'extend-1', task 0", EXTEND.place, "ValueError: no 3", "n=3"),
        {"component": "extend-1", "task": 0, "tuple_text": "n=3"},
    ),
    FailingCase(
        "fold that raises under fail",
        lambda: folded("fail"),
        NUMBERS,
        ComponentError,
        ("component 'it'", "picky_sum (tests", "ValueError: no 3", "n=3"),
    ),
    FailingCase(
        "a block bolt that raises names its method",
        lambda: with_bolt(HalfABlock()),
        {},
        ComponentError,
        ("component 'it', task 0", "HalfABlock.process_block (tests", "ValueError: whole block"),
    ),
    FailingCase(
        "prepare that raises",
        lambda: with_bolt(FailsIn("prepare"), degree=2),
        {},
        ComponentError,
        ("component 'it', task 0", "FailsIn.prepare (tests", "RuntimeError: broke in prepare"),
        {"component": "it", "tuple_text": None},
    ),
    FailingCase(
        "process_end that raises",
        lambda: with_bolt(FailsIn("process_end")),
        {},
        ComponentError,
        ("component 'it', task 0", "FailsIn.process_end (tests", "broke in process_end"),
    ),
    FailingCase(
        "a spout that raises",
        lambda: with_spout(BrokenSpout()),
        {},
        ComponentError,
        ("component 'it', task 0", "BrokenSpout.next_tuple (tests", "OSError: no connection"),
    ),
    FailingCase(
        "a spout that runs out of items is told to finish",
        lambda: with_spout(Exhausted()),
        {},
        ComponentError,
        ("component 'it'", "StopIteration", "self.finish()"),
    ),
    FailingCase(
        "a result with too few values",
        lambda: with_mapping(lambda n: (n,), ["a", "b"]),
        NUMBERS,
        ComponentError,
        ("component 'it'", "one value for each of ['a', 'b']"),
    ),
    FailingCase(
        "a result of the wrong type",
        lambda: with_mapping(lambda n: "x", {"n": int}),
        NUMBERS,
        ComponentError,
        ("component 'it'", "field 'n'", "expected int64", "'x' (str)"),
    ),
    FailingCase(
        "a custom grouping that names a task which does not exist",
        badly_grouped,
        NUMBERS,
        ThalwegError,
        ("Nonsense.choose", "from 0 to 1", "99"),
    ),
    FailingCase(
        "emit_direct to a task which does not exist",
        sent_to_nobody,
        {},
        ThalwegError,
        ("emit_direct", "from 0 to 2", "7"),
    ),
    FailingCase(
        "a record that does not fit under fail",
        lambda: unreadable_record("fail"),
        {},
        RecordError,
        ("'two'", "source 'it'", "on_error='skip'"),
    ),
    FailingCase(
        "ABORT cuts the run off",
        lambda: with_mapping(lambda n: n, ["n"]),
        {"numbers": [1, 2, ABORT, 3]},
        Aborted,
        ("'numbers'", "ABORT"),
    ),
]


def sums(numbers: Sequence[int]) -> dict[int, int]:
    return {k: sum(n + 100 for n in numbers if n % 2 == k) for k in (0, 1)}


CASES = [
    *(
        Case(
            f"{operator.name} that raises under skip",
            lambda operator=operator: operator.build("skip"),
            NUMBERS,
            (
                AnyOrder("out", operator.sends),
                Counts({"errors": len(BAD), "received": 20}, "it"),
                Counts({"errors": len(BAD)}),
            ),
        )
        for operator in OPERATORS
    ),
    Case(
        "fold that raises under skip",
        lambda: folded("skip"),
        NUMBERS,
        (TableIs("it", sums(GOOD)), Counts({"errors": 4}, "it")),
    ),
    Case(
        "reduce that raises under skip",
        lambda: reduced("skip"),
        NUMBERS,
        # The first value of a key is taken as it is: 0 and 1 are good anyway.
        (TableIs("it", {0: 16, 1: 19}), Counts({"errors": 4}, "it")),
    ),
    Case(
        "a block bolt that raises loses its blocks under skip",
        lambda: with_bolt(HalfABlock(), on_error="skip", degree=2),
        {},
        (AnyOrder("out", []), Counts({"errors": 20, "received": 20, "emitted": 0}, "it")),
    ),
    Case(
        "a record that does not fit under skip",
        lambda: unreadable_record("skip"),
        {},
        (AnyOrder("out", [1, 3]), Counts({"errors": 1}, "it")),
    ),
]
