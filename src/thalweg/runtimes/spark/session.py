"""Getting a Spark session: the user's own, or one of ours with settings that suit it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from thalweg.errors import UsageError, explain
from thalweg.runtimes.spark.deploying import (
    SECRET_VARIABLE,
    check_authenticated,
    is_near,
    is_secret,
    network_settings,
    properties_text,
    read_properties,
)
from thalweg.runtimes.spark.gateway import hush, own_interrupts, start_gateway
from thalweg.runtimes.spark.reaching import check_installed, check_master

#: Settings of a session of our own.
DEFAULTS: Mapping[str, str] = {
    # A stage that lost its input must not be tried alone: the whole batch is run again.
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
}
_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


def submitted() -> bool:
    """Say whether spark-submit has started this process, and has said where it runs."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


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
        hush()
        session.stop()


def make_session(master: str, name: str, settings: Mapping[str, str]) -> Any:
    """Make a session with settings that suit Thalweg; under spark-submit, the one it has set up."""
    if submitted():
        return _inherited_session(name, settings)
    check_installed()
    chosen = settings_for(master, settings)
    check_master(master)
    from pyspark import SparkContext  # noqa: PLC0415 (an extra: only for those who use it)

    if SparkContext._active_spark_context is not None:
        hint = "run on it: tw.Spark(session), or stop it first"
        raise UsageError(explain("Spark", "", "no session in this process", "one", hint))
    if is_near(master):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = f"-Dlog4j2.configurationFile={log_file()}"
    chosen["spark.driver.extraJavaOptions"] = " ".join(
        filter(None, [chosen.get("spark.driver.extraJavaOptions"), options])
    )
    # A JVM that runs already is told without a command line.
    is_new = SparkContext._gateway is None
    secrets = {key: value for key, value in chosen.items() if is_new and is_secret(key)}
    told = {key: value for key, value in chosen.items() if key not in secrets}
    try:
        with _whispered(secrets):
            return _session({"spark.master": master, **told}, name)
    except Exception as error:
        raise _no_session(master, error) from error


def settings_for(master: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Give the settings of a session at a master; raises where it would be open to all."""
    network = network_settings(master, os.environ.get(SECRET_VARIABLE))
    given = {**network, **settings}
    check_authenticated(master, given, spark_defaults())
    return {**DEFAULTS, **given}


def spark_defaults() -> dict[str, str]:
    """Read the settings that Spark itself takes from its file, if there is one."""
    home = Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")
    try:
        return read_properties((home / "spark-defaults.conf").read_text(encoding="utf-8"))
    except OSError:
        return {}


def spark_home() -> Path:
    """Find Spark: where SPARK_HOME says, or inside of PySpark."""
    import pyspark  # noqa: PLC0415 (an extra: only for those who use it)

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _session(settings: Mapping[str, str], name: str) -> Any:
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra: only for those who use it)

    start_gateway(settings)
    builder = SparkSession.builder.appName(f"thalweg {name}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with own_interrupts():
        return builder.getOrCreate()


def _inherited_session(name: str, settings: Mapping[str, str]) -> Any:
    """Make the session with the settings of spark-submit; ours fill the gaps."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 (an extra: only for its users)

    SparkContext._ensure_initialized()
    known = SparkConf()
    missing = {key: value for key, value in DEFAULTS.items() if not known.contains(key)}
    return _session({**missing, **settings}, name)


@contextmanager
def _whispered(secrets: Mapping[str, str]) -> Iterator[None]:
    """Let Spark find secrets in a file of ours: PySpark puts all else on its command line."""
    if not secrets:
        yield
        return
    before = os.environ.get(_SUBMIT_ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="thalweg-") as folder:
        file = write_properties(Path(folder), secrets)
        options = f"--properties-file {shlex.quote(str(file))} --load-spark-defaults"
        os.environ[_SUBMIT_ARGUMENTS] = f"{options} {before or 'pyspark-shell'}"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SUBMIT_ARGUMENTS]
            else:
                os.environ[_SUBMIT_ARGUMENTS] = before


def write_properties(folder: Path, settings: Mapping[str, str]) -> Path:
    """Write settings into a file that only its owner can read."""
    file = folder / "spark.properties"
    with open(
        os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as f:
        f.write(properties_text(settings))
    return file


def _use_this_python(session: Any) -> None:
    """Let local workers be the Python that runs here, unless somebody chose another."""
    context = session.sparkContext
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


def log_file() -> str:
    """Name the file that says what Spark logs."""
    found = resources.files("thalweg.runtimes.spark").joinpath("log4j2.properties")
    return f"file:{found}".replace(" ", "%20")


def _no_session(master: str, error: Exception) -> UsageError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    # Py4J says in the first line what was called, and in the second one what went wrong.
    reason = next((line[2:] for line in lines if line.startswith(": ")), lines[0])
    hint = "is the address right, and does the master run?" if "://" in master else ""
    return UsageError(explain(f"Spark at {master!r}", "", "a session", reason, hint))
