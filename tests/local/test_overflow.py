"""Sources that cannot be slowed: what happens when more comes than there is room for."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.cli.showing import progress_text, totals_text
from thalweg.components import BlockSpout, Shared, Spout
from thalweg.runtimes.local.overflow import WaitingRows
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.outputs import Emission

# --- the queue ---------------------------------------------------------------------------------


def emission(numbers: range) -> Emission:
    batch = pa.record_batch({"n": pa.array(numbers, pa.int64())})
    ids = [None if n % 3 else f"id-{n}" for n in numbers]
    return Emission("default", batch, ids=ids, lists={"n": list(numbers)})


steps = st.lists(st.tuples(st.sampled_from(["add", "take"]), st.integers(min_value=1, max_value=9)))


@given(steps, st.integers(min_value=1, max_value=12))
def test_the_queue_holds_the_youngest_rows_and_tells_which_had_to_go(
    steps: list[tuple[str, int]], bound: int
) -> None:
    queue, model, next_ = WaitingRows("s", "drop_oldest", bound), list[int](), 0
    for what, count in steps:
        if what == "add":
            model += range(next_, next_ + count)
            gone, model = model[: max(0, len(model) - bound)], model[-bound:]
            dropped = queue.add(emission(range(next_, next_ + count)))
            next_ += count
            assert dropped.rows == len(gone)
            assert dropped.ids == [f"id-{n}" for n in gone if n % 3 == 0]
        elif model:
            taken = queue.take(count)
            numbers = taken.batch["n"].to_pylist()
            assert 1 <= len(numbers) <= count
            assert numbers == model[: len(numbers)] == taken.lists["n"]
            assert taken.ids == emission(range(numbers[0], numbers[-1] + 1)).ids
            del model[: len(numbers)]
        assert queue.rows == len(model)


# --- runs --------------------------------------------------------------------------------------


class Pushed(Shared, BlockSpout):
    """Gives a number of rows as fast as it is asked, and says when it has given all."""

    slowable = False
    outputs = {"n": int}

    def __init__(self, count: int) -> None:
        self.count, self.given = count, threading.Event()
        self.progress: list[int] = []

    def prepare(self, context: Any) -> None:
        self.next = 0

    def next_block(self, limit: int) -> pa.RecordBatch:
        numbers = list(range(self.next, min(self.count, self.next + limit)))
        self.next += len(numbers)
        self.progress.append(self.next)
        if self.next == self.count:
            self.given.set()
            self.finish()
        return self.make_batch([numbers])


class Burst(Pushed):
    """Gives everything at once."""

    def next_block(self, limit: int) -> pa.RecordBatch:
        return super().next_block(self.count)


COUNT, ROOM = 2000, 100
WAYS: dict[str, Local] = {
    name: Local(block_rows=10, most_block_rows=10, queue_rows=ROOM, **settings)
    for name, settings in {
        "1 worker": {"workers": 1},
        "3 workers": {"workers": 3},
        "partitioned": {"workers": 1, "queue": "partitioned"},
        "executors": {"assigning": "executors"},
    }.items()
}
#: Without a thread of its own for asking, a sink that waits for the source waits for ever.
asking_goes_on = pytest.mark.parametrize(
    "local", [way for name, way in WAYS.items() if name != "partitioned"]
)


def pushing(source: Any, take: Any, overflow: str | None = "drop_oldest") -> tw.Flow:
    flow = tw.Flow("pushed")
    stream = flow.source("numbers", source, overflow=overflow)
    stream.sink("out", tw.call(take), order="total")
    return flow


@asking_goes_on
def test_the_oldest_rows_are_dropped_and_counted_while_a_sink_stands_still(local: Local) -> None:
    source, seen = Pushed(COUNT), list[int]()

    def take(t: Any) -> None:
        source.given.wait()  # nothing is taken before everything has come
        seen.append(t.n)

    metrics = pushing(source, take).run(on=local).metrics
    dropped = metrics.component("numbers").dropped
    assert dropped == metrics.dropped == COUNT - len(seen)
    # What had entered before, up to the bound of a queue and a block, and what waited in the end.
    entered = len(seen) - ROOM
    assert ROOM <= entered <= ROOM + 2 * 10
    assert seen == [*range(entered), *range(COUNT - ROOM, COUNT)]
    assert metrics.tuples_in == metrics.tuples_out == len(seen)


@pytest.mark.parametrize("local", WAYS.values(), ids=WAYS)
def test_a_run_fails_that_says_so_and_tells_what_to_do(local: Local) -> None:
    flow = pushing(Burst(COUNT), lambda t: None, "fail")
    with pytest.raises(tw.ComponentError, match=r"at most 100 rows.*drop_oldest") as caught:
        flow.run(on=local)
    assert caught.value.component == "numbers"


@pytest.mark.parametrize("overflow", [None, "block"])
@pytest.mark.parametrize("local", WAYS.values(), ids=WAYS)
def test_without_a_policy_the_source_is_not_asked_meanwhile(
    local: Local, overflow: str | None
) -> None:
    source, seen, most = Pushed(COUNT), list[int](), 0

    def take(t: Any) -> None:
        nonlocal most
        seen.append(t.n)
        most = max(most, source.progress[-1] - len(seen))

    metrics = pushing(source, take, overflow).run(on=local).metrics
    assert seen == list(range(COUNT))
    assert metrics.dropped == 0
    assert most <= ROOM + 2 * 10


@pytest.mark.parametrize("local", WAYS.values(), ids=WAYS)
def test_nothing_is_dropped_while_there_is_room(local: Local) -> None:
    seen: list[int] = []
    metrics = pushing(Pushed(ROOM), lambda t: seen.append(t.n)).run(on=local).metrics
    assert (seen, metrics.dropped) == (list(range(ROOM)), 0)


class Clicks(Shared, Spout):
    """Emits tuples with ids, and notes how they end."""

    slowable = False
    outputs = {"n": int}

    def __init__(self, count: int) -> None:
        self.count, self.given = count, threading.Event()
        self.acked: list[int] = []
        self.failed: list[int] = []

    def prepare(self, context: Any) -> None:
        self.next = 0

    def next_tuple(self) -> None:
        self.emit(self.next, id=self.next)
        self.next += 1
        if self.next == self.count:
            self.given.set()
            self.finish()

    def ack(self, id: Any) -> None:
        self.acked.append(id)

    def fail(self, id: Any) -> None:
        self.failed.append(id)


@asking_goes_on
def test_tuples_with_an_id_fail_when_they_are_dropped(local: Local) -> None:
    source, seen = Clicks(COUNT), list[int]()

    def take(t: Any) -> None:
        source.given.wait()
        seen.append(t.n)

    metrics = pushing(source, take).run(on=local).metrics
    assert sorted(source.acked) == seen
    assert sorted(source.failed) == sorted(set(range(COUNT)) - set(seen))
    assert (metrics.acked, metrics.failed) == (len(seen), metrics.dropped)
    assert metrics.dropped > 0


@asking_goes_on
def test_what_waits_when_a_run_is_stopped_is_let_in(local: Local) -> None:
    source, seen, stop = Pushed(10**9), list[int](), threading.Event()

    def take(t: Any) -> None:
        seen.append(t.n)
        if len(seen) == 500:
            stop.set()

    result = pushing(source, take).run(on=local, stop=stop)
    assert result.stopped
    assert len(seen) == result.metrics.tuples_in
    assert seen == sorted(set(seen))


def test_on_inline_nothing_waits_and_so_nothing_is_dropped() -> None:
    seen: list[int] = []
    flow = pushing(Pushed(COUNT), lambda t: seen.append(t.n))
    assert flow.run(on=tw.Inline(block_rows=10)).metrics.dropped == 0
    assert seen == list(range(COUNT))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (tw.items([1]), "overflow 'fail' of .*a source that cannot be slowed, got one that waits"),
        (tw.files("*.txt"), "a spout of yours can say slowable = False"),
    ],
)
def test_sources_that_wait_have_no_policy(source: Any, told: str) -> None:
    flow = tw.Flow("waits")
    flow.source("s", source, fields=["n"], overflow="fail").sink("out", tw.collect([]))
    with pytest.raises(tw.TopologyError, match=told):
        flow.build()


def test_a_bolt_has_no_policy_and_a_policy_has_a_name_that_exists() -> None:
    flow = tw.Flow("bolt")
    stream = flow.source("s", tw.items([1]), fields=["n"])
    with pytest.raises(tw.TopologyError, match=r"one of .*drop_oldest.*got 'drop'"):
        flow.source("t", tw.rate(tw.constant(1), [1]), fields=["n"], overflow="drop")
    stream.map(lambda n: n, fields=["n"], overflow="fail")
    with pytest.raises(tw.TopologyError, match="got a bolt"):
        flow.build()


def test_people_see_how_much_was_dropped() -> None:
    source = Pushed(COUNT)
    flow = pushing(source, lambda t: source.given.wait())
    metrics = flow.run(on=WAYS["1 worker"]).metrics
    text = f"{metrics.dropped:,} dropped"
    assert text in totals_text(metrics)
    assert text in progress_text(metrics, None)
