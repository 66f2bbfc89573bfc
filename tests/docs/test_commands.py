"""Every ``thalweg`` command that README and docs show runs, and prints what they show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.markdown import PAGES, ROOT, Command, commands, fenced_blocks, matches

#: Commands that are shown for people; running them here would install or test everything again.
FOR_PEOPLE = ("git clone ", "cd ", "pip install ", "python -m venv ")
CASES = [
    (name, command)
    for name, path in PAGES.items()
    for block in fenced_blocks(path.read_text(encoding="utf-8"))
    if block.language == "console"
    for command in commands(block)
]
IDS = [f"{name}:{command.line}" for name, command in CASES]


def runnable(text: str) -> str | None:
    """Give what to run for a command; the demo is run short, without the set-up before it."""
    if text == "scripts/demo":
        script = (ROOT / "scripts" / "demo").read_text(encoding="utf-8")
        found = re.search(r'/\.venv/bin/thalweg" (.*) "\$@"$', script, re.MULTILINE)
        assert found is not None
        return f"thalweg {found[1]} --fast"
    return text if text.startswith("thalweg ") else None


def run(text: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a terminal in the project's folder would, where lines appear at once."""
    bin_folder = str(Path(sys.executable).parent)
    path = os.pathsep.join([bin_folder, os.environ.get("PATH", "")])
    kept = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "FORCE_COLOR"}}
    given = {"NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
    return subprocess.run(  # noqa: S602 (commands of our own pages)
        text,
        shell=True,
        cwd=ROOT,
        env=kept | given | {"PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize(("name", "command"), CASES, ids=IDS)
def test_the_command_prints_what_the_page_shows(name: str, command: Command) -> None:
    text = runnable(command.text)
    if text is None:
        is_script = command.text.startswith("scripts/")
        script = ROOT / command.text.split()[0]
        assert os.access(script, os.X_OK) if is_script else command.text.startswith(FOR_PEOPLE)
        return
    ended = run(text)
    shown = command.shown or ["..."]
    fails = any(line.startswith(("error:", "Error:")) for line in shown)
    assert (ended.returncode != 0) == fails, ended.stdout
    assert matches(shown, ended.stdout.splitlines()), ended.stdout


def test_an_output_that_differs_is_told_apart() -> None:
    assert not matches(["thalweg 0.0.1"], ["thalweg 0.1.0"])
    assert not matches(["a", "...", "b"], ["a", "c"])
    assert not matches(["..., 0 errors"], ["5 tuples, 1 errors"])
    assert matches(["a", "...", "b"], ["a", "b"])
    assert matches(["...", "took ... s"], ["x", "y", "took 1 s"])
