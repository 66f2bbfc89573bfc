"""Components of Storm that are bound to the thread that made what they have."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import threading
from types import ModuleType
from typing import Any

import pytest
from storm_libraries import NAMES, library
from test_storm_hosting import known, rows, run, topology

from thalweg.errors import ThalwegError
from thalweg.runtimes.local.runtime import Local
from thalweg.topology import Topology

MANY = 300
LOCAL = threading.local()


@pytest.fixture(params=NAMES)
def lib(request: pytest.FixtureRequest) -> ModuleType:
    return library(request.param)


@pytest.fixture(params=["workers", "executors"])
def runtime(request: pytest.FixtureRequest) -> Any:
    return Local(workers=4, block_rows=8, most_block_rows=8, assigning=request.param)


def with_bolt(lib: ModuleType, bolt: type) -> Topology:
    """Give the numbers from 0 on to two bolts, each with some tasks."""

    class Numbers(lib.Spout):
        outputs = ("n",)
        next = 0

        def next_tuple(self) -> None:
            if self.next == MANY:
                raise SystemExit
            self.emit([self.next])
            self.next += 1

    known(Numbers)
    known(bolt)
    numbers = Numbers.spec()
    first = bolt.spec(inputs=[numbers], par=3)  # type: ignore[attr-defined]  # of either library
    second = bolt.spec(inputs=[first], par=3)  # type: ignore[attr-defined]  # as above
    return topology(lib, numbers=numbers, first=first, second=second)


def test_a_connection_made_in_initialize_is_used_in_process(lib: ModuleType, runtime: Any) -> None:
    class Rows(lib.Bolt):
        outputs = ("n",)

        def initialize(self, conf: Any, context: Any) -> None:
            self.db = sqlite3.connect(":memory:")
            self.db.execute("create table seen (n int)")

        def process(self, tup: Any) -> None:
            self.db.execute("insert into seen values (?)", tup.values)
            self.emit(tup.values)

    outcome, heard = run(with_bolt(lib, Rows), runtime)
    assert sorted(rows(outcome, "second")) == [(n,) for n in range(MANY)]
    assert not heard.noticed()


def test_an_event_loop_and_values_of_a_thread_are_those_of_initialize(
    lib: ModuleType, runtime: Any
) -> None:
    loops = []

    class Loops(lib.Bolt):
        outputs = ("n", "seen")

        def initialize(self, conf: Any, context: Any) -> None:
            LOCAL.seen = 0
            loops.append(asyncio.new_event_loop())
            asyncio.set_event_loop(loops[-1])

        async def value(self, n: int) -> int:
            LOCAL.seen += 1
            return n

        def process(self, tup: Any) -> None:
            n = asyncio.get_event_loop().run_until_complete(self.value(tup.values[0]))
            self.emit([n, LOCAL.seen])

    outcome, heard = run(with_bolt(lib, Loops), runtime)
    for loop in loops:
        loop.close()
    assert sorted(n for n, _ in rows(outcome, "second")) == list(range(MANY))
    assert sum(seen == 1 for _, seen in rows(outcome, "second")) == 3  # once for each task
    assert not heard.noticed()


def test_a_bolt_that_needs_the_main_thread_is_told_to_have_a_process(
    lib: ModuleType, runtime: Any
) -> None:
    class Signals(lib.Bolt):
        outputs = ("n",)

        def initialize(self, conf: Any, context: Any) -> None:
            signal.signal(signal.SIGUSR2, lambda *_: None)

        def process(self, tup: Any) -> None: ...

    with pytest.raises(ThalwegError, match=r'"thalweg\.isolation": "process"'):
        run(with_bolt(lib, Signals), runtime)
