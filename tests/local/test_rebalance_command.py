"""``thalweg rebalance`` changes degrees of a ``thalweg run`` that keeps snapshots."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from thalweg.cli.app import app
from thalweg.statelog.arrangements import load_arrangements
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests

PROGRAM = """
import thalweg as tw

flow = tw.Flow("steered")
stream = flow.source("keys", tw.rate(tw.constant(1000), lambda n: n % 37), fields={"key": int})
stream = stream.map(lambda key: key, fields={"key": int}, name="same")
stream.key_by("key").running_count(name="count", degree=2).sink("out", tw.stdout("jsonl"))
"""


@contextmanager
def running(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the program until its block is left."""
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "thalweg", "run", "program.py", "--checkpoint", "kept"]
    with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
        run = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, text=True)  # noqa: S603 (our own program)
    try:
        while run.poll() is None and Manifests(Location.of(folder / "kept/state")).latest() is None:
            time.sleep(0.02)
        yield run
    finally:
        run.send_signal(signal.SIGINT)  # as Ctrl-C: it stops, and could go on
        assert run.wait() == 0, (folder / "err").read_text()


def rebalance(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["rebalance", str(folder / "kept/state"), *arguments])


def test_a_run_gets_other_degrees(tmp_path: Path) -> None:
    with running(tmp_path):
        done = rebalance(tmp_path, "count=3", "same=2")
        assert done.exit_code == 0, done.output
        assert "'same' has 2 workers at most" in done.output
        assert "'count' has 3 tasks in place of 2): moved" in done.output
        refused = rebalance(tmp_path, "count=4", "out=2")
        assert refused.exit_code != 0
        assert "a sink without a degree" in refused.output
        unknown = rebalance(tmp_path, "nobody=2")
        assert "expected one of ['same', 'count', 'out']" in unknown.output
    state = Location.of(tmp_path / "kept/state")
    last = Manifests(state).latest()
    assert last is not None
    arranged = load_arrangements(state, last.arrangements)
    assert {name: kept.degree for name, kept in arranged.items()} == {"count": 3, "same": 2}
    seen: Counter[int] = Counter()
    for line in (tmp_path / "out").read_text().splitlines():
        row = json.loads(line)
        seen[row["key"]] += 1
        assert row["count"] == seen[row["key"]]
    assert len(seen) == 37
    assert "nothing changes: " in (tmp_path / "err").read_text()


@pytest.mark.parametrize("arguments", [[], ["count=2", "--places", "3"], ["count"], ["count=0"]])
def test_it_has_to_be_said_what_is_to_change(tmp_path: Path, arguments: list[str]) -> None:
    result = rebalance(tmp_path, *arguments)
    assert result.exit_code == 2
    assert "COMPONENT=DEGREE" in result.output


def test_a_run_that_has_no_places_is_not_asked_for_some(tmp_path: Path) -> None:
    with running(tmp_path):
        result = rebalance(tmp_path, "--places", "3")
    assert result.exit_code != 0
    assert "say COMPONENT=DEGREE" in result.output
