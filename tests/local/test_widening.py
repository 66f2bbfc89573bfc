"""Keyed components without a degree are split when they wait, also what waits for them already."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from meeting import Meeting

import thalweg as tw
from thalweg.components import Bolt, Kind
from thalweg.events import Event, Reconfigured
from thalweg.runtimes.local import widening
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.local.worklists import HybridWorklist


class Asks(Bolt):
    """Counts in its state; every tuple waits, at first for a moment, then for three others."""

    kind = Kind.KEYED
    outputs = {"k": int, "count": int}
    table = "counts"
    split = threading.Event()
    meeting = Meeting(4)

    def process(self, t: Any) -> None:
        if not self.split.is_set():
            time.sleep(0.001)  # what makes it known as one that waits
        elif not self.meeting.is_over:
            self.meeting.attend()
        count = self.state.get(t.k, 0) + 1
        self.state.put(t.k, count)
        self.emit(t.k, count)


def run(bolt: Bolt, keys: Any, **options: Any) -> tuple[dict[Any, Any], list[Any], list[str]]:
    told, seen = list[str](), list[Any]()
    builder = tw.TopologyBuilder("waits")
    builder.add_spout("keys", tw.items(keys), fields={"k": int})
    builder.add_bolt("asks", bolt, **options).fields("keys", "k")
    builder.add_bolt("out", tw.collect(seen), order="total").global_("asks")

    def listen(event: Event) -> None:
        if isinstance(event, Reconfigured):
            told.append(event.text)
            Asks.split.set()

    local = Local(workers=2, most_workers=8, block_rows=20, most_block_rows=20, queue_rows=500)
    result = builder.build().run(on=local, listen=listen)
    return result.table("counts"), seen, told


def test_many_workers_wait_in_it_and_the_output_is_the_same() -> None:
    keys: list[int] = []

    def until_they_have_met() -> Iterator[int]:
        while not Asks.meeting.is_over:
            keys.append(len(keys) ** 2 % 97)
            yield keys[-1]

    table, seen, told = run(Asks(), until_they_have_met)
    assert "'asks' waits, and" in told[0]
    assert table == Counter(keys)
    expected: Counter[int] = Counter()
    for key, (found, count) in zip(keys, seen, strict=True):
        expected[key] += 1
        assert (found, count) == (key, expected[key])


class Remembers(Asks):
    """Would not be the same if it were split."""

    def prepare(self, context: Any) -> None:
        self.number = 0

    def process(self, t: Any) -> None:
        self.number += 1
        time.sleep(0.0005)
        self.state.put(t.k, self.number)
        self.emit(t.k, self.number)


class SpeaksLast(Remembers):
    """Says something at the end."""

    def prepare(self, context: Any) -> None:
        """Nothing to get ready."""

    number = 0

    def process_end(self) -> None:
        self.emit(-1, len(self.state))


@pytest.mark.parametrize(
    ("bolt", "options"), [(Remembers(), {}), (SpeaksLast(), {}), (Remembers(), {"degree": 1})]
)
def test_one_that_would_notice_is_not_split(
    monkeypatch: pytest.MonkeyPatch, bolt: Bolt, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(widening, "LOOK_EVERY", 0.0)
    assert run(bolt, range(600), **options)[2] == []


items = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)))


@given(items, st.integers(0, 3))
def test_all_that_waits_can_be_taken_back_in_order(
    added: list[tuple[int, int]], taken: int
) -> None:
    waiting: HybridWorklist[int] = HybridWorklist(4)
    for number, (bucket, rows) in enumerate(added):
        waiting.add(bucket, number, rows)
    gone = [got for _ in range(taken) if (got := waiting.take(0, 1))]
    left = waiting.take_all()
    assert len(left) + sum(len(got.items) for got in gone) == len(added)
    assert (len(waiting), waiting.rows, waiting.takes) == (0, 0, 0)
    for each in gone:
        waiting.release(each.bucket)
    assert waiting.take(0, 1) is None


@given(items)
def test_each_item_comes_back_with_its_bucket(added: list[tuple[int, int]]) -> None:
    waiting: HybridWorklist[int] = HybridWorklist(4)
    for number, (bucket, rows) in enumerate(added):
        waiting.add(bucket, number, rows)
    found = waiting.take_all()
    assert sorted(found) == sorted((bucket, n) for n, (bucket, _) in enumerate(added))
    for bucket in range(4):
        mine = [item for b, item in found if b == bucket]
        assert mine == sorted(mine)
