"""Getting a Spark session: the user's own, or one of ours with settings that suit it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import Any

from thalweg.errors import UsageError, explain
from thalweg.runtimes.spark.reaching import check_installed, check_master

#: Settings of a session of our own.
DEFAULTS: Mapping[str, str] = {
    # A stage that lost its input must not be tried alone: the whole batch is run again.
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
_LOCAL: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def check_session(session: Any) -> None:
    """Refuse sessions that have no RDDs."""
    if "connect" in type(session).__module__.split("."):
        raise UsageError(
            explain(
                "Spark session",
                expected="a classic one",
                got="Spark Connect",
                hint="Connect has no RDDs; run where SparkSession.builder.master(...) works",
            )
        )


@contextmanager
def session_for(
    given: Any, master: str, name: str, settings: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """Give the session to run on; one of our own is stopped at the end."""
    if given is not None:
        check_session(given)
        _use_this_python(given)
        yield given
        return
    session = make_session(master, name, settings or {})
    try:
        yield session
    finally:
        session.stop()


def make_session(master: str, name: str, settings: Mapping[str, str]) -> Any:
    """Make a session with settings that suit Thalweg."""
    check_installed()
    check_master(master)
    from pyspark import SparkContext  # noqa: PLC0415 (an extra: only for those who use it)
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra: only for those who use it)

    if SparkContext._active_spark_context is not None:
        hint = "run on it: tw.Spark(session), or stop it first"
        raise UsageError(explain("Spark", "", "no session in this process", "one", hint))
    local = master.startswith("local")
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {**DEFAULTS, **(_LOCAL if local else {}), **settings}
    options = f"-Dlog4j2.configurationFile={_log_file()}"
    chosen["spark.driver.extraJavaOptions"] = " ".join(
        filter(None, [chosen.get("spark.driver.extraJavaOptions"), options])
    )
    builder = SparkSession.builder.master(master).appName(f"thalweg {name}")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise _no_session(master, error) from error


def _use_this_python(session: Any) -> None:
    """Let local workers be the Python that runs here, unless somebody chose another."""
    context = session.sparkContext
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


def _log_file() -> str:
    found = resources.files("thalweg.runtimes.spark").joinpath("log4j2.properties")
    return f"file:{found}".replace(" ", "%20")


def _no_session(master: str, error: Exception) -> UsageError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    hint = "is the address right, and does the master run?" if "://" in master else ""
    return UsageError(explain(f"Spark at {master!r}", "", "a session", reason, hint))
