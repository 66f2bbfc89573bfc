"""Failpoints in the processes of the one Spark session, and drivers that start quickly."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from killing import check, start, tables_of
from program import Job

from sparksession import spark_session

_VARIABLE = "THALWEG_FAILPOINTS"
#: A JVM that lives for seconds: it compiles once, and has one thread to collect garbage.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give options of Java with which a driver starts in less than half of the CPU time.

    A run that nobody disturbs goes first; its JVM leaves its classes in an archive for the others.
    It is the parent of that driver, so that the archive is there when the driver has ended.
    """
    folder = tmp_path_factory.mktemp("undisturbed")
    archive = folder / "classes.jsa"
    options = f"{_SHORT_LIVED} -XX:ArchiveClassesAtExit={archive}"
    job = Job(folder=str(folder), rows=120, batch=30, java=options)
    submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
    assert start(job, str(submit), "--master", job.master) == 0, (folder / "log").read_text()
    check(job, tables_of(job))
    return f"{_SHORT_LIVED} -XX:SharedArchiveFile={archive}"


@pytest.fixture(scope="session")
def _failpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one folder for all tests: Spark keeps workers that have the same environment."""
    return tmp_path_factory.mktemp("armed")


@pytest.fixture
def failing(_failpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder for a job whose failpoints count in this process and in Spark's workers."""
    (tmp_path / "failpoints").symlink_to(_failpoints)
    environment = spark_session().sparkContext.environment
    environment[_VARIABLE] = str(_failpoints)
    monkeypatch.setenv(_VARIABLE, str(_failpoints))
    yield tmp_path
    del environment[_VARIABLE]
    shutil.rmtree(_failpoints)
    _failpoints.mkdir()
