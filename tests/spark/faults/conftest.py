"""Failpoints in the processes of the one Spark session, and drivers that start quickly."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest

from quickjava import java_options, make_archive
from sparksession import spark_session

_VARIABLE = "THALWEG_FAILPOINTS"
#: What drivers need; the last one is loaded late otherwise.
LOADED = ["thalweg.runtimes.spark.running", "pyspark.sql", "pandas"]


@pytest.fixture(scope="session")
def java() -> str:
    """Give options of Java with which a driver starts in less than half of the CPU time."""
    make_archive()
    multiprocessing.set_forkserver_preload(LOADED)
    forkserver.ensure_running()  # it stays until the end
    return java_options()


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
