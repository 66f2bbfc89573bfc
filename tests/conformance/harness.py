"""Cases as data, what can be expected of them, and the runtimes that every case runs on.

A case compares what the order of a stream promises and no more: final tables, the multiset of a
sink's tuples, the sequence of each key, or (order ``total``) the exact sequence. Expected values
are written by hand or computed by plain Python, never by running Thalweg.

A new runtime needs one entry in RUNTIMES.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from conformance.moving import Anywhere, Restless
from sparksession import spark_session
from thalweg.config import ORDERS, OrderName
from thalweg.connectors.memory import CallSink, call
from thalweg.control.rerouting import Rerouter
from thalweg.execution import Run
from thalweg.flow import Stream
from thalweg.metrics import Snapshot
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.local.scheduling import Scheduling
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.runtimes.spark.runtime import Spark
from thalweg.testing import ManualClock, run_inline
from thalweg.topology import Input, Topology

Row = tuple[Any, ...]

#: What a case may need beyond plain streams; a runtime that lacks it skips the case.
CLOCK, ACKS, SAME_PROCESS = "manual clock", "acknowledgements", "same process"
#: Attributes of a bolt that outlive a batch; where they do not, state does.
MEMORY = "attributes that last"


# --- runtimes ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What a case tells the runtime, whichever it is."""

    values: Mapping[str, str] = field(default_factory=dict)
    ack_timeout: float = 30.0


@dataclass(frozen=True)
class Observed:
    """What came out of a run."""

    outputs: Mapping[str, list[Row]]
    tables: Mapping[str, Mapping[Any, Any]]
    metrics: Snapshot


Inputs = Mapping[str, Iterable[Any]]
Adapter = Callable[[Topology, Inputs, Settings], Observed]


@dataclass(frozen=True)
class RuntimeUnderTest:
    """A runtime, or a variant of one, as the suite sees it."""

    run: Adapter
    lacks: frozenset[str] = frozenset()


#: Makes the rerouter of a run from what goes in.
Moving = Callable[[Inputs], Rerouter]


def inline(block_rows: int, moving: Moving | None = None) -> Adapter:
    """Run on the reference runtime with a manual clock."""

    def run(topology: Topology, inputs: Inputs, settings: Settings) -> Observed:
        runtime = Inline(
            block_rows=block_rows,
            clock=ManualClock(),
            ack_timeout=settings.ack_timeout,
            rerouter=moving and moving(inputs),
        )
        told = Run(settings=settings.values)
        outcome = run_inline(topology, inputs, runtime=runtime, run=told, write_dead_letters=True)
        outputs = {name: [tuple(t) for t in rows] for name, rows in outcome.outputs.items()}
        return Observed(outputs, outcome.result.tables, outcome.result.metrics)

    return run


def local(
    order: OrderName = "sender",
    moving: Moving | None = None,
    restless: int | None = None,
    **settings: Any,
) -> Adapter:
    """Run on the local runtime with a manual clock; all inputs are given at least this order.

    Keys move, if somebody says where, and degrees change with a seed for that. Workers share all
    that there is, however little: cases are small.
    """
    chosen = {"scheduling": Scheduling(alone=0.0)} | settings

    def run(topology: Topology, inputs: Inputs, told: Settings) -> Observed:
        reroutes = {"rerouter": moving(inputs)} if moving else {}
        runtime = Local(clock=ManualClock(), ack_timeout=told.ack_timeout, **(reroutes | chosen))
        steering = None if restless is None else Restless(topology, restless)
        run = Run(settings=told.values, steering=steering)
        whole = raised(topology, order)
        outcome = run_inline(whole, inputs, runtime=runtime, run=run, write_dead_letters=True)
        outputs = {name: [tuple(t) for t in rows] for name, rows in outcome.outputs.items()}
        return Observed(outputs, outcome.result.tables, outcome.result.metrics)

    return run


def raised(topology: Topology, order: OrderName) -> Topology:
    """Let every input promise at least this order."""

    def input_of(given: Input) -> Input:
        return replace(given, order=max(given.order, order, key=ORDERS.index))

    made = (replace(c, inputs=tuple(map(input_of, c.inputs))) for c in topology)
    return replace(topology, components=tuple(made))


def spark(
    places: int,
    limits: Limits | None = None,
    *,
    session: Callable[[], Any] = spark_session,
    folder: Path | None = None,
    moving: Moving | None = None,
) -> Adapter:
    """Run on Spark, with a manual clock and the one session of the test run, or another one.

    Each run keeps its state in a folder of its own within the given one, where hosts share it.
    With keys that move, batches are small, so that there are many of them.
    """

    def run(topology: Topology, inputs: Inputs, settings: Settings) -> Observed:
        chosen = limits or Limits()
        runtime = Spark(
            session(),
            places=places,
            state=None if folder is None else tempfile.mkdtemp(dir=folder),
            clock=ManualClock(),
            limits=chosen,
            shorten=limits is None,
            rerouter=moving and moving(inputs),
            pump=PumpSettings(rows=10, block_rows=10) if moving else PumpSettings(),
        )
        told = Run(settings=settings.values)
        outcome = run_inline(topology, inputs, runtime=runtime, run=told, write_dead_letters=True)
        outputs = {name: [tuple(t) for t in rows] for name, rows in outcome.outputs.items()}
        return Observed(outputs, dict(outcome.result.tables), outcome.result.metrics)

    return run


#: Numbers of waves; no case has many more.
TEN_MOMENTS = frozenset(random.Random(5).sample(range(1, 60), 10))
NOT_ON_SPARK = frozenset([SAME_PROCESS, MEMORY])

#: Every case runs on every one of these. Add a runtime here, and nowhere else.
RUNTIMES: dict[str, RuntimeUnderTest] = {
    f"inline/{rows}-row-blocks": RuntimeUnderTest(inline(rows)) for rows in (1, 7, 10_000)
} | {
    # Keys have other tasks after every block of a source, or ten times, and then step by step.
    "inline/keys-always-move": RuntimeUnderTest(inline(2, lambda given: Anywhere(given, 1))),
    "inline/keys-move-ten-times": RuntimeUnderTest(
        inline(1, lambda given: Anywhere(given, 2, moments=TEN_MOMENTS, budget=30))
    ),
    "local/2-workers": RuntimeUnderTest(local(workers=2)),
    "local/small-blocks": RuntimeUnderTest(
        local(workers=4, block_rows=2, most_block_rows=3, window=8, queue_rows=5)
    ),
    "local/key-order": RuntimeUnderTest(local("key", workers=3, block_rows=5, most_block_rows=5)),
    "local/total-order": RuntimeUnderTest(local("total", workers=3, block_rows=5)),
    "local/executors": RuntimeUnderTest(local(assigning="executors", block_rows=7)),
    "local/executors-in-total-order": RuntimeUnderTest(
        local("total", assigning="executors", block_rows=7)
    ),
    # The same as on inline; here tuples are under way meanwhile.
    "local/keys-always-move": RuntimeUnderTest(
        local(moving=lambda given: Anywhere(given, 1), workers=3, block_rows=2, most_block_rows=2)
    ),
    "local/keys-move-ten-times": RuntimeUnderTest(
        local(
            moving=lambda given: Anywhere(given, 2, moments=TEN_MOMENTS, budget=30),
            assigning="executors",
            block_rows=1,
            most_block_rows=1,
        )
    ),
    "spark/2-places": RuntimeUnderTest(spark(2), NOT_ON_SPARK),
    # Everything that can happen does: tuples skip exchanges, input spills, chunks are small.
    "spark/3-places-with-small-limits": RuntimeUnderTest(
        spark(3, Limits(fused_bytes=0, memory=2000, chunk_rows=4, runs=2)), NOT_ON_SPARK
    ),
}


# --- cases -------------------------------------------------------------------------------------


class Expectation(Protocol):
    """Something that must be true of what came out."""

    def check(self, seen: Observed) -> None:
        """Assert it."""


@dataclass(frozen=True)
class Case:
    """A topology, what goes in, and what must come out."""

    name: str
    build: Callable[[], Topology]
    inputs: Inputs
    expect: tuple[Expectation, ...]
    settings: Settings = Settings()
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FailingCase:
    """A topology and input on which the run must raise, and what the message must tell."""

    name: str
    build: Callable[[], Topology]
    inputs: Inputs
    error: type[Exception]
    tells: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


def at_degrees(
    name: str,
    build: Callable[[int], Topology],
    inputs: Inputs,
    *expect: Expectation,
    degrees: Sequence[int] = (1, 2, 5),
) -> list[Case]:
    """Make one case per degree; the expected result is the same for all of them."""
    return [
        Case(f"{name}, degree {degree}", lambda d=degree: build(d), inputs, expect)
        for degree in degrees
    ]


def to_sink(stream: Stream) -> Topology:
    """End a stream in a sink called ``out``."""
    stream.sink("out", nowhere())
    return stream.flow.build()


def running(rows: Iterable[Row], key: int) -> list[Row]:
    """Add to each row how often its key has come, in serial order."""
    seen: Counter[Any] = Counter()
    made = []
    for row in rows:
        seen[row[key]] += 1
        made.append((*row, seen[row[key]]))
    return made


def built(stream: Stream) -> Topology:
    """Make the topology that a stream belongs to."""
    return stream.flow.build()


def nowhere() -> CallSink:
    """Make a sink for a case; the adapter collects what reaches it."""
    return call(lambda _t: None)


# --- expectations ------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Make values comparable: NaN equals itself, lists and tuples are alike, 1 is not True."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, set | frozenset):
        return frozenset(map(plain, value))
    if isinstance(value, dict):
        return {plain(key): plain(part) for key, part in value.items()}
    return (bool, value) if isinstance(value, bool) else value


def _rows(rows: Iterable[Any]) -> list[Any]:
    return [plain(row if isinstance(row, tuple) else (row,)) for row in rows]


@dataclass(frozen=True)
class TableIs:
    """The final table has exactly these keys and values; 1, 1.0 and True are one key."""

    table: str
    values: Mapping[Any, Any]

    def check(self, seen: Observed) -> None:
        assert self._plain(seen.tables[self.table]) == self._plain(self.values)

    def _plain(self, table: Mapping[Any, Any]) -> dict[Any, Any]:
        made = {_plain_key(key): plain(value) for key, value in table.items()}
        assert len(made) == len(table), f"a key is there twice: {table}"
        return made


def _plain_key(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(_plain_key, key))
    return "NaN" if isinstance(key, float) and math.isnan(key) else key


@dataclass(frozen=True)
class AnyOrder:
    """The sink got these tuples, in whatever order. A single value stands for a tuple of one."""

    sink: str
    rows: Sequence[Any]

    def check(self, seen: Observed) -> None:
        assert Counter(_rows(seen.outputs[self.sink])) == Counter(_rows(self.rows))


@dataclass(frozen=True)
class Exactly:
    """The sink got these tuples in this order (order ``total``)."""

    sink: str
    rows: Sequence[Any]

    def check(self, seen: Observed) -> None:
        assert _rows(seen.outputs[self.sink]) == _rows(self.rows)


@dataclass(frozen=True)
class InKeyOrder:
    """The sink got these tuples, those of each key in this order; ``key`` is a column number."""

    sink: str
    key: int
    rows: Sequence[Row]

    def check(self, seen: Observed) -> None:
        assert self._by_key(seen.outputs[self.sink]) == self._by_key(self.rows)

    def _by_key(self, rows: Iterable[Row]) -> dict[Any, list[Any]]:
        sequences: dict[Any, list[Any]] = {}
        for row in _rows(rows):
            sequences.setdefault(row[self.key], []).append(row)
        return sequences


@dataclass(frozen=True)
class LastOfEachKey:
    """The last tuple of each key at the sink; how many came before is not promised."""

    sink: str
    key: int
    rows: Sequence[Row]

    def check(self, seen: Observed) -> None:
        last = {row[self.key]: row for row in _rows(seen.outputs[self.sink])}
        assert last == {row[self.key]: row for row in _rows(self.rows)}


@dataclass(frozen=True)
class EndsWith:
    """The last tuples that the sink got; how many came before is not promised."""

    sink: str
    rows: Sequence[Row]

    def check(self, seen: Observed) -> None:
        assert _rows(seen.outputs[self.sink])[-len(self.rows) :] == _rows(self.rows)


@dataclass(frozen=True)
class Holds:
    """A promise about a sink's tuples that is a rule rather than a list."""

    sink: str
    promise: Callable[[list[Row]], bool]

    def check(self, seen: Observed) -> None:
        rows = seen.outputs[self.sink]
        assert self.promise(rows), f"{self.promise.__doc__ or self.promise.__name__}: {rows}"


@dataclass(frozen=True)
class Counts:
    """Numbers from the metrics: of the run, or (with a component) of one component."""

    values: Mapping[str, int]
    component: str | None = None

    def check(self, seen: Observed) -> None:
        chosen: Any = seen.metrics
        if self.component is not None:
            chosen = seen.metrics.component(self.component)
        found = {name: getattr(chosen, name) for name in self.values}
        assert found == dict(self.values)
