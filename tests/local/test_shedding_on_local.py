"""Sources give up tuples where that is allowed, at random, and say how many."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, ClassVar

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

pytestmark = pytest.mark.usefixtures("all_samples_count")

#: One sample is enough to decide: of several in a row one would be late on a busy machine.
POLICY = Static(Timing(0.4, 0.4, 0.0))


class Slow(Bolt):
    """Takes 10 ms for a tuple."""

    outputs = ["n"]

    def process(self, t: Any) -> None:
        """Wait."""
        self.context.clock.sleep(0.01)


def run(
    loss: float | None,
    rate: float = 400.0,
    quality: tw.Quality | None = None,
    **settings: Any,
) -> tuple[tw.Result, list[Decided]]:
    """Give two seconds of a stream to a component with one task."""
    builder = tw.TopologyBuilder("too-much", quality=quality)
    stream = tw.rate(tw.constant(rate, "2 s"), lambda n: n)
    builder.add_spout("numbers", stream, fields={"n": int})
    builder.add_bolt("slow", Slow(), degree=1).shuffle("numbers")
    events: list[Event] = []
    scaling = Scaling(POLICY, most=1, loss=loss)
    local = Local(assigning="executors", scaling=scaling, **settings)
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


# --- what a topology allows ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "allowed", "given_up"), [(None, 0.3, 30), (0.2, 0.5, 20), (0.5, 0.3, 30)]
)
def test_a_run_gives_up_no_more_than_its_topology_allows(
    loss: float | None, allowed: float, given_up: int
) -> None:
    result, told = run(loss, 200.0, tw.Quality(loss=allowed))
    assert 0 < result.metrics.dropped < 400 * given_up / 100  # the first look comes later
    text = f"{given_up} % of all tuples are given up (allowed: {given_up} %)"
    assert text in " ".join(event.text for event in told)


@pytest.mark.parametrize(
    ("loss", "quality"), [(0.5, tw.Quality()), (0.0, tw.Quality(loss=0.5)), (None, None)]
)
def test_nothing_is_given_up_where_either_of_them_says_no(
    loss: float | None, quality: tw.Quality | None
) -> None:
    result, _ = run(loss, 150.0, quality)
    assert (result.metrics.dropped, result.metrics.component("slow").received) == (0, 300)


def test_nothing_is_given_up_with_a_checkpoint_whatever_a_topology_allows(tmp_path: Path) -> None:
    result, _ = run(None, 150.0, tw.Quality(loss=0.5), checkpoint=tmp_path)
    assert (result.metrics.dropped, result.metrics.component("slow").received) == (0, 300)


class Slowly(Slow):
    """Keeps what it gets."""

    seen: ClassVar[list[int]] = []

    def process(self, t: Any) -> None:
        """Note, and wait."""
        self.seen.append(t.n)
        super().process(t)


def test_whole_windows_are_given_up_where_that_is_asked_for() -> None:
    Slowly.seen.clear()
    flow = tw.Flow("windows", quality=tw.Quality(loss=0.5, by="window", window="100 ms"))
    stream = flow.source("numbers", tw.rate(tw.constant(400.0, "2 s"), int), fields={"n": int})
    stream.through("slow", Slowly(), degree=1)
    events: list[Event] = []
    local = Local(assigning="executors", scaling=Scaling(POLICY, most=1))
    result = flow.run(on=local, listen=events.append)
    dropped = result.metrics.dropped
    assert dropped > 0
    assert dropped + len(Slowly.seen) == 800
    gaps = sum(b - a > 1 for a, b in itertools.pairwise([-1, *Slowly.seen, 800]))
    assert gaps <= 21  # there are no more windows; single tuples would leave some hundred
    texts = " ".join(event.text for event in events if isinstance(event, Decided))
    assert "% of all windows of 0.1 s are given up (allowed: 50 %)" in texts


CHANGES = st.lists(st.tuples(st.floats(0, 9), st.floats(0, 0.99)), min_size=1, max_size=60)


@given(CHANGES, st.integers(0, 1000))
def test_a_window_goes_as_a_whole_whatever_the_share_becomes(
    looks: list[tuple[float, float]], seed: int
) -> None:
    times = sorted(time for time, _ in looks)
    now = [0.0]
    shedder = Shedder(seed, tw.Quality(loss=0.5, by="window", window=2.0), lambda: now[0])
    fates: dict[int, set[bool]] = {}
    for (_, share), now[0] in zip(looks, times, strict=True):
        fates.setdefault(int(now[0] // 2), set()).add(shedder.sheds())
        shedder.share = share
    assert all(len(fate) == 1 for fate in fates.values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loss": 1.0}, "quality loss: expected 0 or more, below 1, got 1.0"),
        ({"by": "weight"}, "quality by: expected one of"),
        ({"by": "window"}, "quality window: expected a duration with by='window'"),
        ({"window": 3}, "quality window: expected a duration with by='window'"),
        ({"by": "window", "window": "soon"}, "quality window: expected seconds above 0"),
        ({"latency": "soon"}, "quality latency: expected seconds above 0"),
        ({"latency": 0}, "quality latency: expected seconds above 0"),
        ({"profile": "cheap"}, "quality profile: expected one of"),
    ],
)
def test_a_quality_that_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(tw.UsageError, match=message):
        tw.Quality(**wrong)


def test_a_topology_has_a_quality_and_nothing_else() -> None:
    with pytest.raises(tw.TopologyError, match=r"quality of 'f': expected a Quality\(...\)"):
        tw.Flow("f", quality=0.2)  # type: ignore[arg-type] # that is the point


# --- which rows -------------------------------------------------------------------------------


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
