"""Policies know of windows: Delta is longer than they are, and what they hold is not pending."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

import thalweg as tw
from thalweg.components import Spout
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Decision, Node, Timing, View
from thalweg.events import Event, Noticed
from thalweg.runtimes.local.runtime import Local

pytestmark = pytest.mark.usefixtures("all_samples_count")

ROWS = 200


@dataclass(frozen=True)
class Looking:
    """Changes nothing, and keeps what it sees."""

    seen: list[View]
    timing: Timing = field(default_factory=lambda: Timing(0.05, 0.05, 0.0))
    name: str = "looking"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Look."""
        self.seen.append(view)
        return ()


class Numbers(Spout):
    """Gives so many numbers, and ends when somebody has looked often enough since then."""

    outputs = {"at": int, "key": int}

    def __init__(self, seen: list[View]) -> None:
        self._seen = seen
        self._given = 0
        self._since: int | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Numbers:
        return self

    def next_tuple(self) -> None:
        """Give a number."""
        if self._given < ROWS:
            self._given += bool(self._seen)  # the first look is over, so that all are counted
            if self._given:
                self.emit(self._given, self._given % 3)
        elif self._since is None:
            self._since = len(self._seen)
        elif len(self._seen) > self._since + 5:
            self.finish()


def run(spec: Any, **settings: Any) -> tuple[list[View], list[Event]]:
    """Count numbers within windows."""
    seen, events, found = list[View](), list[Event](), list[Any]()
    flow = tw.Flow("windows")
    numbers = flow.source("numbers", Numbers(seen), time="at", degree=1)
    counted = numbers.key_by("key").window(spec).aggregate("counted", n=tw.agg.count())
    counted.sink("out", tw.collect(found))
    local = Local(assigning="executors", scaling=Scaling(Looking(seen), **settings))
    flow.run(on=local, listen=events.append)
    assert sum(row.n for row in found) == ROWS
    return seen, events


def node(seen: list[View], name: str) -> Node:
    return seen[-1].node(name)


def test_delta_is_stretched_beyond_the_window_of_an_operator_and_told() -> None:
    seen, events = run(tw.tumbling("1 h"))
    (notice,) = [event.text for event in events if isinstance(event, Noticed)]
    assert notice == (
        "Delta is 3600.05 s, not 0.05 s: the window of 'counted' is 3600 s, "
        "and Delta has to be longer"
    )
    assert seen[-1].delta > 3600
    assert (node(seen, "counted").window, node(seen, "out").window) == (3600.0, 0.0)


def test_what_waits_for_the_end_of_its_window_is_not_pending() -> None:
    seen, _ = run(tw.tumbling("1 h"))
    samples = seen[-1].history["counted"]
    assert sum(sample.received for sample in samples) > 0
    # All are held, none waits; each sample is reckoned to a whole period, so sums may differ.
    assert sum(sample.processed for sample in samples) > 0
    assert samples[-1].pending == 0
    assert sum(sum(sample.emitted.values()) for sample in samples) == 0


def test_delta_stays_where_a_stream_is_replayed_and_its_windows_do_not_count() -> None:
    seen, events = run(tw.tumbling("1 h"), windows=False)
    assert [event for event in events if isinstance(event, Noticed)] == []
    assert (seen[-1].delta, node(seen, "counted").window) == (0.05, 0.0)


@pytest.mark.parametrize(
    ("spec", "window", "bursts"),
    [
        (tw.sliding("60 s", "10 s"), 60.0, 10.0),
        (tw.session("30 s"), 30.0, 0.0),
        (tw.landmark("20 s"), 20.0, 20.0),
        (tw.rows(5), 0.0, 0.0),
    ],
)
def test_each_kind_of_window_says_how_long_it_holds_tuples_and_how_often_it_sends(
    spec: Any, window: float, bursts: float
) -> None:
    flow = tw.Flow("kinds")
    numbers = flow.source("numbers", tw.items([(1, 2)]), fields={"at": int, "key": int}, time="at")
    numbers.key_by("key").window(spec).aggregate("counted", n=tw.agg.count())
    counted = flow.build().component("counted")
    assert (counted.window, counted.bursts) == (window, bursts)


def test_a_join_of_streams_holds_tuples_for_as_long_as_they_may_be_apart() -> None:
    flow = tw.Flow("join")
    left = flow.source("left", tw.items([(1, 2)]), fields={"at": int, "key": int}, time="at")
    right = flow.source("right", tw.items([(1, 2)]), fields={"at": int, "key": int}, time="at")
    left.join_within(right, on="key", prefix="r_", within="5 s", name="both")
    both = flow.build().component("both")
    assert (both.window, both.bursts) == (5.0, 0.0)
