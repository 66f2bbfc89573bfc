"""Worklists: each item once, each bucket in order and by one worker at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from turns import TurnList, TurnLock, Turns, run_together

from thalweg.errors import UsageError
from thalweg.runtimes.local.worklists import (
    HybridWorklist,
    OpenWorklist,
    PartitionedWorklist,
    SharedWorklist,
    Taken,
    Worklist,
)

#: Few buckets, so that workers meet.
BUCKETS, WORKERS = 3, 2

Make = Callable[[], Worklist[Any]]
OWNING: dict[str, Make] = {
    "hybrid": lambda: HybridWorklist(BUCKETS),
    "partitioned": lambda: PartitionedWorklist(BUCKETS, WORKERS),
    "shared": lambda: SharedWorklist(BUCKETS),
}
KINDS: dict[str, Make] = {**OWNING, "open": OpenWorklist}

every_kind = pytest.mark.parametrize("name", KINDS)
explored = settings(deadline=None, max_examples=60)


def filled(worklist: Worklist[str], *items: tuple[int, str, int]) -> Worklist[str]:
    for bucket, item, rows in items:
        worklist.add(bucket, item, rows)
    return worklist


# --- what all have in common ----------------------------------------------------------------------


@every_kind
def test_items_of_a_bucket_are_taken_together_up_to_a_number_of_rows(name: str) -> None:
    worklist = filled(KINDS[name](), (0, "a", 10), (0, "b", 10), (0, "c", 10))
    assert (len(worklist), worklist.rows) == (3, 30)
    assert worklist.take(0, 25) == Taken(0, ["a", "b"], 20)
    assert (len(worklist), worklist.rows) == (1, 10)
    worklist.release(0)
    assert worklist.take(0, 25) == Taken(0, ["c"], 10)
    assert (len(worklist), worklist.rows) == (0, 0)
    worklist.release(0)
    assert worklist.take(0, 25) is None


@every_kind
def test_an_item_larger_than_asked_for_is_taken_alone(name: str) -> None:
    worklist = filled(KINDS[name](), (0, "large", 1000), (0, "small", 1))
    assert worklist.take(0, 10) == Taken(0, ["large"], 1000)


@every_kind
def test_an_item_without_rows_is_work_like_one_row(name: str) -> None:
    worklist = filled(KINDS[name](), (0, "a", 0), (0, "b", 0), (0, "c", 0))
    assert worklist.rows == 3
    assert worklist.take(0, 2) == Taken(0, ["a", "b"], 2)


@every_kind
def test_nothing_is_ready_where_nothing_waits(name: str) -> None:
    worklist = KINDS[name]()
    assert not worklist.ready(0)
    assert worklist.take(0, 10) is None


@every_kind
def test_a_held_bucket_is_not_taken_until_it_is_freed(name: str) -> None:
    worklist = filled(KINDS[name](), (0, "before", 1))
    worklist.hold(0)
    worklist.hold(0)
    worklist.add(0, "after", 1)
    assert not worklist.ready(0)
    assert worklist.take(0, 10) is None
    worklist.free(0)
    worklist.free(0)
    assert worklist.take(0, 10) == Taken(0, ["before", "after"], 2)


@pytest.mark.parametrize("name", OWNING)
def test_a_bucket_that_is_held_while_it_is_owned_stays_so_after_its_release(name: str) -> None:
    worklist = filled(OWNING[name](), (0, "a", 1))
    assert worklist.take(0, 1)
    worklist.add(0, "b", 1)
    worklist.hold(0)
    worklist.release(0)
    assert not worklist.ready(0)
    worklist.free(0)
    assert worklist.take(0, 1) == Taken(0, ["b"], 1)


@pytest.mark.parametrize("name", OWNING)
def test_a_bucket_that_is_freed_while_it_is_owned_waits_for_its_release(name: str) -> None:
    worklist = filled(OWNING[name](), (0, "a", 1), (0, "b", 1))
    assert worklist.take(0, 1)
    worklist.hold(0)
    worklist.free(0)
    assert worklist.take(0, 1) is None
    worklist.release(0)
    assert worklist.take(0, 1) == Taken(0, ["b"], 1)


@pytest.mark.parametrize("name", OWNING)
def test_only_what_was_taken_can_be_released(name: str) -> None:
    worklist = filled(OWNING[name](), (2, "a", 1))
    with pytest.raises(UsageError, match=r"release: expected a bucket that was taken .* bucket 2"):
        worklist.release(2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HybridWorklist(0),
        lambda: SharedWorklist(0),
        lambda: PartitionedWorklist(0, 1),
        lambda: PartitionedWorklist(4, 0),
    ],
)
def test_there_is_at_least_one_bucket_and_one_worker(make: Make) -> None:
    with pytest.raises(UsageError, match="at least one of each"):
        make()


# --- what sets them apart -------------------------------------------------------------------------


def test_hybrid_passes_by_what_another_worker_owns() -> None:
    worklist = filled(HybridWorklist(BUCKETS), (0, "a", 1), (0, "b", 1), (1, "c", 1))
    assert worklist.take(0, 1) == Taken(0, ["a"], 1)
    assert worklist.take(1, 1) == Taken(1, ["c"], 1)
    assert not worklist.ready(2)


def test_hybrid_lets_no_bucket_starve() -> None:
    worklist = filled(HybridWorklist(BUCKETS), (0, "a", 1), (1, "b", 1), (2, "c", 1))
    taken = []
    for _ in range(6):
        worklist.add(0, "more", 1)  # bucket 0 never runs out
        got = worklist.take(0, 1)
        assert got
        taken.append(got.bucket)
        worklist.release(got.bucket)
    assert taken == [0, 1, 2, 0, 0, 0]


def test_partitioned_gives_each_worker_a_range_of_buckets() -> None:
    worklist = PartitionedWorklist[int](6, 3)
    for bucket in range(6):
        worklist.add(bucket, bucket, 1)
    for worker, own in enumerate([(0, 1), (2, 3), (4, 5)]):
        got = [worklist.take(worker, 1) for _ in range(3)]
        assert got == [Taken(bucket, [bucket], 1) for bucket in own] + [None]


def test_partitioned_idles_while_others_have_work() -> None:
    worklist = filled(PartitionedWorklist(6, 3), (0, "a", 1), (1, "b", 1))
    assert [worklist.ready(worker) for worker in range(3)] == [True, False, False]


def test_shared_lets_nobody_overtake() -> None:
    worklist = filled(SharedWorklist(BUCKETS), (0, "a", 1), (0, "b", 1), (1, "c", 1))
    assert worklist.take(0, 1) == Taken(0, ["a"], 1)
    assert not worklist.ready(1)  # "b" is in the way of "c"
    assert worklist.take(1, 1) is None
    worklist.release(0)
    assert worklist.take(1, 1) == Taken(0, ["b"], 1)
    assert worklist.take(0, 1) == Taken(1, ["c"], 1)


def test_shared_takes_together_only_what_came_in_a_row() -> None:
    worklist = filled(SharedWorklist(BUCKETS), (0, "a", 1), (0, "b", 1), (1, "c", 1), (0, "d", 1))
    assert worklist.take(0, 10) == Taken(0, ["a", "b"], 2)


def test_open_gives_to_many_workers_at_once() -> None:
    worklist = filled(OpenWorklist(), (0, "a", 1), (0, "b", 1), (5, "c", 1))
    assert worklist.take(0, 2) == Taken(0, ["a", "b"], 2)
    assert worklist.take(1, 2) == Taken(0, ["c"], 1)


# --- against a serial model -----------------------------------------------------------------------


class Model:
    """What waits, as one list in the order of arrival, and who may take it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: list[tuple[int, int, int]] = []
        self.owned: set[int] = set()
        self.held: set[int] = set()

    def is_ready(self, worker: int) -> bool:
        """Say whether this worker must get something."""
        able = [bucket not in self.owned | self.held for bucket, _, _ in self.waiting]
        if self.name == "shared":
            return bool(able) and able[0]
        if self.name == "partitioned":
            own = [bucket * WORKERS // BUCKETS == worker for bucket, _, _ in self.waiting]
            return any(map(all, zip(able, own, strict=True)))
        return any(able)

    def take(self, taken: Taken[int], worker: int, most: int) -> None:
        """Check that it is right to take this, and take it."""
        bucket = taken.bucket
        assert bucket not in self.owned | self.held
        if self.name == "partitioned":
            assert bucket * WORKERS // BUCKETS == worker
        line = [entry for entry in self.waiting if entry[0] == bucket]
        if self.name == "shared":
            line = self.waiting
        got = line[: len(taken.items)]
        assert [(b, item) for b, item, _ in got] == [(bucket, item) for item in taken.items]
        assert taken.rows == sum(rows for _, _, rows in got)
        assert taken.rows <= most or len(got) == 1
        after = line[len(got) :]
        if after and after[0][0] == bucket:
            assert taken.rows + after[0][2] > most, "one more would have fitted"
        self.waiting = [entry for entry in self.waiting if entry not in got]
        if self.name != "open":
            self.owned.add(bucket)


class WorklistMachine(RuleBasedStateMachine):
    """Adds, takes, releases, holds and frees at random."""

    @initialize(name=st.sampled_from(sorted(KINDS)))
    def begin(self, name: str) -> None:
        self.worklist = KINDS[name]()
        self.model = Model(name)
        self.buckets = 1 if name == "open" else BUCKETS
        self.added = 0

    @rule(bucket=st.integers(0, BUCKETS - 1), rows=st.integers(1, 5))
    def add(self, bucket: int, rows: int) -> None:
        bucket %= self.buckets
        self.worklist.add(bucket, self.added, rows)
        self.model.waiting.append((bucket, self.added, rows))
        self.added += 1

    @rule(worker=st.integers(0, WORKERS - 1), most=st.integers(1, 12))
    def take(self, worker: int, most: int) -> None:
        ready = self.model.is_ready(worker)
        assert self.worklist.ready(worker) == ready
        taken = self.worklist.take(worker, most)
        assert (taken is not None) == ready
        if taken is not None:
            self.model.take(taken, worker, most)

    @precondition(lambda self: self.model.owned)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        bucket = data.draw(st.sampled_from(sorted(self.model.owned)))
        self.model.owned.remove(bucket)
        self.worklist.release(bucket)

    @rule(bucket=st.integers(0, BUCKETS - 1))
    def hold(self, bucket: int) -> None:
        self.worklist.hold(bucket % self.buckets)
        self.model.held.add(bucket % self.buckets)

    @rule(bucket=st.integers(0, BUCKETS - 1))
    def free(self, bucket: int) -> None:
        self.worklist.free(bucket % self.buckets)
        self.model.held.discard(bucket % self.buckets)

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "model"):
            assert len(self.worklist) == len(self.model.waiting)
            assert self.worklist.rows == sum(rows for _, _, rows in self.model.waiting)


WorklistMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None
)
TestWorklistMachine = WorklistMachine.TestCase


# --- many threads ---------------------------------------------------------------------------------


class Workshop:
    """Workers, one who brings items and one who holds buckets, all at the same time."""

    def __init__(self, name: str, pause: Callable[[], None]) -> None:
        self.worklist = KINDS[name]()
        self.pause = pause
        self.is_open = name == "open"
        self.added: dict[int, list[int]] = defaultdict(list)
        self.done: dict[int, list[int]] = defaultdict(list)
        self.is_all_there = False
        self.working: set[int] = set()

    def bring(self, buckets: list[int]) -> None:
        for item, drawn in enumerate(buckets):
            bucket = 0 if self.is_open else drawn
            self.added[bucket].append(item)
            self.worklist.add(bucket, item, item % 3)
        self.is_all_there = True

    def hold_and_free(self, buckets: list[int]) -> None:
        for bucket in buckets:
            self.worklist.hold(bucket)
            self.pause()
            self.worklist.free(bucket)

    def work(self, worker: int) -> None:
        while not self.is_all_there or len(self.worklist):
            taken = self.worklist.take(worker, 3)
            if taken is None:
                self.pause()
                continue
            if not self.is_open:
                assert taken.bucket not in self.working, "two workers on one bucket"
                self.working.add(taken.bucket)
            for item in taken.items:
                self.pause()
                self.done[taken.bucket].append(item)
            self.working.discard(taken.bucket)
            self.worklist.release(taken.bucket)

    def bodies(self, buckets: list[int], holds: list[int]) -> list[Callable[[], None]]:
        workers = [lambda i=i: self.work(i) for i in range(WORKERS)]
        return [lambda: self.bring(buckets), lambda: self.hold_and_free(holds), *workers]

    def check(self) -> None:
        if self.is_open:  # workers overtake one another; the order comes back later
            assert sorted(self.done[0]) == self.added[0]
        else:
            assert self.done == self.added


buckets_drawn = st.lists(st.integers(0, BUCKETS - 1), max_size=25)


@every_kind
@given(buckets=buckets_drawn, holds=buckets_drawn, seed=st.integers(0, 2**32))
@explored
def test_each_bucket_is_worked_on_in_order_and_by_one_worker_however_threads_interleave(
    name: str, buckets: list[int], holds: list[int], seed: int
) -> None:
    turns = Turns(seed)
    workshop = Workshop(name, turns.pause)
    worklist: Any = workshop.worklist
    worklist._lock = TurnLock(turns)
    for inside in {"_owned", "_queues"} & vars(worklist).keys():
        setattr(worklist, inside, TurnList(turns, getattr(worklist, inside)))
    turns.run(*workshop.bodies(buckets, holds))
    workshop.check()


@every_kind
def test_workers_that_really_run_at_the_same_time(name: str) -> None:
    workshop = Workshop(name, pause=lambda: None)
    buckets = [i * i % BUCKETS for i in range(1500)]
    run_together(*workshop.bodies(buckets, holds=list(range(BUCKETS)) * 20))
    workshop.check()


@given(buckets=buckets_drawn, seed=st.integers(0, 2**32))
@explored
def test_no_worker_goes_away_empty_while_hybrid_has_a_bucket_that_nobody_owns(
    buckets: list[int], seed: int
) -> None:
    turns = Turns(seed)
    worklist = HybridWorklist[int](BUCKETS)
    worklist._lock = TurnLock(turns)  # type: ignore[assignment] # like a lock
    done: list[int] = []

    def bring() -> None:
        for item, bucket in enumerate(buckets):
            worklist.add(bucket, item, 1)

    def work() -> None:
        while len(done) < len(buckets):
            taken = worklist.take(0, 2)
            if taken is None:
                owned = worklist._owned
                left = [b for b, queue in enumerate(worklist._queues) if queue and not owned[b]]
                assert left == [], "there was something to do"
                turns.pause()
                continue
            turns.pause()
            done.extend(taken.items)
            worklist.release(taken.bucket)

    turns.run(bring, work, work, work)
    assert sorted(done) == list(range(len(buckets)))
