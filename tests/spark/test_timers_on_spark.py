"""Timers and time over many batches: when nothing comes, across a restart, with silent sources."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import thalweg as tw
from sparksession import spark_session
from thalweg.components import Bolt, Kind
from thalweg.eventtime import SECOND
from thalweg.execution import Run
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifest, Manifests
from thalweg.testing import PAUSE, ManualClock, run_inline

ROWS = [(n, n % 5) for n in range(60)]
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


def latest(folder: Path) -> Manifest:
    found = Manifests(Location(str(folder))).latest()
    assert found is not None
    return found


def test_timers_wait_while_a_run_is_stopped_and_places_change(tmp_path: Path) -> None:
    stop, seen = threading.Event(), list[Any]()

    def topology() -> tw.Topology:
        builder = tw.TopologyBuilder("deadlines")
        builder.add_spout("rows", tw.items(ROWS), fields={"at": int, "key": int}, time="at")
        builder.add_bolt("deadlines", Deadlines()).fields("rows", "key")
        builder.add_bolt("out", tw.call(lambda t: seen.append(tuple(t)))).global_("deadlines")
        return builder.build()

    def on(places: int) -> tw.Spark:
        pump = PumpSettings(rows=10, block_rows=10)
        return tw.Spark(spark_session(), places=places, pump=pump, state=str(tmp_path))

    def listen(event: Any) -> None:
        if hasattr(event, "snapshot") and event.snapshot.batches >= 3:
            stop.set()

    assert topology().run(on=on(2), stop=stop, listen=listen).stopped
    assert 0 < len(seen) < len(ROWS)
    waits = latest(tmp_path).due["deadlines"]
    assert latest(tmp_path).told["deadlines"] < waits[0] <= 60 * SECOND
    topology().run(on=on(3))
    far = [(key, FAR, sum(k == key for _, k in ROWS)) for key in range(5)]
    assert sorted(seen) == sorted([(key, at + 10, 0) for at, key in ROWS] + far)
    assert latest(tmp_path).due == {}


class Alarm(Bolt):
    """Says so a minute after a tuple, by the clock."""

    kind = Kind.KEYED
    outputs = {"word": str, "at": int}

    def process(self, t: Any) -> None:
        self.timers.after(t.word, "1 min")

    def process_timer(self, key: Any, at: int, name: str) -> None:
        self.emit(key, round(self.context.clock.now()))


def test_a_timer_by_the_clock_goes_on_after_a_restart_and_needs_no_input(tmp_path: Path) -> None:
    builder = tw.TopologyBuilder("alarms")
    builder.add_spout("words", tw.items([]), fields={"word": str})
    builder.add_bolt("alarm", Alarm()).fields("words", "word")
    builder.add_bolt("out", tw.stdout()).global_("alarm")
    topology, clock, stop = builder.build(), ManualClock(), threading.Event()

    class Stops(ManualClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.now() >= 20:
                stop.set()

    def run(clock: ManualClock, *items: Any) -> list[Any]:
        runtime = tw.Spark(spark_session(), places=2, state=str(tmp_path), clock=clock)
        told = Run(stop=stop)
        found = run_inline(topology, {"words": list(items)}, runtime=runtime, run=told)
        return [tuple(t) for t in found.outputs["out"]]

    assert run(Stops(), "a", PAUSE(200)) == []
    assert latest(tmp_path).due["alarm"][1] == 60 * SECOND
    stop.clear()
    clock.advance(40)
    assert run(clock, "a", PAUSE(200)) == [("a", 60)]
