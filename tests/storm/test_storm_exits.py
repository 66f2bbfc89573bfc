"""``sys.exit`` in a component inside the run: its own end at most, never silently the run's."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from storm_libraries import NAMES, library
from test_storm_hosting import known, rows, run, topology

from thalweg.clock import ManualClock
from thalweg.errors import ThalwegError
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.storm.settings import TICK


@pytest.fixture(params=NAMES)
def lib(request: pytest.FixtureRequest) -> ModuleType:
    return library(request.param)


@pytest.fixture(params=[Inline, Local])
def runtime(request: pytest.FixtureRequest) -> Any:
    return request.param(clock=ManualClock(), block_rows=7)


def source_of(lib: ModuleType) -> Any:
    """Make a spout that sends words, each again until it is done or was given up."""

    class Words(lib.ReliableSpout):
        outputs = ("word",)
        max_fails = 1

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.left = list(storm_conf["words"])

        def next_tuple(self) -> None:
            if self.left:
                self.emit([self.left.pop(0)], tup_id=len(self.left))
            elif not self.unacked_tuples:
                sys.exit()

    known(Words)
    return Words.spec()


def exiting(lib: ModuleType, status: Any = 0, **attributes: Any) -> Any:
    """Make a bolt that exits at a word."""

    class Exiting(lib.Bolt):
        outputs = ("word",)

        def process(self, tup: Any) -> None:
            if tup.values.word == "exit":
                sys.exit(status)
            self.emit([tup.values.word])

    for name, value in attributes.items():
        setattr(Exiting, name, value)
    known(Exiting)
    return Exiting


@pytest.mark.parametrize("status", [None, 0, 3, "enough"])
def test_a_bolt_that_exits_is_made_anew_and_its_tuple_fails(
    lib: ModuleType, runtime: Any, status: Any
) -> None:
    source = source_of(lib)
    bolt = exiting(lib, status).spec(inputs=[source])
    made = topology(lib, {"words": ["a", "exit", "b"]}, source=source, bolt=bolt)
    outcome, heard = run(made, runtime)
    assert sorted(rows(outcome, "bolt")) == [("a",), ("b",)]
    assert outcome.result.metrics.failed == 1 + 1  # sent again once
    said = "" if status is None else repr(status)
    assert f"RuntimeError: it called sys.exit({said}); it is started anew" in heard.noticed()[0]


def test_an_exit_counts_as_one_also_where_exceptions_do_not(lib: ModuleType, runtime: Any) -> None:
    source = source_of(lib)
    bolt = exiting(lib, exit_on_exception=False).spec(inputs=[source])
    made = topology(lib, {"words": ["a", "exit", "b"]}, source=source, bolt=bolt)
    outcome, heard = run(made, runtime)
    assert sorted(rows(outcome, "bolt")) == [("a",), ("b",)]
    assert any("it is started anew" in text for text in heard.noticed())


def test_a_bolt_that_only_exits_ends_the_run_with_an_error(lib: ModuleType, runtime: Any) -> None:
    class Words(lib.Spout):
        outputs = ("word",)

        def next_tuple(self) -> None:
            self.emit(["exit"])

    known(Words)
    source = Words.spec()
    bolt = exiting(lib).spec(inputs=[source])
    made = topology(lib, source=source, bolt=bolt)
    with pytest.raises(ThalwegError, match=r"RuntimeError: it called sys\.exit\(0\)"):
        run(made, runtime)


def test_an_exit_at_a_tick_ends_no_run(lib: ModuleType, runtime: Any) -> None:
    class AtTicks(lib.BatchingBolt):
        outputs = ("word",)
        ticks_between_batches = 0

        def process_batch(self, key: Any, tups: Any) -> None:
            sys.exit()

    known(AtTicks)
    source = source_of(lib)
    bolt = AtTicks.spec(inputs=[source])
    made = topology(lib, {"words": ["a", "b"], TICK: 1}, source=source, bolt=bolt)
    outcome, heard = run(made, runtime)
    assert rows(outcome, "bolt") == []
    assert "RuntimeError: it called sys.exit(); it is started anew" in heard.noticed()[0]


@pytest.mark.parametrize("kind", ["Bolt", "Spout"])
def test_an_exit_in_initialize_ends_the_run_with_an_error(
    lib: ModuleType, runtime: Any, kind: str
) -> None:
    class Early(getattr(lib, kind)):  # type: ignore[misc]
        outputs = ("word",)

        def initialize(self, storm_conf: Any, context: Any) -> None:
            sys.exit(0)

    known(Early)
    source = source_of(lib)
    early = Early.spec(inputs=[source]) if kind == "Bolt" else Early.spec()
    made = topology(lib, {"words": ["a"]}, source=source, early=early)
    with pytest.raises(ThalwegError, match=r"RuntimeError: it called sys\.exit\(0\)"):
        run(made, runtime)


def test_a_spout_that_exits_with_an_error_is_made_anew(lib: ModuleType, runtime: Any) -> None:
    class Failing(lib.Spout):
        outputs = ("word",)
        exit_on_exception = False
        made = [0]

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.made[0] += 1
            self.left = ["a"] if self.made[0] == 2 else []

        def next_tuple(self) -> None:
            if not self.left:
                sys.exit(3 if self.made[0] < 3 else 0)
            self.emit([self.left.pop()])

    known(Failing)
    outcome, heard = run(topology(lib, source=Failing.spec()), runtime)
    assert outcome.result.metrics.tuples_in == 1
    assert ["it called sys.exit(3)" in text for text in heard.noticed()] == [True, True]


def test_a_spout_that_only_exits_with_an_error_ends_the_run(lib: ModuleType, runtime: Any) -> None:
    class Failing(lib.Spout):
        outputs = ("word",)

        def next_tuple(self) -> None:
            sys.exit(3)

    known(Failing)
    with pytest.raises(ThalwegError, match=r"RuntimeError: it called sys\.exit\(3\)"):
        run(topology(lib, source=Failing.spec()), runtime)
