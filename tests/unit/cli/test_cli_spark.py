"""``thalweg run --on spark`` as far as no Spark is needed: options, refusals, display."""

from __future__ import annotations

import importlib.util
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from thalweg.cli import running, spark_session
from thalweg.cli.app import app
from thalweg.cli.showing import progress_text, totals_text
from thalweg.cli.spark_options import SparkOptions
from thalweg.errors import UsageError
from thalweg.metrics import Latency, Snapshot
from thalweg.runtimes.spark.reaching import check_master, standalone_addresses
from thalweg.runtimes.spark.runtime import Spark

PROGRAM = """
import thalweg as tw

flow = tw.Flow("words")
flow.source("words", tw.items(["to", "be"]), fields=["word"]).sink("out", tw.stdout())
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["run", "program.py", *arguments])


# --- options ----------------------------------------------------------------------------------


def spark(**options: Any) -> Spark:
    made = SparkOptions(**options).runtime("spark")
    assert isinstance(made, Spark)
    return made


def test_without_options_spark_runs_on_all_cores_and_keeps_nothing() -> None:
    made = spark()
    assert (made.master, made.places, made.trigger) == ("local[*]", None, None)
    assert (made.checkpoint, made.state) == (None, None)


def test_options_reach_the_runtime() -> None:
    made = spark(master="local[2]", places=3, trigger="1 second")
    assert (made.master, made.places, made.trigger) == ("local[2]", 3, "1 second")


@pytest.mark.parametrize("folder", ["shop", "shop/", "s3://bucket/shop"])
def test_a_checkpoint_holds_offsets_and_state(folder: str) -> None:
    made = spark(checkpoint=folder)
    plain = folder.rstrip("/")
    assert (made.checkpoint, made.state) == (f"{plain}/offsets", f"{plain}/state")


def test_state_may_be_elsewhere() -> None:
    made = spark(checkpoint="shop", state="s3://bucket/shop")
    assert (made.checkpoint, made.state) == ("shop/offsets", "s3://bucket/shop")


def test_other_runtimes_are_passed_on() -> None:
    assert SparkOptions().runtime(None) is None
    assert SparkOptions().runtime("inline") == "inline"


@pytest.mark.parametrize("on", [None, "inline", "abacus"])
def test_options_of_spark_make_no_sense_elsewhere(on: str | None) -> None:
    with pytest.raises(typer.BadParameter, match="--places: expected only together with --on sp"):
        SparkOptions(places=2).runtime(on)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--places", "2"], "--places: expected only together with --on spark"),
        (
            ["--on", "inline", "--state", "x", "--master", "local"],
            "--master and --state: expected only together with --on spark",
        ),
        (["--on", "spark", "--places", "two"], "Invalid value for '--places'"),
    ],
)
def test_options_that_make_no_sense_end_with_two(arguments: list[str], message: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


# --- refusals before Spark begins -------------------------------------------------------------


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let the only Java on this machine say that it has a version."""

    def pretend(version: str) -> None:
        file = tmp_path / "bin" / "java"
        file.parent.mkdir()
        file.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
        file.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return pretend


def refused(*arguments: str) -> str:
    done = call("--on", "spark", *arguments)
    assert done.exit_code == 1
    assert done.stdout == ""
    text = str(done.stderr)
    assert text.startswith("error: ")
    return text


@pytest.mark.usefixtures("java")
def test_no_java() -> None:
    assert "Java: expected version 17 or newer for Spark, got none on PATH (" in refused()


@pytest.mark.parametrize(("said", "version"), [("1.8.0_392", "8"), ("11.0.2", "11")])
def test_an_old_java(java: Callable[[str], None], said: str, version: str) -> None:
    java(said)
    assert f"newer for Spark, got version {version} (" in refused()


@pytest.mark.parametrize("said", ["17.0.15", "17", "25-ea"])
def test_a_java_that_will_do_gets_as_far_as_the_master(
    java: Callable[[str], None], said: str
) -> None:
    java(said)
    assert "Spark master 'nonsense'" in refused("--master", "nonsense")


@pytest.mark.usefixtures("java")
def test_a_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert f"got none at JAVA_HOME, which is {tmp_path} (" in refused()


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyspark" else found(name)
    )
    expected = "Spark: expected pyspark to be installed (pip install 'thalweg[spark]')"
    assert expected in refused()


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
    yield number


def test_a_master_that_does_not_run(java: Callable[[str], None], closed_port: int) -> None:
    java("17")
    text = refused("--master", f"spark://127.0.0.1:{closed_port}")
    assert "expected a master that answers, got Connection refused (is the address right" in text


def test_one_of_several_masters_is_enough(closed_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:{closed_port},127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,3]", "yarn", "k8s://https://a:1"])
def test_masters_that_only_spark_can_judge(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["", "localhost", "locals[2]", "spark://", "spark://host", "spark://host:port"]
)
def test_masters_that_are_none(master: str) -> None:
    with pytest.raises(UsageError, match=r"Spark master '.*': expected .*spark://HOST:PORT"):
        check_master(master)


def test_addresses_may_have_colons_of_their_own() -> None:
    assert standalone_addresses("spark://[::1]:7077") == [("::1", 7077)]


@pytest.mark.parametrize("option", ["--state", "--checkpoint"])
def test_state_where_nothing_can_be_written(
    java: Callable[[str], None], tmp_path: Path, option: str
) -> None:
    java("17")
    (tmp_path / "file").touch()
    text = refused(option, str(tmp_path / "file"))
    assert "cannot write '.probe-" in text
    assert f"at file://{tmp_path}/file" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--places", "0"], "places: expected at least 1, got 0"),
        (["--trigger", "soon"], "expected seconds above 0, or text such as '10 s', got 'soon'"),
    ],
)
def test_values_that_make_no_sense(arguments: list[str], message: str) -> None:
    assert message in refused(*arguments)


# --- what people see --------------------------------------------------------------------------


def test_batches_are_counted_and_timed() -> None:
    latency = Latency(0.25, 0.3, 2.0, 4)
    recent = Latency(0.75, 0.8, 0.9, 2, over=60.0)
    snapshot = Snapshot(2.0, (), 1000, 500, 0, latency, batches=4, recent=recent)
    times = "p50 250 ms  p95 300 ms  p99 2,000 ms"
    assert progress_text(snapshot, None).strip().endswith("500/s  4 batches  p50 750 ms")
    assert totals_text(snapshot).splitlines()[1] == f"4 batches, batch time {times}"
    one = Snapshot(2.0, (), 1000, 500, 0, latency, batches=1)
    assert totals_text(one).splitlines()[1] == f"1 batch, batch time {times}"


def test_ctrl_c_while_spark_starts_waits_for_it_and_aborts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = []

    @contextmanager
    def interrupted(spark: Spark, name: str, say: Callable[[str], None]) -> Iterator[Spark]:
        say(f"starting {name}")
        signal.raise_signal(signal.SIGINT)
        told.append("started")
        # As the session of Spark does.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield spark
        told.append("ran")

    monkeypatch.setattr(running, "started", interrupted)
    before = signal.getsignal(signal.SIGINT)
    done = call("--on", "spark")
    assert done.exit_code == 130
    assert done.stderr == "starting words\naborted\n"
    assert told == ["started"]
    assert signal.getsignal(signal.SIGINT) is before


def test_spark_is_announced_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = object()

    @contextmanager
    def session(*_arguments: Any) -> Iterator[object]:
        yield made

    monkeypatch.setattr(spark_session, "session_for", session)
    monkeypatch.setattr(spark_session, "check_installed", lambda: None)
    said: list[str] = []
    with spark_session.started(Spark(master="local[2]"), "words", said.append) as runtime:
        assert runtime.session is made
    assert said == ["starting Spark at local[2] (this takes a few seconds)"]
