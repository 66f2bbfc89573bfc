"""Sources give up tuples where that is allowed, at random, and say how many."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.components import Bolt
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Timing
from thalweg.events import Decided, Event
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.local.shedding import Shedder
from thalweg.runtimes.outputs import Emission

POLICY = Static(Timing(0.4, 0.1, 0.0))


class Slow(Bolt):
    """Takes 10 ms for a tuple."""

    outputs = ["n"]

    def process(self, t: Any) -> None:
        """Wait."""
        self.context.clock.sleep(0.01)


def run(loss: float, rate: float = 400.0) -> tuple[tw.Result, list[Decided]]:
    """Give two seconds of a stream to a component with one task."""
    builder = tw.TopologyBuilder("too-much")
    stream = tw.rate(tw.constant(rate, "2 s"), lambda n: n)
    builder.add_spout("numbers", stream, fields={"n": int})
    builder.add_bolt("slow", Slow(), degree=1).shuffle("numbers")
    events: list[Event] = []
    scaling = Scaling(POLICY, most=1, loss=loss)
    local = Local(assigning="executors", scaling=scaling)
    result = builder.build().run(on=local, listen=events.append)
    return result, [event for event in events if isinstance(event, Decided)]


def test_as_much_is_given_up_as_is_allowed_and_counted() -> None:
    result, told = run(0.5)
    dropped, done = result.metrics.dropped, result.metrics.component("slow").received
    assert dropped + done == 800
    assert 0 < dropped <= 500  # half of what came after the first look
    assert "50 % of all tuples are given up (allowed: 50 %)" in " ".join(e.text for e in told)


def test_nothing_is_given_up_where_nobody_allows_it() -> None:
    result, told = run(0.0)
    assert (result.metrics.dropped, result.metrics.component("slow").received) == (0, 800)
    assert {event.text for event in told} == {""}


def test_it_is_refused_where_rows_of_sources_are_counted() -> None:
    with pytest.raises(tw.UsageError, match="scaling loss: expected 0 with a checkpoint"):
        Local(checkpoint="kept", scaling=Scaling(loss=0.1))


@given(st.lists(st.integers(), max_size=50), st.floats(0, 0.99), st.booleans(), st.integers())
def test_every_row_stays_or_goes(
    values: list[int], share: float, reliable: bool, seed: int
) -> None:
    shedder = Shedder(seed)
    shedder.share = share
    numbers = list(range(len(values)))
    batch = pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})
    emission = Emission("default", batch, ids=numbers if reliable else None, lists={"n": numbers})
    stays, gone, ids = shedder.split(emission)
    kept = stays.batch.column(0).to_pylist()
    assert kept == sorted(kept) == stays.lists["n"]
    assert len(kept) + gone == len(values)
    if reliable:
        assert sorted([*(stays.ids or ()), *ids]) == numbers
        assert stays.ids == kept
    assert gone == 0 or share > 0
