"""Samples for scaling policies, from batches of any length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Sample
from thalweg.runtimes.spark.notes import Counts, Note
from thalweg.runtimes.spark.sampling import (
    Mark,
    Sampling,
    Sources,
    Tallies,
    critical,
    followers,
    nodes_of,
)
from thalweg.testing import source
from thalweg.topology import Topology


def samples_of(
    marks: Sequence[tuple[float, Mark]], period: float = 10.0, degree: int = 2
) -> list[Sample]:
    sampling = Sampling(period)
    return [
        sample
        for time, mark in marks
        for sample in sampling.take(time, {"count": mark}, {"count": degree})
    ]


def test_short_batches_are_one_sample() -> None:
    marks = [(4.0 * k, Mark(40.0 * k, 40.0 * k, 2.0 * k)) for k in range(6)]
    found = samples_of(marks)
    assert [(s.time, s.received, s.processed) for s in found] == [(10, 100, 100), (20, 100, 100)]
    assert found[0].busy == pytest.approx(5.0)
    assert found[0].latency_mean == pytest.approx(0.05)


def test_a_long_batch_is_several_samples() -> None:
    found = samples_of([(0.0, Mark()), (35.0, Mark(350.0, 280.0, 7.0, {"default": 70.0}, 70.0))])
    assert [sample.time for sample in found] == [10, 20, 30]
    assert [sample.received for sample in found] == [100, 100, 100]
    assert [sample.processed for sample in found] == [80, 80, 80]
    assert [sample.pending for sample in found] == [20, 40, 60]
    assert [sample.emitted for sample in found] == [{"default": 20}] * 3


def test_a_gap_is_no_zero() -> None:
    sampling, found = Sampling(10.0), []
    for time in (0.0, 10.0, 20.0, 30.0, 40.0):
        if time == 20.0:
            sampling.skip()
        mark = Mark(10 * time, 10 * time)
        found += sampling.take(time, {"count": mark}, {"count": 1})
    assert [(s.time, s.received) for s in found] == [(10, 100), (30, 100), (40, 100)]


def test_time_without_tuples_is_zero() -> None:
    found = samples_of([(0.0, Mark(5.0, 5.0)), (10.0, Mark(5.0, 5.0))])
    assert [(s.received, s.processed, s.latency_mean) for s in found] == [(0, 0, None)]


@given(st.lists(st.tuples(st.floats(0.01, 50), st.integers(0, 500)), max_size=30))
def test_no_tuple_is_counted_twice_or_left_out(batches: list[tuple[float, int]]) -> None:
    time, rows, marks = 0.0, 0, [(0.0, Mark())]
    for took, new in batches:
        time, rows = time + took, rows + new
        marks.append((time, Mark(float(rows), float(rows))))
    found = samples_of(marks)
    assert [sample.time for sample in found] == [10.0 * k for k in range(1, len(found) + 1)]
    assert all(sample.received >= 0 for sample in found)
    ended = max((sample.time for sample in found), default=0.0)
    before = [mark.arrived for at, mark in marks if at <= ended]
    after = [mark.arrived for at, mark in marks if at >= ended]
    assert before[-1] - 1 <= sum(sample.received for sample in found) <= after[0] + 1


# --- what batches tell ------------------------------------------------------------------------


class Split(tw.Bolt):
    outputs = ["word"]

    def process(self, t: Any) -> None:
        self.emit(t.word)


class Count(tw.Bolt):
    outputs = ["word"]
    kind = tw.Kind.KEYED

    def process(self, t: Any) -> None:
        self.emit(t.word)


def words() -> Topology:
    builder = tw.TopologyBuilder("words")
    builder.add_spout("words", source(["a"]), fields={"word": str})
    builder.add_bolt("split", Split()).shuffle("words")
    builder.add_bolt("count", Count()).fields("split", "word")
    builder.add_bolt("three", Count(), degree=3).fields("split", "word")
    builder.add_bolt("board", tw.call(print)).shuffle("count")
    return builder.build()


def note(stage: int, place: int, **busy: float) -> Note:
    counts = [Counts(name, {place: 10}, busy=seconds) for name, seconds in busy.items()]
    for each in counts:
        each.send("default", 10)
    return Note(stage, place, "host", counts=counts)


def test_only_components_without_a_degree_follow_the_places() -> None:
    assert followers(words()) == {"split", "count"}
    bounds = {node.name: (node.least, node.most) for node in nodes_of(words(), 2, 8, Scaling())}
    assert bounds["split"] == bounds["count"] == (1, 8)
    assert bounds["three"] == (3, 3)
    assert bounds["board"] == bounds["words"] == (1, 1)


def test_a_batch_takes_as_long_as_the_busiest_place_of_each_stage() -> None:
    notes = [note(0, 0, split=0.5), note(0, 1, split=0.1)]
    notes += [note(1, 0, count=0.2, three=0.1), note(1, 1, count=0.4)]
    assert critical(notes) == pytest.approx(0.5 + 0.4)


def test_who_reads_a_source_is_charged_with_all_that_follows() -> None:
    tallies = Tallies(words())
    tallies.add([note(0, 0, split=0.5), note(1, 0, count=0.2)], charge=1.5)
    marks = tallies.marks(Sources(sent={("words", "default"): 10}))
    assert marks["split"].busy == 1.5
    assert marks["count"].busy == 0.2
    assert marks["count"].sent == {"default": 10}


def test_what_a_source_holds_back_waits_for_its_readers() -> None:
    tallies = Tallies(words())
    tallies.add([note(0, 0, split=0.5)], charge=0.5)
    sources = Sources({("words", "default"): 30}, held={"words": 7}, queued={"words": 5})
    marks = tallies.marks(sources)
    assert marks["words"].sent == {"default": 37}
    assert (marks["split"].arrived, marks["split"].processed) == (37, 10)
    assert marks["split"].waiting == 12
    assert marks["count"].waiting == 0
