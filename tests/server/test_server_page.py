"""The tour of docs/server.md, command by command, as it stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from serverhost import processes_of, until

from docs.markdown import ROOT, commands, fenced_blocks, matches
from thalweg.server.folders import Home

PAGE = fenced_blocks((ROOT / "docs/server.md").read_text(encoding="utf-8"))


def degree(home: Home) -> int:
    """Say how many tasks the component has by what its runner said last."""
    status = home.status()
    assert status is not None
    return status.snapshot.component("by_customer").degree if status.snapshot else 0


def test_the_tour_goes_as_the_page_says(tmp_path: Path) -> None:
    program = next(block for block in PAGE if block.language == "python")
    tour = next(block for block in PAGE if block.language == "shellsession")
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs/orders.py").write_text(program.text)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    given = os.environ | {"PATH": path, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    begin, *rest = commands(tour)
    assert begin.text == "export THALWEG_ROOT=server"
    given["THALWEG_ROOT"] = "server"
    try:
        for command in rest:
            if command.text == "thalweg server show orders":
                # A runner says how it is twice a second, and people do not type as fast as this.
                until(lambda: degree(Home(tmp_path / "server/topologies/orders")) == 3)
            ended = subprocess.run(  # noqa: S602 (commands of our own page)
                command.text,
                shell=True,
                cwd=tmp_path,
                env=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert ended.returncode == 0, ended.stdout
            assert matches(command.shown or [], ended.stdout.splitlines()), ended.stdout
        until(lambda: not processes_of(tmp_path))
    finally:
        for pid in processes_of(tmp_path):  # only after a test that has failed
            os.kill(pid, 9)
