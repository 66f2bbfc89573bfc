"""New executors get a first task beside the batches, and no place before that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JError

from thalweg.runtimes.spark.placement import Executor
from thalweg.runtimes.spark.warming import Warming

OLD, NEW, LATE = Executor("0", "a", 1), Executor("1", "b", 1), Executor("2", "c", 1)


class Cluster:
    """Executors that come when they are told to, and tasks that wait to be let go."""

    def __init__(self) -> None:
        self.there, self.prepared = [OLD], list[str]()
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.failures = 0
        self.warming = Warming(None, self.listed, self.prepare)  # type: ignore[arg-type] # stand-ins

    def listed(self, _context: Any) -> list[Executor]:
        return list(self.there)

    def prepare(self, _context: Any, executor: Executor) -> None:
        if self.failures:
            self.failures -= 1
            raise Py4JError("gone")
        self.begun.set()
        self.let_go.wait()
        self.prepared.append(executor.host)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.let_go.set()
    made.warming.close()


def finish(cluster: Cluster) -> None:
    """Let tasks go, and wait until all have come that were expected."""
    cluster.let_go.set()
    assert cluster.warming._thread is not None
    cluster.warming._thread.join()


def test_an_executor_is_cold_until_its_first_task_is_done(cluster: Cluster) -> None:
    cluster.warming.expect(2, [OLD])
    cluster.there.append(NEW)
    cluster.begun.wait()
    assert cluster.warming.cold([OLD, NEW]) == {"b"}
    finish(cluster)
    assert cluster.prepared == ["b"]
    assert cluster.warming.cold([OLD, NEW]) == frozenset()


def test_those_that_are_there_get_no_task(cluster: Cluster) -> None:
    cluster.warming.expect(2, [OLD, NEW])
    assert cluster.warming.cold([OLD, NEW]) == frozenset()
    assert cluster.prepared == []


def test_more_may_be_expected_before_the_first_have_come(cluster: Cluster) -> None:
    cluster.warming.expect(2, [OLD])
    cluster.warming.expect(3, [OLD])
    cluster.there += [NEW, LATE]
    finish(cluster)
    assert cluster.prepared == ["b", "c"]


def test_a_host_with_another_executor_is_ready(cluster: Cluster) -> None:
    cluster.warming.expect(2, [OLD])
    assert cluster.warming.cold([OLD, Executor("7", "a", 1)]) == frozenset()


def test_one_that_fails_is_tried_again(cluster: Cluster) -> None:
    cluster.failures = 2
    cluster.warming.expect(2, [OLD])
    cluster.there.append(NEW)
    finish(cluster)
    assert cluster.prepared == ["b"]
