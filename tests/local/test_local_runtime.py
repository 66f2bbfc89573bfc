"""The local runtime beyond what every runtime promises: workers, bounds, order."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from meeting import Meeting

import thalweg as tw
from thalweg.components import BlockBolt, Bolt, Kind, Shared
from thalweg.runtimes.local.runtime import Local

WAYS: dict[str, dict[str, Any]] = {
    "hybrid": {"queue": "hybrid"},
    "partitioned": {"queue": "partitioned"},
    "shared": {"queue": "shared"},
    "executors": {"assigning": "executors"},
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


class NeverTwice(Bolt):
    """Notes which keys are at work, and gives way to others while one is."""

    kind = Kind.KEYED
    outputs = {"key": int, "n": int}
    at_work: set[int] = set()

    def process(self, t: Any) -> None:
        assert t.key not in self.at_work, "two workers on one key"
        self.at_work.add(t.key)
        time.sleep(0)
        count = self.state.get(t.key, 0) + 1
        self.state.put(t.key, count)
        self.at_work.discard(t.key)
        self.emit(t.key, count)


@every_way
def test_tuples_of_a_key_are_never_processed_at_the_same_time(way: dict[str, Any]) -> None:
    keys = [random.Random(3).randrange(20) for _ in range(2000)]
    seen: list[Any] = []
    builder = tw.TopologyBuilder("keys")
    builder.add_spout("keys", tw.items(keys), fields={"key": int})
    builder.add_bolt("never", NeverTwice(), degree=8).fields("keys", "key")
    builder.add_bolt("out", tw.collect(seen)).global_("never")
    builder.build().run(on=Local(workers=4, block_rows=16, most_block_rows=16, **way))
    by_key: dict[int, list[int]] = {}
    for key, count in seen:
        by_key.setdefault(key, []).append(count)
    assert by_key == {key: list(range(1, n + 1)) for key, n in Counter(keys).items()}


@every_way
def test_the_output_is_that_of_a_serial_execution(way: dict[str, Any]) -> None:
    numbers, seen = list(range(3000)), list[Any]()
    flow = tw.Flow("order")
    stream = flow.source("numbers", tw.items(numbers), fields={"n": int})
    stream = stream.flat_map(lambda n: range(n % 3), fields={"i": int})
    stream.filter(lambda i: i < 2).sink("out", tw.collect(seen), order="total")
    flow.run(on=Local(workers=4, block_rows=7, most_block_rows=7, window=32, **way))
    assert [t.i for t in seen] == [i for n in numbers for i in range(n % 3) if i < 2]


def test_components_that_wait_get_more_workers_than_there_are_cores() -> None:
    """All of them must be in the component at once for the run to go on."""
    meeting = Meeting(6)
    flow = tw.Flow("waiting")
    stream = flow.source("numbers", tw.items(range(600)), fields={"n": int})

    def wait(n: int) -> int:
        if n < 300:
            time.sleep(0.001)  # what makes it known as one that waits
        elif not meeting.is_over:
            meeting.attend()
        return n

    seen: list[Any] = []
    stream.map(wait, fields={"n": int}).sink("out", tw.collect(seen), order="total")
    flow.run(on=Local(workers=2, block_rows=10, most_block_rows=10))
    assert [t.n for t in seen] == list(range(600))


def test_what_waits_behind_a_worker_that_is_held_up_is_taken_by_another() -> None:
    """Little work is left to one worker, but not for ever."""
    meeting = Meeting(2)

    class Meets(Shared, BlockBolt):
        """Cheap, until all tasks have to be there at once."""

        outputs = {"n": int}

        def process_block(self, batch: pa.RecordBatch) -> None:
            if batch.column("n")[0].as_py() >= 1000:
                meeting.attend()
            self.emit(batch)

    builder, seen = tw.TopologyBuilder("meets"), list[Any]()
    builder.add_spout("numbers", tw.items(range(1010)), fields={"n": int})
    builder.add_bolt("meets", Meets(), degree=2).shuffle("numbers")
    builder.add_bolt("out", tw.collect(seen)).shuffle("meets")
    builder.build().run(on=Local(workers=2, block_rows=2, most_block_rows=2))
    assert sorted(t.n for t in seen) == list(range(1010))
    assert meeting.is_over


def test_a_slow_sink_holds_the_source_back() -> None:
    given = taken = most = 0

    def numbers() -> Iterator[int]:
        nonlocal given
        for n in range(20_000):
            given += 1
            yield n

    def slowly(_t: Any) -> None:
        nonlocal taken, most
        taken += 1
        most = max(most, given - taken)

    flow = tw.Flow("slow")
    stream = flow.source("numbers", tw.items(numbers), fields={"n": int})
    stream.map(lambda n: n + 1, fields={"n": int}).sink("out", tw.call(slowly))
    local = Local(workers=2, block_rows=100, most_block_rows=100, queue_rows=500, window=1000)
    flow.run(on=local)
    assert taken == 20_000
    # What waits on two links, and a block at each of source and operators.
    assert most <= 2 * 500 + 3 * 100


def test_memory_stays_bounded_while_a_sink_is_slower_than_its_source() -> None:
    text, count = "x" * 10_000, 40_000
    flow = tw.Flow("memory")
    stream = flow.source("texts", tw.items(lambda: (text for _ in range(count))), fields={"t": str})
    seen, most, before = 0, 0, resident()

    def look(_t: Any) -> None:
        nonlocal seen, most
        seen += 1
        if seen % 500 == 0:
            most = max(most, resident())

    stream.map(lambda t: t, fields={"t": str}).sink("out", tw.call(look))
    flow.run(on=Local(workers=2, block_rows=100, most_block_rows=100, queue_rows=1000))
    assert seen == count
    grown = (most - before) // 1024
    assert grown < 150_000, f"{grown:,} kB more, of {count * 10:,} kB that passed"


def resident() -> int:
    """Give the bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_stopped_run_finishes_what_is_under_way() -> None:
    stop, seen = threading.Event(), list[Any]()

    def numbers() -> Iterator[int]:
        for n in range(10**9):
            if n == 5000:
                stop.set()
            yield n

    flow = tw.Flow("stopped")
    stream = flow.source("numbers", tw.items(numbers), fields={"n": int})
    stream.map(lambda n: n, fields={"n": int}).sink("out", tw.collect(seen), order="total")
    result = flow.run(on=Local(workers=2), stop=stop)
    assert result.stopped
    assert [t.n for t in seen] == list(range(len(seen)))
    assert len(seen) == result.metrics.tuples_in >= 5000


def test_several_topologies_run_in_one_process() -> None:
    found: dict[int, dict[Any, Any]] = {}

    def run(number: int) -> None:
        flow = tw.Flow(f"flow-{number}")
        words = flow.source("words", tw.items([f"w{i % 7}" for i in range(5000)]), fields=["w"])
        words.key_by("w").count("counts")
        found[number] = flow.run(on=Local(workers=2)).table("counts")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = Counter(f"w{i % 7}" for i in range(5000))
    assert found == dict.fromkeys(range(4), expected)


def test_an_error_in_a_worker_ends_the_run_with_that_error() -> None:
    def picky(n: int) -> int:
        if n == 1234:
            text = "not this one"
            raise ValueError(text)
        return n

    flow = tw.Flow("picky")
    stream = flow.source("numbers", tw.items(range(10_000)), fields={"n": int})
    stream.map(picky, fields={"n": int}).sink("out", tw.collect([]))
    with pytest.raises(tw.ComponentError, match="not this one"):
        flow.run(on=Local(workers=4, block_rows=10, most_block_rows=10))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"workers": 0}, "workers.*at least 1"),
        ({"block_rows": 0}, "block_rows.*at least 1"),
        ({"queue": "lifo"}, "queue.*hybrid"),
        ({"assigning": "magic"}, "assigning.*executors"),
        ({"wait": "forever"}, "wait.*blocking"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(tw.UsageError, match=told):
        Local(**settings)


@pytest.mark.parametrize("wait", ["blocking", "sleeping", "yielding", "busy-spin"])
def test_executors_wait_in_any_way(wait: Any) -> None:
    flow = tw.Flow("waits")
    words = flow.source("words", tw.items([f"w{i % 7}" for i in range(500)]), fields=["w"])
    words.key_by("w").count("counts", degree=2)
    found = flow.run(on=Local(assigning="executors", wait=wait)).table("counts")
    assert found == Counter(f"w{i % 7}" for i in range(500))


def test_of_two_errors_that_of_the_earlier_tuple_is_told() -> None:
    later_has_failed = threading.Event()

    def picky(batch: Any) -> Any:
        first = batch.column("n")[0].as_py()
        if first == 0:
            later_has_failed.wait(timeout=60)
        elif first == 10:
            later_has_failed.set()
        text = f"not {first}"
        raise ValueError(text)

    flow = tw.Flow("errors")
    numbers = flow.source("numbers", tw.items(range(100)), fields={"n": int})
    numbers.map_block(picky, fields={"n": int}).sink("out", tw.collect([]), order="total")
    with pytest.raises(tw.ComponentError, match="not 0"):
        flow.run(on=Local(workers=2, block_rows=10, most_block_rows=10))
    assert later_has_failed.is_set()


def test_nothing_behind_an_error_is_processed_by_another_worker() -> None:
    seen: list[int] = []

    class Picky(Bolt):
        kind = Kind.KEYED
        outputs = {"n": int}

        def process(self, t: Any) -> None:
            seen.append(t.n)
            if t.n == 25:
                text = "not this one"
                raise ValueError(text)

    builder = tw.TopologyBuilder("picky")
    builder.add_spout(
        "numbers", tw.items([(0, n) for n in range(500)]), fields={"k": int, "n": int}
    )
    builder.add_bolt("picky", Picky(), degree=2).fields("numbers", "k")
    with pytest.raises(tw.ComponentError, match="not this one"):
        builder.build().run(on=Local(workers=4, block_rows=10, most_block_rows=10))
    assert seen == list(range(26))


class Sum(Shared, Bolt):
    """Adds up numbers, and says at the end how much it was."""

    kind = Kind.GLOBAL
    outputs = {"sum": int}

    def process(self, t: Any) -> None:
        self.state.put("sum", self.state.get("sum", 0) + t.n)

    def process_end(self) -> None:
        self.emit(self.state.get("sum"))


def test_a_global_bolt_that_any_tuple_may_reach_is_one_task_all_the_same() -> None:
    seen: list[Any] = []
    builder = tw.TopologyBuilder("sum")
    builder.add_spout("numbers", tw.items(range(1000)), fields={"n": int})
    builder.add_bolt("sum", Sum()).shuffle("numbers")
    builder.add_bolt("out", tw.collect(seen)).global_("sum")
    builder.build().run(on=Local(workers=4, block_rows=10, most_block_rows=10))
    assert [t.sum for t in seen] == [499500]
