"""The stream of the demo: all of it, in order, no sooner than it is due."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.demo.data import Data
from thalweg.demo.describing import Replayed, Stretch, Wave, topology
from thalweg.testing import ManualClock

ROWS = [{"shop": f"s{n % 3}", "item": f"i{n % 5}"} for n in range(15)]
DATA = Data(pa.RecordBatch.from_pylist(ROWS), ("shop", "item"), "rows")


@given(
    calm=st.integers(1, 40),
    rush=st.integers(1, 200),
    degree=st.integers(1, 4),
)
def test_every_record_is_counted_once_by_both_keys(calm: int, rush: int, degree: int) -> None:
    wave = Wave(Stretch(calm, 1000.0), Stretch(rush))
    result = topology(DATA, wave, 0.0, degree).run(on=tw.Inline(clock=ManualClock()))
    given_rows = [ROWS[n % len(ROWS)] for n in range(wave.rows)]
    assert result.table("by_shop") == dict(Counter(row["shop"] for row in given_rows))
    assert result.table("by_item") == dict(Counter(row["item"] for row in given_rows))


class Asked:
    """A source with a clock of its own."""

    def __init__(self, *stretches: Stretch) -> None:
        self.clock = ManualClock()
        self.ended = False
        self.source = Replayed(DATA.batch, stretches)
        self.source.context = self  # type: ignore[assignment] # all of it that is used
        self.source.finish = self._finish  # type: ignore[method-assign] # what a task does
        self.source.prepare(self.source.context)

    def _finish(self) -> None:
        self.ended = True

    def take(self, limit: int = 1000) -> int:
        batch = self.source.next_block(limit)
        return 0 if batch is None else batch.num_rows


def test_calm_is_given_when_it_is_due_and_a_rush_at_once() -> None:
    asked = Asked(Stretch(10, 2.0), Stretch(12), Stretch(2, 2.0))
    assert asked.take() == 1
    assert asked.take() == 0
    assert asked.source.wait_hint() == 0.5
    asked.clock.advance(2.0)
    assert asked.source.backlog() == 4
    assert asked.take(3) == 3
    assert asked.take() == 1
    asked.clock.advance(60.0)
    assert asked.take() == 5
    assert asked.source.backlog() == 12
    assert not asked.ended


def test_calm_after_a_rush_begins_when_the_rush_was_taken() -> None:
    asked = Asked(Stretch(4), Stretch(3, 1.0))
    asked.clock.advance(60.0)
    assert asked.take(3) == 3
    asked.clock.advance(60.0)
    assert asked.take() == 1
    assert [asked.take(), asked.take()] == [1, 0]
    asked.clock.advance(1.0)
    assert [asked.take(), asked.ended] == [1, False]
    asked.clock.advance(1.0)
    assert [asked.take(), asked.ended] == [1, True]
