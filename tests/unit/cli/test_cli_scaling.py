"""Scaling from the command line: runs that follow a policy, dry runs, training."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import thalweg as tw
from thalweg.cli.app import app
from thalweg.cli.scaling import RunScaleOptions
from thalweg.cli.spark_options import SparkOptions
from thalweg.control.scaling.history import History
from thalweg.control.scaling.learning import Learning, Table
from thalweg.control.scaling.policies import named
from thalweg.control.scaling.values import Sample
from thalweg.errors import UsageError

#: From half of what a task can do to four times that.
PROGRAM = """
import thalweg as tw

class Wait(tw.Bolt):
    outputs = ["n"]

    def process(self, t):
        self.context.clock.sleep(0.01)

builder = tw.TopologyBuilder("rising")
stream = tw.rate(tw.steps([(50, "1 s"), (400, "1.2 s")]), lambda n: n)
builder.add_spout("numbers", stream, fields={"n": int})
builder.add_bolt("wait", Wait(), degree=1).shuffle("numbers")
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)


def call(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result


def test_a_run_follows_a_policy_and_keeps_its_history() -> None:
    words = ("--scale", "ds2", "--speed", "50", "--most", "6", "--history", "kept.db", "-v")
    text = call("run", "program.py", *words).output
    assert re.search(r"ds2: wait 1 -> [2-6] because ", text)
    assert re.search(r"epoch 1 \('wait' has [2-6] tasks, not 1\)", text)
    shown = call("history", "kept.db").output
    assert re.search(r"ds2 +wait +1 -> [2-6] ", shown)


def test_without_v_only_what_was_done_is_shown() -> None:
    text = call("run", "program.py", "--scale", "ds2", "--speed", "50").output
    assert "epoch 1" in text
    assert "because" not in text


def test_a_dry_run_shows_every_policy_beside_each_other() -> None:
    text = call("scale", "program.py", "--dry-run", "--speed", "50", "--most", "6").output
    assert "epoch" not in text
    assert re.search(r"s  wait has 1: thalweg [2-6], static 1, incremental ", text)
    head, row = re.search(r"( *component +in force .*)\n.*\n( *wait .*)", text).groups()  # type: ignore[union-attr] # found
    assert head.split()[3:] == [
        "thalweg", "static", "incremental", "learning", "autoscale", "autoscale+", "ds2",
    ]  # fmt: skip
    assert re.fullmatch(r"wait 1 1-[2-6] \([\d.]+\) 1 .*", " ".join(row.split()))


def test_a_policy_leads_and_the_others_are_shown() -> None:
    longer = PROGRAM.replace('"1.2 s"', '"4 s"')  # so that it goes on after the change
    Path("program.py").write_text(longer)
    text = call("scale", "program.py", "--policy", "ds2", "--speed", "50").output
    assert "epoch 1" in text
    assert re.search(r"wait has [2-9]: ds2 \d+, thalweg \d+, static", text)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--scale", "hope"], "scaling policy: expected one of"),
        (["--speed", "2"], "--speed: expected only together with --scale"),
        (["--scale", "ds2", "--on", "inline"], "--scale: expected only together with --on local"),
        (["--scale", "ds2", "--speed", "0"], "scaling speed: expected more than 0"),
        (["--scale", "learning:none.json"], "make it with thalweg train"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], expected: str) -> None:
    result = CliRunner().invoke(app, ["run", "program.py", *words])
    assert result.exit_code != 0
    assert expected in " ".join(result.output.split())


def test_on_spark_places_follow() -> None:
    options = RunScaleOptions(scale="ds2", most=4, speed=2.0)
    spark = options.applied(SparkOptions(executors="elastic", places=2).runtime("spark"))
    assert isinstance(spark, tw.Spark)
    assert spark.scaling == tw.Scaling("ds2", most=4, speed=2.0)
    assert (spark.places, spark.executors) == (2, "elastic")


def test_on_spark_no_tuples_are_given_up() -> None:
    words = ["run", "program.py", "--on", "spark", "--scale", "ds2", "--loss", "0.1"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code != 0
    assert "scaling loss on Spark: expected 0" in " ".join(result.output.split())


# --- training -------------------------------------------------------------------------------------


def test_a_table_is_trained_on_a_trace(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("day,count\na,100\nb,500\nc,900\n")
    words = ("--component", "count", "--cost", "0.08", "--every", "10 s", "--column", "count")
    text = call("train", "rates.csv", "-o", "table.json", *words).output
    assert re.search(r"count +\S+ +8\b", text)
    policy = named("learning:table.json")
    assert isinstance(policy, Learning)
    assert [policy.table.best("count", rate) for rate in (10, 50, 90)] == [1, 4, 8]


def test_training_adds_to_what_is_known(tmp_path: Path) -> None:
    for rate in (100, 900):
        (tmp_path / "rates.csv").write_text(f"{rate}\n")
        words = ("--component", "count", "--cost", "0.08", "--every", "10 s")
        call("train", "rates.csv", "-o", "table.json", *words)
    table = Table.load(tmp_path / "table.json")
    assert [table.best("count", rate) for rate in (10, 90)] == [1, 8]


def test_a_table_is_learnt_from_a_history(tmp_path: Path) -> None:
    def sample(at: int, degree: int, done: int) -> Sample:
        waiting = 100 - done
        return Sample("count", 5.0 * at, degree, 100, done, {}, waiting, 0.1, 0.1)

    with History(tmp_path / "kept.db") as history:
        history.add([sample(at, 1, 50) for at in range(4)])
        history.add([sample(at, 2, 100) for at in range(4, 8)])
        history.add([Sample("posts", 5.0, 1, 100, 100)])
    call("train", "kept.db", "-o", "table.json")
    table = Table.load(tmp_path / "table.json")
    assert list(table.rewards) == ["count"]
    assert table.best("count", 20.0) == 2


def test_a_trace_needs_to_know_its_component(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("100\n")
    text = call("train", "rates.csv", "-o", "table.json", code=1).output
    assert "expected --component and --cost above 0" in " ".join(text.split())


def edited(path: Path, **values: Any) -> None:
    Table().save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    "values",
    [
        {"growth": 1.0},
        {"growth": "much"},
        {"kind": "another table"},
        {"rewards": {"count": {"3": {}}}},
        {"rewards": {"count": {"3": {"0": {"value": 1.0, "count": 1}}}}},
        {"rewards": {"count": {"3": {"1": {"value": "good"}}}}},
    ],
    ids=["growth", "type", "kind", "empty", "degree", "reward"],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, values: dict[str, Any]) -> None:
    path = tmp_path / "table.json"
    edited(path, **values)
    with pytest.raises(UsageError, match="expected a table"):
        Table.load(path)


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    edited(path)
    assert Table.load(path) == Table()
