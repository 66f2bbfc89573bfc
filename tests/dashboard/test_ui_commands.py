"""``thalweg run --ui`` and ``thalweg ui``, as people start and stop them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from running_page import Running, program, running
from typer.testing import CliRunner
from visiting import words

from thalweg.cli import dashboards, saying
from thalweg.cli.app import app
from thalweg.cli.running import stop_on_interrupt
from thalweg.events import Noticed
from thalweg.recording.recorder import Recorder


def get(run: Running, path: str) -> Any:
    with urllib.request.urlopen(run.plain + path) as answer:  # noqa: S310 (our own server)
        return json.load(answer)


def post(run: Running, path: str, token: str) -> int:
    request = urllib.request.Request(run.plain + path, b"{}", method="POST")  # noqa: S310 (ours)
    request.add_header("Content-Type", "application/json")
    request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310 (our own server)
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def records(run: Running) -> list[dict[str, Any]]:
    """Give all records; those of a long run come in pieces."""
    found: list[dict[str, Any]] = []
    while more := get(run, f"api/records?after={found[-1]['n'] if found else 0}"):
        found += more
    return found


def until_kind(run: Running, kind: str) -> dict[str, Any]:
    while True:
        found = [record for record in get(run, "api/records") if record["kind"] == kind]
        if found:
            return found[0]
        time.sleep(0.02)


def test_a_run_is_shown_from_its_beginning_and_ended_from_its_page(tmp_path: Path) -> None:
    recorded = tmp_path / "run.sqlite"
    words = ["run", str(program(tmp_path)), "--ui", "--record", str(recorded)]
    with running(*words) as run:
        token = run.address.partition("token=")[2]
        assert run.plain.startswith("http://127.0.0.1:")
        assert until_kind(run, "topology")["name"] == "live"
        assert until_kind(run, "run_started")["runtime"] == "local"
        assert until_kind(run, "tuple_refused")["component"] == "check"
        assert until_kind(run, "progress")["snapshot"]["components"]
        offered = {"pause", "resume", "kill", "rebalance", "set-policy"}
        assert set(get(run, "api/state")["actions"]) == offered
        assert post(run, "api/actions/kill", "x" * 43) == 401
        assert post(run, "api/actions/kill", token) == 200
        said = run.end()
        assert "stopped early" in said
        assert token not in said
    for sent in (signal.SIGINT, signal.SIGTERM):
        with running("ui", str(recorded)) as replay:
            kinds = [record["kind"] for record in records(replay)]
            assert kinds[0] == "topology"
            assert kinds[-1] == "run_finished"
            assert get(replay, "api/state")["live"] is False
            replay.process.send_signal(sent)
            replay.end()


def test_a_page_can_stay_after_its_run(tmp_path: Path) -> None:
    path = tmp_path / "short.py"
    path.write_text(
        "import thalweg as tw\nflow = tw.Flow('short')\n"
        "flow.source('s', tw.items([1, 2]), fields={'n': int}).tally('t', key='n')\n"
    )
    with running("run", str(path), "--ui", "--ui-stay") as run:
        last = until_kind(run, "run_finished")
        assert last["snapshot"]["tuples_in"] == 2
        run.until_said("the page stays until Ctrl-C")  # one before that would be the run's
        run.process.send_signal(signal.SIGINT)
        assert run.end() == ""  # nothing is under way that would be finished


class Pressed:
    """A terminal at which somebody presses Ctrl-C as soon as something is printed."""

    def print(self, *_texts: str, **_options: Any) -> None:
        signal.raise_signal(signal.SIGINT)


def test_a_ctrl_c_in_the_moment_that_it_is_asked_for_ends_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saying, "error_console", Pressed)
    with stop_on_interrupt(threading.Event()):
        dashboards._stay(logs=False)
    with Recorder(tmp_path / "run.sqlite", words(), "local"):
        pass
    dashboards.show_recording(tmp_path / "run.sqlite", "127.0.0.1", 0)


def test_how_far_a_recording_is_read_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []

    class Shown:
        def advance(self) -> None:
            shown.append(1)

    @contextmanager
    def bar(what: str, total: float, unit: str) -> Iterator[Shown]:
        shown.append((what, total, unit))
        yield Shown()

    monkeypatch.setattr(dashboards, "bar", bar)
    monkeypatch.setattr(saying, "error_console", Pressed)
    path = tmp_path / "run.sqlite"
    with Recorder(path, words(), "local") as recorder:
        recorder.listen(Noticed("begun"))
    dashboards.show_recording(path, "127.0.0.1", 0)
    assert shown == [(f"reading {path}", 2, "records"), 1, 1]


def failing(folder: Path) -> Path:
    path = folder / "failing.py"
    path.write_text(
        "import thalweg as tw\nflow = tw.Flow('failing')\n"
        "flow.source('s', tw.items([1, 0]), fields={'n': int}).map(lambda n: 1 // n, fields='n')\n"
    )
    return path


def test_a_page_can_stay_after_a_run_that_fails(tmp_path: Path) -> None:
    with running("run", str(failing(tmp_path)), "--ui", "--ui-stay") as run:
        run.until_said("ZeroDivisionError")
        run.until_said("the page stays until Ctrl-C")
        assert "ZeroDivisionError" in until_kind(run, "run_failed")["text"]
        run.process.send_signal(signal.SIGINT)
        assert "ZeroDivisionError" not in run.end(1)  # it was said before


def test_a_page_that_stays_says_so_in_a_line_of_json(tmp_path: Path) -> None:
    words = ["run", str(failing(tmp_path)), "--ui", "--ui-stay", "--log-format", "json"]
    process = subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, "-m", "thalweg", *words], stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(json.loads(line))
            if "the page stays until Ctrl-C" in line:
                process.send_signal(signal.SIGINT)
    assert process.returncode == 1
    kinds = [record["kind"] for record in said]
    assert (kinds[0], kinds.count("run_failed")) == ("page", 1)
    assert kinds[-2:] == ["run_failed", "noticed"]  # nothing is told of the Ctrl-C


def test_a_run_that_fails_ends_with_its_page(tmp_path: Path) -> None:
    path = failing(tmp_path)
    result = CliRunner().invoke(app, ["run", str(path), "--ui"])
    assert result.exit_code == 1
    assert "ZeroDivisionError" in result.output


@pytest.mark.parametrize("words", [["--ui-stay"], ["--ui-port", "1"], ["--ui-host", "::1"]])
def test_where_the_page_is_needs_a_page(tmp_path: Path, words: list[str]) -> None:
    result = CliRunner().invoke(app, ["run", str(program(tmp_path)), *words])
    assert result.exit_code == 2
    assert f"{words[0]}: expected only together with --ui" in result.output


def test_a_page_does_not_listen_at_no_address(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.sqlite", words(), "local"):
        pass
    root = ["--root", str(tmp_path / "server"), "--allow", str(tmp_path)]
    for words_ in (
        ["run", str(failing(tmp_path)), "--ui", "--ui-host", ""],
        ["ui", str(tmp_path / "run.sqlite"), "--host", ""],
        ["server", "start", "--foreground", *root, "--host", ""],
    ):
        result = CliRunner().invoke(app, words_)
        assert result.exit_code == 1
        assert "error: address: expected one of this machine, got none (127.0.0.1" in result.output


def test_who_shows_a_file_cannot_name_a_server_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "none.sqlite")
    result = CliRunner().invoke(app, ["ui", file, "--root", str(tmp_path)])
    assert result.exit_code == 2
    assert "--root: expected only without FILE.sqlite" in result.output
    monkeypatch.setenv("THALWEG_ROOT", str(tmp_path))  # is for other commands
    result = CliRunner().invoke(app, ["ui", file])
    assert result.exit_code == 1
    assert "none.sqlite" in result.output


def test_what_is_no_recording_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "other.sqlite").write_text("no database")
    for name in ("other.sqlite", "none.sqlite"):
        result = CliRunner().invoke(app, ["ui", str(tmp_path / name)])
        assert result.exit_code == 1
        assert name in result.output
