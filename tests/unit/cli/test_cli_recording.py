"""``--record``, ``--log-format`` and ``thalweg report`` as people call them."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from thalweg.cli.app import app
from thalweg.recording import files
from thalweg.recording.floods import FIRST
from thalweg.recording.reading import Recording

PROGRAM = """
import thalweg as tw

flow = tw.Flow("words")
(flow.source("words", tw.items(["to", "be", "to"]), fields={"word": str})
    .tally("counts", key="word"))

failing = tw.Flow("failing")
failing.source("numbers", tw.items([0]), fields={"n": int}).map(lambda n: 1 // n, name="halves")
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "words.csv").write_text("word\nto\nbe\n")


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def kinds(path: str) -> list[str]:
    with Recording.open(path) as recording:
        return [record["kind"] for record in recording.records()]


def logged(done: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stderr.splitlines()]


RUN = ("run", "program.py:flow", "--on", "inline")


def test_a_run_is_recorded_and_says_where() -> None:
    done = call(*RUN, "--record", "run.sqlite")
    assert done.exit_code == 0, done.output
    assert "records in run.sqlite" in done.stderr
    found = kinds("run.sqlite")
    assert (found[:2], found[-1]) == (["topology", "run_started"], "run_finished")


def test_the_local_runtime_is_recorded() -> None:
    assert call("run", "program.py:flow", "-q", "--record", "run.sqlite").exit_code == 0
    with Recording.open("run.sqlite") as recording:
        summary = recording.summary()
    assert (summary.runtime, summary.end) == ("local", "ended")


def test_a_query_and_a_scaled_run_are_recorded() -> None:
    query = ("sql", "SELECT word FROM words", "--source", "words=words.csv", "--on", "inline")
    assert call(*query, "--record", "query.sqlite").exit_code == 0
    assert kinds("query.sqlite")[-1] == "run_finished"
    assert call("scale", "program.py:flow", "--record", "scaled.sqlite").exit_code == 0
    with Recording.open("scaled.sqlite") as recording:
        assert recording.summary().policy == "thalweg"


def test_a_recording_that_is_there_is_not_overwritten() -> None:
    assert call(*RUN, "--record", "run.sqlite").exit_code == 0
    done = call(*RUN, "--record", "run.sqlite")
    assert done.exit_code == 1
    assert "expected a new file, got one that exists" in done.stderr


def test_a_failed_run_is_recorded() -> None:
    done = call("run", "program.py:failing", "--on", "inline", "--record", "run.sqlite")
    assert done.exit_code == 1
    assert kinds("run.sqlite")[-1] == "run_failed"


def test_the_log_is_lines_of_json() -> None:
    done = call(*RUN, "--log-format", "json")
    assert done.exit_code == 0
    lines = logged(done)
    kinds = [line["kind"] for line in lines if line["kind"] != "progress"]  # on a slow machine
    assert kinds == ["topology", "run_started", "run_finished"]
    assert [line["n"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["snapshot"]["tuples_in"] == 3
    assert "components" not in lines[-1]["snapshot"]


def test_the_log_has_the_first_of_many_refusals_and_counts_the_others() -> None:
    Path("refusing.py").write_text(
        "import thalweg as tw\nflow = tw.Flow('refusing')\n"
        "source = flow.source('numbers', tw.items(range(3000)), fields={'n': int})\n"
        "source.map(lambda n: n // 0, name='halves', fields='n', on_error='skip')\n"
    )
    lines = logged(call("run", "refusing.py", "--on", "inline", "--log-format", "json"))
    refused = [line for line in lines if line["kind"] == "tuple_refused"]
    assert FIRST <= len(refused) < 3000
    assert (lines[-1]["kind"], lines[-1]["others"]) == ("lost", 3000 - len(refused))


def test_the_log_says_where_the_page_is_but_not_its_token() -> None:
    done = call(*RUN, "--log-format", "json", "--ui")
    lines = logged(done)
    (page,) = [line for line in lines if line["kind"] == "page"]
    assert page["address"].startswith("http://127.0.0.1:")
    assert "token=" not in done.stderr
    assert not Path(page["token_in"]).exists()  # it goes with the page


def test_the_log_of_a_failed_run_ends_with_the_error() -> None:
    done = call("run", "program.py:failing", "--on", "inline", "--log-format", "json")
    last = logged(done)[-1]
    assert (last["kind"], last["component"]) == ("run_failed", "halves")


def test_the_log_of_a_failed_run_can_have_the_traceback() -> None:
    done = call("run", "program.py:failing", "--on", "inline", "--log-format", "json", "--debug")
    failed, traced = logged(done)[-2:]
    assert (failed["kind"], traced["kind"]) == ("run_failed", "traceback")
    assert traced["text"].startswith("Traceback")


def test_the_log_says_why_nothing_was_run() -> None:
    (failed,) = logged(call("run", "nothing.py", "--log-format", "json"))
    assert failed["kind"] == "run_failed"
    assert "nothing.py" in failed["text"]


def test_the_log_of_a_scaled_run_has_no_tables() -> None:
    done = call("scale", "program.py:flow", "--log-format", "json")
    assert logged(done)[-1]["kind"] == "run_finished"


def test_the_log_says_that_a_recording_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "add", full)
    done = call(*RUN, "--log-format", "json", "--record", "run.sqlite")
    last = logged(done)[-1]
    assert last["kind"] == "noticed"
    assert "ends early" in last["text"]


def test_a_report_is_written() -> None:
    call(*RUN, "--record", "run.sqlite")
    done = call("report", "run.sqlite", "-o", "report.html")
    assert (done.exit_code, done.stdout) == (0, "")
    assert Path("report.html").read_text().startswith("<!DOCTYPE html>")
    assert Path("report.html").stat().st_mode & 0o777 == 0o600  # it has tuples in it
    assert call("report", "run.sqlite").stdout == Path("report.html").read_text()


def test_a_report_of_something_else_is_refused() -> None:
    done = call("report", "program.py")
    assert done.exit_code == 1
    assert "recording 'program.py'" in done.stderr
    call(*RUN, "--record", "run.sqlite")
    done = call("report", "run.sqlite", "-o", "none/report.html")
    assert "expected to be written, got No such file" in done.stderr


def test_submit_hands_the_options_on() -> None:
    options = ("--record", "run.sqlite", "--log-format", "json", "--dry-run")
    done = call("submit", "program.py:flow", "--master", "local[2]", *options)
    assert "--record run.sqlite --log-format json" in done.stdout


def test_help_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    lines = call("--help").stdout.splitlines()
    assert len(lines) <= 23  # and the prompt
    assert max(map(len, lines)) <= 80
    assert {"run", "server", "doctor"} <= {line.split()[0] for line in lines}
    assert "--install-completion" in " ".join(lines[-2:])


def test_shells_can_complete_commands() -> None:
    asked = {"_THALWEG_COMPLETE": "complete_bash", "COMP_WORDS": "thalweg re", "COMP_CWORD": "1"}
    done = CliRunner().invoke(app, [], env=asked, prog_name="thalweg")
    assert done.stdout.split() == ["rebalance", "reroute", "report"]
