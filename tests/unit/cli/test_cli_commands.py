"""The commands as people call them: output, messages, exit codes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import thalweg
from thalweg.cli.app import app

PROGRAM = """
import thalweg as tw

def half(n):
    return 10 // (n - 3)

def show(t):
    print(f"seen {t.n}")

def chain(name, **options):
    flow = tw.Flow(name)
    numbers = flow.source("numbers", tw.items(range(3)), fields={"n": int})
    numbers.map(half, **options).sink("out", tw.call(show))
    return flow

flow = chain("good")

failing = tw.Flow("failing")
(failing.source("numbers", tw.items(range(9)), fields={"n": int})
    .map(half).sink("out", tw.call(show)))

skipping = tw.Flow("skipping")
(skipping.source("numbers", tw.items([3] * 7 + [4]), fields={"n": int})
    .map(half, on_error="skip").sink("out", tw.call(show)))

class Told(tw.Spout):
    outputs = ["n"]
    def next_tuple(self):
        self.emit(self.context.settings["word"])
        self.finish()

class Endless(Told):
    def next_tuple(self):
        pass

endless = tw.Flow("endless")
endless.source("words", Endless()).sink("out", tw.call(show))

told = tw.Flow("told")
told.source("words", Told()).sink("out", tw.call(show))
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_run_leaves_standard_output_to_the_sinks() -> None:
    done = call("run", "program.py")
    assert done.exit_code == 0
    assert done.stdout == "seen -4\nseen -5\nseen -10\n"


def test_run_ends_with_a_summary_on_standard_error() -> None:
    lines = call("run", "program.py").stderr.splitlines()
    assert lines[0] == "good runs on local"
    assert any(line.split()[:5] == ["numbers", "1", "0", "3", "0"] for line in lines)
    assert lines[-2].startswith("3 tuples in, 3 out, ")
    assert re.fullmatch(r"latency p50 \S+ ms  p95 \S+ ms  p99 \S+ ms", lines[-1])
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_run_without_an_end_ends_by_time() -> None:
    done = CliRunner().invoke(app, ["run", "program.py:endless", "--time", "0"])
    assert done.exit_code == 0, done.output
    assert "stopped early, before the sources had ended" in done.stderr


def test_quiet_says_nothing() -> None:
    done = call("run", "program.py", "--quiet")
    assert done.stdout.startswith("seen")
    assert done.stderr == ""


def test_an_error_names_component_function_tuple_and_line() -> None:
    done = call("run", "program.py:failing")
    assert done.exit_code == 1
    assert "component 'map-1', task 0, in half (program.py:4): ZeroDivisionError" in done.stderr
    assert "  tuple: n=3\n" in done.stderr
    assert "  raised at program.py:5, in half: return 10 // (n - 3)\n" in done.stderr
    assert "--debug" in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback() -> None:
    done = call("run", "program.py:failing", "--debug")
    assert done.exit_code == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.count("component 'map-1', task 0") == 1


def test_the_first_refused_tuples_are_shown_and_all_counted() -> None:
    done = call("run", "program.py:skipping")
    assert done.exit_code == 0
    assert done.stderr.count("refused by 'map-1', task 0: ZeroDivisionError") == 3
    assert done.stderr.count("  n=3\n") == 3
    assert "refused by 'map-1': 7 in all" in done.stderr
    assert "7 errors" in done.stderr


def test_settings_reach_components() -> None:
    assert call("run", "program.py:told", "--set", "word=a=b").stdout == "seen a=b\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.py"], "file 'nowhere.py': expected a Python file"),
        (["run", "program.py:nothing"], "name 'nothing' in file 'program.py'"),
        (["run", "program.py", "--on", "abacus"], "runtime 'abacus': expected one of ["),
        (["run", "program.py", "--on", "sprak"], "(did you mean 'spark'?)"),
        (["run", "program.py", "--on", ""], "runtime '': expected one of ["),
        (
            ["describe", "program.py", "-o", "x.png"],
            "'x.png': expected .svg for a picture, .mmd or",
        ),
        (["describe", "nowhere.py"], "file 'nowhere.py': expected a Python file"),
        (["describe", "program.py", "--svg", "-o", "no/where.svg"], "output file 'no/where.svg'"),
    ],
)
def test_user_errors_end_with_one(arguments: list[str], message: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 1
    assert done.stderr.startswith("error: ")
    assert message in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["nothing"],
        ["run", "program.py", "--set", "word"],
        ["describe", "program.py", "--set", "word"],
        ["describe", "program.py", "--svg", "--mermaid"],
    ],
)
def test_usage_errors_end_with_two(arguments: list[str]) -> None:
    assert call(*arguments).exit_code == 2


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_version(arguments: list[str]) -> None:
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (0, f"thalweg {thalweg.__version__}\n")


def test_describe_prints_the_tree() -> None:
    done = call("describe", "program.py")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[:3] == [
        "good · 3 components",
        "",
        "numbers   spout, 1 task, on error fail",
    ]


def test_describe_prints_mermaid() -> None:
    assert call("describe", "program.py", "--mermaid").stdout.startswith("flowchart TD\n")


def test_describe_prints_or_writes_svg(tmp_path: Path) -> None:
    printed = call("describe", "program.py", "--svg").stdout
    ElementTree.fromstring(printed)  # noqa: S314 (our own)
    written = call("describe", "program.py", "--svg", "-o", "picture.svg")
    assert written.stdout == ""
    assert (tmp_path / "picture.svg").read_text() == printed
    assert written.stderr == "wrote picture.svg (svg)\n"


@pytest.mark.parametrize(
    ("file", "start"),
    [("a.svg", "<svg "), ("a.mmd", "flowchart"), ("a.MD", "flowchart"), ("a.txt", "good · 3 comp")],
)
def test_the_suffix_chooses_what_is_drawn(tmp_path: Path, file: str, start: str) -> None:
    assert call("describe", "program.py", "-o", file).exit_code == 0
    assert (tmp_path / file).read_text(encoding="utf-8").startswith(start)


def test_a_set_without_a_value_says_what_was_expected() -> None:
    assert "--set: expected key=value, got 'word'" in call("run", "x.py", "--set", "word").stderr


@pytest.mark.parametrize("command", ["run", "describe", "bench"])
def test_help_names_no_types_of_flags(command: str) -> None:
    assert "<bool>" not in call(command, "--help").stdout


#: Names the window, clears the terminal and changes colours; with a byte of C1, and DEL.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31mred\x7f"
REFUSING = f"""
import thalweg as tw

def refuse(text):
    raise ValueError(text)

flow = tw.Flow("refusing")
flow.source("texts", tw.items([{HOSTILE!r}]), fields={{"text": str}}).map(refuse, name="numbers")
"""


@pytest.mark.parametrize("more", [(), ("--debug",)])
def test_a_terminal_obeys_no_tuple_that_ends_a_run(more: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "refusing.py").write_text(REFUSING)
    done = call("run", "refusing.py", *more)
    assert done.exit_code == 1
    assert r"\x1b]0;owned\x07\x1b[2J\x9b31mred\x7f" in done.output
    assert not {*done.output} & {"\x1b", "\x07", "\x7f", "\x9b"}
