"""The demo's phases on Spark, in one session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from sparksession import spark_session
from thalweg.dashboard.hub import Hub
from thalweg.demo.data import made_up
from thalweg.demo.describing import Wave
from thalweg.demo.phases import PHASES, Phase, Size
from thalweg.demo.playing import Continued, Played, Stage
from thalweg.events import Event

WAVE = Wave.of(0.2, 1000, 3000)
TINY = Size(WAVE, WAVE, speed=100, every=0.1, batch=0.2, rows=1000)


class Nobody:
    def begins(self, _phase: Phase, _wave: Wave) -> Callable[[Event], None]:
        return lambda _event: None

    def ends(self, played: Played) -> None:
        pass


def test_both_ways_count_the_same_and_say_how_many_tuples_were_shuffled(tmp_path: Path) -> None:
    on = Stage(made_up(1000, 1), TINY, tmp_path, Hub(), threading.Event(), Nobody(), Continued())
    plain, aware = on.play(PHASES[:2], spark_session())
    assert plain.leading == aware.leading
    assert [each.finding.phase.runtime for each in (plain, aware)] == ["spark", "spark"]
    assert plain.finding.shuffled is not None
    assert set(plain.finding.degrees) == {4}
    assert plain.finding.reconfigurations == 0
