"""Bars: in a terminal only, gone when the work is done, never in what is piped."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import thalweg as tw
from thalweg.cli.bars import bar
from thalweg.recording.recorder import Recorder

#: Moves the cursor up, or clears a line: what no file should have.
CONTROLS = "\x1b"


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100, legacy_windows=False)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_bar_says_what_is_done_and_how_much() -> None:
    console = terminal()
    with bar("reading data.csv", 2000, "records", console) as read:
        read.reach(1000)
        console.print("a line that stays")
        read.advance(500)
    text = written(console)
    assert "reading data.csv" in text
    assert "1,500 of 2,000 records" in text
    assert "a line that stays" in text


def test_steps_have_names() -> None:
    console = terminal()
    with bar("hashing", 2, console=console) as done:
        done.step("counting")
        console.print("")  # draws
    assert "counting" in written(console)


def test_without_a_total_it_counts() -> None:
    console = terminal()
    with bar("writing", unit="keys", console=console) as keys:
        keys.advance(1234)
        console.print("")
    assert "1,234 keys" in written(console)


@pytest.mark.parametrize("options", [{"force_terminal": False}, {"force_terminal": True}])
def test_nothing_is_shown_without_a_terminal_that_can_write_over(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, bool]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    console = Console(file=io.StringIO(), **options)  # type: ignore[arg-type] # one option
    with bar("reading", 2, "records", console) as read:
        read.advance()
    assert written(console) == ""


def test_a_result_in_a_file_has_no_bar_in_it(tmp_path: Path) -> None:
    flow = tw.Flow("words")
    flow.source("words", tw.items(["a"]), fields=["word"]).tally("counts", key="word")
    topology, recording, to = flow.build(), tmp_path / "run.sqlite", tmp_path / "page.html"
    with Recorder(recording, topology, "inline") as recorder:
        topology.run(on="inline", listen=recorder.listen)
    shown = in_a_terminal(["report", str(recording)], to)
    assert f"reading {recording.name}" in shown.replace(f"{tmp_path}/", "")
    assert CONTROLS in shown
    page = to.read_text()
    assert page.endswith("</html>\n")
    assert CONTROLS not in page
    silent = subprocess.run(  # noqa: S603 (our own command)
        [sys.executable, "-m", "thalweg", "report", str(recording)],
        capture_output=True,
        check=True,
        text=True,
    )
    assert (silent.stdout, silent.stderr) == (page, "")


def in_a_terminal(words: list[str], to: Path) -> str:
    """Run a command whose standard error is a terminal; its output goes to a file."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "300"}
    with to.open("wb") as file:
        command = [sys.executable, "-m", "thalweg", *words]
        process = subprocess.Popen(command, stdout=file, stderr=theirs, env=env)  # noqa: S603 (ours)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # how the other end of a terminal closes
        pass
    finally:
        os.close(ours)
    assert process.wait() == 0
    return shown.decode()
