"""Reorder buffers: every unit once, in order, one at a time, whoever brings it and whenever."""

from __future__ import annotations

import threading
from itertools import count as counting
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turns import TurnList, TurnLock, Turns, run_together

from thalweg.errors import UsageError
from thalweg.runtimes.local.ring import AnyReorderBuffer, LockedReorderBuffer, ReorderBuffer

KINDS = [ReorderBuffer, LockedReorderBuffer]
Kind = type[ReorderBuffer[Any]] | type[LockedReorderBuffer[Any]]
#: A unit: its first number, and how many numbers it stands for.
Unit = tuple[int, int]

both_kinds = pytest.mark.parametrize("kind", KINDS)
#: Runs share few cores with others, so no example is judged by its time.
explored = settings(deadline=None, max_examples=100)


def collecting(kind: Kind, size: int, first: int = 0) -> tuple[AnyReorderBuffer, list[Any]]:
    sent: list[Any] = []
    return kind(size, lambda number, unit: sent.append((number, unit)), first), sent


# --- one thread -----------------------------------------------------------------------------------


@both_kinds
def test_what_comes_early_waits_for_what_is_missing(kind: Kind) -> None:
    buffer, sent = collecting(kind, 4)
    assert [buffer.offer(n, f"unit {n}") for n in (2, 1, 3)] == [True] * 3
    assert (sent, buffer.next) == ([], 0)
    assert buffer.offer(0, "unit 0")
    assert (sent, buffer.next) == ([(n, f"unit {n}") for n in range(4)], 4)


@both_kinds
def test_a_number_beyond_the_window_is_refused_and_accepted_later(kind: Kind) -> None:
    buffer, sent = collecting(kind, 2)
    assert not buffer.offer(2, "c")
    assert buffer.offer(1, "b")
    assert not buffer.offer(2, "c")
    assert buffer.offer(0, "a")
    assert buffer.offer(2, "c")
    assert sent == [(0, "a"), (1, "b"), (2, "c")]


@both_kinds
def test_numbers_begin_where_they_are_told_to(kind: Kind) -> None:
    buffer, sent = collecting(kind, 3, first=7)
    assert buffer.next == 7
    assert buffer.offer(8, "b")
    assert buffer.offer(7, "a")
    assert sent == [(7, "a"), (8, "b")]


@both_kinds
def test_nothing_is_a_unit_too(kind: Kind) -> None:
    buffer, sent = collecting(kind, 2)
    assert buffer.offer(1, None)
    assert buffer.offer(0, None)
    assert sent == [(0, None), (1, None)]


@both_kinds
def test_a_unit_of_several_numbers_is_sent_once(kind: Kind) -> None:
    buffer, sent = collecting(kind, 4)
    assert buffer.offer(1, "b to d", 3)
    assert not buffer.offer(4, "e")
    assert buffer.offer(0, "a")
    assert (sent, buffer.next) == ([(0, "a"), (1, "b to d")], 4)


@both_kinds
def test_the_last_number_decides_whether_a_unit_is_too_far_ahead(kind: Kind) -> None:
    buffer, _ = collecting(kind, 4)
    assert not buffer.offer(2, "c to e", 3)
    assert buffer.offer(2, "c and d", 2)


@both_kinds
@pytest.mark.parametrize(("number", "count"), [(0, 1), (3, 1), (2, 2), (3, 2), (5, 1), (6, 1)])
def test_a_number_that_was_offered_before_is_a_mistake(kind: Kind, number: int, count: int) -> None:
    buffer, _ = collecting(kind, 8)
    buffer.offer(0, "sent")
    buffer.offer(3, "waits")
    buffer.offer(5, "waits", 2)
    with pytest.raises(UsageError, match=r"each number once, got \d again, while next is 1"):
        buffer.offer(number, "again", count)
    for n in (1, 2, 4):  # nothing was spoilt
        assert buffer.offer(n, "late")
    assert buffer.next == 7


@both_kinds
@pytest.mark.parametrize("count", [-1, 0, 5])
def test_a_unit_that_can_never_fit_is_a_mistake(kind: Kind, count: int) -> None:
    buffer, _ = collecting(kind, 4)
    with pytest.raises(UsageError, match="unit 9: expected 1 to 4 numbers"):
        buffer.offer(9, "x", count)


@both_kinds
def test_a_buffer_has_at_least_one_slot(kind: Kind) -> None:
    with pytest.raises(UsageError, match="expected a size of at least 1, got 0"):
        collecting(kind, 0)


@both_kinds
def test_a_unit_whose_sending_fails_counts_as_sent_and_nobody_hangs(kind: Kind) -> None:
    sent = []

    def send(number: int, unit: str) -> None:
        sent.append(number)
        if unit == "bad":
            raise ValueError(unit)

    buffer: AnyReorderBuffer = kind(4, send)
    buffer.offer(1, "bad", 2)
    buffer.offer(3, "good")
    with pytest.raises(ValueError, match="bad"):
        buffer.offer(0, "good")
    assert (sent, buffer.next) == ([0, 1], 3)
    assert buffer.offer(4, "good")
    assert (sent, buffer.next) == ([0, 1, 3, 4], 5)


def test_sending_may_bring_the_next_unit() -> None:
    sent: list[int] = []

    def send(number: int, unit: None) -> None:
        sent.append(number)
        if number < 5:
            buffer.offer(number + 1, None)
            assert sent == list(range(number + 1))  # it waits until this one is sent

    buffer: ReorderBuffer[None] = ReorderBuffer(2, send)
    buffer.offer(0, None)
    assert sent == [0, 1, 2, 3, 4, 5]


@both_kinds
def test_a_buffer_knows_how_long_units_have_waited_for_earlier_ones(kind: Kind) -> None:
    buffer, _ = collecting(kind, 8)
    clock = [100.0]
    buffer.now = lambda: clock[0]
    assert buffer.waited == (0, 0.0, 0, 0.0)
    buffer.offer(2, "c")
    clock[0] = 103.0
    buffer.offer(1, "b")
    buffer.offer(3, None)  # nothing is in it that could wait
    clock[0] = 104.0
    assert buffer.waited == (0, 0.0, 2, 4.0)
    buffer.offer(0, "a")
    assert buffer.waited == (2, 5.0, 0, 0.0)
    buffer.offer(4, "in its turn")
    assert buffer.waited == (2, 5.0, 0, 0.0)


@st.composite
def units(draw: st.DrawFn) -> tuple[int, list[Unit]]:
    """A size, and units that cover the first numbers without a gap, in any order."""
    size = draw(st.integers(1, 6))
    counts = draw(st.lists(st.integers(1, min(3, size)), min_size=1, max_size=12))
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return size, draw(st.permutations(list(zip(starts, counts, strict=True))))


@both_kinds
@given(drawn=units())
@explored
def test_any_order_of_arrival_equals_the_serial_model(kind: Kind, drawn: tuple[int, Any]) -> None:
    size, arriving = drawn
    buffer, sent = collecting(kind, size)
    model: dict[int, int] = {}
    following, expected = 0, []
    while arriving:
        refused = []
        for number, count in arriving:
            accepted = buffer.offer(number, -number, count)
            assert accepted == (number + count <= following + size)
            if not accepted:
                refused.append((number, count))
                continue
            model[number] = count
            while following in model:
                expected.append((following, -following))
                following += model.pop(following)
            assert (sent, buffer.next) == (expected, following)
        arriving = refused


# --- many threads ---------------------------------------------------------------------------------


def pausing(kind: Kind, turns: Turns, size: int, send: Any) -> AnyReorderBuffer:
    """Make a buffer that pauses before each step that other threads can see."""

    class Pausing(kind):  # type: ignore[valid-type, misc] # one of two known classes
        def read(self) -> int:
            turns.pause()
            return self.__dict__["_next"]

        def write(self, value: int) -> None:
            turns.pause()
            self.__dict__["_next"] = value

        _next = property(read, write)

    buffer = Pausing(size, send)
    buffer._slots = TurnList(turns, buffer._slots)
    setattr(buffer, "_flag" if kind is ReorderBuffer else "_lock", TurnLock(turns))
    return buffer


class Watched:
    """Brings units to a buffer from threads that take turns, and watches what is sent."""

    def __init__(self, kind: Kind, size: int, seed: int) -> None:
        self.turns = Turns(seed)
        self.sent: list[int] = []
        #: Index of the worker that is sending, and how often others came back meanwhile.
        self.sender: int | None = None
        self.overtaken = 0
        self.worker = threading.local()
        self.buffer = pausing(kind, self.turns, size, self.send)

    def send(self, number: int, unit: int) -> None:
        assert self.sender is None, "two units are sent at the same time"
        assert unit == -number
        self.sender = self.worker.index
        self.turns.pause()
        self.sent.append(number)
        self.sender = None

    def bring(self, index: int, units: list[Unit]) -> None:
        self.worker.index = index
        waiting = list(units)
        while waiting:
            number, count = waiting.pop(0)
            if not self.buffer.offer(number, -number, count):
                waiting.append((number, count))
            elif self.sender is not None:
                assert self.sender != index
                self.overtaken += 1

    def run(self, units: list[Unit], workers: int) -> None:
        shares = [units[i::workers] for i in range(workers)]
        self.turns.run(*[lambda i=i: self.bring(i, shares[i]) for i in range(workers)])
        assert self.sent == sorted(number for number, _ in units)
        assert self.buffer.next == sum(count for _, count in units)


@both_kinds
@given(drawn=units(), workers=st.integers(2, 4), seed=st.integers(0, 2**32))
@explored
def test_every_unit_is_sent_once_and_in_order_however_threads_interleave(
    kind: Kind, drawn: tuple[int, list[Unit]], workers: int, seed: int
) -> None:
    size, arriving = drawn
    Watched(kind, size, seed).run(arriving, workers)


@both_kinds
def test_a_unit_that_comes_when_the_sender_is_about_to_leave_is_not_left_behind(kind: Kind) -> None:
    for seed in range(300):  # few units, so that none comes later and takes it along
        Watched(kind, 4, seed).run([(0, 1), (1, 1), (2, 1)], workers=3)


@pytest.mark.parametrize(("kind", "overtakes"), [(KINDS[0], True), (KINDS[1], False)])
def test_only_the_lock_makes_others_wait_for_a_worker_that_sends(
    kind: Kind, overtakes: bool
) -> None:
    seen = 0
    for seed in range(30):
        watched = Watched(kind, 4, seed)
        watched.run([(n, 1) for n in range(12)], workers=3)
        seen += watched.overtaken
    assert (seen > 0) is overtakes


def test_nobody_waits_for_a_worker_that_is_stuck_while_sending() -> None:
    is_sending, may_end, sent = threading.Event(), threading.Event(), []

    def send(number: int, unit: str) -> None:
        if number == 0:
            is_sending.set()
            assert may_end.wait(60)
        sent.append(unit)

    buffer = ReorderBuffer(8, send)
    stuck = threading.Thread(target=buffer.offer, args=(0, "a"))
    stuck.start()
    assert is_sending.wait(60)
    assert buffer.offer(1, "b")
    assert buffer.offer(2, "c")
    assert (sent, buffer.next) == ([], 0)
    may_end.set()
    stuck.join()
    assert sent == ["a", "b", "c"]


@both_kinds
def test_workers_that_really_run_at_the_same_time(kind: Kind) -> None:
    last, dealt, sent, sending = 500, counting(), [], threading.Lock()

    def send(number: int, unit: int) -> None:
        assert sending.acquire(blocking=False), "two units are sent at the same time"
        sent.append((number, unit))
        sending.release()

    buffer: AnyReorderBuffer = kind(32, send)

    def work(chance: Random) -> None:
        mine: list[int] = []
        while True:
            if len(mine) < 4 and (number := next(dealt)) < last:
                mine.append(number)
            if not mine:
                return
            chosen = mine.pop(chance.randrange(len(mine)))
            if not buffer.offer(chosen, -chosen):
                mine.append(chosen)

    run_together(*[lambda i=i: work(Random(i)) for i in range(4)])
    assert sent == [(number, -number) for number in range(last)]
