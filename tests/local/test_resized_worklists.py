"""Queues that get more buckets, or fewer, while something waits in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.runtimes.local.worklists import HybridWorklist, PartitionedWorklist, SharedWorklist

WORKERS = 3
KINDS: dict[str, Callable[[int], Any]] = {
    "hybrid": HybridWorklist,
    "shared": SharedWorklist,
    "partitioned": lambda buckets: PartitionedWorklist(buckets, WORKERS),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def drained(worklist: Any) -> dict[int, list[int]]:
    """Take everything, as several workers would."""
    found: dict[int, list[int]] = {}
    while len(worklist):
        for worker in range(WORKERS):
            taken = worklist.take(worker, 2)
            if taken is not None:
                found.setdefault(taken.bucket, []).extend(taken.items)
                worklist.release(taken.bucket)
    return found


@every_kind
@given(
    first=st.lists(st.integers(0, 3)),
    count=st.integers(4, 9),
    later=st.lists(st.integers(0, 3)),
)
def test_what_waits_keeps_its_bucket_and_its_turn(
    kind: Callable[[int], Any], first: list[int], count: int, later: list[int]
) -> None:
    worklist = kind(4)
    given_: dict[int, list[int]] = {}
    for item, bucket in enumerate(first + later):
        if item == len(first):
            assert worklist.resize(count)
        worklist.add(bucket, item, 1)
        given_.setdefault(bucket, []).append(item)
    assert drained(worklist) == given_


@every_kind
def test_a_bucket_goes_only_when_nobody_needs_it(kind: Callable[[int], Any]) -> None:
    worklist = kind(3)
    worklist.add(2, "last", 1)
    assert not worklist.resize(2)
    worker = next(worker for worker in range(WORKERS) if worklist.ready(worker))
    assert worklist.take(worker, 10).items == ["last"]
    assert not worklist.resize(2), "somebody works on it"
    worklist.release(2)
    assert worklist.resize(2)
    assert worklist.resize(3)
    worklist.add(2, "again", 1)
    assert drained(worklist) == {2: ["again"]}


def test_partitions_are_shared_out_anew() -> None:
    worklist = PartitionedWorklist[str](4, 2)
    worklist.add(1, "b", 1)
    assert worklist.ready(0)
    assert worklist.resize(2)
    assert not worklist.ready(0)
    assert worklist.take(1, 1).items == ["b"]  # type: ignore[union-attr]  # it is ready


def test_executors_get_a_line_each() -> None:
    worklist = PartitionedWorklist[str](2, 2)
    assert worklist.resize(3, 3)
    worklist.add(2, "c", 1)
    assert [worklist.ready(worker) for worker in range(3)] == [False, False, True]
