"""``thalweg run FILE --config FILE.yaml``, and what ``-v`` shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thalweg.cli.app import app

PROGRAM = """
import thalweg as tw

class Words(tw.Spout):
    outputs = {"word": str}
    def prepare(self, context):
        self.left = ["to", "be", "or", "not"] * 5
        self.open = 0
    def next_tuple(self):
        if self.left:
            self.open += 1
            self.emit(self.left.pop(), id=len(self.left))
        elif not self.open:
            self.finish()
    def ack(self, id):
        self.open -= 1

class Count(tw.Bolt):
    outputs = ["word", "n"]
    def prepare(self, context):
        self.words = context.metric("words", "multi-count")
    def process(self, t):
        self.words.incr(t.word)

topology = tw.TopologyBuilder("words")
topology.add_spout("words", Words())
topology.add_bolt("count", Count(), degree=4).fields("words", "word")
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    Path("program.py").write_text(PROGRAM)
    return "program.py"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["run", *arguments])
    return result.exit_code, result.output


def test_a_configuration_is_applied_and_says_what_it_does_not_change(program: str) -> None:
    Path("storm.yaml").write_text(
        "topology.max.task.parallelism: 2\n"
        "topology.kryo.register: []\n"
        "topology.metrics.consumer.register:\n"
        "  - class: org.apache.storm.metric.LoggingMetricsConsumer\n"
        "    argument: metrics.jsonl\n"
    )
    code, shown = run(program, "--config", "storm.yaml")
    assert code == 0
    assert "storm.yaml: topology.kryo.register: tuples travel as Arrow blocks" in shown
    lines = [json.loads(line) for line in Path("metrics.jsonl").read_text().splitlines()]
    tasks = [line for line in lines if line["component"] == "count"]
    assert [line["task"] for line in tasks] == [0, 1]
    assert sum(line["points"]["words"].get("to", 0) for line in tasks) == 5


def test_quiet_says_nothing(program: str) -> None:
    Path("storm.yaml").write_text("topology.kryo.register: []\n")
    assert run(program, "--config", "storm.yaml", "-q") == (0, "")


def test_an_unknown_key_ends_the_command_before_anything_starts(program: str) -> None:
    Path("storm.yaml").write_text("topology.wrokers: 2\n")
    code, shown = run(program, "--config", "storm.yaml")
    assert code != 0
    assert "did you mean 'topology.workers'?" in shown
    assert "runs on" not in shown


def test_verbose_shows_what_storm_shows(program: str) -> None:
    code, shown = run(program, "-v")
    assert code == 0
    header = next(line for line in shown.splitlines() if "transferred" in line)
    assert header.split() == [
        "component",
        "transferred",
        "acked",
        "failed",
        "execute",
        "process",
        "complete",
        "capacity",
    ]
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.split()}
    assert rows["words"][1:4] == ["20", "20", "0"]
