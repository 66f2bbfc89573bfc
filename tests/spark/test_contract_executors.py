"""What ``exchange.py`` relies upon in Spark where there are executors besides the driver."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import InheritableThread, cloudpickle

from sparkcluster.cluster import _own_jvm
from sparkcluster.machine import until
from sparksession import spark_session
from thalweg.runtimes.spark import exchange
from thalweg.runtimes.spark.exchange import (
    ask_for,
    collect,
    descriptors,
    executors,
    presence,
    processes,
    release,
    run_at,
)
from thalweg.runtimes.spark.session import make_session


@pytest.fixture(scope="module")
def with_executors() -> Iterator[Any]:
    """Give the context of a driver with two executors of two cores each, on this machine."""
    settings = {
        "spark.executor.cores": "2",
        "spark.executor.memory": "512m",
        "spark.decommission.enabled": "true",
    }
    spark_session()  # that of the test run has begun when it is set aside
    with _own_jvm():
        session = make_session("local-cluster[2,2,1024]", "executors", settings)
        await_executors(session.sparkContext, 2)
        yield session.sparkContext
        session.stop()


def await_executors(context: Any, number: int) -> None:
    """Wait until so many are told, and as many of their processes run."""
    until(lambda: len(executors(context)) == len(running()) == number, f"{number} executors")


def running() -> set[str]:
    """Find the processes of executors: children of the JVM that is a child of this process."""
    drivers = children("self")
    return {child for driver in drivers for child in children(driver) if "Executor" in line(child)}


def children(process: str) -> list[str]:
    tasks = Path("/proc", process, "task").iterdir()
    return [child for task in tasks for child in read(task / "children").split()]


def line(process: str) -> str:
    return read(Path("/proc", process, "cmdline"))


def read(file: Path) -> str:
    with contextlib.suppress(OSError):  # it has just ended
        return file.read_text()
    return ""


def name_of(context: Any, number: str) -> str:
    told = context._jsc.sc().statusStore().executorSummary(number)
    return str(told.hostPort())


def test_executors_are_told_with_their_cores(with_executors: Any) -> None:
    found = executors(with_executors)
    assert sorted((executor.id, executor.slots) for executor in found) == [("0", 2), ("1", 2)]
    there, slots = presence(with_executors)
    assert slots == 4
    names = {name.rpartition(":")[0] for name in there}
    assert names == {*(e.host for e in found), with_executors.getConf().get("spark.driver.host")}


def test_executors_are_given_back_and_come_when_asked_for(
    with_executors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back, kept = executors(with_executors)
    assert ask_for(with_executors, 1)
    assert release(with_executors, [given_back.id]) == {given_back.id}
    assert executors(with_executors) == (kept,)  # at once, though its process takes a while
    assert presence(with_executors)[1] == kept.slots
    assert release(with_executors, [given_back.id, "999"]) == set()
    await_executors(with_executors, 1)
    # Its last heartbeat may have brought it back among the processes, for good.
    there = processes(with_executors) | {name_of(with_executors, given_back.id)}
    with monkeypatch.context() as patched:
        patched.setattr(exchange, "processes", lambda _context: there)
        assert executors(with_executors) == (kept,)
    assert ask_for(with_executors, 2)
    await_executors(with_executors, 2)


def test_an_executor_at_work_is_not_given_back(with_executors: Any, tmp_path: Path) -> None:
    def work(place: int, _payloads: Iterable[bytes]) -> Iterator[bytes]:
        (tmp_path / f"{place}").touch()
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        yield b""

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    lane = run_at(descriptors(with_executors, [], 4), work)  # one task for each core
    working = InheritableThread(target=collect, args=(lane,))
    working.start()
    until(lambda: len(list(tmp_path.iterdir())) == 4, "tasks that have begun")
    try:
        assert release(with_executors, [e.id for e in executors(with_executors)]) == set()
    finally:
        (tmp_path / "go").touch()
        working.join()
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_a_decommissioned_executor_counts_no_more(with_executors: Any) -> None:
    going, kept = executors(with_executors)
    spark, jvm = with_executors._jsc.sc(), with_executors._jvm
    why = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
        "a test", jvm.scala.Option.empty()
    )
    assert spark.schedulerBackend().decommissionExecutor(going.id, why, True, False)
    assert executors(with_executors) == (kept,)
    assert presence(with_executors)[1] == kept.slots
