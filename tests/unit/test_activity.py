"""Sources are told to pause and to go on, and are not asked in between; all else goes on."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.components import Kind
from thalweg.events import Activated, Event, Progress

#: What the spout was asked and told, in order; it runs beside whoever runs the topology.
CALLS: list[str] = []
RUNTIMES = {
    "inline": lambda: tw.Inline(block_rows=1),
    "local": lambda: tw.Local(workers=2, block_rows=1),
    "executors": lambda: tw.Local(workers=2, block_rows=1, assigning="executors"),
    "spark": lambda: tw.Spark(spark_session(), places=1),
}


class Numbers(tw.Spout):
    """Has a number whenever it is asked, until it may end."""

    outputs = {"n": int}
    slowable = False

    def activate(self) -> None:
        CALLS.append("activate")

    def deactivate(self) -> None:
        CALLS.append("deactivate")

    def next_tuple(self) -> None:
        CALLS.append("asked")
        self.emit(len(CALLS), id=len(CALLS))
        if "finish" in CALLS:
            self.finish()

    def ack(self, id: Any) -> None:
        CALLS.append("ack")


class Ticking(tw.Bolt):
    """Emits something at every tick."""

    kind = Kind.GLOBAL
    outputs = {"n": int}

    def process(self, t: Any) -> None:
        """Take it in."""

    def process_tick(self) -> None:
        self.emit(1)


def topology(overflow: str | None = None) -> tw.Topology:
    builder = tw.TopologyBuilder("paused")
    builder.add_spout("numbers", Numbers(), **({"overflow": overflow} if overflow else {}))
    builder.add_bolt("ticking", Ticking(), tick=0.05).global_("numbers")
    builder.add_bolt("out", tw.call(lambda _t: None)).global_("ticking")
    return builder.build()


class Pausing:
    """Deactivates a run, and activates it again when ticks have gone on without sources."""

    def __init__(self) -> None:
        CALLS.clear()
        self.steering, self.told = tw.Steering(), []
        self.ticks_at_pause = 0

    def listen(self, event: Event) -> None:
        if isinstance(event, Activated):
            self.told.append(event.active)
            CALLS.append("paused" if not event.active else "goes on")
            if event.active:
                CALLS.append("finish")
        if not isinstance(event, Progress):
            return
        ticks = event.snapshot.component("ticking").emitted
        if not self.told and ticks and event.snapshot.tuples_in:
            self.steering.deactivate()
            self.ticks_at_pause = ticks
        elif self.told == [False] and ticks > self.ticks_at_pause + 3:
            self.steering.activate()


@pytest.mark.parametrize(
    "name", [*list(RUNTIMES)[:-1], pytest.param("spark", marks=pytest.mark.spark)]
)
def test_a_source_is_not_asked_while_it_is_inactive(name: str) -> None:
    pausing = Pausing()
    result = topology().run(on=RUNTIMES[name](), steering=pausing.steering, listen=pausing.listen)
    assert pausing.told == [False, True]
    paused = CALLS[CALLS.index("paused") : CALLS.index("goes on")]
    assert "asked" not in paused
    told = [call for call in CALLS if call.endswith("activate")]
    assert told == ["activate", "deactivate"] * 2
    assert result.metrics.tuples_in == CALLS.count("asked") == CALLS.count("ack")


def test_a_source_that_cannot_be_slowed_is_not_asked_either() -> None:
    pausing = Pausing()
    made = topology(overflow="drop_oldest")
    made.run(on=tw.Local(workers=2), steering=pausing.steering, listen=pausing.listen)
    assert "asked" not in CALLS[CALLS.index("paused") : CALLS.index("goes on")]


def test_a_run_may_begin_inactive_and_be_stopped_so() -> None:
    CALLS.clear()
    steering, stop = tw.Steering(), threading.Event()
    steering.deactivate()

    def listen(event: Event) -> None:
        if isinstance(event, Progress) and event.snapshot.component("ticking").emitted > 2:
            stop.set()

    result = topology().run(on=tw.Local(workers=1), steering=steering, stop=stop, listen=listen)
    assert result.metrics.tuples_in == 0
    assert CALLS == ["activate", "deactivate"]
