"""The command on a real Spark: a program of several files, its output, what is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).with_name("thalweg")
HELPER = """
def double(n):
    return n * 2
"""
PROGRAM = """
import thalweg as tw
from helper import double

class Sum(tw.Bolt):
    kind = tw.Kind.GLOBAL
    outputs = ["total"]

    def process(self, t):
        self.state.put("total", self.state.get("total", 0) + t.n)

    def process_end(self):
        self.emit(self.state.get("total"))

def show(t):
    print(f"the sum is {t.total}")

def program(settings) -> tw.Flow:
    flow = tw.Flow("sums")
    numbers = flow.source("numbers", tw.items(range(int(settings["count"]))), fields={"n": int})
    numbers.map(double, degree=2).through("sum", Sum()).sink("out", tw.call(show))
    return flow
"""


def test_a_program_of_several_files_runs_on_spark(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "program.py").write_text(PROGRAM)
    options = ["--master", "local[2]", "--places", "2", "--checkpoint", "kept"]
    done = subprocess.run(  # noqa: S603 (our own command)
        [COMMAND, "run", "program.py", "--on", "spark", *options, "--set", "count=1000"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "COLUMNS"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("the sum is 999000\n", 0), done.stderr
    lines = done.stderr.splitlines()
    assert lines[0] == "starting Spark at local[2] (this takes a few seconds)"
    assert lines[1] == "sums runs on spark"
    assert lines[-2].startswith("1,000 tuples in, 1 out, ")
    assert " batches, batch time p50 " in lines[-1]
    assert "WARNING" not in done.stderr
    assert list((tmp_path / "kept" / "state" / "manifests").iterdir())


SCRIPT = """
import traceback
import thalweg as tw

def picky(n):
    if n == 7:
        raise ValueError("not seven")
    return n

def run(count):
    flow = tw.Flow("picky")
    numbers = flow.source("numbers", tw.items(range(count)), fields={"n": int})
    numbers.map(picky, fields="n").sink("out", tw.stdout(limit=1))
    flow.run(on=tw.Spark(master="local[2]"))

if __name__ == "__main__":
    run(3)
    try:
        run(9)
    except tw.ComponentError as error:
        print(error)
        print("".join(traceback.format_exception(error.__cause__)))
"""


def test_a_script_on_spark_shows_its_own_errors_and_nothing_of_spark(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert "component 'map-1', task " in done.stdout
    assert "\n  tuple: n=7\n" in done.stdout
    assert '\n  raised at script.py:7, in picky: raise ValueError("not seven")\n' in done.stdout
    assert ", line 7, in picky\n" in done.stdout
