"""Standard output that is full, closed, or knows ASCII only."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import thalweg as tw

flow = tw.Flow("small")
numbers = flow.source("numbers", tw.items([1, 2]), fields={"n": int})
numbers.sink("out", tw.call(lambda t: print(t.n, flush=FLUSH)))
"""


def shell(folder: Path, command: str, *, flush: bool = False) -> subprocess.CompletedProcess[str]:
    (folder / "small.py").write_text(PROGRAM.replace("FLUSH", str(flush)))
    return subprocess.run(  # noqa: S602 (our own command)
        f"{shlex.quote(sys.executable)} -m thalweg {command}",
        shell=True,
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        check=False,
    )


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")


@FULL
@pytest.mark.parametrize(
    "command", ["describe small.py", "describe small.py --svg", "run -q small.py", "version"]
)
def test_a_full_device_is_an_error_of_one_line(tmp_path: Path, command: str) -> None:
    done = shell(tmp_path, f"{command} >/dev/full")
    said = (
        "error: standard output: expected to be written, got No space left on device "
        "(the disk is full: df -h shows it; free some, or choose another place)\n"
    )
    assert (done.returncode, done.stderr) == (1, said)


@FULL
def test_a_sink_that_meets_a_full_device_is_reported_once(tmp_path: Path) -> None:
    done = shell(tmp_path, "run -q small.py >/dev/full", flush=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: component 'out'")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("command", ["describe small.py", "run small.py", "run -q small.py"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output_is_no_error(tmp_path: Path, command: str, closed: str) -> None:
    done = shell(tmp_path, f"{command} {closed}")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_tree_in_ascii(tmp_path: Path) -> None:
    lines = shell(tmp_path, "describe small.py").stdout.splitlines()
    assert lines[0] == "small * 2 components"
    assert lines[-2].startswith("+- out   sink")
    assert "|" in lines
