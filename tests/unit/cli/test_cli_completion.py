"""What people see first of a group of commands, and what shells complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thalweg.cli.app import app

#: Lines and columns of a screen.
SCREEN = 24, 80
COMMAND = Path(sys.executable).with_name("thalweg")
BASH = pytest.mark.skipif(
    shutil.which("bash") is None or not COMMAND.exists(), reason="needs bash and the command"
)


@pytest.mark.parametrize("group", [["state"], ["server"], ["storm"]])
def test_help_of_a_group_fits_a_screen(group: list[str]) -> None:
    said = CliRunner().invoke(app, [*group, "--help"], env={"COLUMNS": "80"}).stdout.splitlines()
    assert len(said) <= SCREEN[0]
    assert max(map(len, said)) <= SCREEN[1]
    assert not [line for line in said if line.endswith("...") and not line.startswith("Usage")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    wanted = {"_THALWEG_COMPLETE": f"source_{shell}"}
    done = CliRunner().invoke(app, [], env=wanted, prog_name="thalweg")
    assert done.exit_code == 0
    assert f"_THALWEG_COMPLETE=complete_{shell}" in done.stdout


#: What is typed, and what there is to complete it.
TYPED = {
    "re": {"rebalance", "reroute", "report"},
    "state ex": {"export"},
    "run flow.py --ui-p": {"--ui-port"},
    "run flow.py --log-format js": {"json"},
    "sql query --format js": {"jsonl"},
}


@BASH
def test_bash_completes_commands_options_and_values() -> None:
    script = """
        eval "$(_THALWEG_COMPLETE=source_bash thalweg)"
        for typed in "$@"; do
            COMP_WORDS=(thalweg $typed); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _thalweg_completion thalweg
            echo "${COMPREPLY[@]}"
        done
    """
    done = subprocess.run(  # noqa: S603 (our own command)
        ["bash", "--norc", "-c", script, "bash", *TYPED],  # noqa: S607 (the one that people have)
        env={**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    offered = [set(line.split()) for line in done.stdout.splitlines()]
    assert dict(zip(TYPED, offered, strict=True)) == TYPED


def test_whoever_presses_tab_does_not_wait_for_what_few_commands_need() -> None:
    slow = ["pandas", "pyspark", "uvicorn", "matplotlib", "duckdb", "polars"]
    code = f"import sys; import thalweg.cli.app; print([m for m in {slow} if m in sys.modules])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (ours)
    assert done.stdout == "[]\n"
