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
from thalweg.control.scaling.history import History, Origin
from thalweg.control.scaling.learning import Learning, Table
from thalweg.control.scaling.policies import NAMES, POLICIES, named
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


@pytest.mark.quiet  # samples have to be taken in time
def test_a_run_follows_a_policy_and_keeps_its_history() -> None:
    words = ("--scale", "ds2", "--speed", "50", "--most", "6", "--history", "kept.db", "-v")
    text = call("run", "program.py", *words).output
    assert re.search(r"ds2: wait 1 -> [2-6] because ", text)
    assert re.search(r"epoch 1 \('wait' from 1 to [2-6] tasks: ", text)
    shown = call("history", "kept.db").output
    assert re.search(r"ds2 +wait +1 -> [2-6] ", shown)


@pytest.mark.parametrize("looking", [["--ui"], ["--record", "run.sqlite"], []], ids=str)
def test_other_policies_are_asked_where_somebody_sees_what_they_want(
    looking: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_on: list[Any] = []
    monkeypatch.setattr("thalweg.cli.app.run_topology", lambda _, on, *rest: run_on.append(on))
    call("run", "program.py", "--scale", "ds2", *looking)
    others = tuple(name for name in POLICIES if name != "ds2") if looking else ()
    assert run_on[0].scaling.beside == others


@pytest.mark.quiet  # samples have to be taken in time
def test_without_v_only_what_was_done_is_shown() -> None:
    text = call("run", "program.py", "--scale", "ds2", "--speed", "50").output
    assert "epoch 1" in text
    assert "because" not in text


@pytest.mark.quiet  # samples have to be taken in time
def test_a_dry_run_shows_every_policy_beside_each_other_and_keeps_their_wishes() -> None:
    words = ("--dry-run", "--speed", "50", "--most", "6", "--history", "kept.db")
    text = call("scale", "program.py", *words).output
    assert re.search(r" rising +thalweg +wait +1 -> [2-6] +no ", call("history", "kept.db").output)
    assert "epoch" not in text
    assert re.search(r"s  wait has 1: thalweg [2-6], static 1, incremental ", text)
    head, row = re.search(r"( *component +in force .*)\n.*\n( *wait .*)", text).groups()  # type: ignore[union-attr] # found
    assert head.split()[3:] == [
        "thalweg", "static", "incremental", "learning", "autoscale", "autoscale+", "ds2",
    ]  # fmt: skip
    assert re.fullmatch(r"wait 1 1-[2-6] \([\d.]+\) 1 .*", " ".join(row.split()))


@pytest.mark.quiet  # samples have to be taken in time
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
        (["--scale", "incremantal"], "(did you mean 'incremental'?)"),
        (["--scale", "thalweg:econmy"], "(did you mean 'thalweg:economy'?)"),
        (["--speed", "2"], "--speed: expected only together with --scale"),
        (["--scale", "ds2", "--on", "inline"], "--scale: expected only together with --on local"),
        (["--scale", "ds2", "--speed", "0"], "scaling speed: expected more than 0, and finite"),
        (["--scale", "ds2", "--speed", "inf"], "scaling speed: expected more than 0, and finite"),
        (["--scale", "ds2", "--speed", "nan"], "scaling speed: expected more than 0, and finite"),
        (
            ["--scale", "ds2", "--speed", "1e7"],
            "sample period of 'ds2': expected 0.01 s or more, got 1e-06 s",
        ),
        (["--scale", "learning:none.json"], "make it with thalweg train"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], expected: str) -> None:
    result = CliRunner().invoke(app, ["run", "program.py", *words])
    assert result.exit_code != 0
    assert expected in " ".join(result.output.split())


@pytest.mark.parametrize("command", [["run"], ["server", "set-policy"]])
def test_the_help_names_the_policies(command: list[str]) -> None:
    wide = {"COLUMNS": "1000", "TERMINAL_WIDTH": "1000"}
    text = CliRunner().invoke(app, [*command, "--help"], env=wide).output
    assert ", ".join(NAMES) in " ".join(text.split())


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


@pytest.mark.parametrize("cost", ["inf", "nan", "0", "-1"])
def test_a_cost_has_to_be_a_time(tmp_path: Path, cost: str) -> None:
    (tmp_path / "rates.csv").write_text("100\n")
    words = ("--component", "count", "--cost", cost)
    text = call("train", "rates.csv", "-o", "table.json", *words, code=1).output
    assert "--cost above 0, and finite" in " ".join(text.split())


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ("10\n50\n90\n", [50.0]),  # shorter than a period
        ("20\n" * 10 + "80\n" * 4, [520 / 14]),  # less than half of one more
        ("20\n" * 10 + "80\n" * 6, [20.0, 80.0]),
    ],
)
def test_a_trace_is_learnt_at_the_rates_that_it_has(
    tmp_path: Path, counts: str, expected: list[float]
) -> None:
    (tmp_path / "rates.csv").write_text(counts)
    call("train", "rates.csv", "-o", "table.json", "--component", "count", "--cost", "0.08")
    table = Table.load(tmp_path / "table.json")
    assert list(table.rewards["count"]) == [table.band(rate) for rate in expected]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--component", "count"], "--component"),
        (["--cost", "0.08"], "--cost"),
        (["--most", "4", "--every", "2 s"], "--most, --every"),
    ],
)
def test_what_is_only_for_a_trace_is_refused_with_a_history(
    tmp_path: Path, words: list[str], named: str
) -> None:
    with History(tmp_path / "kept.db") as history:
        history.add([Sample("count", 10.0, 1, 100, 100, {}, 0, 0.1, 0.1)])
    text = call("train", "kept.db", "-o", "table.json", *words, code=1).output
    assert f"expected no options of a trace, got {named}" in " ".join(text.split())


def test_runs_of_different_periods_are_learnt_each_at_its_own_rates(tmp_path: Path) -> None:
    with History(tmp_path / "kept.db") as history:
        for period, begin in ((10.0, 0.0), (0.5, 1000.0)):
            seen = [
                Sample("count", begin + period * at, 1, round(40 * period), 5, {}, 0, 0.1, 0.1)
                for at in range(5)
            ]
            history.add(seen, origin=Origin("words", period))
    call("train", "kept.db", "-o", "table.json")
    table = Table.load(tmp_path / "table.json")
    assert list(table.rewards["count"]) == [table.band(40.0)]


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
