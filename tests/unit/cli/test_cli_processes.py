"""What only a process of its own can show: signals and closed pipes."""

from __future__ import annotations

import os
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
#: Two tasks that keep something in attributes, each in a process of its own.
COUNTING = """
import itertools, os
import thalweg as tw

def say(line):  # at once, so that lines of two processes do not mix, also where Python buffers none
    os.write(1, f"{line}\\n".encode())

class Count(tw.Bolt):
    outputs = {"n": int}

    def prepare(self, context):
        self.count = 0

    def process(self, t):
        self.count += 1
        if self.count == 1:
            say("begun")
        self.emit(t.n)

    def process_end(self):
        say(f"counted {self.count}")

builder = tw.TopologyBuilder("counting")
numbers = tw.rate(tw.constant(1000), ({"n": n} for n in itertools.count()))
builder.add_spout("numbers", numbers, fields={"n": int})
builder.add_bolt("count", Count(), degree=2, isolation="process").shuffle("numbers")
builder.add_bolt("out", tw.call(lambda t: None)).shuffle("count")
topology = builder.build()
"""
#: A component that ends what it has started, a copy of its process and another program.
ENDING = """
import multiprocessing, subprocess, time
import thalweg as tw

def wait(begun):
    begun.set()
    time.sleep(1000)

def ends(n):
    context = multiprocessing.get_context("fork")
    begun = context.Event()
    copy = context.Process(target=wait, args=(begun,))
    copy.start()
    begun.wait()
    copy.terminate()
    copy.join()
    other = subprocess.Popen(["sleep", "1000"])
    other.terminate()
    print(copy.exitcode, other.wait(), flush=True)
    return n

flow = tw.Flow("ending")
numbers = flow.source("numbers", tw.items([1]), fields={"n": int})
numbers.map(ends, fields={"n": int}, isolation="ISOLATION").sink("out", tw.collect([]))
"""
STUCK_IN_A_PROCESS = STUCK.replace(
    '.sink("out", tw.call(wait))',
    '.map(wait, fields={"m": int}, isolation="process").sink("out", tw.collect([]))',
)

Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(text: str) -> subprocess.Popen[str]:
        file = tmp_path / "program.py"
        file.write_text(text)
        process = subprocess.Popen(  # noqa: S603 (our own command)
            [COMMAND, "run", file],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
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


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_group_lets_components_in_processes_say_their_last_words(
    start: Start, sent: signal.Signals
) -> None:
    process = start(COUNTING)
    assert [next_line(process) for _ in range(2)] == ["begun\n"] * 2
    os.killpg(process.pid, sent)  # as a terminal, timeout and service managers do
    output, errors, code = finish(process)
    assert code == 0
    assert "restarted" not in errors
    counted = sum(int(line.removeprefix("counted ")) for line in output.splitlines())
    assert f"{counted:,} tuples in, {counted:,} out" in errors


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_components_end_what_they_have_started(start: Start, isolation: str) -> None:
    process = start(ENDING.replace("ISOLATION", isolation))
    assert next_line(process) == f"{-signal.SIGTERM} {-signal.SIGTERM}\n"
    assert finish(process)[2] == 0


def test_a_process_of_a_component_whose_run_was_killed_can_be_ended(start: Start) -> None:
    process = start(STUCK_IN_A_PROCESS)
    assert next_line(process) == "waiting\n"
    process.kill()
    process.wait()
    os.killpg(process.pid, signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.read() == ""  # nobody has it open any more


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
