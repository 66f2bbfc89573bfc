"""Every example runs, describes itself, and prints what it should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sparksession import spark_session
from thalweg import Spark
from thalweg.cli.loading import load
from thalweg.testing import ManualClock
from thalweg.workloads.posts import PostSettings, posts

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("thalweg")
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


def run(*arguments: str | Path) -> str:
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_describes_itself(name: str) -> None:
    assert run(COMMAND, "describe", f"examples/{name}.py").startswith(f"{name} · ")


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_a_program_too(name: str) -> None:
    by_python = run(sys.executable, f"examples/{name}.py")
    by_command = run(COMMAND, "run", "--quiet", f"examples/{name}.py")
    assert in_the_end(by_python) == in_the_end(by_command)


@pytest.mark.spark
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_prints_the_same_on_spark(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    topology = load(str(ROOT / "examples" / f"{name}.py"), {})
    topology.run(on="inline")
    inline = capsys.readouterr().out
    # By a manual clock no tick is due, each of which would be a batch.
    topology.run(on=Spark(spark_session(), places=3, clock=ManualClock()))
    assert in_the_end(capsys.readouterr().out) == in_the_end(inline)


def in_the_end(text: str) -> list[str]:
    """Leave out what examples print now and then: how often depends on the time."""
    return [line for line in text.splitlines() if not line.startswith("leading ")]


def test_wordcount_counts() -> None:
    lines = run(COMMAND, "run", "examples/wordcount.py", "--set", "repeat=7").splitlines()
    assert lines[0] == "50 different words, 616 in all"
    assert lines[1].split()[:3] == ["1", "to", "91"]
    assert len(lines) == 11


def test_trending_ranks_what_was_posted() -> None:
    count = 40_000
    output = run(COMMAND, "run", "examples/trending.py", "--set", f"posts={count}")
    source = posts(PostSettings(posts=count))
    rows = [row for number in range(3) for row in source.chunk(number).to_pylist()]
    tags = Counter(row["hashtag"] for row in rows).most_common(10)
    assert re.findall(r"^ +\d+  (#\w+) +([\d,]+)", output, re.M) == shown(tags)
    regions = Counter(row["region"] for row in rows).most_common()
    assert re.findall(r"^  ([A-Z]\w+) +([\d,]+)", output, re.M) == shown(regions)


def shown(counts: list[tuple[str, int]]) -> list[tuple[str, str]]:
    return [(name, f"{count:,}") for name, count in counts]


def test_sessions_take_in_every_click() -> None:
    few = run(COMMAND, "run", "examples/sessions.py", "--set", "clicks=1", "--set", "users=1")
    assert few.startswith("1 sessions of 1 users, 1.0 pages each")
    # With an endless gap, all clicks of a user are one session.
    settings = ("--set", "clicks=500", "--set", "users=5", "--set", "gap=1e9")
    assert run(COMMAND, "run", "examples/sessions.py", *settings).startswith(
        "5 sessions of 5 users, 100.0 pages each"
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_prints_in_ascii_where_nothing_else_is_known(name: str) -> None:
    done = subprocess.run(  # noqa: S603 (our own examples)
        [sys.executable, f"examples/{name}.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"##" in done.stdout
    assert b"\\u" not in done.stdout
