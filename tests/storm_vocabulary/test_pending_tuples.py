"""How many tuples a spout may have open, and runs in which nobody follows them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vocabulary import RUNTIMES, Later, Numbers, Pass, chain

import thalweg as tw


class Watching(Numbers):
    """Remembers how many tuples of it were open at most; all of its tasks together do."""

    most: list[int]

    def next_tuple(self) -> None:
        super().next_tuple()
        self.most.append(self.open)

    def __deepcopy__(self, memo: Any) -> Watching:
        made = Watching(self.count, self.at_once)
        made.most = self.most
        return made


def watched(count: int, at_once: int = 1) -> Watching:
    spout = Watching(count, at_once)
    spout.most = []
    return spout


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("most", [1, 7, 100])
def test_open_tuples_of_each_task_are_bounded(name: str, most: int) -> None:
    spout = watched(300)
    topology = chain(Later(), spout, {"max_pending": most, "degree": 2}, tick=0.001)
    result = topology.run(on=RUNTIMES[name]())
    assert max(spout.most) == most
    assert result.metrics.acked == 2 * 300


@settings(max_examples=20)
@given(st.integers(1, 20), st.integers(1, 20))
def test_what_one_call_emits_stays_together(most: int, at_once: int) -> None:
    """As in Storm the spout is not asked beyond the bound; one call may go beyond it."""
    spout = watched(100, at_once)
    chain(Pass(), spout, {"max_pending": most}).run(on=tw.Inline())
    assert max(spout.most) < most + at_once


def test_tuples_that_were_failed_make_room_as_well() -> None:
    spout = watched(100)
    result = chain(Pass(odd_fail=True), spout, {"max_pending": 3}).run(on=tw.Local())
    assert max(spout.most) <= 3
    assert (result.metrics.acked, result.metrics.failed) == (50, 50)


def test_without_ids_there_is_nothing_to_bound() -> None:
    class Plain(tw.Spout):
        outputs = {"n": int}

        def next_tuple(self) -> None:
            for n in range(100):
                self.emit(n)
            self.finish()

    result = chain(Pass(), Plain(), {"max_pending": 1}).run(on=tw.Local())
    assert result.metrics.component("bolt").received == 100


def test_a_source_that_cannot_be_slowed_loses_nothing_by_it() -> None:
    class Pushing(Watching):
        slowable = False

    spout = Pushing(200)
    spout.most = []
    topology = chain(Pass(), spout, {"max_pending": 5, "overflow": "drop_oldest"})
    assert topology.run(on=tw.Local(queue_rows=1000)).metrics.acked == 200


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many"])
def test_a_bound_is_a_whole_number(wrong: Any) -> None:
    with pytest.raises(tw.TopologyError, match=r"max_pending.*at least 1"):
        chain(Pass(), None, {"max_pending": wrong})


def test_spark_refuses_a_bound() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(tw.UsageError, match="max_pending"):
        chain(Pass(), None, {"max_pending": 5}).run(on=tw.Spark())


@pytest.mark.parametrize("runtime", [tw.Inline(acking=False), tw.Local(acking=False)])
def test_where_nobody_acknowledges_spouts_hear_at_once_that_all_is_well(runtime: Any) -> None:
    class Fails(Pass):
        def process(self, t: Any) -> None:
            self.fail(t)

    result = chain(Fails(), Numbers(100)).run(on=runtime)
    assert (result.metrics.acked, result.metrics.failed) == (100, 0)
    assert result.metrics.component("bolt").stats["all time"].failed == 0
