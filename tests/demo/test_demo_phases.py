"""The phases of the demo on this machine, on a stream of a second; and the command."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from thalweg.cli import demo as command
from thalweg.cli.app import app
from thalweg.dashboard.hub import Hub
from thalweg.demo.data import made_up
from thalweg.demo.describing import Wave
from thalweg.demo.phases import PHASES, Phase, Size
from thalweg.demo.playing import Continued, Played, Stage
from thalweg.demo.reporting import demo_page
from thalweg.errors import UsageError
from thalweg.events import Event

WAVE = Wave.of(0.2, 1000, 3000)
TINY = Size(WAVE, WAVE, speed=100, every=0.1, batch=0.2, rows=1000)
HERE = tuple(phase for phase in PHASES if phase.runtime == "local")


class Audience:
    """Notes what it is told; may stop the demo when a phase begins."""

    def __init__(self, stop: threading.Event | None = None) -> None:
        self.begun: list[Phase] = []
        self.ended: list[Phase] = []
        self._stop = stop

    def begins(self, phase: Phase, _wave: Wave) -> Callable[[Event], None]:
        self.begun.append(phase)
        if self._stop is not None:
            self._stop.set()
        return lambda _event: None

    def ends(self, played: Played) -> None:
        self.ended.append(played.finding.phase)


def stage(folder: Path, audience: Audience, stop: threading.Event | None = None) -> Stage:
    stopped = stop or threading.Event()
    return Stage(made_up(1000, 1), TINY, folder, Hub(), stopped, audience, Continued())


def test_phases_are_played_recorded_and_told_in_their_order(tmp_path: Path) -> None:
    audience = Audience()
    on = stage(tmp_path, audience)
    played = list(on.play(HERE))
    assert audience.begun == audience.ended == [each.finding.phase for each in played] == [*HERE]
    assert all(each.finding.rate > 0 for each in played)
    assert set(played[0].finding.degrees) == {4}
    assert played[0].finding.reconfigurations == 0
    assert played[0].leading == played[1].leading  # the same counts, whatever moved
    text = demo_page(on.data, played)
    assert [f"<h1><bdi>{phase.name}</bdi></h1>" in text for phase in HERE] == [True, True]
    assert "<script" not in text


def test_the_page_gets_all_phases_with_numbers_that_rise(tmp_path: Path) -> None:
    on = stage(tmp_path, Audience())
    list(on.play(HERE))
    records = [msgspec.json.decode(kept.data) for kept in on.hub.after(0)]
    numbers = [record["n"] for record in records]
    assert numbers == sorted(set(numbers))
    begins = [record for record in records if record["kind"] == "topology"]
    assert [record["name"] for record in begins] == ["trending-hash", "trending-aware"]
    assert [record["policy"] for record in begins] == ["", "thalweg"]
    first_look = next(r for r in records if r["n"] > begins[1]["n"])
    assert first_look["at"] <= records[-1]["at"]  # its time began anew


def test_a_phase_that_was_stopped_is_left_out_and_no_other_begins(tmp_path: Path) -> None:
    stop = threading.Event()
    audience = Audience(stop)
    assert list(stage(tmp_path, audience, stop).play(HERE)) == []
    assert (audience.begun, audience.ended) == ([HERE[0]], [])


@pytest.fixture
def without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the command be short, and find no Spark."""

    def started(*_given: Any) -> Any:
        text = "no Java"
        raise UsageError(text)

    monkeypatch.setattr(command, "started", started)
    monkeypatch.setattr(command, "FAST", TINY)
    monkeypatch.setattr(command, "FULL", TINY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["demo", *arguments])


def test_the_command_sums_up_and_writes_its_report(without_spark: Path) -> None:
    ended = call("--fast")
    assert ended.exit_code == 0, ended.output
    assert re.search(r"watch it live: http://127\.0\.0\.1:\d+/\?token=", ended.stderr)
    assert "without Spark, because: no Java" in ended.stderr
    assert "thalweg doctor" in ended.stderr
    for name in ("local, hash", "local, locality-aware"):
        assert re.search(rf"^ {name} +[\d,]+ ", ended.stdout, re.MULTILINE)
    assert "Report with plots: thalweg-demo.html" in ended.stdout
    assert "\x1b" not in ended.output  # plain, without a terminal
    assert "Thalweg: the demo" in (without_spark / "thalweg-demo.html").read_text()


def test_the_command_takes_a_file_of_yours(without_spark: Path) -> None:
    (without_spark / "shop.csv").write_text("who,what\nada,tea\nbob,jam\n")
    ended = call("--data", "shop.csv", "--keys", "who,what", "--report", "mine.html")
    assert ended.exit_code == 0, ended.output
    assert "2 records of shop.csv" in ended.stderr
    assert "Leading: " in ended.stdout
    assert (without_spark / "mine.html").exists()


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--data", "shop.csv"], 2, "--data and --keys"),
        (["--keys", "a,b"], 2, "--data and --keys"),
        (["--data", "none.csv", "--keys", "a,b"], 1, "expected a file, got none"),
        (["--report", "nowhere/x.html"], 1, "expected a file to write, got no folder 'nowhere'"),
        (["--report", "."], 1, "expected a file to write, got a folder"),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    arguments: list[str], code: int, expected: str
) -> None:
    ended = call(*arguments)
    assert ended.exit_code == code
    assert expected in ended.output.replace("\n", " ")
    assert "watch it live" not in ended.output


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("there", [False, True])
def test_a_report_that_may_not_be_written_is_told_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if there:
        Path("mine.html").touch()
    place = Path("mine.html" if there else ".")
    refused = (place, os.W_OK)
    monkeypatch.setattr(os, "access", lambda path, mode: (Path(path), mode) != refused)
    ended = call("--report", "mine.html")
    assert ended.exit_code == 1
    said = f"expected a file to write, got no right to change {str(place)!r}"
    assert said in ended.output.replace("\n", " ")
    assert "watch it live" not in ended.output


@pytest.mark.usefixtures("without_spark")
def test_results_are_shown_although_the_report_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_given: Any, **_options: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    ended = call("--fast")
    assert ended.exit_code == 1
    assert "local, locality-aware" in ended.stdout
    assert "Leading: " in ended.stdout
    assert "Report with plots" not in ended.stdout
    assert "expected to be written, got No space left on device" in ended.stderr.replace("\n", " ")
