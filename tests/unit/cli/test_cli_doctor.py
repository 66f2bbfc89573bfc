"""``thalweg doctor``: what it makes of machines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from thalweg.cli import checking
from thalweg.cli.app import app
from thalweg.cli.checking import Finding, Machine, judged

GOOD = Machine(
    python=(3, 12),
    cores=4,
    memory=16 << 30,
    free_memory=8 << 30,
    disk=100 << 30,
    temporary=100 << 30,
    files=4096,
    java="/usr/bin/java",
    java_version=17,
    packages={
        "pyspark": "4.3.0",
        "pandas": "2.2.0",
        "confluent-kafka": "2.13",
        "paho-mqtt": "2.1",
        "psycopg": "3.2",
        "opentelemetry-sdk": "1.30",
        "mtkahypar": "1.5",
    },
)


def found(machine: Machine, what: str) -> Finding:
    return next(each for each in judged(machine) if each.what == what)


def without(package: str) -> Machine:
    return replace(GOOD, packages={k: v for k, v in GOOD.packages.items() if k != package})


def test_a_good_machine_has_nothing_to_do() -> None:
    assert {(each.level, each.advice) for each in judged(GOOD)} == {("ok", "")}


@pytest.mark.parametrize(
    ("machine", "what", "level", "advice"),
    [
        (replace(GOOD, python=(3, 10)), "Python", "problem", "3.11"),
        (replace(GOOD, cores=1), "cores", "note", "nothing at the same time"),
        (replace(GOOD, free_memory=1 << 30), "memory free", "note", "end other programs"),
        (replace(GOOD, free_memory=1 << 20), "memory free", "problem", "end other programs"),
        (replace(GOOD, disk=1 << 20), "disk here", "problem", "--checkpoint"),
        (replace(GOOD, temporary=1 << 30), "disk for what spills", "note", "TMPDIR"),
        (replace(GOOD, files=256), "open files", "note", "ulimit"),
        (replace(GOOD, java=None, java_version=None), "Java", "problem", "openjdk-17"),
        (replace(GOOD, java_version=11), "Java", "problem", "openjdk-17"),
        (without("pyspark"), "Spark", "note", "thalweg[spark]"),
        (replace(without("pyspark"), java=None), "Java", "note", "openjdk-17"),
        (without("confluent-kafka"), "kafka", "note", "thalweg[kafka]"),
        (
            replace(GOOD, packages={**GOOD.packages, "pyspark": "3.5.1"}),
            "Spark",
            "problem",
            "4.2 or newer",
        ),
        (replace(GOOD, packages={**GOOD.packages, "pandas": "3.0"}), "Spark", "problem", "<3"),
    ],
)
def test_what_is_missing_comes_with_what_to_do(
    machine: Machine, what: str, level: str, advice: str
) -> None:
    finding = found(machine, what)
    assert finding.level == level
    assert advice in finding.advice


@pytest.mark.parametrize(
    ("java", "code", "verdict"), [("java", 0, "ready"), (None, 1, "1 problem")]
)
def test_the_exit_code_says_whether_topologies_can_run(
    monkeypatch: pytest.MonkeyPatch, java: str | None, code: int, verdict: str
) -> None:
    monkeypatch.setattr(checking, "looked", lambda: replace(GOOD, java=java))
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == code
    assert verdict in done.stdout.splitlines()[-1]


def test_this_machine_can_be_looked_at() -> None:
    machine = checking.looked()
    assert machine.cores >= 1
    assert 0 < machine.free_memory <= machine.memory
    assert "msgspec" not in machine.packages


def test_a_java_home_without_a_java_is_to_be_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/java/here")
    finding = found(replace(GOOD, java=None, java_version=None), "Java")
    assert finding.found == "none at JAVA_HOME, which is /no/java/here"
    assert finding.advice.startswith("set JAVA_HOME rightly, or unset it; ")
