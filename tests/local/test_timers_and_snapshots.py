"""Timers that wait while a run is stopped, and go on in the next one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from thalweg.clock import ManualClock
from thalweg.components import Bolt, Kind
from thalweg.eventtime import SECOND
from thalweg.testing import PAUSE, source
from thalweg.topology import Topology

pytestmark = pytest.mark.usefixtures("forked")

WAYS: dict[str, dict[str, Any]] = {
    "workers": {"workers": 2},
    "executors": {"assigning": "executors"},
    "processes": {"workers": 2},
}
ROWS = [(n, n % 7) for n in range(400)]
FAR = 1000


class Deadlines(Bolt):
    """Calls each tuple when it is ten seconds old, and each key much later."""

    kind = Kind.KEYED
    outputs = {"key": int, "at": int, "seen": int}

    def process(self, t: Any) -> None:
        self.state.put(t.key, self.state.get(t.key, 0) + 1)
        self.timers.at(t.key, (t.at + 10) * SECOND, str(t.at))
        self.timers.at(t.key, FAR * SECOND, "far")

    def process_timer(self, key: Any, at: int, name: str) -> None:
        self.emit(key, at // SECOND, self.state.get(key) if name == "far" else 0)


def deadlines(see: Any, way: str, degree: int) -> Topology:
    builder = tw.TopologyBuilder("deadlines")
    builder.add_spout("rows", tw.items(ROWS), fields={"at": int, "key": int}, time="at")
    isolation = "process" if way == "processes" else None
    reads = builder.add_bolt("deadlines", Deadlines(), degree=degree, isolation=isolation)
    reads.fields("rows", "key")
    builder.add_bolt("out", tw.call(see)).global_("deadlines")
    return builder.build()


@pytest.mark.parametrize("way", WAYS)
def test_timers_of_events_wait_in_a_snapshot(way: str, tmp_path: Path) -> None:
    stop, seen = threading.Event(), list[Any]()

    def see(t: Any) -> None:
        seen.append(tuple(t))
        if len(seen) == 100:
            stop.set()

    runtime = tw.Local(
        checkpoint=tmp_path, block_rows=20, most_block_rows=20, window=4, **WAYS[way]
    )
    assert deadlines(see, way, degree=2).run(on=runtime, stop=stop).stopped
    assert 100 <= len(seen) < len(ROWS)
    assert all(at < FAR for _, at, _ in seen)
    before = len(seen)
    assert not deadlines(see, way, degree=3).run(on=runtime).stopped
    assert len(seen) > before
    counts = {key: sum(k == key for _, k in ROWS) for key in range(7)}
    expected = [(key, at + 10, 0) for at, key in ROWS] + [(k, FAR, n) for k, n in counts.items()]
    assert sorted(seen) == sorted(expected)


class Alarm(Bolt):
    """Says so a minute after a tuple, by the clock."""

    kind = Kind.KEYED
    outputs = {"word": str, "at": int}

    def process(self, t: Any) -> None:
        self.timers.after(t.word, "1 min")

    def process_timer(self, key: Any, at: int, name: str) -> None:
        self.emit(key, round(self.context.clock.now()))


@pytest.mark.parametrize("way", WAYS)
def test_timers_by_the_clock_wait_in_a_snapshot(way: str, tmp_path: Path) -> None:
    seen: list[Any] = []

    def run(clock: ManualClock, *items: Any, stop: threading.Event) -> None:
        builder = tw.TopologyBuilder("alarms")
        builder.add_spout("words", source(items), fields={"word": str})
        isolation = "process" if way == "processes" else None
        builder.add_bolt("alarm", Alarm(), degree=2, isolation=isolation).fields("words", "word")
        builder.add_bolt("out", tw.call(lambda t: seen.append(tuple(t)))).global_("alarm")
        runtime = tw.Local(checkpoint=tmp_path, clock=clock, **WAYS[way])
        builder.build().run(on=runtime, stop=stop)

    class StopsLater(ManualClock):
        """Stops the run when nothing has happened for a while."""

        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.now() >= 20:
                stopping.set()

    stopping = threading.Event()
    words = ["a", "b", PAUSE(100), "c"]
    run(StopsLater(), *words, stop=stopping)
    assert seen == []
    # The next run begins when they are due already.
    run(ManualClock(62.0), *words, stop=threading.Event())
    assert sorted(seen) == [("a", 62), ("b", 62)]
