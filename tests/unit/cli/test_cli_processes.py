"""What only a process of its own can show: signals and closed pipes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("thalweg")
ENDLESS = """
import itertools
import thalweg as tw

flow = tw.Flow("endless")
numbers = flow.source("numbers", tw.items(itertools.count()), fields={"n": int})
numbers.sink("out", tw.call(lambda t: print(t.n, flush=True)))
"""
STUCK = """
import threading
import thalweg as tw

def wait(t):
    print("waiting", flush=True)
    threading.Event().wait()

flow = tw.Flow("stuck")
flow.source("numbers", tw.items([1]), fields={"n": int}).sink("out", tw.call(wait))
"""
#: The same in a thread of its own: the first one has to ask the source all the time.
STUCK_ELSEWHERE = STUCK.replace("tw.items([1])", "tw.rate(tw.constant(10), [1])").replace(
    '{"n": int}', '{"n": int}, overflow="drop_oldest"'
)

Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(text: str) -> subprocess.Popen[str]:
        file = tmp_path / "program.py"
        file.write_text(text)
        process = subprocess.Popen(  # noqa: S603 (our own command)
            [COMMAND, "run", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def finish(process: subprocess.Popen[str]) -> tuple[str, str, int]:
    """Read the rest; not by communicate(), which does not see what a readline has buffered."""
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdout.read(), process.stderr.read(), process.wait()


def but_progress(text: str) -> list[str]:
    """Give the lines without those that a run shows every few seconds, if it takes as long."""
    return [line for line in text.splitlines() if not re.match(r" *[\d.]+ s  ", line)]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_what_is_under_way_and_reports(
    start: Start, sent: signal.Signals
) -> None:
    process = start(ENDLESS)
    assert next_line(process) == "0\n"
    process.send_signal(sent)
    output, errors, code = finish(process)
    assert code == 0
    assert "stopping: what is under way will be finished" in errors
    assert errors.endswith("stopped early, before the sources had ended\n")
    seen = len(output.splitlines()) + 1
    assert f"{seen:,} tuples in, {seen:,} out" in errors


@pytest.mark.parametrize("program", [STUCK, STUCK_ELSEWHERE], ids=["here", "elsewhere"])
def test_a_second_ctrl_c_aborts(start: Start, program: str) -> None:
    process = start(program)
    assert next_line(process) == "waiting\n"
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("stopping"):
            break
    process.send_signal(signal.SIGINT)
    _, errors, code = finish(process)
    assert code == 130
    assert but_progress(errors) == ["aborted"]


def test_a_reader_that_leaves_ends_the_run_quietly(start: Start) -> None:
    process = start(ENDLESS)
    assert next_line(process) == "0\n"
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert but_progress(process.stderr.read()) == ["endless runs on local"]
    assert process.wait() == 0
